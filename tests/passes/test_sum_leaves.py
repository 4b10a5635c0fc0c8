"""Sums over the leaves of trees: what is joined, what is not, and the same numbers."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.passes.sum_leaves import sum_leaves
from tests.support.rewrites import ops_of
from tests.support.tolerance import assert_close

FEATURES, BELOW, ABOVE = [1, -1, 0, -1, -1, 0, -1, -1], [1, 0, 3, 0, 0, 6, 0, 0], [2, 0, 4, 0, 0, 7, 0, 0]
LIMITS, ROOTS = [2.0, 0, -1, 0, 0, 7, 0, 0], [0, 5, 2]
X = cg.Var((19, 2), name="x")
VALUES = np.random.default_rng(3).normal(size=(19, 2)).astype("f4") * 4


def leaves():
    return cg.tree_leaves(X, ROOTS, FEATURES, LIMITS, BELOW, ABOVE)


def weights(dtype="f4", targets=3):
    return np.random.default_rng(4).normal(size=(len(FEATURES), targets)).astype(dtype)


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_sum_over_trees_takes_no_bytes_for_each_tree(dtype, targets):
    node = cg.sum(cg.take(weights(dtype, targets), leaves(), 0), 1)
    function = cg.compile(node, X)
    ops = ops_of(sum_leaves((node,)))
    assert ops["tree_sums"] == 1 and not ops["tree_leaves"] and not ops["take"]
    assert function.nbytes <= 2 * 64 * -(-19 * targets * 8 // 64)
    want = cg.compile(node, X, engine="reference")(VALUES)
    got = function(VALUES)
    assert got.dtype == dtype and got.shape == (19, targets)
    assert_close(got, want)


def test_missing_numbers_keep_their_way():
    missing = [True, *[False] * 4, True, False, False]
    table = np.arange(8.0, dtype="f4")[:, None]
    node = cg.sum(cg.take(table, cg.tree_leaves(X, ROOTS, FEATURES, LIMITS, BELOW, ABOVE, missing=missing), 0), 1)
    values = np.full((19, 2), np.nan, "f4")
    np.testing.assert_array_equal(cg.compile(node, X)(values), [[1 + 6 + 4]] * 19)


def others():
    terms = cg.take(weights(), leaves(), 0)
    yield "another axis", [cg.sum(terms, 0)]
    yield "two axes", [cg.sum(terms, (1, 2))]
    yield "a maximum", [cg.max(terms, 1)]
    yield "another reader of the terms", [cg.sum(terms, 1), cg.exp(terms)]
    yield "terms that are an output", [cg.sum(terms, 1), terms]
    chosen = leaves()
    yield "another reader of the leaves", [cg.sum(cg.take(weights(), chosen, 0), 1), chosen + 1]
    yield "integers", [cg.sum(cg.take(np.arange(8)[:, None], leaves(), 0), 1)]
    yield "one axis of weights", [cg.sum(cg.take(weights()[:, 0], leaves(), 0), 1)]
    yield "columns", [cg.sum(cg.take(weights().T.copy(), leaves(), 1), 1)]
    yield "positions of no trees", [cg.sum(cg.take(weights(), cg.astype(X, "int32"), 0), 1)]


@pytest.mark.parametrize("outputs", [outputs for _, outputs in others()], ids=[name for name, _ in others()])
def test_other_graphs_stay_as_they_are(outputs):
    assert not ops_of(sum_leaves(tuple(outputs)))["tree_sums"]
    values = np.abs(VALUES) % 8
    for got, want in zip(cg.compile(outputs, X)(values), cg.compile(outputs, X, engine="reference")(values)):
        assert_close(got, want)
