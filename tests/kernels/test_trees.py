"""The walk down decision trees: comparisons at ties, equality, NaN, blocks of rows, several trees."""

import numpy as np
import pytest

from cgraph.kernels.target import target_named
from cgraph.kernels.trees.calls import BLOCK, leaves_calls, pack_nodes, sums_calls
from cgraph.kernels.trees.signature import EQUAL, MISSING
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of

# two trees: node 0 compares column 1 with 2, its leaves are 1 and 2; node 3 compares column 0 with -1, then node 5
# compares column 1 with 0.5
ROOTS = np.int32([0, 3])
FEATURES = np.int32([1, -1, -1, 0, -1, 1, -1, -1])
THRESHOLDS = np.float32([2, 0, 0, -1, 0, 0.5, 0, 0])
BELOW = np.int32([1, 0, 0, 4, 0, 6, 0, 0])
ABOVE = np.int32([2, 0, 0, 5, 0, 7, 0, 0])


def leaf_of(row, root, kinds=None):
    """Return the leaf of a row, by hand."""
    at = root
    while FEATURES[at] >= 0:
        number, kind = row[FEATURES[at]], 0 if kinds is None else kinds[at]
        below = number == THRESHOLDS[at] if kind & EQUAL else number <= THRESHOLDS[at]
        at = BELOW[at] if below or (kind & MISSING and np.isnan(number)) else ABOVE[at]
    return at


def run(x, kinds=None, target="host", order="all", roots=ROOTS):
    """Return what the kernel finds."""
    leaves = np.full((len(x), len(roots)), -7, np.int32)
    kinds = np.zeros(len(FEATURES), np.uint8) if kinds is None else kinds
    nodes = pack_nodes(FEATURES, THRESHOLDS.astype(x.dtype), BELOW, ABOVE, kinds)
    flags = int(np.bitwise_or.reduce(kinds))
    calls = leaves_calls(view_of(leaves), view_of(x), view_of(roots), view_of(nodes), flags)
    run_calls(calls, target_named(target), order)
    return leaves


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [1, 7, 8, 9, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 11])
def test_each_row_reaches_its_leaf_in_each_tree(rows, target, order):
    x = np.random.default_rng(rows).choice(np.float32([-1, -2, 0.5, 2, 3, np.nan, np.inf, -np.inf]), (rows, 2))
    want = [[leaf_of(row, root) for root in ROOTS] for row in x]
    np.testing.assert_array_equal(run(x, None, target, order), want)


@pytest.mark.parametrize("kind", [0, EQUAL, MISSING, EQUAL | MISSING])
def test_a_kind_asks_for_equality_and_sends_nan_below(kind):
    kinds = np.full(len(FEATURES), kind, np.uint8)
    x = np.float32([[-1, 2], [-2, 1], [np.nan, np.nan], [0, 0.5], [5, np.nan]])
    np.testing.assert_array_equal(run(x, kinds), [[leaf_of(row, root, kinds) for root in ROOTS] for row in x])


def test_kinds_belong_to_nodes():
    kinds = np.uint8([EQUAL, 0, 0, 0, 0, MISSING, 0, 0])
    x = np.float32([[0, 1], [0, 2], [0, np.nan], [-1, np.nan]])
    np.testing.assert_array_equal(run(x, kinds), [[2, 7], [1, 7], [2, 6], [2, 4]])


def test_nothing_is_called_without_rows_or_trees():
    none = np.zeros((0, 2), np.float32)
    assert run(none).shape == (0, 2)
    assert run(np.zeros((3, 2), np.float32), roots=ROOTS[:0]).shape == (3, 0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("trees", [7, 8, 9, 19])
@pytest.mark.parametrize("rows", [1, 3, 9])
def test_rows_that_are_left_walk_down_several_trees_at_once(rows, trees, target):
    x = np.random.default_rng(rows).choice(np.float32([-1, -2, 0.5, 2, 3, np.nan]), (rows, 2))
    roots = np.random.default_rng(trees).choice(np.int32([0, 3, 5, 7]), trees)
    kinds = np.uint8([EQUAL, 0, 0, 0, 0, MISSING, 0, 0])
    want = [[leaf_of(row, root, kinds) for root in roots] for row in x]
    np.testing.assert_array_equal(run(x, kinds, target, roots=roots), want)


def test_rows_without_columns_reach_roots_that_are_leaves():
    roots = np.int32([7, 1, 4])
    np.testing.assert_array_equal(run(np.zeros((9, 0), np.float32), roots=roots), [[7, 1, 4]] * 9)


def test_a_step_reads_one_node_of_few_bytes():
    assert [pack_nodes(FEATURES, THRESHOLDS.astype(dtype), BELOW, ABOVE, 0).shape for dtype in ("f4", "f8")] == [
        (8, 16),
        (8, 24),
    ]


NEXT = (lambda v: np.nextafter(v, v - 1), lambda v: v, lambda v: np.nextafter(v, v + 1))
"""The number before, the number itself, and the next one."""


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kinds", [None, np.full(len(FEATURES), EQUAL, np.uint8)], ids=["at most", "equal"])
def test_numbers_next_to_a_threshold_are_compared_in_their_dtype(kinds, dtype):
    at = np.array([2, 0.5], dtype)
    x = np.array([(-2, f(at[0])) for f in NEXT] + [(5, f(at[1])) for f in NEXT], dtype)
    want = [[leaf_of(row, root, kinds) for root in ROOTS] for row in x]
    np.testing.assert_array_equal(run(x, kinds), want)
    assert len({tuple(row) for row in want[:3]}) == 2 == len({tuple(row) for row in want[3:]})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("weight", "targets"), [("f4", 1), ("f8", 1), ("f4", 3), ("f8", 7)])
@pytest.mark.parametrize("rows", [1, 7, 8, BLOCK + 9, 2 * BLOCK])
def test_the_weights_of_leaves_are_added_in_the_order_of_the_trees(rows, weight, targets, target):
    rng = np.random.default_rng(rows)
    x = rng.choice(np.float32([-1, -2, 0.5, 2, 3, np.nan]), (rows, 2))
    roots, weights = rng.choice(np.int32([0, 3, 5, 7]), 11), rng.normal(size=(len(FEATURES), targets)).astype(weight)
    weights[2] *= 1e20  # an order of the sum that is another one gives other bits
    nodes, sums = pack_nodes(FEATURES, THRESHOLDS, BELOW, ABOVE, np.uint8(0)), np.full((rows, targets), np.nan)
    operands = [view_of(a) for a in (sums, x, roots, nodes, weights)]
    run_calls(sums_calls(*operands, 0), target_named(target), "all")
    want = np.zeros((rows, targets))
    for root in roots:
        want += weights[[leaf_of(row, root) for row in x]]
    np.testing.assert_array_equal(sums, want)


def test_sums_of_no_trees_are_zero():
    nodes, sums = pack_nodes(FEATURES, THRESHOLDS, BELOW, ABOVE, np.uint8(0)), np.full((3, 2), np.nan)
    x, weights = np.zeros((3, 2), "f4"), np.ones((8, 2))
    operands = [view_of(a) for a in (sums, x, ROOTS[:0], nodes, weights)]
    run_calls(sums_calls(*operands, 0), target_named("host"), "all")
    np.testing.assert_array_equal(sums, np.zeros((3, 2)))
    assert (
        sums_calls(view_of(sums[:, :0]), view_of(x), view_of(ROOTS), view_of(nodes), view_of(weights[:, :0]), 0) == []
    )
