import json
import random
from itertools import permutations, product

import pytest
from hypothesis import given

from cgraph.errors import GraphError
from cgraph.memory.bounds import lower_bound
from cgraph.memory.problem import problem_of
from cgraph.schedule.breadth_first import breadth_first
from cgraph.schedule.costly_first import costly_first
from cgraph.schedule.dag import Dag, breadths, least_peak, peak
from cgraph.schedule.depth_first import depth_first
from cgraph.schedule.least_memory import SIMPLE, least_memory
from cgraph.schedule.part import OutOfStatesError, SchedulePart, SearchAllowance
from cgraph.schedule.search import best_first
from tests.schedule.dags import dags
from tests.schedule.test_peaks import tree
from tests.support.data import shared

every_schedule = pytest.mark.parametrize("schedule", [*SIMPLE, least_memory])


def is_schedule(dag, order):
    step = {node: i for i, node in enumerate(order)}
    return sorted(order) == list(range(len(dag.nbytes))) and all(
        step[operand] < step[node] for node in order for operand in dag.operands[node]
    )


@every_schedule
@given(dag=dags(most=14))
def test_every_node_runs_once_and_after_its_operands(schedule, dag):
    order = schedule(dag)
    assert is_schedule(dag, order)
    assert order == schedule(dag)


@given(dag=dags(most=12, steps=False))
def test_peak_is_the_largest_breadth_of_the_usage_intervals(dag):
    order = depth_first(dag)
    step = {node: i for i, node in enumerate(order)}
    last = [max([step[i], *(step[user] for user in dag.users[i])]) for i in range(len(order))]
    last = [len(order) - 1 if i in dag.lasting else x for i, x in enumerate(last)]
    problem = problem_of([(nbytes, step[i], last[i]) for i, nbytes in enumerate(dag.nbytes)])
    assert peak(dag, order) == lower_bound(problem)
    assert len(breadths(dag, order)) == len(order)


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


@given(dag=dags(most=10))
def test_no_schedule_needs_less_than_the_least_peak(dag):
    for schedule in (*SIMPLE, least_memory):
        assert peak(dag, schedule(dag)) >= least_peak(dag)


def test_workspaces_and_taken_bytes_count_at_their_step():
    dag = Dag((4, 4, 2), ((), (0,), (0, 1)), frozenset(), (0, 3, 5), ((), (0,), ()))
    assert breadths(dag, (0, 1, 2)) == [4, 11, 15]  # 0 is read again, so 1 cannot take its bytes
    chain = Dag((4, 4, 2), ((), (0,), (1,)), frozenset(), (0, 3, 5), ((), (0,), ()))
    assert breadths(chain, (0, 1, 2)) == [4, 7, 11]


def test_costly_branches_run_first():
    """Branches of one large and one small value: the large ones should run while few small ones wait."""
    dag = Dag((20, 5, 80, 5, 50, 5, 1), ((), (0,), (), (2,), (), (4,), (1, 3, 5)))
    assert costly_first(dag) == (2, 3, 4, 5, 0, 1, 6)
    assert peak(dag, costly_first(dag)) == 85
    assert peak(dag, depth_first(dag)) == 90


@pytest.mark.parametrize("seed", range(40))
def test_costly_first_is_the_best_of_the_orders_that_compute_each_subtree_of_a_tree_without_a_break(seed):
    rng = random.Random(seed)
    operands = tree(rng, 8)
    scratch = tuple(rng.choice((0, 0, 3, 30)) for _ in operands)
    dag = Dag(tuple(rng.choice((0, 1, 2, 5, 9, 20)) for _ in operands), tuple(operands), frozenset(), scratch)
    assert peak(dag, costly_first(dag)) == min(peak(dag, order) for order in orders_of(operands, len(operands) - 1))


def orders_of(operands, root):
    """Every order of a tree, its operands in any order, each computed to its end before the next begins."""
    for read in permutations(operands[root]):
        for parts in product(*(list(orders_of(operands, x)) for x in read)):
            yield [*(x for part in parts for x in part), root]


def random_dag(seed, count):
    rng = random.Random(seed)
    nbytes = tuple(rng.choice((1, 2, 5, 9, 20)) for _ in range(count))
    return Dag(nbytes, tuple(tuple(rng.randrange(i) for _ in range(rng.randint(0, min(i, 2)))) for i in range(count)))


def test_beam_search_improves_where_there_are_too_many_sets():
    dags = [random_dag(seed, 40) for seed in range(5)]
    for dag in dags:
        simple = min(SIMPLE, key=lambda schedule: peak(dag, schedule(dag)))(dag)
        with pytest.raises(OutOfStatesError):
            best_first(SchedulePart(dag, simple, 0, SearchAllowance(2000)), peak(dag, simple))
        assert peak(dag, least_memory(dag, states=2000)) < peak(dag, simple)


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


def test_depth_first_finishes_a_branch_before_the_next():
    dag = Dag((1,) * 6, ((), (0,), (0,), (1,), (2,), (3, 4)))
    assert depth_first(dag) == (0, 1, 3, 2, 4, 5)
    assert breadth_first(dag) == (0, 1, 2, 3, 4, 5)


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


def test_a_graph_that_is_none_is_refused():
    with pytest.raises(GraphError, match="earlier nodes"):
        Dag((1, 1), ((1,), ()))
    with pytest.raises(GraphError, match="2 sizes for 1 nodes"):
        Dag((1, 1), ((),))
    with pytest.raises(GraphError, match="node 1 has -4 bytes"):
        Dag((1, -4), ((), ()))


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
