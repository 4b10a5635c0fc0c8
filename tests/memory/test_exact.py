import random
import subprocess
import sys
from contextlib import contextmanager
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.errors import BudgetError
from cgraph.memory.bounds import lower_bound
from cgraph.memory.check import check_plan
from cgraph.memory.files import read_problem
from cgraph.memory.problem import Plan, Problem, ProblemOperand, problem_of
from cgraph.memory.search import rounds
from cgraph.memory.strategies.exact import exact
from cgraph.planning import strategy as named
from cgraph.record import replace
from tests.support.data import shared
from tests.support.problems import NETWORKS, network, random_problem

# no plan is as small as the lower bound; found among a hundred thousand random problems
WITH_A_GAP = (
    ((2, 2, 3), (3, 3, 4), (4, 5, 7), (1, 4, 6), (1, 6, 6), (3, 7, 7), (1, 6, 7), (3, 3, 5), (4, 2, 2), (2, 2, 2))
    + ((5, 1, 1), (3, 1, 1)),
    ((3, 2, 2), (1, 0, 3), (5, 0, 0), (4, 5, 5), (1, 3, 5), (2, 1, 4), (1, 2, 3), (3, 4, 4), (1, 3, 5), (3, 1, 1))
    + ((1, 5, 5), (1, 3, 3)),
    ((3, 5, 7), (4, 6, 6), (4, 7, 7), (4, 0, 0), (3, 2, 5), (1, 4, 4), (2, 2, 4), (2, 0, 2), (4, 1, 1), (1, 3, 3))
    + ((1, 4, 5), (1, 1, 1), (1, 3, 3)),
)


@st.composite
def few_operands(draw: st.DrawFn) -> Problem:
    """At most six, so that all orders can be tried; empty ones, ones of a single step, and separate parts occur."""
    unit = draw(st.sampled_from([1, 3, 2**40]))
    size = st.integers(0, 6).map(lambda k: k * unit)
    steps = st.tuples(st.integers(0, 7), st.integers(0, 3))
    rows = draw(st.lists(st.tuples(size, steps), max_size=6))
    problem = problem_of([(size, first, first + more) for size, (first, more) in rows])
    return replace(problem, alignment=draw(st.sampled_from([1, 4, 64])))


def smallest_by_trying_all(problem: Problem) -> int:
    """Drop the operands onto those already there, in every order: one of them makes the smallest plan."""
    n = len(problem.operands)
    if n == 0:
        return 0
    size, first, last = problem.nbytes, problem.first, problem.last
    meets = (first[:, None] <= last[None, :]) & (first[None, :] <= last[:, None])
    orders = np.array(list(permutations(range(n))))
    tops = np.zeros((len(orders), n), np.int64)
    every = np.arange(len(orders))
    for k in range(n):
        i = orders[:, k]
        below = np.where(meets[i] & (size > 0), tops, 0).max(axis=1)
        tops[every, i] = np.where(size[i] > 0, below + size[i], 0)
    return int(tops.max(axis=1).min())


def fits(problem: Problem, capacity: int) -> bool:
    """Try every offset of every operand, one after another in order of time."""
    waiting = sorted(problem.operands, key=lambda x: (x.interval.first, -x.nbytes))
    placed: list[tuple[ProblemOperand, int]] = []

    def place_rest() -> bool:
        if len(placed) == len(waiting):
            return True
        operand = waiting[len(placed)]
        near = [(at, at + x.nbytes) for x, at in placed if x.interval.meets(operand.interval)]
        for at in range(capacity - operand.nbytes + 1):
            if all(at >= stop or at + operand.nbytes <= start for start, stop in near):
                placed.append((operand, at))
                if place_rest():
                    return True
                placed.pop()
        return False

    return place_rest()


@given(problem=few_operands())
@settings(max_examples=400)
def test_exact_is_as_small_as_the_best_of_all_orders(problem):
    plan = exact(problem, seconds=None)
    check_plan(problem, plan)
    assert plan.proved
    assert plan.nbytes == smallest_by_trying_all(problem)


@given(problem=few_operands())
def test_a_capacity_is_met_or_refuted(problem):
    smallest = smallest_by_trying_all(problem)
    plan = exact(problem, seconds=None, capacity=smallest)
    check_plan(problem, plan)
    assert plan.nbytes == smallest
    if smallest > 0:
        with pytest.raises(BudgetError, match="no plan fits"):
            exact(problem, seconds=None, capacity=smallest - 1)


@pytest.mark.parametrize("rows", WITH_A_GAP)
def test_where_no_plan_reaches_the_bound_that_is_proved(rows):
    problem = problem_of(rows)
    plan = exact(problem, seconds=None)
    check_plan(problem, plan)
    assert plan.proved
    assert plan.nbytes > lower_bound(problem)
    assert not fits(problem, plan.nbytes - 1)


@pytest.mark.parametrize("seed", range(4))
def test_parts_that_never_meet_are_as_large_as_the_largest_alone(seed):
    """Twelve parts in time; 8 bytes do for most of them, and refuting that for one must not mean undoing the rest."""
    rng = random.Random(seed)
    parts = [rng.choice(WITH_A_GAP[:1] + (((3, 0, 3), (5, 2, 5)),)) for _ in range(11)] + [WITH_A_GAP[0]]
    rows = [(size, first + 20 * k, last + 20 * k) for k, part in enumerate(parts) for size, first, last in part]
    rng.shuffle(rows)
    problem = problem_of(rows)
    plan = exact(problem, seconds=None)
    check_plan(problem, plan)
    assert plan.proved
    assert plan.nbytes == max(exact(problem_of(part)).nbytes for part in parts)


@given(problem=few_operands())
def test_a_start_is_never_made_worse(problem):
    offsets = np.concatenate([[0], np.cumsum(problem.nbytes)])
    start = Plan(tuple(offsets[:-1].tolist()), int(offsets[-1]))
    plan = exact(problem, seconds=None, nodes=0, start=start)
    check_plan(problem, plan)
    assert plan.nbytes <= start.nbytes


def test_a_start_need_not_be_in_whole_units():
    problem = problem_of([(6, 0, 1), (9, 1, 2)])
    plan = exact(problem, nodes=0, start=Plan((1, 8), 17))
    check_plan(problem, plan)
    assert plan.nbytes == 15


@pytest.mark.parametrize("seed", range(10))
def test_middle_problems_are_sound_and_reach_a_proof(seed):
    problem = random_problem(seed, 24)
    plan = exact(problem, seconds=None, nodes=200_000)
    check_plan(problem, plan)
    assert plan.proved
    with pytest.raises(BudgetError):
        exact(problem, seconds=None, capacity=plan.nbytes - 1)


def test_no_operands_need_no_bytes():
    assert exact(problem_of([])) == Plan((), 0, "exact", proved=True)
    assert exact(problem_of([(0, 0, 3), (0, 1, 1)])) == Plan((0, 0), 0, "exact", proved=True)


def test_a_capacity_below_the_bound_is_refused_without_a_search():
    with pytest.raises(BudgetError, match="9 bytes"):
        exact(problem_of([(5, 0, 1), (5, 1, 2)]), nodes=0, capacity=9)


def test_sizes_near_the_end_of_64_bits_are_placed():
    problem = problem_of([(2**60 - 1, 0, 1), (2**60 - 3, 1, 2), (2**60 + 5, 2, 3)])
    plan = exact(problem)
    check_plan(problem, plan)
    assert plan.nbytes == lower_bound(problem) == 2**61 + 2


@pytest.mark.parametrize("network_name", NETWORKS)
def test_networks_reach_the_lower_bound(network_name):
    problem = network(network_name)
    plan = exact(problem, seconds=None, nodes=5_000)
    check_plan(problem, plan)
    assert plan.proved
    assert plan.nbytes == lower_bound(problem)


@pytest.mark.parametrize("name", "ABCEFGK")
def test_minimalloc_files_fit_in_their_capacity(name):
    problem = read_problem(shared(f"minimalloc/{name}.1048576.csv"), alignment=1)
    plan = exact(problem, seconds=None, nodes=300_000, capacity=1_048_576)
    check_plan(problem, plan)
    assert plan.nbytes <= 1_048_576


def test_the_node_limit_is_kept_and_decides_the_plan():
    problem = read_problem(shared("minimalloc/E.1048576.csv"), alignment=1)
    plans = [exact(problem, seconds=None, nodes=3_000) for _ in range(2)]
    check_plan(problem, plans[0])
    assert plans[0] == plans[1]
    assert not plans[0].proved


def test_a_round_does_no_more_nodes_than_are_left(monkeypatch):
    efforts = []

    def noted(*limits):
        efforts.append(rounds.Effort(*limits))
        return efforts[-1]

    monkeypatch.setattr(sys.modules[exact.__module__], "Effort", noted)
    exact(read_problem(shared("minimalloc/E.1048576.csv"), alignment=1), seconds=None, nodes=3_001)
    assert [effort.used for effort in efforts if effort.nodes is not None] == [3_001]


def test_no_time_leaves_the_greedy_plan():
    problem = read_problem(shared("minimalloc/E.1048576.csv"), alignment=1)
    plan = exact(problem, seconds=0.0)
    check_plan(problem, plan)
    assert not plan.proved


def test_an_interrupt_ends_the_search(monkeypatch):
    """Between two chunks Python is in charge: whatever is raised there leaves `exact`."""
    problem = read_problem(shared("minimalloc/E.1048576.csv"), alignment=1)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(rounds.Effort, "chunk", interrupt)
    with pytest.raises(KeyboardInterrupt):
        exact(problem, seconds=None)


def test_importing_the_strategy_does_not_import_numba():
    code = "import sys, cgraph.memory.strategies.exact; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_strategy_of_this_name_tells_its_bounds_in_bytes_and_keeps_to_a_capacity(monkeypatch):
    told: list = []

    @contextmanager
    def progress(name):
        told.append(name)
        yield lambda lower, upper: told.append((lower, upper))

    monkeypatch.setattr(named, "bounds_progress", progress)
    problem = problem_of([(64 * size, *steps) for size, *steps in WITH_A_GAP[0]], 64)
    search = named.strategy_named("exact")
    plan = search(problem)
    name, *bounds = told
    assert name == "exact search" and plan.proved and bounds
    assert all(lower_bound(problem) <= low < plan.nbytes <= high for low, high in bounds)
    assert search(problem, capacity=plan.nbytes).nbytes == plan.nbytes
    with pytest.raises(BudgetError, match=f"exact: no plan fits in .*{plan.nbytes - 64} bytes"):
        search(problem, capacity=plan.nbytes - 64)


def test_a_start_is_that_of_the_operands_that_have_bytes(monkeypatch):
    problem = problem_of([(0, 0, 1), (3, 0, 1), (0, 0, 1), (5, 0, 1)])
    plan = exact(problem, nodes=0, start=Plan((9, 0, 9, 3), 9))
    check_plan(problem, plan)
    assert plan.offsets[1::2] == (0, 3) and plan.nbytes == 8
