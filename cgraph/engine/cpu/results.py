"""Outputs that a run may compute in memory outside of the arena, so that nothing is copied.

An output may move if it is alone in its bytes of the arena from the step that first writes them to the end: it, and the
values that it overwrites. All addresses into these bytes at these steps have a base of their own.
"""

from collections.abc import Mapping
from typing import Any

from cgraph.ir.graph import Node
from cgraph.kernels.kernel import ARENA, Pointer, View
from cgraph.memory.layout import owner_of
from cgraph.planning.compiled import Compiled
from cgraph.record import Record, replace

LEAST_NBYTES = 1 << 16  # a smaller output is copied in less time than its addresses take to change


class ResultPlace(Record, eq=False):
    """The base of the addresses of an output, and of the values that it overwrites; `start` is its arena offset."""

    output: Node
    start: int


def with_result_places(compiled: Compiled) -> Compiled:
    """Return the same plan with a `ResultPlace` as the base of all addresses into bytes that one output fills."""
    layout, usage, plan = compiled.layout, compiled.usage, compiled.plan
    bases = result_operands(compiled)
    places = {
        owner: Pointer(bases[operand], usage.offset(plan, i) - plan.offsets[operand])
        for owner, i in layout.value_of.items()
        if bases and (operand := usage.operand_of[i]) in bases
    }
    if not places:
        return compiled

    def moved(view: View) -> View:
        return replace(view, at=places[view.at.base] + view.at.offset)  # type: ignore[index]

    views = dict(compiled.views)
    for node, view in layout.views.items():
        if owner_of(view) in places:
            views[node] = tuple(map(moved, view)) if isinstance(view, tuple) else moved(view)
    return replace(compiled, views=views)


def result_operands(compiled: Compiled) -> Mapping[int, ResultPlace]:
    """Return the operands of the planning problem that one output fills, by their numbers."""
    layout, usage, plan = compiled.layout, compiled.usage, compiled.plan
    outputs_of: dict[int, list[Node]] = {}
    for x in compiled.outputs:
        view: Any = compiled.views[x]
        if not isinstance(view, tuple) and view.at.base is ARENA:
            operand = usage.operand_of[layout.value_of[owner_of(layout.views[x])]]
            outputs_of.setdefault(operand, []).append(x)

    def fills(x: Node, operand: int) -> bool:
        view: Any = compiled.views[x]
        size = usage.values[usage.roots[operand]].nbytes
        return view.is_contiguous and size == x.nbytes >= LEAST_NBYTES and view.at.offset == plan.offsets[operand]

    if usage.pieces is not None:  # values that overlap others have several operands
        return {}
    return {
        operand: ResultPlace(outputs[0], plan.offsets[operand])
        for operand, outputs in outputs_of.items()
        if len(outputs) == 1 and fills(outputs[0], operand)
    }
