"""Decision trees of ai.onnx.ml: TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.operators.scores import both_classes, class_labels, labelled, transformed
from cgraph.ir.graph import Node
from cgraph.record import Record

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
MEMBER = 6  # the mode after them: one of several numbers
NEW, OPEN, DONE = range(3)  # a node that was not reached, one whose ways are followed, one that is in its place
TURNED = ("BRANCH_GTE", "BRANCH_GT", "BRANCH_NEQ")  # what the others ask, with the other answer
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


class Forest(Record, eq=False):
    """Trees as `tree_leaves` takes them.

    Fields
        roots, features, thresholds, below, above, equal, missing: its tables
        place: where a node of the file stands in them
    """

    roots: Any
    features: Any
    thresholds: Any
    below: Any
    above: Any
    equal: Any
    missing: Any
    place: Any

    def leaves(self, x: Node) -> Node:
        """The leaf of each row and tree."""
        dtype = np.result_type(x.dtype if x.dtype.kind == "f" else np.float32, self.thresholds.dtype)
        tables = self.roots, self.features, self.thresholds.astype(dtype), self.below, self.above
        return cg.tree_leaves(cg.astype(x, dtype), *tables, self.equal, self.missing)


def forest_of(roots: Sequence[int], nodes: Sequence[Any]) -> Forest:
    """Trees from the file's nodes, each column, threshold, mode, missing, true and false node; None for a leaf.

    Nodes are put behind those that lead to them. FormatError when one is not there, or leads to itself.
    """
    order = behind_parents(roots, nodes)
    place = np.full(len(nodes), -1)
    place[order] = np.arange(len(order))
    rows = [question(nodes[node], place) for node in order]
    features, thresholds, below, above, equal, missing = zip(*rows) if rows else [()] * 6
    dtype = np.result_type(np.float32, *{np.asarray(t).dtype for t in thresholds})
    return Forest(place[list(roots)], features, np.asarray(thresholds, dtype), below, above, equal, missing, place)


def behind_parents(roots: Sequence[int], nodes: Sequence[Any]) -> list[int]:
    """The nodes that are reached, each behind all that lead to it."""
    found: list[int] = []
    state = [NEW] * len(nodes)
    waiting = [*roots]
    while waiting:
        node = waiting[-1]
        if not 0 <= node < len(nodes):
            raise FormatError(f"a tree leads to node {node}, which is not there")
        ways = () if nodes[node] is None else nodes[node][4:]
        if state[node] == NEW and ways:
            state[node] = OPEN
            if any(0 <= way < len(nodes) and state[way] == OPEN for way in ways):
                raise FormatError(f"node {node} of a tree leads back to itself")
            waiting += [way for way in ways if not (0 <= way < len(nodes) and state[way] == DONE)]
            continue
        waiting.pop()
        if state[node] != DONE:
            state[node] = DONE
            found.append(node)
    return found[::-1]


def question(node: tuple[int, Any, str, bool, int, int] | None, place: np.ndarray) -> tuple[Any, ...]:
    """A row of the tables: column, threshold, node below, node above, whether it asks for equality, where NaN goes."""
    if node is None:
        return -1, np.float32(0), 0, 0, False, False
    feature, threshold, mode, missing, true, false = node
    if feature < 0:
        raise FormatError(f"a tree looks at column {feature}")
    if mode in ("BRANCH_LT", "BRANCH_GTE"):
        lowest = type(threshold)(-np.inf)
        threshold = np.nextafter(threshold, lowest) if threshold > lowest else type(threshold)(np.nan)
    equal = mode in ("BRANCH_EQ", "BRANCH_NEQ")
    if mode not in TURNED:
        return feature, threshold, place[true], place[false], equal, missing
    return feature, threshold, place[false], place[true], equal, not missing and not equal


def named_forest(c: Context) -> tuple[Forest, dict[tuple[int, int], int]]:
    """Trees whose nodes have a tree's and a node's number each; and where each of those stands."""
    trees, numbers = c.required("nodes_treeids"), c.required("nodes_nodeids")
    at = {key: i for i, key in enumerate(zip(trees, numbers))}
    values = c.attribute("nodes_values_as_tensor", c.attribute("nodes_values"))
    values = np.asarray(values, getattr(values, "dtype", np.float32)).reshape(-1)
    columns, modes = c.required("nodes_featureids"), texts(c, "nodes_modes")
    ways = c.required("nodes_truenodeids"), c.required("nodes_falsenodeids")
    missing = c.attribute("nodes_missing_value_tracks_true") or [0] * len(trees)
    lists = (trees, numbers, values, columns, modes, *ways, missing)
    if len(at) != len(trees) or len({len(each) for each in lists}) > 1:
        raise FormatError("lists of nodes have different lengths, or name a node twice")
    nodes: list[Any] = []
    for i, mode in enumerate(modes):
        if mode not in (*MODES, "LEAF"):
            raise FormatError(f"the mode {mode!r:.40} of a node is not one of {', '.join(MODES)}, LEAF")
        to = [at.get((trees[i], way[i]), -1) for way in ways]
        nodes.append(None if mode == "LEAF" else (columns[i], values[i], mode, bool(missing[i]), *to))
    first = {tree: i for i, tree in reversed(list(enumerate(trees)))}
    return forest_of(list(first.values())[::-1], nodes), at


def texts(c: Context, name: str) -> list[str]:
    """An attribute that lists texts."""
    found = c.required(name)
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise FormatError(f"attribute {name} is no list of texts")
    return found


def weights_of(c: Context, kind: str, targets: int) -> tuple[Forest, np.ndarray, list[int]]:
    """Trees, and what each node adds to each target ``[nodes, targets]``; also the targets that are named.

    Parameters
        kind: how the attributes' names begin, ``class`` or ``target``
    """
    forest, at = named_forest(c)
    given = c.attribute(f"{kind}_weights_as_tensor", c.attribute(f"{kind}_weights"))
    given = np.asarray(given, getattr(given, "dtype", np.float32)).reshape(-1)
    where, ids = zip(c.required(f"{kind}_treeids"), c.required(f"{kind}_nodeids")), c.required(f"{kind}_ids")
    rows = [at[key] for key in where]
    return forest, weight_table(c, forest, rows, ids, given, targets), ids


def weight_table(
    c: Context, forest: Forest, rows: Sequence[int], ids: Sequence[int], given: np.ndarray, targets: int
) -> np.ndarray:
    """``[nodes, targets]`` from a node, a target and a weight each. FormatError when a target is not there."""
    if not len(rows) == len(ids) == len(given) or min(ids, default=0) < 0 or max(ids, default=0) >= targets:
        raise FormatError(f"weights must be one for each node and target, and there are {targets} targets")
    c.spend(nbytes=len(forest.place) * targets * given.itemsize, work=len(forest.place) * targets)
    table = np.zeros((len(forest.features), targets), given.dtype)
    reached = forest.place[list(rows)]
    np.add.at(table, (reached[reached >= 0], np.asarray(ids, int)[reached >= 0]), given[reached >= 0])
    return table


def each_tree(forest: Forest, table: np.ndarray, x: Node) -> Node:
    """What each tree says of each row: ``[n, trees, targets]``."""
    return cg.take(table, forest.leaves(x), 0)


def based(c: Context, scores: Node) -> Node:
    """With the base values, of all targets or of each."""
    base = c.attribute("base_values_as_tensor", c.attribute("base_values"))
    if base is None or not np.size(base):
        return scores
    if np.size(base) not in (1, scores.shape[-1]):
        raise FormatError(f"there are {np.size(base)} base values for {scores.shape[-1]} targets")
    return scores + np.asarray(base, scores.dtype).reshape(-1)


@operator("ai.onnx.ml.TreeEnsembleClassifier")
def classifier(c: Context) -> tuple[Node, Node]:
    """The label of each row and its scores."""
    labels, how = class_labels(c), c.attribute("post_transform", "NONE")
    forest, table, ids = weights_of(c, "class", max(len(labels), 1))
    positive = bool((table >= 0).all())
    if len(labels) == 2 and len(set(ids)) == 1:
        total = cg.sum(each_tree(forest, table[:, ids[:1]], c[0]), 1)
        score = cg.astype(based(c, total), "float32")
        chosen = cg.astype(score[:, 0] > (0.5 if positive else 0.0), "int64")
        return labelled(labels, chosen), both_classes(score, positive, how)
    scores = cg.astype(based(c, cg.sum(each_tree(forest, table, c[0]), 1)), "float32")
    return labelled(labels, cg.argmax(scores, 1)), transformed(scores, how)


@operator("ai.onnx.ml.TreeEnsembleRegressor")
def regressor(c: Context) -> Node:
    """``[n, targets]``: sums, means or extremes over trees."""
    forest, table, _ = weights_of(c, "target", c.attribute("n_targets", 1))
    found = aggregated(each_tree(forest, table, c[0]), c.attribute("aggregate_function", "SUM"))
    return transformed(cg.astype(based(c, found), "float32"), c.attribute("post_transform", "NONE"))


def aggregated(x: Node, how: str) -> Node:
    """One of AGGREGATES over trees."""
    if how not in AGGREGATES:
        raise FormatError(f"aggregate_function {how!r:.40} is not one of {', '.join(AGGREGATES)}")
    return {"AVERAGE": cg.mean, "SUM": cg.sum, "MIN": cg.min, "MAX": cg.max}[how](x, 1)


@operator("ai.onnx.ml.TreeEnsemble")
def ensemble(c: Context) -> Node:
    """``[n, targets]`` of trees whose leaves are listed apart from their nodes."""
    modes, splits = (c.required(name).reshape(-1) for name in ("nodes_modes", "nodes_splits"))
    weights, targets = c.required("leaf_weights").reshape(-1), c.required("leaf_targetids")
    leaves = range(len(modes), len(modes) + len(weights))
    nodes: list[Any] = [None] * leaves.stop
    missing = c.attribute("nodes_missing_value_tracks_true") or [0] * len(modes)
    to = zip(*(ways_of(c, way, len(modes)) for way in ("true", "false")), strict=True)
    members = iter(members_of(c))
    given = zip(c.required("nodes_featureids"), splits, modes.tolist(), missing, to, strict=True)
    for i, (column, split, mode, lost, (true, false)) in enumerate(given):
        if not 0 <= mode <= MEMBER:
            raise FormatError(f"the mode {mode} of a node is not there")
        if mode < MEMBER:
            nodes[i] = (column, split, MODES[mode], bool(lost), true, false)
            continue
        looked_for = np.asarray(next(members, []) or [np.nan], splits.dtype)
        c.spend(nodes=1, work=len(looked_for))
        rest = range(len(nodes), len(nodes) + len(looked_for) - 1)
        elsewhere = [*rest, false]
        asked = [(column, x, "BRANCH_EQ", bool(lost), true, other) for x, other in zip(looked_for, elsewhere)]
        nodes[i] = asked[0]
        nodes += asked[1:]
    forest = forest_of(c.required("tree_roots"), nodes)
    table = weight_table(c, forest, leaves, targets, weights, c.required("n_targets"))
    how, after = c.attribute("aggregate_function", 1), c.attribute("post_transform", 0)
    found = aggregated(each_tree(forest, table, c[0]), dict(enumerate(AGGREGATES)).get(how, str(how)))
    return transformed(cg.astype(found, c[0].dtype), dict(enumerate(TRANSFORMS)).get(after, str(after)))


def ways_of(c: Context, way: str, count: int) -> list[int]:
    """Where each node leads: a node, or a leaf, which are numbered behind the nodes."""
    places, leaf = c.required(f"nodes_{way}nodeids"), c.required(f"nodes_{way}leafs")
    return [place + (count if is_leaf else 0) for place, is_leaf in zip(places, leaf, strict=True)]


def members_of(c: Context) -> list[list[float]]:
    """The numbers that each node of mode MEMBER looks for: lists one after the other, with NaN behind each."""
    values = c.attribute("membership_values")
    found: list[list[float]] = [[]]
    for value in [] if values is None else values.reshape(-1).tolist():
        if np.isnan(value):
            found.append([])
        else:
            found[-1].append(value)
    return found
