"""Importers of decision trees: TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble."""

from typing import Any

import numpy as np

from cgraph.errors import FormatError, damaged_file
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.operators.forest import (
    EQ,
    LEAF,
    MEMBER,
    MODES,
    SHARED_NBYTES,
    SHARED_WORK,
    Forest,
    Questions,
    forest_of,
)
from cgraph.formats.onnx.operators.node_names import NodeNames, SortedNames, blocks, first_nodes, names_of
from cgraph.formats.onnx.operators.scores import both_classes, class_labels, labels_of, names_labels, post_transform
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const
from cgraph.record import replace

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
LISTED_MODES = (*MODES, "LEAF")


def named_forest(c: Context) -> tuple[Forest, NodeNames | SortedNames]:
    """Build trees whose nodes are identified by tree and node number; return also the index."""
    with c.scratch():
        names, roots, true, false = named_ways(c)
    c.spend(nbytes=names.nbytes)
    with c.scratch():
        nodes = named_nodes(c, true, false)
        forest = forest_of(c, roots, nodes)
    c.spend(nbytes=forest.nbytes)
    return forest, names


def named_nodes(c: Context, true: np.ndarray, false: np.ndarray) -> Questions:
    """Return the nodes of trees, with the children of each."""
    count = len(true)
    c.spend(nbytes=true.nbytes + false.nbytes)
    values = floats(c, "nodes_values")
    modes = c.indices("nodes_modes", LISTED_MODES)
    modes[modes == len(MODES)] = LEAF
    columns, missing = integers(c, "nodes_featureids"), missing_of(c, count)
    check_lengths(
        count, nodes_values=values, nodes_modes=modes, nodes_featureids=columns,
        nodes_missing_value_tracks_true=missing,
    )  # fmt: skip
    return Questions(columns, values, modes, missing, true, false)


def named_ways(c: Context) -> tuple[NodeNames | SortedNames, np.ndarray, np.ndarray, np.ndarray]:
    """Return the index of nodes, the roots, and the children of each node in the true and the false branch."""
    trees, numbers = integers(c, "nodes_treeids"), integers(c, "nodes_nodeids")
    check_lengths(len(trees), nodes_nodeids=numbers)
    names = names_of(c, trees, numbers)

    def children(name: str) -> np.ndarray:
        listed = integers(c, name)
        check_lengths(len(trees), **{name: listed})
        c.spend(nbytes=4 * len(trees))
        return names.find(trees, listed)

    return names, first_nodes(trees), children("nodes_truenodeids"), children("nodes_falsenodeids")


def check_lengths(count: int, **lists: np.ndarray) -> None:
    """Raise FormatError unless each list has an item for each node."""
    for name, array in lists.items():
        if len(array) != count:
            raise damaged_file(f"lists of nodes have different lengths: {count}, and {len(array)} of {name}")


def integers(c: Context, name: str) -> np.ndarray:
    """Return an attribute that is a list of integers."""
    array = c.required_numbers(name)
    if array.dtype.kind != "i":
        raise FormatError(f"attribute {name} is not a list of integers")
    return array


def floats(c: Context, name: str) -> np.ndarray:
    """Return a list of floats, from a tensor of any dtype if there is one; of float32 otherwise."""
    tensor = c.attribute(f"{name}_as_tensor")
    return np.asarray(c.numbers(name), np.float32).reshape(-1) if tensor is None else tensor.reshape(-1)


def missing_of(c: Context, count: int) -> np.ndarray:
    """Return whether NaN takes the true branch of each node."""
    missing = c.numbers("nodes_missing_value_tracks_true")
    return missing != 0 if missing is not None and missing.size else np.broadcast_to(False, count)


def weights_of(c: Context, kind: str, targets: int) -> tuple[Forest, np.ndarray, np.ndarray]:
    """Return trees, the weights ``[nodes, targets]``, and the targets that occur.

    Parameters
        kind: prefix of the attribute names, ``class`` or ``target``
    """
    forest, names = named_forest(c)
    weights = floats(c, f"{kind}_weights")
    trees, numbers, ids = (integers(c, f"{kind}_{name}") for name in ("treeids", "nodeids", "ids"))
    if len(trees) != len(numbers):
        raise damaged_file(f"weights name {len(trees)} trees and {len(numbers)} nodes")
    c.spend(nbytes=8 * len(trees))
    rows = names.find(trees, numbers)
    if np.any(rows < 0):
        first = int(np.argmax(rows < 0))
        raise damaged_file(f"a weight belongs to node {numbers[first]} of tree {trees[first]}, which does not exist")
    if kind == "target" and targets == 1 and len(rows) == len(ids) == len(weights):
        first_weights = first_of_each(c, rows)  # onnxruntime reads the first weight of a leaf alone
        rows, ids, weights = rows[first_weights], ids[first_weights], weights[first_weights]
    return forest, weight_table(c, forest, forest.place[rows], ids, weights, targets), ids


def first_of_each(c: Context, rows: np.ndarray) -> Any:
    """Return the indices of the first of equal rows; all of them if rows rise, as writers list leaves."""
    if (rows[1:] > rows[:-1]).all():
        return slice(None)
    c.spend(nbytes=24 * len(rows))
    return np.unique(rows, return_index=True)[1]


def weight_table(
    c: Context, forest: Forest, places: np.ndarray, ids: np.ndarray, weights: np.ndarray, targets: int
) -> np.ndarray:
    """Return the weights ``[nodes, targets]`` from (place, target, weight). FormatError if a target does not exist.

    Parameters
        places: of leaves in the table of nodes; negative for those that no tree reaches
    """
    outside = ids.size and not 0 <= ids.min() <= ids.max() < targets
    if not len(places) == len(ids) == len(weights) or outside:
        raise damaged_file(
            f"a weight names a target outside 0 to {targets - 1}, or lists of weights have different lengths"
        )
    count = len(forest.table)
    c.spend(nbytes=count * targets * weights.itemsize, work=count * targets + len(places))
    table = np.zeros((count, targets), weights.dtype)
    for part in blocks(len(places)):
        reached = places[part] >= 0
        np.add.at(table, (places[part][reached], ids[part][reached]), weights[part][reached])
    return table


def each_tree(c: Context, forest: Forest, table: np.ndarray) -> Node:
    """Return the output of each tree for each row of operand 0: ``[n, trees, targets]``."""
    table.flags.writeable = False
    return cg.take(Const(table, copy=False), forest.leaves(c[0]), 0)


def add_base_values(c: Context, scores: Node) -> Node:
    """Add base values, one for all targets or one per target."""
    base = c.attribute("base_values_as_tensor", c.numbers("base_values"))
    if base is None or not base.size:
        return scores
    if base.size not in (1, scores.shape[-1]):
        raise FormatError(f"{base.size} base values do not fit {scores.shape[-1]} targets: give one or one for each")
    return scores + base.astype(scores.dtype).reshape(-1)


@operator("ai.onnx.ml.TreeEnsembleClassifier")
@names_labels
def classifier(c: Context) -> tuple[Node, Node]:
    """Import TreeEnsembleClassifier: the label of each row and its scores."""
    labels, how = class_labels(c), c.attribute("post_transform", "NONE")
    forest, table, ids = weights_of(c, "class", max(len(labels), 1))
    positive = bool((table >= 0).all())
    if len(labels) == 2 and ids.size and ids.min() == ids.max():
        total = cg.sum(each_tree(c, forest, table[:, ids[:1]]), 1)
        score = cg.astype(add_base_values(c, total), "float32")
        classes = cg.astype(score[:, 0] > (0.5 if positive else 0.0), "int64")
        return labels_of(labels, classes), both_classes(score, positive, how)
    scores = cg.astype(add_base_values(c, cg.sum(each_tree(c, forest, table), 1)), "float32")
    return labels_of(labels, cg.argmax(scores, 1)), post_transform(scores, how)


@operator("ai.onnx.ml.TreeEnsembleRegressor")
def regressor(c: Context) -> Node:
    """Import TreeEnsembleRegressor: sums, means, minima or maxima over trees, ``[n, targets]``."""
    forest, table, _ = weights_of(c, "target", c.attribute("n_targets", 1))
    scores = aggregate(each_tree(c, forest, table), c.attribute("aggregate_function", "SUM"))
    return post_transform(cg.astype(add_base_values(c, scores), "float32"), c.attribute("post_transform", "NONE"))


def aggregate(x: Node, how: str) -> Node:
    """Aggregate over trees, by one of AGGREGATES."""
    if how not in AGGREGATES:
        raise FormatError(f"aggregate_function {how!r:.40} is not supported. Use {', '.join(AGGREGATES)}")
    return {"AVERAGE": cg.mean, "SUM": cg.sum, "MIN": cg.min, "MAX": cg.max}[how](x, 1)


@operator("ai.onnx.ml.TreeEnsemble")
def ensemble(c: Context) -> Node:
    """Import TreeEnsemble, whose leaves are listed separately from its nodes: ``[n, targets]``."""
    with c.scratch():
        forest = forest_of(c, integers(c, "tree_roots"), split_ensemble(c))
    c.spend(nbytes=forest.nbytes)
    weights, targets = c.required("leaf_weights").reshape(-1), integers(c, "leaf_targetids")
    places = forest.place[len(forest.place) - len(weights) :]
    table = weight_table(c, forest, places, targets, weights, c.required("n_targets"))
    how, after = c.attribute("aggregate_function", 1), c.attribute("post_transform", 0)
    scores = aggregate(each_tree(c, forest, table), dict(enumerate(AGGREGATES)).get(how, str(how)))
    return post_transform(cg.astype(scores, c[0].dtype), dict(enumerate(TRANSFORMS)).get(after, str(after)))


def split_ensemble(c: Context) -> Questions:
    """Return the nodes of a TreeEnsemble: inner nodes, a test for each further member of a set, then the leaves."""
    modes, splits = (c.required(name).reshape(-1) for name in ("nodes_modes", "nodes_splits"))
    count, leaves = len(modes), len(c.required("leaf_weights").reshape(-1))
    if count and not 0 <= modes.min() <= modes.max() <= MEMBER:
        raise FormatError(f"the modes of nodes lie from {modes.min()} to {modes.max()}; 0 to {MEMBER} are supported")
    members = members_of(c) if (modes == MEMBER).any() else []
    further = sum(max(len(numbers) - 1, 0) for numbers in members[: np.count_nonzero(modes == MEMBER)])
    with c.scratch():
        true, false = (ways_of(c, way, count, leaves, further) for way in ("true", "false"))
    c.spend(nbytes=true.nbytes + false.nbytes)
    columns, missing = integers(c, "nodes_featureids"), missing_of(c, count)
    check_lengths(
        count, nodes_splits=splits, nodes_featureids=columns, nodes_missing_value_tracks_true=missing,
        nodes_truenodeids=true, nodes_falsenodeids=false,
    )  # fmt: skip
    nodes = Questions(columns, splits, modes.astype(np.uint8), missing, true, false, leaves)
    return with_member_tests(c, nodes, members) if (modes == MEMBER).any() else nodes


def with_member_tests(c: Context, nodes: Questions, members: list[list[float]]) -> Questions:
    """Replace each set membership test by a chain of equality tests."""
    asking = np.flatnonzero(nodes.modes == MEMBER)
    total = len(nodes.modes)
    listed = total + sum(map(len, members))
    c.spend(nbytes=SHARED_NBYTES * listed, work=SHARED_WORK * listed)
    more: list[np.ndarray] = []  # nodes that further tests copy
    nodes = replace(nodes, thresholds=nodes.thresholds.copy())
    thresholds, false = [nodes.thresholds], [nodes.false]
    nodes.modes[asking] = EQ
    for i, node in enumerate(asking):
        numbers = np.asarray((members[i] if i < len(members) else []) or [np.nan], nodes.thresholds.dtype)
        further = np.arange(total, total + len(numbers) - 1, dtype=np.int32)
        elsewhere = np.append(further, nodes.false[node])
        nodes.thresholds[node], nodes.false[node] = numbers[0], elsewhere[0]
        thresholds.append(numbers[1:])
        false.append(elsewhere[1:])
        more.append(np.full(len(further), node))
        total += len(further)
    order = np.concatenate([np.arange(len(nodes.modes)), *more]).astype(np.int64)
    questions = nodes.at(order)
    return replace(questions, thresholds=np.concatenate(thresholds), false=np.concatenate(false), leaves=nodes.leaves)


def ways_of(c: Context, way: str, count: int, leaves: int, further: int) -> np.ndarray:
    """Return the children of nodes. FormatError if one does not exist.

    Parameters
        count, leaves, further: numbers of inner nodes, of leaves, and of tests between both
    """
    places, is_leaf = integers(c, f"nodes_{way}nodeids"), integers(c, f"nodes_{way}leafs") != 0
    if len(places) != len(is_leaf):
        raise damaged_file(f"nodes_{way}nodeids and nodes_{way}leafs have different lengths")
    c.spend(nbytes=5 * len(places))
    ways = np.empty(len(places), np.int32)
    for part in blocks(len(places)):
        place, is_leaf_there = places[part], is_leaf[part]
        outside = (place < 0) | (place >= np.where(is_leaf_there, leaves, count))
        if outside.any():
            first = int(np.argmax(outside))
            kind, limit = ("leaf", leaves) if is_leaf_there[first] else ("node", count)
            raise damaged_file(
                f"node {part.start + first} leads to {kind} {place[first]}; they count from 0 to {limit - 1}"
            )
        ways[part] = np.where(is_leaf_there, place + (count + further), place)
    return ways


def members_of(c: Context) -> list[list[float]]:
    """Return the sets of nodes of mode MEMBER: consecutive lists, each terminated by NaN."""
    values = c.attribute("membership_values")
    members: list[list[float]] = [[]]
    for value in [] if values is None else values.reshape(-1).tolist():
        if np.isnan(value):
            members.append([])
        else:
            members[-1].append(value)
    return members
