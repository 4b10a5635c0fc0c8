from math import inf
from time import monotonic

import pytest
from hypothesis import given

from cgraph.memory.check import check_plan
from cgraph.memory.fit import Limit, OutOfNodesError, choose_sizes
from cgraph.memory.problem import problem_of
from cgraph.memory.strategies import BLOCK_STRATEGIES
from cgraph.memory.strategies.exact_blocks import exact_blocks
from tests.support.problems import problems, random_problem


@given(problem=problems(most=6, steps=6))
def test_exact_blocks_equals_trying_every_partition(problem):
    plan = exact_blocks(problem)
    check_plan(problem, plan)
    assert plan.proved
    assert plan.nbytes == _least_sum(problem, 0, [])


def _least_sum(problem, i, blocks):
    """The least total of block sizes over all ways to put operand `i` and later ones into blocks."""
    if i == len(problem.operands):
        return sum(max(int(problem.nbytes[k]) for k in block) for block in blocks)
    interval = problem.operands[i].interval
    totals = [_least_sum(problem, i + 1, [*blocks, [i]])]
    for at, block in enumerate(blocks):
        if not any(problem.operands[k].interval.meets(interval) for k in block):
            totals.append(_least_sum(problem, i + 1, [*blocks[:at], [*block, i], *blocks[at + 1 :]]))
    return min(totals)


def test_exact_blocks_is_never_worse_than_the_other_block_strategies():
    for seed in range(20):
        problem = random_problem(seed, 24)
        exact = exact_blocks(problem)
        for strategy in BLOCK_STRATEGIES.values():
            assert not exact.proved or exact.nbytes <= strategy(problem).nbytes


def test_a_limit_still_gives_a_sound_plan():
    problem = random_problem(3, 60)
    for limit in ({"nodes": 50}, {"seconds": 0.0}):
        plan = exact_blocks(problem, **limit)
        check_plan(problem, plan)
        assert not plan.proved


def test_the_best_plan_of_a_search_that_ends_early_is_returned():
    """More nodes never give a larger plan; some plans are smaller than the first one, but not proved."""
    problem = random_problem(56, 14)
    plans = [exact_blocks(problem, nodes=nodes) for nodes in (0, *range(380, 540, 20))]
    sizes = [plan.nbytes for plan in plans]
    assert sizes == sorted(sizes, reverse=True) and plans[-1].proved
    assert any(plan.nbytes < sizes[0] and not plan.proved for plan in plans)
    for plan in plans:
        check_plan(problem, plan)


def test_sizes_are_chosen_within_a_number_of_nodes_and_until_a_time():
    rows = [(0, 1, 4), (1, 2, 8), (2, 3, 4)]
    for nodes in range(20):
        limit = Limit(nodes, inf)
        try:
            chosen = choose_sizes([8, 4], rows, limit)
        except OutOfNodesError:
            continue
        break
    assert chosen == [4, 8, 4] and nodes > 3
    assert choose_sizes([8, 4], rows, Limit(nodes, inf)) == chosen
    with pytest.raises(OutOfNodesError):
        choose_sizes([8, 4], rows, Limit(nodes, monotonic() - 1))


def test_operands_of_one_block_do_not_meet_at_their_ends():
    """Found among random problems: a greedy plan is larger, and a block is taken one step after it was let go."""
    rows = [(5, 5, 6), (4, 0, 0), (3, 2, 4), (1, 5, 7), (5, 2, 4), (4, 4, 6), (5, 2, 2), (5, 5, 6)]
    plan = exact_blocks(problem_of(rows))
    check_plan(problem_of(rows), plan)
    assert plan.nbytes == 16 and plan.proved
