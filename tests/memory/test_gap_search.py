"""Gaps between operands: the smallest that is large enough, the lowest of equals; both ways of placing agree."""

import numpy as np
import pytest

from cgraph.memory import gap_search
from cgraph.memory.gap_search import place_each, plan_of, scatter, smallest_gap
from cgraph.memory.problem import problem_of


@pytest.mark.parametrize(("nbytes", "occupied", "offset"), [
    (4, [], 0),
    (4, [(4, 8)], 0),
    (5, [(4, 8)], 8),
    (2, [(0, 4), (10, 12), (14, 20)], 12),
    (3, [(0, 4), (10, 12), (14, 20)], 4),
    (2, [(2, 4), (6, 8)], 0),
    (4, [(0, 10), (2, 4), (12, 13)], 13),
    (2, [(0, 10), (2, 4), (12, 13)], 10),
    (1, [(0, 3), (0, 1), (4, 5)], 3),
])  # fmt: skip
def test_the_smallest_gap_that_is_large_enough_is_taken(nbytes, occupied, offset):
    assert smallest_gap(nbytes, occupied) == offset


@pytest.mark.parametrize("few", [-1, 1000])
def test_operands_are_placed_in_the_order_that_is_asked_for(few, monkeypatch):
    """By lists of neighbours and by the table alike."""
    monkeypatch.setattr(gap_search, "FEW_NEIGHBOURS", few)
    problem = problem_of([(4, 0, 2), (2, 2, 3), (0, 0, 9), (3, 3, 4), (1, 5, 5)])
    assert place_each(problem, [0, 1, 2, 3, 4], "a").offsets == (0, 4, 0, 0, 0)
    plan = place_each(problem, [3, 1, 0, 4, 2], "name")
    assert plan.offsets == (5, 3, 0, 0, 0) and plan.nbytes == 9 and plan.strategy == "name" and not plan.proved
    assert place_each(problem_of([]), [], "none").nbytes == 0


def test_the_table_is_used_where_there_are_more_neighbours_than_few(monkeypatch):
    problem = problem_of([(1, 0, 1), (1, 1, 2), (1, 2, 2)])  # two pairs, three operands
    calls = []
    table = gap_search._place_by_table
    monkeypatch.setattr(gap_search, "_place_by_table", lambda *args: calls.append(1) or table(*args))
    for few, count in ((2 / 3, 0), (0.6, 1)):
        monkeypatch.setattr(gap_search, "FEW_NEIGHBOURS", few)
        assert place_each(problem, [0, 1, 2], "x").nbytes == 2 and len(calls) == count


def test_an_arena_ends_with_its_topmost_operand():
    problem = problem_of([(5, 0, 0), (1, 0, 0)], alignment=4)
    assert plan_of(problem, np.array([0, 8]), "x").nbytes == 12 and plan_of(problem, np.array([8, 0]), "x").nbytes == 16
    assert scatter(np.array([7, 8]), np.array([2, 0]), 4).tolist() == [8, 0, 7, 0]
