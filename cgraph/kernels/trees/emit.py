"""Walks down decision trees, one tree after the other for some rows, so that a tree's nodes stay in cache."""

from functools import reduce
from operator import and_
from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import MutableValue, Val
from cgraph.kernels.trees.signature import EQUAL, MISSING

SIDE_BY_SIDE = 8
"""Rows that walk at once: each step of a walk waits for the one before, so several walks overlap."""


def leaves(k: Builder, dtype: str, plain: bool) -> None:
    """Find the leaf of each row in each tree. Task: `block` rows."""
    a = k.args()
    first, last = k.tasks()
    begin, end = first * a.block, k.smaller(last * a.block, a.n)
    whole = end - (end - begin) % SIDE_BY_SIDE
    with k.loop(0, a.trees) as tree:
        with k.loop(begin, whole, SIDE_BY_SIDE) as row:
            walk(k, a, tree, [row + i for i in range(SIDE_BY_SIDE)], plain)
        with k.loop(whole, end) as row:
            walk(k, a, tree, [row], plain)


def walk(k: Builder, a: SimpleNamespace, tree: Val, rows: list[Val], plain: bool) -> None:
    """Walk some rows from the root of a tree to its leaves; a row at its leaf waits for the others."""
    xs = [a.x + row * a.columns for row in rows]
    root = a.roots.load(tree)
    nodes = [k.slot(root) for _ in rows]
    features = [k.slot(a.features.load(root)) for _ in rows]
    with k.loop_while() as steps:
        steps.until(reduce(and_, [feature.value for feature in features]) < 0)
        for x, node, feature in zip(xs, nodes, features):
            step(k, a, x.load(k.larger(feature.value, 0)), node, feature, plain)
    for row, node in zip(rows, nodes):
        a.leaves.store(node.value, row * a.trees + tree)


def step(k: Builder, a: SimpleNamespace, number: Val, node: MutableValue, feature: MutableValue, plain: bool) -> None:
    """Move one row to the next node, unless it is at a leaf."""
    at, threshold = node.value, a.thresholds.load(node.value)
    is_below = number <= threshold
    if not plain:
        kind = k.pointer(a.kinds, "u1").load(at)
        is_below = k.select((kind & EQUAL) != 0, number == threshold, is_below)
        is_below = is_below | (k.is_nan(number) & ((kind & MISSING) != 0))
    following = k.select(is_below, a.below.load(at), a.above.load(at))
    node.value = k.select(feature.value < 0, at, following)
    feature.value = a.features.load(node.value)
