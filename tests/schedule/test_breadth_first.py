"""Nodes run in the order in which they become ready."""

from cgraph.schedule.breadth_first import breadth_first
from cgraph.schedule.dag import Dag


def test_the_queue_is_first_come_first_served():
    assert breadth_first(Dag((1,) * 6, ((), (), (1,), (0,), (3,), (2, 2)))) == (0, 1, 3, 2, 4, 5)
    assert breadth_first(Dag((1,) * 4, ((), (0,), (0,), (0, 1)))) == (0, 1, 2, 3)
    assert breadth_first(Dag((), ())) == ()


def test_nodes_that_become_ready_together_run_by_position():
    assert breadth_first(Dag((1,) * 5, ((), (), (0, 1), (1,), (0,)))) == (0, 1, 4, 2, 3)
