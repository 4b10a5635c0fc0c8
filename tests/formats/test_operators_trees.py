"""TreeEnsemble beside plain Python: random trees with sets of members, several targets, every aggregate and dtype."""

import tracemalloc

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import cgraph as cg
from cgraph.errors import FormatError, PositionError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.trees import AGGREGATES
from tests.support.tolerance import assert_near

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(7)
ASKS = [np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal]
COLUMNS, TARGETS = 3, 2


class Ensemble:
    """Random trees. Changes: the lists of nodes, leaves and sets grow while trees do.

    A node is its mode, column, split, whether NaN takes the true branch, and its two ways: numbers and flags of leaves.
    """

    def __init__(self, rng, trees):
        self.rng, self.nodes, self.leaves, self.sets = rng, [], [], {}
        self.roots = [self.grow(3) for _ in range(trees)]

    def grow(self, depth):
        place, rng = len(self.nodes), self.rng
        mode = int(rng.integers(7))
        self.nodes.append([mode, int(rng.integers(COLUMNS)), int(rng.integers(-2, 3)), bool(rng.integers(2))])
        if mode == MEMBER:
            self.sets[place] = rng.choice(np.arange(-3, 4), rng.integers(4), replace=False).tolist()
        self.nodes[place] += [self.way(depth) for _ in range(2)]
        return place

    def way(self, depth):
        if depth and self.rng.integers(3):
            return self.grow(depth - 1), 0
        self.leaves.append((int(self.rng.integers(TARGETS)), float(self.rng.integers(-8, 9))))
        return len(self.leaves) - 1, 1

    def walk(self, place, row):
        """The target and the weight of the leaf that a row comes to."""
        while True:
            mode, column, split, missing, true, false = self.nodes[place]
            x = row[column]
            holds = x in self.sets[place] if mode == MEMBER else ASKS[mode](x, split)
            place, is_leaf = true if holds or (np.isnan(x) and missing) else false
            if is_leaf:
                return self.leaves[place]

    def attributes(self, dtype):
        modes, columns, splits, missing, true, false = (list(each) for each in zip(*self.nodes))
        members = [v for place in sorted(self.sets) for v in (*self.sets[place], np.nan)]
        tensors = {
            "nodes_splits": (splits, dtype), "nodes_modes": (modes, "u1"), "membership_values": (members, dtype),
            "leaf_weights": ([w for _, w in self.leaves], dtype),
        }  # fmt: skip
        ways = {"true": true, "false": false}
        return {name: numpy_helper.from_array(np.array(*pair), name) for name, pair in tensors.items()} | {
            "nodes_featureids": columns,
            "nodes_missing_value_tracks_true": [int(m) for m in missing],
            **{f"nodes_{way}nodeids": [place for place, _ in found] for way, found in ways.items()},
            **{f"nodes_{way}leafs": [leaf for _, leaf in found] for way, found in ways.items()},
            "leaf_targetids": [target for target, _ in self.leaves],
            "tree_roots": self.roots,
            "n_targets": TARGETS,
        }


def results(attributes, x):
    node = helper.make_node("TreeEnsemble", ["X"], ["y"], domain="ai.onnx.ml", **attributes)
    code = helper.np_dtype_to_tensor_dtype(x.dtype)
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node], "g", [value("X", code, x.shape)], [value("y", code, None)])
    opsets = [helper.make_opsetid("ai.onnx.ml", 5), helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    return load(model).compile(engine="reference")(x)[0]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_trees_of_all_modes_with_sets_of_members(seed, dtype):
    rng = np.random.default_rng(seed)
    trees = Ensemble(rng, 1 + seed % 4)
    how = seed % len(AGGREGATES)
    x = rng.choice([*range(-3, 4), np.nan, np.inf, -np.inf], (40, COLUMNS)).astype(dtype)
    each = np.zeros((len(x), len(trees.roots), TARGETS))
    for i, row in enumerate(x):
        for j, root in enumerate(trees.roots):
            target, weight = trees.walk(root, row)
            each[i, j, target] = weight
    want = {"AVERAGE": np.mean, "SUM": np.sum, "MIN": np.min, "MAX": np.max}[AGGREGATES[how]](each, 1)
    got = results(trees.attributes(dtype) | {"aggregate_function": how}, x)
    assert got.dtype == dtype
    assert_near(got, want, "float32 formulas")


def test_sums_are_taken_unless_told():
    trees, x = Ensemble(np.random.default_rng(3), 3), np.zeros((1, COLUMNS), "f4")
    attributes = trees.attributes("f4")
    np.testing.assert_array_equal(results(attributes, x), results(attributes | {"aggregate_function": 1}, x))


TREES = 28_000  # of three nodes each


def many_trees(kind):
    """The attributes of many small trees, as lists; those of a TreeEnsemble have the leaves of their own."""
    nodes, leaves = np.tile([0, 1, 2], TREES), np.arange(TREES).repeat(2)
    weights = np.tile([1, 2], TREES).astype("f4")
    if kind == "TreeEnsemble":
        inner = np.arange(TREES)
        tensors = {
            "nodes_splits": np.full(TREES, 0.5, "f4"),
            "nodes_modes": np.zeros(TREES, "u1"),
            "leaf_weights": weights,
        }
        return {name: numpy_helper.from_array(x, name) for name, x in tensors.items()} | {
            "nodes_featureids": inner * 0 + 1, "nodes_truenodeids": 2 * inner, "nodes_falsenodeids": 2 * inner + 1,
            "nodes_trueleafs": inner * 0 + 1, "nodes_falseleafs": inner * 0 + 1, "leaf_targetids": 0 * leaves,
            "tree_roots": inner, "n_targets": 1,
        }  # fmt: skip
    return {
        "nodes_treeids": np.repeat(np.arange(TREES), 3), "nodes_nodeids": nodes,
        "nodes_featureids": np.tile([1, 0, 0], TREES),
        "nodes_truenodeids": np.tile([1, 0, 0], TREES), "nodes_falsenodeids": np.tile([2, 0, 0], TREES),
        "nodes_missing_value_tracks_true": 0 * nodes, "nodes_values": np.tile([0.5, 0, 0], TREES).astype("f4"),
        "nodes_hitrates": np.ones(3 * TREES, "f4"), "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"] * TREES,
        "target_treeids": leaves, "target_nodeids": np.tile([1, 2], TREES), "target_ids": 0 * leaves,
        "target_weights": weights, "n_targets": 1,
    }  # fmt: skip


def model_of(kind, attributes):
    given = {name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in attributes.items()}
    node = helper.make_node(kind, ["X"], ["y"], domain="ai.onnx.ml", **given)
    floats = TensorProto.FLOAT
    x, y = (helper.make_tensor_value_info(name, floats, (3, width)) for name, width in (("X", 2), ("y", 1)))
    graph = helper.make_graph([node], "forest", [x], [y])
    sets = [helper.make_opsetid("ai.onnx.ml", 5 if kind == "TreeEnsemble" else 3), helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10).SerializeToString()


@pytest.mark.parametrize("kind", ["TreeEnsembleRegressor", "TreeEnsemble"])
def test_a_forest_of_many_nodes_is_read(kind):
    """Its lists are written number by number, as skl2onnx does: over a million fields of a few bytes."""
    raw = model_of(kind, many_trees(kind))
    load(raw)
    tracemalloc.start()
    found = load(raw)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20  # no list takes an object for each node
    got = cg.compile(found.outputs[0], found.inputs)(np.array([[0, 0], [0, 1], [9, 0.5]], "f4"))
    np.testing.assert_array_equal(got, [[TREES], [2 * TREES], [TREES]])


@pytest.mark.parametrize(
    ("name", "place", "value", "match"),
    [
        ("nodes_truenodeids", 3 * TREES - 3, 3, "a tree refers to node -1, which does not exist"),
        ("nodes_truenodeids", 3 * TREES - 3, -1, "a tree refers to node -1, which does not exist"),
        ("nodes_truenodeids", 3 * TREES - 3, 2**40, "a tree refers to node -1, which does not exist"),
        ("nodes_falsenodeids", 3, 0, "node 3 of a tree is its own descendant"),
        ("nodes_nodeids", 5, 1, "node 1 of tree 1 is listed twice"),
        ("nodes_featureids", 6, -4, "a tree tests column -4; columns count from 0"),
        ("nodes_featureids", 6, 2**32 + 1, "a tree tests column 4294967297; columns count from 0"),
        ("nodes_featureids", 6, 2, "a node reads column 2, but rows have 2"),
        ("nodes_modes", 7, "BRANCH_XOR", "nodes_modes lists 'BRANCH_XOR', which is not supported. Use BRANCH_LEQ"),
        ("nodes_values", None, None, "lists of nodes have different lengths: 84000, and 83999 of nodes_values"),
        ("nodes_nodeids", None, None, "lists of nodes have different lengths: 84000, and 83999 of nodes_nodeids"),
        ("nodes_modes", None, None, "lists of nodes have different lengths: 84000, and 83999 of nodes_modes"),
        ("target_nodeids", 9, 7, "a weight belongs to node 7 of tree 4, which does not exist"),
        ("target_treeids", None, None, "weights name 55999 trees and 56000 nodes"),
        ("target_weights", None, None, "or lists of weights have different lengths"),
        ("target_ids", 9, 1, "a weight names a target outside 0 to 0"),
    ],
)
def test_long_lists_that_do_not_fit_are_refused(name, place, value, match):
    attributes = {k: x.tolist() if isinstance(x, np.ndarray) else x for k, x in many_trees("Regressor").items()}
    del attributes[name][-1 if place is None else place]
    if place is not None:
        attributes[name].insert(place, value)
    with pytest.raises((FormatError, PositionError), match=match):
        load(model_of("TreeEnsembleRegressor", attributes))


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("nodes_truenodeids", 2 * TREES, "node 5 leads to leaf 56000; they count from 0 to 55999"),
        ("nodes_truenodeids", -1, "node 5 leads to leaf -1; they count from 0 to 55999"),
        ("nodes_falsenodeids", 2**40, "node 5 leads to leaf 1099511627776; they count from 0 to 55999"),
        ("nodes_falseleafs", 0, "node 5 is its own descendant|node 5 of a tree"),
        ("tree_roots", 3 * TREES, "a tree refers to node 84000, which does not exist"),
        ("tree_roots", 2**40, "a tree refers to node 1099511627776, which does not exist"),
        ("tree_roots", -1, "a tree refers to node -1, which does not exist"),
    ],
)
def test_children_and_roots_of_an_ensemble_exist(name, value, match):
    attributes = many_trees("TreeEnsemble")
    attributes[name] = attributes[name].astype("i8")
    attributes[name][5] = value
    if name == "nodes_falseleafs":
        attributes["nodes_falsenodeids"][5] = 5
    with pytest.raises(FormatError, match=match):
        load(model_of("TreeEnsemble", attributes))


def test_a_root_of_more_than_32_bits_does_not_exist():
    attributes = Ensemble(np.random.default_rng(0), 1).attributes("f4") | {"tree_roots": [2**32]}
    with pytest.raises(FormatError, match="a tree refers to node 4294967296, which does not exist"):
        results(attributes, np.zeros((1, COLUMNS), "f4"))


def test_a_child_that_is_no_leaf_is_an_inner_node():
    attributes = many_trees("TreeEnsemble")
    attributes["nodes_falseleafs"][5], attributes["nodes_falsenodeids"][5] = 0, TREES
    with pytest.raises(FormatError, match="node 5 leads to node 28000; they count from 0 to 27999"):
        load(model_of("TreeEnsemble", attributes))


def one_node(**changed):
    """A node with two leaves, of which each belongs to its own target."""
    tensors = {"nodes_splits": np.float32([0.5]), "nodes_modes": np.uint8([LEQ]), "leaf_weights": np.float32([2, 3])}
    tensors |= {name: value for name, value in changed.items() if isinstance(value, np.ndarray)}
    lists = {
        "nodes_featureids": [1], "nodes_truenodeids": [0], "nodes_truleafs": [1], "nodes_falsenodeids": [1],
        "nodes_trueleafs": [1], "nodes_falseleafs": [1], "leaf_targetids": [0, 1], "tree_roots": [0], "n_targets": 2,
    }  # fmt: skip
    lists |= {name: value for name, value in changed.items() if not isinstance(value, np.ndarray)}
    return {name: numpy_helper.from_array(x, name) for name, x in tensors.items()} | lists


ROWS = np.array([[9, 0, 9], [9, 0.5, 9], [9, 1, 9], [9, np.nan, 9]], "f4")


def test_a_node_of_two_leaves():
    np.testing.assert_array_equal(results(one_node(), ROWS), [[2, 0], [2, 0], [0, 3], [0, 3]])
    np.testing.assert_array_equal(results(one_node(n_targets=3), ROWS)[2], [0, 3, 0])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"nodes_modes": np.uint8([7])}, "the modes of nodes lie from 7 to 7; 0 to 6 are supported"),
        ({"nodes_modes": np.int8([-1])}, "the modes of nodes lie from -1 to -1"),
        ({"nodes_featureids": [1, 1]}, "different lengths: 1, and 2 of nodes_featureids"),
        ({"nodes_splits": np.float32([1, 2])}, "different lengths: 1, and 2 of nodes_splits"),
        ({"nodes_missing_value_tracks_true": [1, 0]}, "different lengths: 1, and 2 of nodes_missing_value_tracks_true"),
        ({"nodes_trueleafs": [1, 1]}, "nodes_truenodeids and nodes_trueleafs have different lengths"),
        ({"nodes_falsenodeids": [1, 1]}, "nodes_falsenodeids and nodes_falseleafs have different lengths"),
        ({"nodes_falsenodeids": [2]}, "node 0 leads to leaf 2; they count from 0 to 1"),
        ({"leaf_targetids": [0, 2]}, "outside 0 to 1"),
        ({"leaf_targetids": [0]}, "lists of weights have different lengths"),
        ({"tree_roots": [3]}, "a tree refers to node 3"),
        ({"nodes_truenodeids": [0], "nodes_trueleafs": [0]}, "node 0 of a tree is its own descendant"),
        ({"aggregate_function": 4}, "aggregate_function '4' is not supported"),
        ({"post_transform": 5}, "post_transform '5' is not supported"),
    ],
)
def test_lists_that_do_not_fit_are_refused(changed, said):
    with pytest.raises(FormatError, match=said):
        results(one_node(**changed), ROWS)


@pytest.mark.parametrize("sets", [[0.5, np.nan, 1], [0.5, np.nan, 1, np.nan], [0.5, 0, np.nan], [], None])
def test_sets_end_with_nan_or_with_the_list_and_further_ones_are_empty(sets):
    """Two trees of one node each; the second set of the list is of the second tree."""
    ways = {"nodes_truenodeids": [0, 2], "nodes_falsenodeids": [1, 3]}
    ways |= {f"nodes_{way}leafs": [1, 1] for way in ("true", "false")}
    changed = {
        "nodes_splits": np.float32([0, 0]), "nodes_modes": np.uint8([MEMBER, MEMBER]), "nodes_featureids": [1, 1],
        "leaf_weights": np.float32([1, 2, 10, 20]), "leaf_targetids": [0, 0, 1, 1], "tree_roots": [0, 1], **ways,
    }  # fmt: skip
    if sets is not None:
        changed["membership_values"] = np.float32(sets)
    lists = np.split(np.array(sets or [], "f4"), np.flatnonzero(np.isnan(sets or [])) + 1)
    first, second = (set(v[~np.isnan(v)].tolist()) for v in (*lists, np.zeros(0, "f4"), np.zeros(0, "f4"))[:2])
    got = results(one_node(**changed), ROWS)
    want = [[1 if v in first else 2, 10 if v in second else 20] for v in ROWS[:, 1].tolist()]
    np.testing.assert_array_equal(got, want)
