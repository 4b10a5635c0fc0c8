"""Actors that wait for one another: the times at which their acts end, computed by hand."""

import pytest

from cgraph.errors import GraphError
from cgraph.memory.pipeline_model import Busy, Tell, Wait, ends_of


def test_acts_follow_one_another():
    assert ends_of([[Busy(1.0), Tell("a", 1), Busy(2.0)], []]) == [[1.0, 1.0, 3.0], []]
    assert ends_of([]) == []


@pytest.mark.parametrize("swap", [False, True])
def test_who_waits_goes_on_when_the_number_is_reached_and_not_before_its_own_time(swap):
    writer = [Busy(2.0), Tell("a", 1), Busy(3.0), Tell("a", 2)]
    reader = [Wait("a", 1), Busy(4.0), Wait("a", 2), Busy(1.0)]
    scripts = [reader, writer] if swap else [writer, reader]
    ends = ends_of(scripts)
    assert ends[swap] == [2, 2, 5, 5] and ends[1 - swap] == [2, 6, 6, 7]


def test_counters_begin_at_0_and_a_larger_number_serves_who_waits_for_a_smaller():
    assert ends_of([[Wait("a", 0)]]) == [[0.0]]
    assert ends_of([[Busy(1.0), Tell("a", 1), Busy(1.0), Tell("a", 3)], [Wait("a", 2)]])[1] == [2.0]
    assert ends_of([[Busy(1.0), Tell("a", 1), Busy(1.0), Tell("a", 3)], [Wait("a", 3), Wait("a", 1)]])[1] == [2.0, 2.0]


def test_a_buffer_of_two_keeps_its_writer_back():
    """The writer of piece 2 waits until piece 0 was read."""
    writer = [Busy(1.0), Tell("w", 1), Busy(1.0), Tell("w", 2), Wait("r", 1), Busy(1.0), Tell("w", 3)]
    reader = [Wait("w", 1), Busy(5.0), Tell("r", 1), Wait("w", 2), Busy(5.0), Tell("r", 2), Wait("w", 3), Busy(5.0)]
    ends = ends_of([writer, reader])
    assert ends[0] == [1, 1, 2, 2, 6, 7, 7] and ends[1] == [1, 6, 6, 6, 11, 11, 11, 16]


def test_actors_that_wait_for_one_another_or_for_nobody_are_refused():
    for scripts in ([[Wait("a", 1), Tell("b", 1)], [Wait("b", 1), Tell("a", 1)]], [[Tell("a", 1)], [Wait("a", 2)]]):
        with pytest.raises(GraphError, match="is waited for without end"):
            ends_of(scripts)
