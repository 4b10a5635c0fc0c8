"""A branch ends before the next begins."""

from cgraph.schedule.breadth_first import breadth_first
from cgraph.schedule.dag import Dag
from cgraph.schedule.depth_first import depth_first


def test_depth_first_finishes_a_branch_before_the_next():
    dag = Dag((1,) * 6, ((), (0,), (0,), (1,), (2,), (3, 4)))
    assert depth_first(dag) == (0, 1, 3, 2, 4, 5)
    assert breadth_first(dag) == (0, 1, 2, 3, 4, 5)


def test_operands_run_in_their_order_and_last_nodes_by_position():
    assert depth_first(Dag((1,) * 5, ((), (), (), (1, 0), ()))) == (2, 1, 0, 3, 4)
    assert depth_first(Dag((), ())) == ()
