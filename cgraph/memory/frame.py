"""The frame of a region: its rings and its workspace as a planning problem of its own.

A ring is in use from the first band of its value to the last band that reads it; bands that need a workspace take turns
in one. Time that of `auto`.
"""

from collections.abc import Sequence

from cgraph.ir.bands import Event, Frame
from cgraph.memory.auto import auto
from cgraph.memory.check import check_plan
from cgraph.memory.problem import Operand, Problem, UsageInterval
from cgraph.memory.rows import Rows, heights, moves


def frame_of(values: Sequence[Rows], events: Sequence[Event], workspace: int, alignment: int) -> Frame:
    """A checked frame.

    Parameters
        values: of a region, the join last
        events: its bands in running order
        workspace: the most bytes that a band needs
    """
    rows = heights(values, ((e.value, e.first, e.stop) for e in events))
    run = moves(values, events, rows)
    problem = problem_of(values, [event.value for event in events], rows, workspace, alignment)
    plan = auto(problem)
    check_plan(problem, plan)
    return Frame(tuple(run), tuple(rows), (*plan.offsets[:-1], 0), plan.offsets[-1], plan.nbytes)


def problem_of(
    values: Sequence[Rows], order: Sequence[int], rows: Sequence[int], workspace: int, alignment: int
) -> Problem:
    """Rings in the order of the values, without the join's, then the workspace; a step is an event."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for t, i in enumerate(order):
        first.setdefault(i, t)
        for read in (i, *(r.source for r in values[i].reads)):
            last[read] = t
    operands = [
        Operand(rows[i] * values[i].row_nbytes, UsageInterval(first.get(i, 0), last.get(i, 0)), values[i].name)
        for i in range(len(values) - 1)
    ]
    whole = Operand(workspace, UsageInterval(0, max(len(order) - 1, 0)), "workspace")
    return Problem((*operands, whole), alignment)
