"""Walks down decision trees, one tree after the other for some rows, so that a tree's nodes stay in cache."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.trees.signature import EQUAL, MISSING, UNIT, node_dtype

SIDE_BY_SIDE = 8
"""Walks at once: each step of a walk waits for the one before, so several walks overlap."""
Act = Callable[[Val, Val, Val], None]  # of a row, a tree, and the leaf


def leaves(k: Builder, dtype: str, flags: int) -> None:
    """Find the leaf of each row in each tree. Task: `block` rows."""
    a = k.args()
    with each_block(k, a) as (begin, end):
        each_walk(k, a, dtype, flags, begin, end, lambda row, tree, leaf: a.leaves.store(leaf, row * a.trees + tree))


def sums(k: Builder, dtype: str, flags: int, weight: str, is_single: bool) -> None:
    """Add the weights of each row's leaves, in the order of the trees. Task: `block` rows."""
    a = k.args()

    def add(row: Val, tree: Val, leaf: Val) -> None:
        if is_single:
            add_to(a.sums + row, a.weights.load(leaf))
            return
        with k.loop(0, a.targets) as target:
            add_to(a.sums + row * a.targets + target, a.weights.load(k.cast(leaf, "i8") * a.targets + target))

    def add_to(total: Ptr, term: Val) -> None:
        total.store(total.load() + k.cast(term, "f8"))

    with each_block(k, a) as (begin, end):
        with k.loop(begin * a.targets, end * a.targets) as place:
            a.sums.store(0.0, place)
        each_walk(k, a, dtype, flags, begin, end, add)


@contextmanager
def each_block(k: Builder, a: SimpleNamespace) -> Iterator[tuple[Val, Val]]:
    """Yield the first row of each task's block, and the row after its last."""
    first, last = k.tasks()
    with k.loop(first, last) as task:
        yield task * a.block, k.smaller((task + 1) * a.block, a.n)


def each_walk(k: Builder, a: SimpleNamespace, dtype: str, flags: int, begin: Val, end: Val, act: Act) -> None:
    """Act on the leaf of each row in each tree; for each row in the order of the trees.

    Eight rows walk down one tree side by side; the rows that are left, one after the other down eight trees.
    """
    whole = end - (end - begin) % SIDE_BY_SIDE
    whole_trees = a.trees - a.trees % SIDE_BY_SIDE
    with k.loop(0, a.trees) as tree, k.loop(begin, whole, SIDE_BY_SIDE) as row:
        walk(k, a, dtype, flags, [(row + i, tree) for i in range(SIDE_BY_SIDE)], act)
    with k.loop(whole, end) as row:
        with k.loop(0, whole_trees, SIDE_BY_SIDE) as tree:
            walk(k, a, dtype, flags, [(row, tree + i) for i in range(SIDE_BY_SIDE)], act)
        with k.loop(whole_trees, a.trees) as tree:
            walk(k, a, dtype, flags, [(row, tree)], act)


def walk(k: Builder, a: SimpleNamespace, dtype: str, flags: int, walks: Sequence[tuple[Val, Val]], act: Act) -> None:
    """Walk from the roots of trees to their leaves, for pairs of a row and a tree, until no step leads on."""
    fields = node_dtype(np.dtype(dtype))
    units = fields.itemsize // UNIT
    xs = [a.x + row * a.columns for row, _ in walks]
    places = [k.slot(a.roots.load(tree) * units) for _, tree in walks]
    with k.loop_while() as steps:
        moved = k.val(0, "i4")
        for x, place in zip(xs, places):
            following = next_place(k, a, fields, flags, x, place.value)
            moved, place.value = moved | (place.value ^ following), following
        steps.until(moved == 0)
    for (row, tree), place in zip(walks, places):
        act(row, tree, place.value // units)


def next_place(k: Builder, a: SimpleNamespace, fields: np.dtype, flags: int, x: Ptr, place: Val) -> Val:
    """Return where the next node of a walk begins. Truth values are integers: a branch would often be mispredicted."""
    node = k.pointer(a.nodes, f"u{UNIT}") + place
    column, threshold = field(node, fields, "column").load(), field(node, fields, "threshold").load()
    number = x.plus_bytes(column & ~(EQUAL | MISSING) if flags else column).load()
    is_below = k.cast(number <= threshold, "i4")
    if flags & EQUAL:
        is_below = (is_below & (column ^ EQUAL)) | k.cast(number == threshold, "i4")
    if flags & MISSING:
        is_below = is_below | (k.cast(k.is_nan(number), "i4") & (column >> 1))
    return field(node, fields, "ways").load(is_below)


def field(node: Ptr, fields: np.dtype, name: str) -> Ptr:
    """Return the address of a field of a node."""
    assert fields.fields is not None
    dtype, offset = fields.fields[name][:2]
    return node.plus_bytes(offset).as_dtype(dtype.base.str[1:])
