"""A part of a schedule: bytes in use and the peak after each node, and nodes that run at once."""

import pytest

from cgraph.schedule.dag import Dag, peak
from cgraph.schedule.part import OutOfStatesError, SchedulePart, SearchAllowance, bits


def part(dag: Dag, nodes: tuple[int, ...], start: int = 0, states: int = 100) -> SchedulePart:
    return SchedulePart(dag, nodes, start, SearchAllowance(states))


DAG = Dag((4, 6, 3, 2, 1), ((), (), (0,), (1,), (2, 3)))


def test_each_ready_node_gives_a_state():
    first = part(DAG, (0, 1, 2, 3, 4)).begin()
    assert (first.ready, first.in_use, first.peak, first.done) == ((0, 1), 0, 0, 0)
    left, right = part(DAG, (0, 1, 2, 3, 4)).next_states(first)
    assert (left.path(), left.in_use, left.peak, sorted(left.ready)) == ([0], 4, 4, [1, 2])
    assert (right.path(), right.in_use, right.peak, right.done) == ([1], 6, 6, 0b10)


def test_a_node_runs_at_once_when_it_neither_raises_the_peak_nor_leaves_more_bytes():
    """The last node takes 1 byte beside 5 and frees all; node 2 would raise the peak from 8 to 9, so it waits."""
    here = part(DAG, (0, 1, 2, 3, 4))
    _, right = here.next_states(here.begin())
    after = next(s for s in here.next_states(right) if s.path()[-1] == 3)
    assert (after.path(), after.in_use, after.peak) == ([1, 3], 2, 8)
    (third,) = here.next_states(after)
    assert (third.path(), third.in_use, third.peak) == ([1, 3, 0], 6, 8)
    (last,) = here.next_states(third)
    assert last.path() == [1, 3, 0, 2, 4] and last.peak == peak(DAG, last.path()) == 9 and last.in_use == 0


def test_a_part_begins_with_the_bytes_of_what_ran_before_and_frees_what_it_reads_last():
    here = part(DAG, (2, 3, 4), start=10)
    begun = here.begin()
    assert begun.in_use == 10 and begun.ready == (0, 1)
    assert [(s.path(), s.in_use, s.peak) for s in here.next_states(begun)] == [([0, 1, 2], 0, 13), ([1, 0, 2], 0, 12)]
    here = part(DAG, (2, 3), start=10)
    assert [(s.in_use, s.peak) for s in here.next_states(here.begin())] == [(5, 13), (5, 12)]


def test_what_is_read_behind_the_part_or_stays_is_not_freed():
    here = part(DAG, (0, 1, 2))
    state = here.begin()
    while len(state.path()) < 3:
        state = next(here.next_states(state))
    assert state.in_use == 6 + 3
    kept = Dag(DAG.nbytes, DAG.operands, frozenset([0]))
    state = part(kept, (0, 1, 2)).begin()
    while len(state.path()) < 3:
        state = next(part(kept, (0, 1, 2)).next_states(state))
    assert state.in_use == 4 + 6 + 3


def test_states_are_counted_and_many_ready_nodes_count_more():
    here = part(Dag((1,) * 2, ((), (0,))), (0, 1), states=0)
    with pytest.raises(OutOfStatesError):
        here.begin()
    allowance = SearchAllowance(10)
    wide = SchedulePart(Dag((1,) * 64, ((),) * 64, frozenset(range(64))), tuple(range(64)), 0, allowance)
    wide.begin()
    assert allowance.left == 7


def test_bits_are_positions():
    assert bits(iter([0, 3, 3])) == 0b1001 and bits(iter(())) == 0


def test_a_node_that_just_reaches_the_peak_runs_at_once():
    chain = part(Dag((4, 4), ((), (0,)), takes=((), (0,))), (0, 1))
    assert [(s.path(), s.peak) for s in chain.next_states(chain.begin())] == [([0, 1], 4)]


def test_the_last_state_of_an_allowance_may_be_visited():
    allowance, state = SearchAllowance(1), part(DAG, (0, 1)).begin()
    allowance.take(state)
    with pytest.raises(OutOfStatesError):
        allowance.take(state)


@pytest.mark.parametrize(("own", "at_once"), [(3, True), (4, True), (5, False)])
def test_a_node_runs_at_once_up_to_the_very_bytes_that_it_frees(own, at_once):
    """It stays to the end, and overwrites what it frees."""
    here = part(Dag((4, own, 9), ((), (0,), ()), frozenset([1]), takes=((), (0,), ())), (0, 1, 2))
    first = next(here.next_states(here.begin()))
    assert first.path() == ([0, 1] if at_once else [0]) and first.peak == 4
    assert first.in_use == (own if at_once else 4)


def test_what_is_read_in_the_part_and_behind_it_is_not_freed():
    """Value 0 is read by 1 in the part, and by 3 behind it; value 1 by 2 alone."""
    dag = Dag((4, 6, 3, 2), ((), (0,), (1,), (0, 2)))
    here = part(dag, (0, 1, 2))
    state = here.begin()
    while len(state.path()) < 3:
        state = next(here.next_states(state))
    assert state.in_use == 4 + 3
    whole = part(dag, (0, 1, 2, 3))
    state = whole.begin()
    while len(state.path()) < 4:
        state = next(whole.next_states(state))
    assert state.in_use == 0
