"""Outputs that a run may compute in memory outside of the arena, so that nothing is copied.

An output may move if only it and the values that it overwrites use its bytes of the arena, from the step that first
writes them to the end. The same holds for each result of `FusedResults`. All addresses into these bytes at these steps
have a separate base.
"""

from typing import Any

from cgraph.ir.graph import Node
from cgraph.kernels.kernel import ARENA, Pointer, View
from cgraph.memory.layout import owner_of
from cgraph.ops.fused import FusedResults
from cgraph.planning.compiled import Compiled
from cgraph.record import Record, replace

LEAST_NBYTES = 1 << 16  # a smaller output is copied in less time than its addresses take to change


class ResultPlace(Record, eq=False):
    """The base of the addresses of an output, and of the values that it overwrites; `start` is its arena offset."""

    output: Node
    start: int


class Room(Record, eq=False):
    """The bytes ``first .. stop`` of an owner, counted from its own first byte, that are those of a result."""

    first: int
    stop: int
    place: ResultPlace


def with_result_places(compiled: Compiled) -> Compiled:
    """Return the same plan with a `ResultPlace` as the base of all addresses into bytes that one output fills."""
    places, usage, plan, value_of = places_of(compiled), compiled.usage, compiled.plan, compiled.layout.value_of
    rooms: dict[Node, list[Room]] = {}
    for owner, i in value_of.items() if places else ():
        for place in places.get(usage.operand_of[i], ()):
            first = place.start - usage.offset(plan, i)
            rooms.setdefault(owner, []).append(Room(first, first + place.output.nbytes, place))
    if not rooms:
        return compiled

    def moved(view: View) -> View:
        base: Any = view.at.base
        for room in rooms[base]:
            if room.first <= view.at.offset < room.stop:
                return replace(view, at=Pointer(room.place, view.at.offset - room.first))
        return replace(view, at=Pointer(ARENA, usage.offset(plan, value_of[base]) + view.at.offset))

    views = dict(compiled.views)
    for node, view in compiled.layout.views.items():
        if owner_of(view) in rooms:
            views[node] = tuple(map(moved, view)) if isinstance(view, tuple) else moved(view)
    return replace(compiled, views=views)


def places_of(compiled: Compiled) -> dict[int, list[ResultPlace]]:
    """Return the places of the outputs that may move, by the operand of the planning problem."""
    layout, usage = compiled.layout, compiled.usage
    if usage.pieces is not None:  # values that overlap others have several operands
        return {}
    outputs: dict[int, list[tuple[Node, View]]] = {}
    for x in compiled.outputs:
        view: Any = compiled.views[x]
        if not isinstance(view, tuple) and view.at.base is ARENA:
            operand = usage.operand_of[layout.value_of[owner_of(layout.views[x])]]
            outputs.setdefault(operand, []).append((x, view))
    places: dict[int, list[ResultPlace]] = {}
    for operand, pairs in outputs.items():
        root = usage.roots[operand]
        is_joint = root < len(layout.steps) and isinstance(layout.steps[root].op, FusedResults)
        for x, view in pairs:
            whole = is_joint or usage.values[root].nbytes == x.nbytes
            if whole and x.nbytes >= LEAST_NBYTES and view.is_contiguous and is_apart(x, view, pairs):
                places.setdefault(operand, []).append(ResultPlace(x, view.at.offset))
    return places


def is_apart(x: Node, view: View, pairs: list[tuple[Node, View]]) -> bool:
    """Return True if no other output has bytes among those of `x`; an output that is listed twice is two."""
    low, high = view.at.offset, view.at.offset + x.nbytes
    return sum(other.at.offset < high and low < other.at.offset + y.nbytes for y, other in pairs) == 1
