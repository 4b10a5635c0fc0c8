"""The order of the nodes of trees: levels of trees beside a search in depth, and trees that only the search orders."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx.operators.forest import LEAF, LEQ, Questions, children_first, places_in_trees, places_of
from cgraph.ops.leaf import Var
from cgraph.record import replace
from tests.support.onnx_context import context


def context_of_a_forest():
    return context(Var((4, 3), "float32"))


def draw_trees(rng, count):
    """Random trees: nodes in any order, some of which no tree reaches, with leaves among them and behind them."""
    sizes = rng.integers(0, 40, count)  # inner nodes of each tree
    total, behind = int((2 * sizes + 1).sum()) + 5, int(rng.integers(0, 3))
    numbers = iter(rng.permutation(total).tolist())
    roots = []
    true, false, modes = np.zeros(total, np.int32), np.zeros(total, np.int32), np.full(total, LEAF, np.uint8)
    for size in sizes.tolist():
        open_ends = [next(numbers)]
        roots.append(open_ends[0])
        for _ in range(size):
            node = open_ends.pop(int(rng.integers(len(open_ends))))
            modes[node], true[node], false[node] = LEQ, next(numbers), next(numbers)
            open_ends += [true[node], false[node]]
    first = np.flatnonzero(modes == LEAF)[:behind]
    order = np.concatenate([np.delete(np.arange(total), first), first])
    place = np.argsort(order)
    inner = order[: total - len(first)]
    zeros = np.zeros(len(inner), np.int32)
    lists = zeros, zeros.astype("f4"), modes[inner], zeros > 0, place[true[inner]], place[false[inner]]
    return place[roots].astype(np.int32), Questions(*lists, len(first))


@pytest.mark.parametrize("seed", range(20))
def test_levels_of_trees_give_the_order_of_a_search_in_depth(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr("cgraph.formats.onnx.operators.forest.BLOCK", int(rng.choice([1, 30, 1 << 16])))
    roots, nodes = draw_trees(rng, int(rng.integers(1, 8)))
    place = places_in_trees(context_of_a_forest(), roots, nodes)
    want = np.full(nodes.count, -1)
    order = children_first(roots.tolist(), nodes)[::-1]
    want[order] = np.arange(len(order))
    np.testing.assert_array_equal(place, want)
    assert (place < 0).sum() >= 5


def test_shared_missing_and_deep_nodes_are_left_to_a_search_in_depth():
    def nodes(true, false, leaves=0):
        zeros = np.zeros(len(true), np.int32)
        ways = np.array(true, np.int32), np.array(false, np.int32)
        modes = np.where(ways[0] == 0, LEAF, LEQ).astype(np.uint8)
        return Questions(zeros, zeros.astype("f4"), modes, zeros > 0, *ways, leaves)

    c, root = context_of_a_forest(), np.zeros(1, np.int32)
    shared = nodes([1, 2, 0, 0], [2, 3, 0, 0])
    assert places_in_trees(c, root, shared) is None
    assert places_of(c, root, shared).tolist() == [0, 1, 3, 2]
    assert places_in_trees(c, np.zeros(2, np.int32), nodes([1, 0, 0], [2, 0, 0])) is None  # two equal roots
    for wrong in (-1, 3, 5):
        assert places_in_trees(c, root, nodes([1, 0], [wrong, 0], 1)) is None
        with pytest.raises(FormatError, match=f"a tree refers to node {wrong}, which does not exist"):
            places_of(c, root, nodes([1, 0], [wrong, 0], 1))
    for cycle in ([1, 2, 1], [1, 2, 2]):
        with pytest.raises(FormatError, match="is its own descendant"):
            places_of(c, root, nodes([*cycle, 0], [3, 3, 3, 0]))
    depth = 3000
    chain = nodes([*range(1, depth + 1), 0], [depth + 1] * depth + [0], 1)
    chain = replace(chain, false=np.arange(depth + 1, 2 * depth + 2, dtype=np.int32), leaves=depth + 1)
    assert places_in_trees(c, root, chain) is None
    places = places_of(c, root, chain)
    assert places[: depth + 1].tolist() == list(range(depth + 1)) and places[depth + 1] == 2 * depth
