"""The curve of ``cgraph plan MODEL --budget BYTES``: bytes of the arena against the cost of each plan in calls."""

from typing import Any

import numpy as np

from cgraph.budget.bands.fit_bands import search_of
from cgraph.budget.bands.regions import CALL_NS
from cgraph.budget.budget import Budget
from cgraph.budget.fit import fit_plan
from cgraph.budget.planner import Planner
from cgraph.cli.model import CliModel
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.kernels.target import target_named
from cgraph.memory.check import check_plan
from cgraph.memory.layout import Layout, NodeFacts
from cgraph.memory.problem import Strategy
from cgraph.memory.smallest import Candidate, Choice
from cgraph.ops.physical.stream import Stream
from cgraph.planning.strategy import strategy_named
from cgraph.record import Record
from cgraph.system.progress import Bars, with_progress
from cgraph.view.curve import Point

RUNGS = 7  # budgets from the smallest plan to the one without changes, in geometric steps


class Curve(Record):
    """Plans of one graph within several budgets.

    Fields
        points: plans by falling bytes, all different
        asked: the plan within the requested budget; the smallest plan if none fits, the plan without changes if there
            is no budget
    """

    points: tuple[Point, ...]
    asked: Choice


def curve_of(model: CliModel, budget: int | None, memory: str | Strategy) -> Curve:
    """Plan a model within a budget and within others, as `compile` does. Time: up to twice a compile."""
    engine, strategy = CpuEngine(), strategy_named(memory)
    free = model.compiled(memory=memory, engine=engine).compiled
    assert free is not None
    baseline = Candidate(free.order, free.layout, free.usage), free.plan
    planner = Planner(strategy, engine.alignment, NodeFacts(target_named(engine.target)))
    search = search_of(baseline, None, planner)

    def within(nbytes: int) -> Choice:
        choice = fit_plan(baseline, Budget(nbytes), planner, search)
        check_plan(choice[0].usage.problem, choice[1])
        return choice

    room = free.nbytes if budget is None else budget
    asked = within(room)  # first, by a fresh search like that of `compile`
    is_met = asked[1].nbytes <= room
    least = within(0) if is_met else asked
    rungs = np.geomspace(max(least[1].nbytes, 1), max(free.nbytes, 1), RUNGS)[1:-1]
    choices = [
        baseline,
        *(within(int(nbytes)) for nbytes in with_progress("budgets", rungs.tolist(), Bars())),
        least,
        asked,
    ]
    by_nbytes = {choice[1].nbytes: choice for choice in choices}
    marked = asked[1].nbytes if is_met and budget is not None else None
    points = (point(baseline, by_nbytes[nbytes], nbytes == marked) for nbytes in sorted(by_nbytes, reverse=True))
    return Curve(tuple(points), asked)


def regions_of(choice: Choice) -> list[dict[str, Any]]:
    """Return the regions of a plan: their steps, the arena offsets of their band buffers, and all bands and slides."""
    (candidate, plan), regions = choice, []
    layout = candidate.layout
    for step, node in enumerate(layout.steps):
        if isinstance(node.op, Stream):
            frame = node.op.frame
            room = layout.workspace_of.get(node)
            moves = [vars_of(move.event) | vars_of(move) for move in frame.moves]
            regions.append(
                {
                    "step": step,
                    "values": [inner.label for inner in node.op.inner],
                    "nbytes": frame.nbytes,
                    "offset": None if room is None else candidate.usage.offset(plan, room),
                    "moves": moves,
                }
            )
    return regions


def vars_of(record: Record) -> dict[str, Any]:
    """Return the integers of a record by name."""
    return {name: value for name in record._fields if isinstance(value := getattr(record, name), int)}


def point(baseline: Choice, choice: Choice, asked: bool) -> Point:
    """Return a plan compared with the one without changes."""
    (bands, slides, steps), before = counts(choice[0].layout), counts(baseline[0].layout)
    again = steps - before[2]
    calls = bands + slides + steps - sum(before)
    nbytes = choice[1].nbytes
    return Point(nbytes, choice[0].order, bands, again, calls, calls * CALL_NS / 1e9, asked)


def counts(layout: Layout) -> tuple[int, int, int]:
    """Return the number of bands beyond one per step, of row slides, and of steps, counting those in regions."""
    regions = [node.op for node in layout.steps if isinstance(node.op, Stream)]
    inner = sum(len(op.inner) for op in regions)
    slides = sum(move.slides for op in regions for move in op.frame.moves)
    runs = sum(len(op.frame.moves) for op in regions) - slides
    return runs - inner, slides, len(layout.steps) - len(regions) + inner


def curve_lines(points: tuple[Point, ...]) -> list[str]:
    """Return a table; the plan within the budget is marked."""
    whole = max(points[0].nbytes, 1)
    return [
        f"  {'bytes':>14}{'saving':>9}{'bands':>8}{'again':>7}{'calls':>8}{'ms':>9}  means",
        *(
            f"{'>' if x.asked else ' '} {x.nbytes:>14}{100 * (1 - x.nbytes / whole):>7.1f} %{x.bands:>8}{x.again:>7}"
            f"{x.calls:>8}{x.seconds * 1e3:>9.3f}  {x.means}"
            for x in points
        ),
        "bands: beyond one of each step; again: steps computed again; calls: more than before, for bands, rows that",
        f"slide and steps again; ms: predicted for those calls, {CALL_NS / 1e3:g} µs each, not for what they compute",
    ]
