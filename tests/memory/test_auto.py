import os
import subprocess
import sys

import pytest
from hypothesis import given

from cgraph.kernels.prebuilt.table import table_of
from cgraph.kernels.target import host_target
from cgraph.memory import auto as searching
from cgraph.memory.auto import NODES, _affordable_nodes, auto
from cgraph.memory.bounds import lower_bound
from cgraph.memory.check import check_plan
from cgraph.memory.problem import Tie, problem_of
from cgraph.memory.strategies import BLOCK_STRATEGIES, OFFSET_STRATEGIES, STRATEGIES
from cgraph.record import replace
from tests.support.problems import problems, random_problem


@given(problem=problems())
def test_auto_is_never_worse_than_any_strategy(problem):
    plan = auto(problem)
    check_plan(problem, plan)
    assert plan.nbytes <= min(strategy(problem).nbytes for strategy in STRATEGIES.values())


@pytest.mark.parametrize(("count", "seeds"), [(3, 250), (8, 250), (20, 60), (50, 25)])
def test_auto_without_search_is_never_worse_than_a_cheap_strategy(count, seeds):
    cheap = {**OFFSET_STRATEGIES, **BLOCK_STRATEGIES}
    for slow in ("exact", "exact_blocks", "min_cost_flow"):
        del cheap[slow]
    for seed in range(seeds):
        problem = random_problem(seed, count)
        plan = auto(problem, nodes=0)
        check_plan(problem, plan)
        assert plan.nbytes <= min(strategy(problem).nbytes for strategy in cheap.values())


def test_auto_searches_on_its_own_where_that_takes_no_more_than_its_share(monkeypatch):
    problem = random_problem(33, 25)
    cheap, found = auto(problem, nodes=0), auto(problem)
    assert found.nbytes < cheap.nbytes and found == auto(problem, nodes=NODES)
    monkeypatch.setattr("cgraph.memory.auto.WORK", 0)
    assert auto(problem) == cheap


@pytest.mark.slow
def test_auto_does_not_search_on_for_few_bytes_among_many_operands(monkeypatch):
    monkeypatch.setattr("cgraph.memory.auto.exact", None)
    problem = random_problem(3, 700)
    gap = auto(problem).nbytes - lower_bound(problem)
    assert gap
    monkeypatch.setattr("cgraph.memory.auto.LEAST_GAP", gap)
    with pytest.raises(TypeError):
        auto(problem)


def test_auto_tries_what_is_already_loaded_before_the_compiled_search(monkeypatch):
    problem = random_problem(39, 520)
    monkeypatch.setattr("cgraph.memory.auto.exact", None)
    assert auto(problem, nodes=0).nbytes > lower_bound(problem) == auto(problem).nbytes


@pytest.mark.parametrize("seed", range(10))
def test_a_search_is_given_what_its_share_of_work_allows(seed, monkeypatch):
    problem = random_problem(seed, 30)
    spans = [x.interval for x in problem.operands]
    meets = sum(a.first <= b.last and b.first <= a.last for a in spans for b in spans if a is not b) // len(spans)
    each = meets * (300 + meets) + 1000
    for share, nodes in ((30, 30), (31, 31), (29, 0), (NODES + 1, NODES)):  # at least one for every operand
        monkeypatch.setattr("cgraph.memory.auto.WORK", share * each)
        assert _affordable_nodes(problem) == nodes


def test_auto_gives_the_same_plan_twice():
    for seed in range(20):
        assert auto(random_problem(seed, 25)) == auto(random_problem(seed, 25))


def test_auto_says_what_it_chose_and_whether_that_is_proved():
    chain = auto(problem_of([(64, i, i + 1) for i in range(9)]))
    assert chain.proved
    assert chain.strategy == "greedy_by_size"
    for seed in range(50):
        problem = random_problem(seed, 30)
        plan = auto(problem, nodes=0)
        assert plan.proved == (plan.nbytes == lower_bound(problem))
        assert plan.strategy in STRATEGIES


def test_auto_needs_no_compiler_where_a_cheap_strategy_reaches_the_bound():
    script = """
import sys
from cgraph.memory.auto import NODES, _affordable_nodes, auto
from cgraph.memory.problem import problem_of
auto(problem_of([(64, i, i + 1) for i in range(99)]))
print([name for name in ("numba", "llvmlite", "scipy") if name in sys.modules])
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_dense_problems_need_no_compiler_once_their_code_is_kept(tmp_path):
    script = """
import sys
from cgraph.memory.auto import auto
from cgraph.memory.problem import problem_of
plan = auto(problem_of([(64 * (1 + i * i % 97), i, i + 60) for i in range(120)]), nodes=0)
print(plan.nbytes, [name for name in ("numba", "llvmlite.binding", "scipy") if name in sys.modules])
"""
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    cold, warm = (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env).stdout
        for _ in range(2)
    )
    assert ("llvmlite.binding" in cold) == (table_of(host_target()) is None) and "[]" in warm
    assert cold.split()[0] == warm.split()[0]


@pytest.mark.parametrize(("count", "many"), [(6, False), (7, False), (8, True)])
def test_up_to_a_number_of_operands_all_cheap_strategies_and_the_search_have_their_turn(count, many, monkeypatch):
    """At the very number too."""
    monkeypatch.setattr(searching, "MOST_FOR_BLOCKS", 7)
    problem = random_problem(3, count)
    found = {plan.strategy for plan in searching._cheap_plans(problem)}
    fast = [{name for name in table if name not in searching.SLOW} for table in (OFFSET_STRATEGIES, BLOCK_STRATEGIES)]
    assert found == (fast[0] if many else fast[0] | fast[1])
    gaps = (0, searching.LEAST_GAP - 1, searching.LEAST_GAP)
    assert [searching.is_near(problem, gap) for gap in gaps] == [many, many, False]


@pytest.mark.parametrize("proved", [False, True])
def test_the_search_begins_with_the_best_plan_and_says_whether_that_is_the_smallest(monkeypatch, proved):
    problem, asked = random_problem(33, 25), []
    monkeypatch.setattr(
        searching, "exact", lambda problem, **given: asked.append(given) or replace(given["start"], proved=proved)
    )
    cheap = auto(problem, nodes=0)
    assert auto(problem, nodes=5) == replace(cheap, proved=proved)
    assert asked == [{"seconds": None, "nodes": 5, "start": cheap}]
    assert auto(problem_of([(64, i, i + 1) for i in range(9)]), nodes=5).proved
    assert len(asked) == 1, "a plan of as many bytes as the bound needs no search"


def test_tied_operands_keep_their_distance():
    rows = problem_of([(64, 0, 1), (64, 2, 3)])
    problem = replace(rows, ties=((Tie(0, 0), Tie(1, 64)),))
    plan = auto(problem)
    check_plan(problem, plan)
    assert plan.offsets == (0, 64) and auto(rows).offsets == (0, 0)
