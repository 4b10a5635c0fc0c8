"""Names of nodes of trees: a table beside sorted names, and names that only the latter hold."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx.operators.node_names import NodeNames, SortedNames, first_nodes, names_of, table_of_names
from tests.support.onnx_context import context


@pytest.mark.parametrize("seed", range(30))
def test_tables_of_names_find_what_sorted_names_find(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr("cgraph.formats.onnx.operators.node_names.BLOCK", int(rng.choice([1, 7, 1 << 16])))
    ids = rng.choice([*range(-5, 20), 2**31 - 1, -(2**31)], rng.integers(1, 9), replace=False)
    pairs = [(tree, number) for tree in ids for number in rng.permutation(rng.integers(1, 12))]
    if seed % 3 == 0:
        rng.shuffle(pairs)  # trees whose nodes are not next to each other
    trees, numbers = (np.array(x, np.int32) for x in zip(*pairs))
    table, ordered = table_of_names(trees, numbers), SortedNames.of(trees, numbers)
    assert table is not None
    asked = rng.choice([*ids, 99], 300).astype("i8"), rng.integers(-3, 15, 300)
    want = {pair: i for i, pair in enumerate(zip(trees.tolist(), numbers.tolist()))}
    for names in (table, ordered):
        found = names.find(*asked)
        assert found.dtype == np.int32
        assert found.tolist() == [want.get(pair, -1) for pair in zip(*(x.tolist() for x in asked))]
    firsts = sorted(trees.tolist().index(tree) for tree in ids)
    assert first_nodes(trees).tolist() == firsts


def test_names_with_gaps_are_sorted():
    c, trees = context(), np.zeros(3, np.int32)
    for last, kind in ((5, NodeNames), (6, SortedNames), (2**31 - 1, SortedNames), (-1, SortedNames)):
        names = names_of(c, trees, np.array([0, 1, last], np.int64))
        assert isinstance(names, kind) and names.find(trees[:1], np.array([last])).tolist() == [2]


def test_a_node_that_is_listed_twice_is_named_by_its_tree_and_number():
    trees, numbers = np.array([4, 4, 9, 9, 9]), np.array([0, 7, 7, 0, 7])
    with pytest.raises(FormatError, match="node 7 of tree 9 is listed twice"):
        SortedNames.of(trees, numbers)
    names = SortedNames.of(trees[:-1], numbers[:-1])
    asked = np.array([9, 4, 4, 9, 5, 4]), np.array([0, 7, 0, 7, 7, 3])
    assert names.find(*asked).tolist() == [3, 1, 0, 2, -1, -1]
    empty = SortedNames.of(trees[:0], numbers[:0])
    assert empty.find(*asked).tolist() == [-1] * 6
