"""Stages of size, once more in plain loops: the closest pair of operand and block comes next."""

import pytest
from hypothesis import given

from cgraph.memory.problem import Problem, problem_of
from cgraph.memory.strategies.greedy_by_size_improved import greedy_by_size_improved
from tests.memory.plain import Block, offsets_of, opened, rows_of
from tests.support.problems import problems, random_problem


def plain(problem: Problem) -> list[int]:
    """Offsets of the rule: a stage ends below each positional maximum (the i-th largest size that meets at a step)."""
    rows = rows_of(problem)
    steps = {step for _, first, last in rows for step in (first, last)}
    columns = [sorted((n for n, a, b in rows if a <= step <= b), reverse=True) for step in steps]
    depth = max(map(len, columns), default=0)
    maximums = [max(column[i] for column in columns if len(column) > i) for i in range(depth)]
    blocks: list[Block] = []
    block_of: dict[int, Block] = {}
    waiting = [i for i in sorted(range(len(rows)), key=lambda i: (-rows[i][0], rows[i][1], i)) if rows[i][0]]
    while waiting:
        stage_of = {i: sum(n >= rows[i][0] for n in maximums) for i in waiting}
        alike = [i for i in waiting if stage_of[i] == stage_of[waiting[0]]]
        homeless = [i for i in alike if not any(b.is_free(rows[i]) for b in blocks)]
        if homeless:
            i, block = homeless[0], opened(blocks)
        else:
            pairs = [(b.idle(rows[i]), k, b.number) for k, i in enumerate(alike) for b in blocks if b.is_free(rows[i])]
            _, k, number = min(pairs)
            i, block = alike[k], blocks[number]
        block_of[i] = block
        block.add(rows[i])
        waiting.remove(i)
    return offsets_of(rows, blocks, block_of)


@given(problem=problems())
def test_offsets_are_those_of_the_plain_rule(problem):
    assert list(greedy_by_size_improved(problem).offsets) == plain(problem)


@pytest.mark.parametrize("seed", range(25))
def test_offsets_of_larger_problems_are_those_of_the_plain_rule(seed):
    assert list(greedy_by_size_improved(random_problem(seed, 20)).offsets) == plain(random_problem(seed, 20))


def test_an_operand_without_a_block_opens_one_before_others_are_placed():
    plan = greedy_by_size_improved(problem_of([(4, 0, 0), (3, 2, 3), (3, 1, 1), (3, 1, 2)]))
    assert plan.strategy == "greedy_by_size_improved"
    assert plan.nbytes == 7 and plan.offsets[3] != plan.offsets[2]
