"""Problems as the compiled search reads them: sections are the largest sets of operands in use together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.memory.problem import problem_of
from cgraph.memory.search.instance import concatenate, instance_of, section_totals, sections, unit_of

ROWS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=9)


@given(rows=ROWS)
def test_sections_are_the_largest_sets_of_operands_that_are_in_use_together(rows):
    problem = problem_of([(nbytes, first, first + length) for nbytes, first, length in rows])
    instance = instance_of(problem, np.arange(len(rows)), 1)
    at_step = [frozenset(i for i, (_, a, n) in enumerate(rows) if a <= step <= a + n) for step in range(15)]
    largest = [x for x in dict.fromkeys(at_step) if x and not any(x < y for y in at_step)]
    edges = instance.member_start.tolist()
    members = [frozenset(instance.member[a:b].tolist()) for a, b in zip(edges, edges[1:])]
    assert members == largest
    for i, (_, first, length) in enumerate(rows):
        near = instance.neighbour[instance.neighbour_start[i] : instance.neighbour_start[i + 1]].tolist()
        meeting = [k for k, (_, a, n) in enumerate(rows) if k != i and a <= first + length and first <= a + n]
        assert near == meeting
        assert [s for s, x in enumerate(members) if i in x] == list(range(instance.begin[i], instance.end[i]))
    assert section_totals(instance).tolist() == [sum(rows[i][0] for i in x) for x in members]


def test_only_the_operands_that_are_asked_for_count_in_their_order_and_units():
    problem = problem_of([(12, 0, 1), (0, 0, 9), (30, 1, 2), (6, 3, 3)])
    instance = instance_of(problem, np.array([3, 0, 2]), 6)
    assert instance.size.tolist() == [1, 2, 5]
    assert instance.begin.tolist() == [1, 0, 0] and instance.end.tolist() == [2, 1, 1]
    assert instance.neighbour_start.tolist() == [0, 0, 1, 2] and instance.neighbour.tolist() == [2, 1]
    assert section_totals(instance).tolist() == [7, 1]
    assert unit_of(np.array([12, 30, 6])) == 6 and unit_of(np.array([7])) == 7


@pytest.mark.parametrize(("first", "stop", "answer"), [
    ([0, 1], [1, 2], ([0, 1], [1, 2], 2)),
    ([0, 1], [2, 2], ([0, 0], [1, 1], 1)),
    ([0, 1, 2], [9, 2, 3], ([0, 0, 1], [2, 1, 2], 2)),
    ([], [], ([], [], 0)),
])  # fmt: skip
def test_a_section_ends_where_an_interval_stops_before_the_next_start(first, stop, answer):
    begin, end, count = sections(np.array(first, np.int64), np.array(stop, np.int64))
    assert (begin.tolist(), end.tolist(), count) == answer


def test_lists_are_concatenated_with_their_starts():
    starts, items = concatenate([np.array([3]), np.array([], np.int64), np.array([1, 2])])
    assert starts.tolist() == [0, 1, 1, 3] and items.tolist() == [3, 1, 2]
