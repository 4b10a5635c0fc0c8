"""Bytes in use at each step of a schedule, and the graphs that a schedule refuses."""

import pytest
from hypothesis import given

from cgraph.errors import GraphError
from cgraph.memory.bounds import lower_bound
from cgraph.memory.problem import problem_of
from cgraph.schedule.dag import Dag, breadths, least_peak, peak
from cgraph.schedule.depth_first import depth_first
from cgraph.schedule.least_memory import SIMPLE, least_memory
from tests.schedule.dags import dags


@given(dag=dags(most=12, steps=False))
def test_peak_is_the_largest_breadth_of_the_usage_intervals(dag):
    order = depth_first(dag)
    step = {node: i for i, node in enumerate(order)}
    last = [max([step[i], *(step[user] for user in dag.users[i])]) for i in range(len(order))]
    last = [len(order) - 1 if i in dag.lasting else x for i, x in enumerate(last)]
    problem = problem_of([(nbytes, step[i], last[i]) for i, nbytes in enumerate(dag.nbytes)])
    assert peak(dag, order) == lower_bound(problem)
    assert len(breadths(dag, order)) == len(order)


@given(dag=dags(most=10))
def test_no_schedule_needs_less_than_the_least_peak(dag):
    for schedule in (*SIMPLE, least_memory):
        assert peak(dag, schedule(dag)) >= least_peak(dag)


def test_workspaces_and_taken_bytes_count_at_their_step():
    dag = Dag((4, 4, 2), ((), (0,), (0, 1)), frozenset(), (0, 3, 5), ((), (0,), ()))
    assert breadths(dag, (0, 1, 2)) == [4, 11, 15]  # 0 is read again, so 1 cannot take its bytes
    chain = Dag((4, 4, 2), ((), (0,), (1,)), frozenset(), (0, 3, 5), ((), (0,), ()))
    assert breadths(chain, (0, 1, 2)) == [4, 7, 11]


def test_a_graph_that_is_none_is_refused():
    with pytest.raises(GraphError, match="earlier nodes"):
        Dag((1, 1), ((1,), ()))
    with pytest.raises(GraphError, match="2 sizes for 1 nodes"):
        Dag((1, 1), ((),))
    with pytest.raises(GraphError, match="node 1 has -4 bytes"):
        Dag((1, -4), ((), ()))


def test_users_rise_and_repeated_operands_count_once():
    dag = Dag((1, 2, 3), ((), (0, 0), (1, 0, 1)), frozenset([0]), (), ((), (0,), (1, 1, 0)))
    assert dag.distinct == ((), (0,), (1, 0)) and dag.users == ((1, 2), (2,), ())
    assert dag.overwritable == ((), (), (1,)) and dag.workspaces == (0, 0, 0)
    assert Dag((1,), ((),), takes=((),)).overwritable == ((),) == Dag((1,), ((),)).overwritable


def test_a_node_needs_its_workspace_and_what_it_does_not_overwrite():
    dag = Dag((4, 9), ((), (0,)), frozenset(), (0, 5))
    assert [dag.needed(1, n) for n in (0, 4, 9, 12)] == [14, 10, 5, 5]


def test_every_schedule_needs_a_node_with_its_operands_and_all_that_stays():
    assert least_peak(Dag((4, 5, 2), ((), (), (0, 1)))) == 11
    assert least_peak(Dag((4, 5, 2), ((), (), (0, 1)), scratch=(0, 0, 7))) == 18
    assert least_peak(Dag((4, 5, 2), ((), (), (0, 1)), takes=((), (), (1,)))) == 9
    assert least_peak(Dag((4, 5, 2), ((), (), ()), frozenset([0, 2]))) == 6
    assert least_peak(Dag((), ())) == 0 == peak(Dag((), ()), ())


def test_values_that_nobody_reads_end_at_their_own_step_unless_they_stay():
    operands = ((), (), ())
    assert breadths(Dag((4, 5, 2), operands), (0, 1, 2)) == [4, 5, 2]
    assert breadths(Dag((4, 5, 2), operands, frozenset([0, 2])), (2, 0, 1)) == [2, 6, 11]


@pytest.mark.parametrize("field", ["operands", "scratch", "takes"])
@pytest.mark.parametrize("count", [1, 3])
def test_each_list_has_an_entry_for_each_node(field, count):
    entries = {"operands": ((), ()), "scratch": (0, 0), "takes": ((), ())}
    Dag((1, 1), **entries)
    with pytest.raises(GraphError, match=f"2 sizes for {count} nodes"):
        Dag((1, 1), **entries | {field: (*entries[field], entries[field][0])[:count]})
