"""Walks over a graph: loops, not recursion, since graphs are deeper than Python's stack."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cgraph.ir.graph import Node
from cgraph.ir.origin import ORIGIN


def post_order(outputs: Iterable[Node], before: Mapping[Node, Sequence[Node]] | None = None) -> list[Node]:
    """Return every node that `outputs` need, operands before users, each once; depth first in operand order.

    `before` names further nodes that must precede a node without being its operands.
    """
    order: list[Node] = []
    done: set[Node] = set()
    waiting: list[Any] = [*outputs][::-1]  # None marks a node whose operands are above it
    while waiting:
        node = waiting.pop()
        if node is None:
            node = waiting.pop()
            done.add(node)
            order.append(node)
        elif node not in done:
            earlier = predecessors(node, before) if before else node.operands
            waiting += (node, None, *earlier[::-1])
    return order


def predecessors(node: Node, before: Mapping[Node, Sequence[Node]]) -> Sequence[Node]:
    """Return the operands of a node and the other nodes that precede it."""
    return (*node.operands, *before[node]) if node in before else node.operands


def users_of(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Return each node's users among `nodes`, in order; a user that reads it twice is listed once."""
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        users.setdefault(node, [])
        for x in dict.fromkeys(node.operands):
            users.setdefault(x, []).append(node)
    return users


def descendants(nodes: Iterable[Node], sources: Iterable[Node]) -> set[Node]:
    """Return those of `nodes` (operands before users) that depend on a source, sources included."""
    reached = set(sources)
    for node in nodes:
        if any(x in reached for x in node.operands):
            reached.add(node)
    return reached


def at_origins(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield each node; nodes created meanwhile have its origin.

    Use it in functions decorated with `keeps_origin`: a generator abandoned by an exception ends at an unknown time.
    """
    for node in nodes:
        ORIGIN.set(node.origin)
        yield node


def post_order_of(operands: Sequence[Sequence[int]], roots: Sequence[int]) -> tuple[int, ...]:
    """Return the post-order of a graph of integers: all that `roots` need, each after its operands."""
    order: list[int] = []
    visited = [False] * len(operands)
    for root in roots:
        if visited[root]:
            continue
        visited[root] = True
        stack = [(root, iter(operands[root]))]
        while stack:
            node, rest = stack[-1]
            unseen = next((x for x in rest if not visited[x]), None)
            if unseen is None:
                order.append(node)
                stack.pop()
            else:
                visited[unseen] = True
                stack.append((unseen, iter(operands[unseen])))
    return tuple(order)
