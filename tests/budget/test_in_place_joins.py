"""Joins over their forks: as close as rows allow, placed as planned, and refused where a row would be lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.budget.bands.in_place_joins import Bands
from cgraph.budget.bands.replay_bands import check_rows
from cgraph.budget.bands.row_rings import Read, Rows, pull_events, row_counts
from cgraph.errors import PlanError
from cgraph.ir.bands import InPlaceJoin
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.views.layout import by_rows
from cgraph.memory.auto import auto
from cgraph.memory.check import check_plan
from cgraph.memory.permissions import permitted_lower_bound
from cgraph.memory.problem import Plan, Problem, ProblemOperand, Tie, UsageInterval
from cgraph.memory.usage import StepValue, usage_of
from cgraph.ops.physical.stream import Act, Lines
from tests.support.rings import acts_of, drawn, framed

ROW = 192  # bytes of a row of a fork and of a join
SEEDS = range(40)
JOINED = "the bytes of join and fork"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_join_is_as_close_to_its_fork_as_rows_allow(seed):
    """Byte by byte: with the distance given, every row is read before it is overwritten; a row closer, one is lost."""
    values, events, fork, readers = region_with_fork(seed)
    ahead = Bands(values[-1], row_counts(len(values), [(e.value, e.first, e.stop) for e in events])).ahead(
        fork, readers
    )
    assert is_read_in_time(values, events, fork, readers, ahead)
    assert ahead == 0 or not is_read_in_time(values, events, fork, readers, ahead - 1)


def test_the_distance_of_a_join_and_its_fork_by_hand():
    """The join of four rows of 100 bytes reads, with row r, rows r..r+2 of a fork with rows of 60 bytes.

    When a row is written, the rows from the next one's first on are still needed: after row r, row r + 1 of the fork.
    """
    fork, join = Rows("fork", 6, 60), Rows("join", 4, 100)
    read = Read(-1, (0, 1, 2, 3), (2, 3, 4, 5))
    done = np.array([[1, 2, 3, 4]])
    assert Bands(join, done).ahead(fork, [(0, read)]) == max(100 * (r + 1) - 60 * r for r in range(4)) == 220
    thin = Rows("join", 4, 10)
    assert Bands(thin, done).ahead(fork, [(0, read)]) == 10 and Bands(thin, done).ahead(fork, []) == 0
    other = Rows("x", 4, 10)
    assert Bands(join, np.array([[1, 2, 2, 3, 3], [0, 0, 1, 1, 4]])).ahead(other, [(0, read)]) == 400 - 3 * 10


@pytest.mark.parametrize("seed", SEEDS)
def test_the_replay_catches_a_join_that_begins_too_late(seed):
    values, events, fork, readers = region_with_fork(seed)
    ahead = Bands(values[-1], row_counts(len(values), [(e.value, e.first, e.stop) for e in events])).ahead(
        fork, readers
    )
    frame = framed(values, events, [0] * len(events), False, 1000)
    plain = acts_of(values, frame, [0] * len(events))
    for distance in (ahead, ahead + 64, max(ahead - ROW, 0)):
        outside = rows_at(fork.rows, distance, -1)
        acts = [over(act, values, readers, outside) for act in plain]
        if is_read_in_time(values, events, fork, readers, distance):
            check_rows(values, acts, "frame", frame.nbytes, outside)
        else:
            with pytest.raises(PlanError, match="what is outside, which is not there"):
                check_rows(values, acts, "frame", frame.nbytes, outside)


def region_with_fork(seed):
    """A region, its bands, and rows outside that one or two of its values read besides."""
    rng = np.random.default_rng(seed)
    values = drawn(rng)
    events = pull_events(values, [value.band(int(rng.integers(1, 4))) for value in values])
    fork = Rows("fork", int(rng.integers(4, 40)), ROW)
    readers = []
    for i in {int(rng.integers(len(values))), len(values) - 1}:
        count, reach = values[i].rows, int(rng.integers(1, 4))
        first = [min(r * fork.rows // count, fork.rows - 1) for r in range(count)]
        readers.append((i, Read(-1, first, [min(r + reach, fork.rows) for r in first])))
    return values, events, fork, readers


def is_read_in_time(values, events, fork, readers, ahead) -> bool:
    """Do all bands find their rows of the fork, when the join begins so many bytes before it?"""
    holds = {ahead + b: b // ROW for b in range(fork.rows * ROW)}
    for event in events:
        for i, read in readers:
            rows = range(read.first[event.first], read.stop[event.stop - 1]) if i == event.value else ()
            wanted = [(ahead + row * ROW + b, row) for row in rows for b in range(ROW)]
            if any(holds.get(at) != row for at, row in wanted):
                return False
            if event.value == len(values) - 1:  # the band is not written before it has been read
                written = range(event.first * values[-1].row_nbytes, event.stop * values[-1].row_nbytes)
                if {at for at, _ in wanted} & set(written):
                    return False
        if event.value == len(values) - 1:
            holds |= dict.fromkeys(range(event.first * values[-1].row_nbytes, event.stop * values[-1].row_nbytes), -1)
    return True


def rows_at(count: int, at: int, value: int, first: int = 0, row: int = ROW) -> Lines:
    return Lines(value, first, by_rows(Pointer(JOINED, at), (1, row // 64, count, 4, 4), "f4"))


def over(act: Act, values: list[Rows], readers, outside: Lines) -> Act:
    """The same, its join in the bytes of the fork, its rows of the fork read."""
    i, first, count = act.out.value, act.out.first, act.out.view.shape[2]
    if act.slides:
        return act
    reads = list(act.reads)
    for k, read in readers:
        if k == i:
            begin, end = read.first[first], read.stop[first + count - 1]
            reads.append(rows_at(end - begin, outside.view.at.offset + begin * ROW, -1, begin))
    row = values[-1].row_nbytes
    out = rows_at(count, first * row, i, first, row) if i == len(values) - 1 else act.out
    return Act(out, tuple(reads), act.workspace)


# -- plans -------------------------------------------------------------------------------------------------------------


@st.composite
def chains(draw: st.DrawFn) -> list[StepValue]:
    """Steps that read the one before, some of which lie over it, with values that stay for longer beside them."""
    count = draw(st.integers(2, 9))
    values = [StepValue(64 * draw(st.integers(1, 9)), t, f"v{t}", min(t + 1, count - 1)) for t in range(count)]
    for t in range(1, count):
        if draw(st.booleans()):
            values[t].over = InPlaceJoin(t - 1, draw(st.integers(0, 300)))
        elif values[t].nbytes == values[t - 1].nbytes:
            values[t].overwritable = (t - 1,)
        if draw(st.integers(0, 4)) == 0:
            values[t - 1].last = count - 1
    values[-1].lasting = True
    return values + [
        StepValue(64 * draw(st.integers(1, 5)), t, f"w{t}", t) for t in range(count) if draw(st.booleans())
    ]


@given(values=chains())
def test_values_are_as_far_from_what_they_lie_over_as_they_should_be(values):
    """Byte by byte over all steps: what is in use has bytes of its own, but for a value over its fork."""
    usage = usage_of(values, 64)
    plan = auto(usage.problem)
    check_plan(usage.problem, plan)
    assert permitted_lower_bound(values, 64) <= plan.nbytes
    bytes_of = [range(usage.offset(plan, i), usage.offset(plan, i) + v.nbytes) for i, v in enumerate(values)]
    for t in range(max(v.last for v in values) + 1):
        there = [i for i, v in enumerate(values) if v.step <= t <= v.last]
        for i in there:
            for k in there:
                if i == k or not set(bytes_of[i]) & set(bytes_of[k]):
                    continue
                late, early = (i, k) if values[i].step > values[k].step else (k, i)
                assert t == values[late].step == values[early].last and not values[early].lasting
                if early in values[late].overwritable:
                    assert bytes_of[late] == bytes_of[early]
                else:
                    assert values[late].over is not None and values[late].over.fork == early
                    assert bytes_of[early].start - bytes_of[late].start >= values[late].over.ahead


@given(values=chains())
def test_without_permissions_nothing_lies_over_another(values):
    problem = usage_of(values, 64, False, False).problem
    assert not problem.ties
    assert [x.nbytes for x in problem.operands] == [v.nbytes for v in values]


def test_a_value_lies_over_one_that_nobody_else_needs():
    def ties(last: int, kept: bool = False) -> int:
        values = [
            StepValue(640, 0, "fork", last, kept),
            StepValue(640, 1, "join", 2, over=InPlaceJoin(0, 64)),
            StepValue(64, 2, "y", 2),
        ]
        return len(usage_of(values, 64).problem.ties)

    assert [ties(1), ties(2), ties(1, True)] == [1, 0, 0]


def test_operands_that_do_not_keep_their_distances_are_refused():
    operands = tuple(ProblemOperand(64, UsageInterval(t, t), f"x{t}") for t in range(3))
    problem = Problem(operands, 64, ((Tie(0, 64), Tie(1, 0)),))
    check_plan(problem, Plan((128, 64, 0), 192))
    with pytest.raises(PlanError, match=r"x0 \[64, 128\), x1 \[64, 128\) do not keep their distances"):
        check_plan(problem, Plan((64, 64, 0), 192))


@given(values=chains())
def test_every_value_lies_inside_its_operand(values):
    usage = usage_of(values, 64)
    for i, value in enumerate(values):
        operand = usage.problem.operands[usage.operand_of[i]]
        assert value.nbytes + usage.delta[i] <= operand.nbytes
