"""Update edges whose sources are written directly into their Vars."""

from collections.abc import Collection, Mapping
from typing import Any

from cgraph.ir.graph import Node, apply
from cgraph.ir.origin import keeps_origin
from cgraph.ir.rewrite import with_new_operands
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import at_origins, post_order
from cgraph.kernels.kernel import View
from cgraph.memory.layout import NodeFacts, computes, owner_of
from cgraph.ops.leaf import Var
from cgraph.ops.physical.in_place import InPlace

MOST_WORK = 20_000_000  # nodes times update edges; beyond it the pass is skipped

Extra = dict[Node, list[Node]]


def update_in_place(
    outputs: tuple[Node, ...], updates: Mapping[Var, Node], allowed: Collection[Var], facts: NodeFacts
) -> tuple[tuple[Node, ...], dict[Var, Node]]:
    """Write sources of update edges into their Vars' bytes, where the old value is not read afterwards.

    Every reader of the old value must run before the source; if it does not already, an edge is added. A Var whose
    source would have to run both before and after a reader keeps its copy. Not done: Vars that are outputs; Vars
    outside `allowed`, since an input's bytes are the caller's; sources that could run before an op that may fail, since
    a failed run must leave all Vars unchanged; gradients of taken rows check the same indices once more. `facts` may
    contain the views of nodes already.
    """
    if not updates:
        return outputs, {}
    roots = (*outputs, *updates.values())
    order = post_order(roots)
    failing = alike_in_failing(order)
    if len(order) * len(updates) > MOST_WORK:
        return outputs, dict(updates)
    views = facts.views_of(order)
    readers = readers_of(order, views)
    shown = {owner_of(views[n]) for n in outputs}
    targets: dict[Node, Var] = {}
    extra: Extra = {}
    for x, source in updates.items():
        if x in allowed and x in views and x not in shown and source not in targets and may_write(source, x, facts):
            late = must_run_before(source, readers.get(x, []), extra)
            if late is not None and (not failing or all(map(ancestors(source, extra).intersection, failing))):
                targets[source] = x
                extra[source] = late
    new = rebuilt(roots, targets, extra)
    split = len(outputs)
    return tuple(new[n] for n in outputs), dict(zip(updates, (new[n] for n in roots[split:])))


def alike_in_failing(order: list[Node]) -> list[list[Node]]:
    """Return the nodes in which a run may fail, in groups that fail together: when one has passed, all will."""
    groups: dict[Any, list[Node]] = {}
    for node in order:
        if node.op.can_fail:
            groups.setdefault(node.op.reason(node), []).append(node)
    return list(groups.values())


def readers_of(order: list[Node], views: Mapping[Node, View | tuple[View, ...]]) -> dict[Node, list[Node]]:
    """Return the nodes that compute from a leaf's bytes, whole or through views."""
    readers: dict[Node, list[Node]] = {}
    for node in order:
        if computes(node, views):
            for base in dict.fromkeys(owner_of(views[x]) for x in node.operands):
                readers.setdefault(base, []).append(node)
    return readers


def may_write(source: Node, x: Var, facts: NodeFacts) -> bool:
    """Return True if the source computes bytes of its own, and reads the Var only as an operand that it may
    overwrite.
    """
    if isinstance(source.spec, Bundle) or source.op.writes or not computes(source, facts.views):
        return False
    permitted = facts.work(source).overwrites
    for i, y in enumerate(source.operands):
        if owner_of(facts.views[y]) is x and (i not in permitted or facts.views[y] != facts.views[x]):
            return False
    return True


def must_run_before(source: Node, readers: list[Node], extra: Extra) -> list[Node] | None:
    """Return the readers that are not yet forced to run before the source; None if one of them needs the source."""
    before = ancestors(source, extra)
    late = [r for r in readers if r is not source and r not in before]
    return None if any(source in ancestors(r, extra) for r in late) else late


def ancestors(node: Node, extra: Extra) -> set[Node]:
    """Return every node that runs before this one."""
    earlier: set[Node] = set()
    todo = [node]
    while todo:
        n = todo.pop()
        for x in (*n.operands, *extra.get(n, ())):
            if x not in earlier:
                earlier.add(x)
                todo.append(x)
    return earlier


@keeps_origin
def rebuilt(roots: tuple[Node, ...], targets: Mapping[Node, Var], extra: Extra) -> dict[Node, Node]:
    """Return every node on new operands, with the selected ones in place."""
    new: dict[Node, Node] = {}
    for node in at_origins(post_order(roots, extra)):
        operands = tuple(new[x] for x in node.operands)
        if node in targets:
            arguments = (*operands, targets[node], *(new[r] for r in extra[node]))
            new[node] = apply(InPlace(node.op, len(operands), len(operands)), *arguments)
        else:
            new[node] = with_new_operands(node, operands)
    return new
