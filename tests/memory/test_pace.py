"""Actors that wait for one another: what follows from their scripts, in any order in which they are looked at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.errors import GraphError
from cgraph.memory.pipeline_model import Busy, Tell, Wait, ends_of

seconds = st.integers(0, 9).map(float)


def test_an_actor_goes_on_when_the_number_is_reached_and_not_before():
    giver = [Busy(3.0), Tell("a", 1), Busy(4.0), Tell("a", 3)]
    taker = [Wait("a", 0), Busy(1.0), Wait("a", 1), Busy(1.0), Wait("a", 2), Busy(1.0)]
    assert ends_of([giver, taker]) == [[3.0, 3.0, 7.0, 7.0], [0.0, 1.0, 3.0, 4.0, 7.0, 8.0]]


def test_those_that_wait_for_one_another_are_named():
    with pytest.raises(GraphError, match="counter='b', count=1.* is waited for without end"):
        ends_of([[Wait("b", 1), Tell("a", 1)], [Wait("a", 1), Tell("b", 1)]])


@given(st.lists(st.tuples(seconds, seconds), max_size=9), st.integers(1, 4))
def test_two_stages_with_room_for_some_items_are_the_recurrence(items, room):
    """begin of reading i = max(end of reading i - 1, end of use of i - room), and so on."""
    reader, user = [], []
    for i, (reading, using) in enumerate(items):
        reader += [Wait("used", max(i + 1 - room, 0)), Busy(reading), Tell("read", i + 1)]
        user += [Wait("read", i + 1), Busy(using), Tell("used", i + 1)]
    read, used = [0.0], [0.0]
    for i, (reading, using) in enumerate(items):
        read.append(max(read[-1], used[max(i + 1 - room, 0)]) + reading)
        used.append(max(used[-1], read[-1]) + using)
    for scripts in ([reader, user], [user, reader]):
        ends = dict(zip(map(id, scripts), ends_of(scripts)))
        assert ends[id(reader)][2::3] == read[1:]
        assert ends[id(user)][2::3] == used[1:]
