"""The steps of a plan, each with its places: what every engine makes kernel calls from."""

from collections.abc import Iterator, Sequence
from typing import Any

from cgraph.ir.graph import Node
from cgraph.ir.work import Work
from cgraph.kernels.kernel import ARENA, Pointer, View, contiguous
from cgraph.planning import Compiled
from cgraph.record import Record


class Step(Record, eq=False):
    """One node with its places.

    Fields
        node: the op with its operands
        work: what the target does for it
        out, xs: views of the result and the operands
        workspace: a view of its bytes, or None
        dead: views whose bytes nobody reads after this step; poisoned when asked for
    """

    node: Node
    work: Work
    out: Any
    xs: tuple[Any, ...]
    workspace: View | None
    dead: Sequence[View] = ()


def steps_of(compiled: Compiled) -> Iterator[Step]:
    """All steps in running order."""
    layout, usage, plan, views = compiled.layout, compiled.usage, compiled.plan, compiled.views
    dead: dict[int, list[View]] = {}
    kept = {usage.operand_of[i] for i, v in enumerate(layout.values) if v.kept}
    for i, (x, at) in enumerate(zip(usage.problem.operands, plan.offsets)):
        if i not in kept:
            dead.setdefault(x.interval.last, []).append(contiguous(Pointer(ARENA, at), (x.nbytes,), "u1"))
    for t, node in enumerate(layout.steps):
        xs = tuple(views[x] for x in node.operands)
        yield Step(node, layout.works[node], views[node], xs, layout.workspace(node, usage, plan), dead.get(t, ()))
