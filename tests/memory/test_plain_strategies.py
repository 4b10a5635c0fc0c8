"""Strategies give the very offsets of the same rules in plain loops."""

from functools import partial

import pytest
from hypothesis import given, settings

from cgraph.kernels.target import target_named
from cgraph.memory import gap_search
from cgraph.memory.problem import Problem, problem_of
from cgraph.memory.strategies import STRATEGIES
from tests.memory import plain
from tests.support.kernels import TARGETS
from tests.support.problems import problems, random_problem

RULES = {
    "greedy_by_size": plain.by_size,
    "greedy_in_order": plain.in_order,
    "strip_packing": plain.strip,
    "vandenhove": partial(plain.blocks_in_order, choose=plain.smallest_that_holds),
    "greedy_in_order_blocks": partial(plain.blocks_in_order, choose=plain.nearest_in_size),
    "greedy_by_size_blocks": plain.blocks_by_size,
}


def assert_alike(name: str, problem: Problem) -> None:
    rows, plan = plain.rows_of(problem), STRATEGIES[name](problem)
    assert list(plan.offsets) == RULES[name](rows)
    assert plan.nbytes == max((at + nbytes for at, (nbytes, _, _) in zip(plan.offsets, rows)), default=0)


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=200)
@given(problem=problems())
def test_offsets_are_those_of_the_plain_rule(name, problem):
    assert_alike(name, problem)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("count", [10, 40])
def test_offsets_of_larger_problems_are_those_of_the_plain_rule(name, count):
    for seed in range(25):
        assert_alike(name, random_problem(seed, count))


@pytest.mark.parametrize("name", ["greedy_by_size", "greedy_in_order", "strip_packing"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("piece", [1, 7, 64])
def test_compiled_code_places_alike_on_every_target_and_in_pieces_of_any_size(name, target, piece, monkeypatch):
    monkeypatch.setattr(gap_search, "FEW_NEIGHBOURS", -1)
    monkeypatch.setattr(gap_search, "PIECE", piece)
    monkeypatch.setattr(gap_search, "host_target", lambda: target_named(target))
    for seed in range(10):
        assert_alike(name, random_problem(seed, 35))


@pytest.mark.parametrize("name", ["greedy_by_size", "strip_packing"])
def test_offsets_beyond_53_bits_are_exact(name, monkeypatch):
    monkeypatch.setattr(gap_search, "FEW_NEIGHBOURS", -1)
    rows = [(2**57 + 3 * i % 7, i, i + 2) for i in range(8)]
    assert_alike(name, problem_of(rows))
