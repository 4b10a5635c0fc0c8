"""Distances of computed lengths, by sums of terms and their bounds."""

from math import inf

import numpy as np
import pytest

import cgraph as cg
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx.dynamic.bounds import LengthBounds
from cgraph.formats.onnx.dynamic.distance import DEEPEST, MOST_VISITED, exact_distance, most_distance
from cgraph.ops.leaf import Const, Var

N, M = Var((), "int64", name="n"), Var((), "int64", name="m")
P = Var((), bool, name="p")
ROW = Var((3,), "int64", name="row")
THREE = Const(np.array(3))


def chain(length):
    x = N
    for _ in range(length):
        x = x + 1
    return x


@pytest.fixture
def limits():
    """0 <= n <= 9 and 2 <= m <= 5."""
    bounds = LengthBounds({}, Allowance(0))
    bounds.at_most(N, 9, 0)
    bounds.at_most(M, 5, 2)
    return bounds


EXACT = {
    "itself": (N, N, 0),
    "more": (N + 3, N, 3),
    "fewer": (N - 3, N, -3),
    "from a number": (3 - N, cg.negative(N), 3),
    "in parts": ((N + 2) + (M - 1), M + N, 1),
    "twice": (N * 2 + 1, N + N, 1),
    "by a constant": (THREE * N, N + N + N, 0),
    "by one": (cg.floor_divide(N + 4, 1), N, 4),
    "of a vector": (cg.reshape(ROW[1:2], ()) + 5, cg.reshape(ROW[1:2], (1,)), 5),
    "in another dtype": (cg.astype(cg.astype(N, "int32"), "int64") + 1, N, 1),
    "numbers": (Const(np.array(9)), Const(np.array(4)), 5),
}
OPEN = {
    "two numbers": (N, M),
    "by two": (cg.floor_divide(N + 4, 2), N),
    "another element": (cg.reshape(ROW[1:2], ()), cg.reshape(ROW[2:3], ())),
    "a selected one": (cg.where(P, N + 1, N + 1 + M), N),
    "a minimum": (cg.minimum(N + 1, M), N),
    "through a float": (cg.astype(cg.astype(N, "float32"), "int64"), N),
    "a sum of too many parts": (chain(MOST_VISITED + 8), N),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_sum_that_the_graph_shows(name, limits):
    x, y, want = EXACT[name]
    sizes = [limits.lengths(cg.reshape(v, (1,)))[0] for v in (x, y)]
    assert exact_distance(limits, *sizes) == want
    assert exact_distance(limits, *sizes[::-1]) == -want
    assert most_distance(limits, *sizes) == want


@pytest.mark.parametrize("name", OPEN)
def test_no_exact_distance(name, limits):
    assert exact_distance(limits, *(limits.length(v) for v in OPEN[name])) is None


def test_numbers_are_lengths_as_well(limits):
    assert exact_distance(limits, 7, 4) == 3 and most_distance(limits, 4, 7) == -3
    assert exact_distance(limits, limits.length(N), 4) is None and most_distance(limits, limits.length(N), 4) == 5


def deep(levels):
    x = N + 1
    for _ in range(levels):
        x = cg.where(P, x, N)
    return x


MOST = {
    "a term": (N + M, N, 5),
    "a term less": (N - M, N, -2),
    "a difference": (N, M, 7),
    "a multiple": (N + 3 * M, N, 15),
    "a selected one": (cg.where(P, N + 1, N), N, 1),
    "a selected one in a sum is a term": (cg.where(P, N + 1, N) + 1, N, 11),
    "the minimum": (cg.minimum(N + 1, M), N, 1),
    "the maximum": (cg.maximum(N + 1, M), N, 5),
    "a clipped one": (cg.maximum(cg.minimum(N - 1, N), 0), N, 0),
    "deep": (deep(DEEPEST), N, 1),
    "deeper": (deep(DEEPEST + 1), N, 10),
    "an unknown one": (cg.reshape(ROW[:1], ()), N, inf),
}  # fmt: skip


@pytest.mark.parametrize("name", MOST)
def test_an_upper_bound(name, limits):
    x, y, want = MOST[name]
    assert most_distance(limits, limits.length(x), limits.length(y)) == want
