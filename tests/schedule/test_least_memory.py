"""The least peak: of every order where the graph is small, never more than the simple orders need."""

import json
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.schedule.breadth_first import breadth_first
from cgraph.schedule.dag import Dag, breadths, peak
from cgraph.schedule.depth_first import depth_first
from cgraph.schedule.least_memory import SIMPLE, _cuts, _stretches, least_memory
from tests.schedule.dags import dags, is_schedule, random_dag
from tests.support.data import shared

every_schedule = pytest.mark.parametrize("schedule", [*SIMPLE, least_memory])


@every_schedule
@given(dag=dags(most=14))
def test_every_node_runs_once_and_after_its_operands(schedule, dag):
    order = schedule(dag)
    assert is_schedule(dag, order)
    assert order == schedule(dag)


@given(dag=dags(most=6))
def test_least_memory_equals_trying_every_order(dag):
    orders = (order for order in permutations(range(len(dag.nbytes))) if is_schedule(dag, order))
    assert peak(dag, least_memory(dag)) == min(peak(dag, order) for order in orders)


@pytest.mark.parametrize("states", [0, 5, 50])
@given(dag=dags(most=14))
def test_least_memory_with_a_limit_is_never_worse_than_the_simple_orders(states, dag):
    order = least_memory(dag, states=states)
    assert is_schedule(dag, order)
    assert peak(dag, order) <= min(peak(dag, simple(dag)) for simple in SIMPLE)


@pytest.mark.parametrize("seed", [3, 6, 7])
def test_a_stretch_of_more_nodes_than_the_limit_keeps_its_best_simple_order(seed, monkeypatch):
    """One stretch of 17 nodes: the last reads all that nothing else does."""
    dag = random_dag(seed, 16)
    ends = set(range(16)) - {x for operands in dag.operands for x in operands}
    dag = Dag((*dag.nbytes, 1), (*dag.operands, tuple(ends)))
    simple = min(peak(dag, schedule(dag)) for schedule in SIMPLE)
    monkeypatch.setitem(least_memory.__globals__, "MOST_NODES", 17)
    assert peak(dag, least_memory(dag)) < simple
    monkeypatch.setitem(least_memory.__globals__, "MOST_NODES", 16)
    assert peak(dag, least_memory(dag)) == simple


@every_schedule
def test_deep_and_wide_graphs_need_no_recursion(schedule):
    chain = Dag((8,) * 20_000, ((), *((i,) for i in range(19_999))))
    order = schedule(chain)
    assert list(order) == list(range(20_000))
    assert peak(chain, order) == 16
    fan = Dag((8,) * 8_002, ((), *((0,) for _ in range(8_000)), tuple(range(1, 8_001))))
    assert is_schedule(fan, schedule(fan))


@pytest.mark.slow
def test_wide_graphs_within_the_search_take_no_more_states_than_allowed():
    fan = Dag((8,) * 3_902, ((), *((0,) for _ in range(3_900)), tuple(range(1, 3_901))))
    assert is_schedule(fan, least_memory(fan))
    rows = 300
    grid = Dag(
        (8,) * (6 * rows), tuple(tuple(i - k for k in (5, 6, 7) if i >= 6 and i - k >= 0) for i in range(6 * rows))
    )
    assert is_schedule(grid, least_memory(grid))


def inception_after_the_stem():
    """Intermediate values from MaxPool_5a on; the graph's output is not counted; channels in fours, float32."""
    graph = json.loads(shared("planner/graphs/inception_v3.json").read_text())
    names = [op["name"] for op in graph["ops"]]
    position, nbytes, operands = {}, [], []
    for op in graph["ops"][names.index("MaxPool_5a_3x3") :]:
        *outer, channels = graph["shapes"][op["output"]]
        size = 4 * -(-channels // 4) * 4
        for extent in outer:
            size *= extent
        nbytes.append(0 if op["output"] in graph["outputs"] else size)
        operands.append(tuple(position[name] for name in op["inputs"] if name in position))
        position[op["output"]] = len(nbytes) - 1
    return Dag(tuple(nbytes), tuple(operands))


def test_least_memory_lowers_the_peak_of_inception_after_its_stem():
    dag = inception_after_the_stem()
    mib = [f"{peak(dag, schedule(dag)) / 2**20:.3f}" for schedule in (depth_first, breadth_first, least_memory)]
    assert mib == ["3.738", "3.514", "2.991"]


@given(dag=dags(most=14), start=st.sampled_from(SIMPLE))
def test_a_stretch_begins_with_the_bytes_in_use_there_and_has_the_peak_of_its_steps(dag, start):
    """By plain counting: values that have run and are read later, or stay."""
    order = start(dag)
    free = [not n and not xs for n, xs in zip(dag.nbytes, dag.operands)]
    stretches = _stretches(dag, order, _cuts(dag, free), free)
    assert [x for stretch in stretches for x in stretch.nodes] == [x for x in order if not free[x]]
    place = {node: i for i, node in enumerate(order)}
    steps = breadths(dag, order)
    for stretch in stretches:
        if stretch.nodes:
            first = place[stretch.nodes[0]]
            used = (x for x in order[:first] if x in dag.lasting or any(place[u] >= first for u in dag.users[x]))
            assert stretch.start == sum(dag.nbytes[x] for x in used)
        assert stretch.peak == max((steps[place[x]] for x in stretch.nodes), default=0)
