"""Searches over sets of nodes: the least peak below a bound, or none."""

from itertools import permutations

import pytest
from hypothesis import given

from cgraph.schedule.dag import Dag, peak
from cgraph.schedule.least_memory import SIMPLE, least_memory
from cgraph.schedule.part import OutOfStatesError, SchedulePart, SearchAllowance
from cgraph.schedule.search import beam, best_first, narrow_beam, wide_beam
from tests.schedule.dags import dags, is_schedule, random_dag


def test_beam_search_improves_where_there_are_too_many_sets():
    dags = [random_dag(seed, 40) for seed in range(5)]
    for dag in dags:
        simple = min(SIMPLE, key=lambda schedule: peak(dag, schedule(dag)))(dag)
        with pytest.raises(OutOfStatesError):
            best_first(SchedulePart(dag, simple, 0, SearchAllowance(2000)), peak(dag, simple))
        assert peak(dag, least_memory(dag, states=2000)) < peak(dag, simple)


def part_of(dag: Dag) -> SchedulePart:
    return SchedulePart(dag, tuple(range(len(dag.nbytes))), 0, SearchAllowance(100_000))


@given(dag=dags(most=6).filter(lambda dag: dag.nbytes))
def test_the_least_peak_is_found_just_below_its_bound_and_none_at_it(dag):
    least = min(peak(dag, order) for order in permutations(range(len(dag.nbytes))) if is_schedule(dag, order))
    state = best_first(part_of(dag), least + 1)
    assert state.peak == least == peak(dag, state.path()) and is_schedule(dag, state.path())
    if len(part_of(dag).begin().path()) < len(dag.nbytes):
        assert best_first(part_of(dag), least) is None and beam(part_of(dag), least, 16) is None


def test_of_states_with_equal_peaks_the_newest_is_continued_straight_to_the_end():
    """A node with a large workspace, then values that stay, in any order: far fewer states than sets of values."""
    count = 12
    dag = Dag((1,) * (count + 1), ((),) + ((0,),) * count, frozenset(range(count + 1)), (100,) + (0,) * count)
    allowance = SearchAllowance(1000)
    state = best_first(SchedulePart(dag, tuple(range(count + 1)), 0, allowance), 1000)
    assert state.peak == 101 and is_schedule(dag, state.path())
    assert 1000 - allowance.left <= (count + 1) ** 2


@pytest.mark.parametrize("search", [wide_beam, narrow_beam])
def test_a_beam_keeps_to_its_bound_and_a_wide_one_finds_no_more(search):
    for seed in range(8):
        dag = random_dag(seed, 12)
        bound = peak(dag, range(12)) + 1
        state = search(part_of(dag), bound)
        assert state.peak < bound and state.peak == peak(dag, state.path()) and is_schedule(dag, state.path())
        assert state.peak >= best_first(part_of(dag), bound).peak
