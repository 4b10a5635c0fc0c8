"""Fusion of pointwise ops into one step that computes several outputs."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.memory.layout import is_leaf
from cgraph.ops.family import Pointwise
from cgraph.ops.fused import FusedResults
from cgraph.ops.shape import Item, unbroadcast
from cgraph.passes.fuse_pointwise import MOST_OPERANDS, MOST_OPS, body_of, count_of

Group = dict[Node, None]  # nodes, operands first; lists compare nodes by `==`, which makes one


def fuse_results(outputs: tuple[Node, ...], inputs: Collection[Node]) -> tuple[Node, ...]:
    """Compute outputs of one shape together if they read only Vars and constants, and share some of what they read.

    Each operand is read once, and no value between them has bytes; values are the same. Not done: where a value is read
    by an op that is not pointwise, since the outputs would wait for one another; where one depends on no input, since
    later runs need not compute it again.
    """
    graph = Roots.of(outputs)
    groups = [group for group in groups_of(graph).values() if is_worthwhile(group, graph, inputs)]
    if not groups:
        return outputs
    group_of = {node: group for group in groups for node in group}

    def change(node: Node, new: New) -> Node | None:
        group = group_of.get(node)
        if group is None or node not in graph.ends:
            return None if group is None else node
        results = {n: i for i, n in enumerate(n for n in group if n in graph.ends)}
        return apply(Item(results[node]), fused(group, results))

    return rebuild(graph, change)


def groups_of(graph: Roots) -> dict[tuple[int, ...], Group]:
    """Return the pointwise nodes of each shape that depend on nothing but leaves and one another."""
    groups: dict[tuple[int, ...], Group] = {}
    for node in graph.order:
        if isinstance(node.op, Pointwise):
            group = groups.setdefault(node.shape, {})
            if all(x in group or is_leaf(unbroadcast(x)) for x in node.operands):
                group[node] = None
    return groups


def is_worthwhile(group: Group, graph: Roots, inputs: Collection[Node]) -> bool:
    """Return True if several outputs gain by being computed together, and nothing else waits for them."""
    results, reads = [n for n in group if n in graph.ends], Counter(x for n in group for x in set(n.operands))
    if len(results) < 2 or sum(map(count_of, group)) > MOST_OPS or len(reads.keys() - group.keys()) > MOST_OPERANDS:
        return False
    if not all(n in graph.ends or group.keys() >= set(graph.users[n]) for n in group):
        return False
    shared = (x for x, count in reads.items() if count > 1 or (x in group and x in graph.ends))
    is_shared = any(unbroadcast(x).shape == results[0].shape for x in shared)
    return is_shared and all(depends_on(n, group, inputs) for n in group)


def depends_on(node: Node, inside: Collection[Node], inputs: Collection[Node]) -> bool:
    """Return True if a node of the group depends on an input."""
    waiting, done, allowed = [node], set[Node](), set(inputs)
    while waiting:
        x = waiting.pop()
        if x not in inside and unbroadcast(x) in allowed:
            return True
        if x in inside and x not in done:
            done.add(x)
            waiting += x.operands
    return False


def fused(group: Group, results: Iterable[Node]) -> Node:
    """Return the node that computes the results of a group, which comes operands first."""
    reads = list(dict.fromkeys(x for n in group for x in n.operands if x not in group))
    place, body = {x: i for i, x in enumerate(reads)}, list[Any]()
    for n in group:
        body += body_of(n, place, len(reads) + len(body))
        place[n] = len(reads) + len(body) - 1
    return apply(FusedResults(len(reads), tuple(body), tuple(place[n] for n in results)), *reads)
