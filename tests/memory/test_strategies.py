from itertools import groupby

import pytest
from hypothesis import given, settings

from cgraph.memory.bounds import block_lower_bound, lower_bound
from cgraph.memory.check import check_plan
from cgraph.memory.problem import problem_of
from cgraph.memory.strategies import BLOCK_STRATEGIES, OFFSET_STRATEGIES, STRATEGIES
from cgraph.record import replace
from tests.support.problems import problems, random_problem

every_strategy = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
every_block_strategy = pytest.mark.parametrize("strategy", BLOCK_STRATEGIES.values(), ids=BLOCK_STRATEGIES)


@every_strategy
@given(problem=problems())
def test_plans_are_sound_and_not_below_the_bound(strategy, problem):
    plan = strategy(problem)
    check_plan(problem, plan)
    assert plan.nbytes >= lower_bound(problem)


@every_strategy
@pytest.mark.parametrize("seed", range(5))
def test_plans_of_larger_problems_are_sound(strategy, seed):
    problem = random_problem(seed, 24)
    plan = strategy(problem)
    check_plan(problem, plan)
    assert plan.nbytes >= lower_bound(problem)


@every_block_strategy
@given(problem=problems())
def test_operands_of_a_block_strategy_begin_where_blocks_do(strategy, problem):
    """Operands at one offset are a block; blocks lie side by side, each as large as its largest operand."""
    placed = sorted((at, int(n)) for at, n in zip(strategy(problem).offsets, problem.nbytes) if n)
    end = 0
    for start, block in groupby(placed, key=lambda pair: pair[0]):
        assert start == end
        end = start + max(nbytes for _, nbytes in block)
    assert strategy(problem).nbytes == end >= block_lower_bound(problem)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_plan_is_named_after_its_strategy_and_always_the_same(name):
    plan = STRATEGIES[name](random_problem(3, 40))
    assert plan.strategy == name
    assert plan == STRATEGIES[name](random_problem(3, 40))


@every_strategy
@given(problem=problems())
@settings(max_examples=30)
def test_operands_of_no_bytes_change_nothing(strategy, problem):
    sized = tuple(x for x in problem.operands if x.nbytes)
    assert strategy(problem).nbytes == strategy(replace(problem, operands=sized)).nbytes


@every_strategy
@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(0, 0, 5)],
        [(7, 3, 3)],
        [(0, 0, 0), (0, 0, 0), (5, 0, 0)],
        [(1, i, 99 - i) for i in range(50)],  # nested
        [(2**57, i, i + 1) for i in range(16)],  # sums close to the limit
        [(10**9 + i, 10**17 * i, 10**17 * i + 10**16) for i in range(9)],  # steps far apart
        [(5, 0, 9)] * 12,  # all alike
    ],
    ids=["none", "empty", "one", "two empty", "nested", "huge", "sparse", "alike"],
)
def test_extreme_problems_are_planned(strategy, rows):
    problem = problem_of(rows)
    plan = strategy(problem)
    check_plan(problem, plan)
    assert plan.nbytes >= lower_bound(problem)


@every_strategy
def test_offsets_are_plain_ints(strategy):
    plan = strategy(random_problem(1, 12))
    assert {type(x) for x in (plan.nbytes, *plan.offsets)} == {int}


def test_offsets_of_a_long_chain_need_two_neighbours():
    problem = problem_of([(64, i, i + 1) for i in range(4000)])
    for name in ("greedy_by_size", "greedy_in_order", "strip_packing"):
        assert OFFSET_STRATEGIES[name](problem).nbytes == 128
