import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.memory import gap_search
from cgraph.memory.gap_search import place_each, smallest_gap
from cgraph.memory.problem import problem_of
from tests.support.problems import problems, random_problem


def test_the_smallest_gap_that_fits_is_taken_and_the_lowest_of_equals():
    taken = [(4, 5), (8, 10), (12, 14), (16, 20)]
    assert smallest_gap(1, taken) == 10
    assert smallest_gap(3, taken) == 5
    assert smallest_gap(5, taken) == 20
    assert smallest_gap(5, []) == 0


def test_spans_of_the_taken_may_overlap():
    assert smallest_gap(2, [(0, 10), (2, 4), (12, 13)]) == 10


@given(problem=problems(), data=st.data())
def test_neighbour_lists_and_table_give_the_same_offsets(problem, data):
    order = data.draw(st.permutations(range(len(problem.operands))))
    assert _by_table(problem, order) == place_each(problem, order, "any").offsets


@pytest.mark.parametrize("seed", range(5))
def test_neighbour_lists_and_table_agree_on_larger_problems(seed):
    problem = random_problem(seed, 60)
    order = range(60)
    lists = pytest.MonkeyPatch.context()
    with lists as patch:
        patch.setattr(gap_search, "FEW_NEIGHBOURS", 10**9)
        by_lists = place_each(problem, order, "any").offsets
    assert _by_table(problem, order) == by_lists


def _by_table(problem, order):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gap_search, "FEW_NEIGHBOURS", -1)
        return place_each(problem, order, "any").offsets


def test_nothing_to_place_needs_nothing():
    assert place_each(problem_of([]), [], "any").nbytes == 0
