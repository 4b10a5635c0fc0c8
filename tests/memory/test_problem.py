"""Problems of planning: what they refuse, sizes rounded up, and steps as arrays."""

import numpy as np
import pytest

from cgraph.errors import PlanError
from cgraph.memory.problem import (
    MOST_BYTES,
    Problem,
    ProblemOperand,
    Spans,
    UsageInterval,
    distinct,
    problem_of,
    round_sizes,
)
from cgraph.system.alignment import ALIGNMENT


@pytest.mark.parametrize(("first", "last"), [(-1, 0), (3, 2), (-2, -1)])
def test_an_interval_begins_at_a_step_and_does_not_end_before(first, last):
    with pytest.raises(PlanError, match=f"interval is {first}..{last}"):
        UsageInterval(first, last)
    assert UsageInterval(0, 0).last == 0


def test_intervals_meet_where_they_share_a_step():
    middle = UsageInterval(3, 5)
    apart, meeting = [(0, 2), (6, 9)], [(0, 3), (5, 9), (4, 4), (0, 9), (3, 5)]
    for rows, answer in ((apart, False), (meeting, True)):
        for row in rows:
            assert UsageInterval(*row).meets(middle) is answer is middle.meets(UsageInterval(*row))


def test_sizes_and_alignments_out_of_range_are_refused():
    with pytest.raises(PlanError, match="'x' has a negative size: -1 bytes"):
        ProblemOperand(-1, UsageInterval(0, 0), "x")
    assert ProblemOperand(0, UsageInterval(0, 0)).nbytes == 0
    with pytest.raises(PlanError, match="at least 1 byte, got 0"):
        Problem((), 0)
    assert Problem((), 1).nbytes.size == 0 and Problem(()).alignment == ALIGNMENT


def test_the_sum_of_all_sizes_is_an_offset():
    assert round_sizes([MOST_BYTES - 1, 1], 1).tolist() == [MOST_BYTES - 1, 1]
    with pytest.raises(PlanError, match=f"an arena has at most {MOST_BYTES}"):
        round_sizes([MOST_BYTES, 1], 1)
    with pytest.raises(PlanError, match="together"):
        round_sizes([MOST_BYTES - 64, 65], 64)


def test_arrays_follow_the_operands_and_sizes_are_rounded_up():
    problem = problem_of([(5, 4, 6), (0, 1, 1), (8, 4, 4), (9, 0, 9)], alignment=8)
    assert problem.nbytes.tolist() == [8, 0, 8, 16] and [x.nbytes for x in problem.operands] == [5, 0, 8, 9]
    assert problem.first.tolist() == [4, 1, 4, 0] and problem.last.tolist() == [6, 1, 4, 9]
    assert problem.starts.tolist() == [0, 1, 4] and problem.starts.dtype == np.int64
    assert problem_of([(5, 0, 0)]).nbytes.tolist() == [5]
    assert Spans(problem.nbytes, problem.first, problem.last).starts.tolist() == [0, 1, 4]
    assert distinct(np.array([3, -1, 3], np.int64)).tolist() == [-1, 3]
    assert distinct(np.zeros(0, np.int64)).dtype == np.int64
