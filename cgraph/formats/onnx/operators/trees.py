"""Decision trees of ai.onnx.ml: TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.operators.scores import both_classes, class_labels, labels_of, post_transform
from cgraph.ir.graph import Node
from cgraph.record import Record, replace

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
LEQ, LT, GTE, GT, EQ, NEQ = range(6)
MEMBER = 6  # the mode after them: one of several numbers
LEAF = 7
NODE_NBYTES, NODE_WORK = 200, 2000  # bytes of a node while trees are put in order, and elements that could be computed
NEW, OPEN, DONE = range(3)  # a node that was not reached, one whose ways are followed, one that is in its place
TURNED = (GTE, GT, NEQ)  # what the others ask, with the other answer
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


class Questions(Record, eq=False):
    """The nodes of a file's trees, an array for each property.

    Fields
        columns: which column a node looks at
        thresholds: what it compares with
        modes: how, as a position in MODES; LEAF at a leaf
        missing: whether NaN goes the way of a true answer
        true, false: the nodes that it leads to
    """

    columns: np.ndarray
    thresholds: np.ndarray
    modes: np.ndarray
    missing: np.ndarray
    true: np.ndarray
    false: np.ndarray

    def at(self, order: Any) -> "Questions":
        """Some of them, in this order."""
        return Questions(*(getattr(self, name)[order] for name in self._fields))


def forest_of(c: Context, roots: Sequence[int], nodes: Questions) -> Forest:
    """Trees from the file's nodes.

    Nodes are put behind those that lead to them. FormatError when one is not there, or leads to itself.
    """
    count = len(nodes.modes)
    c.spend(nbytes=NODE_NBYTES * count, work=NODE_WORK * count)
    order = np.asarray(children_first(roots, nodes), np.int64)
    place = np.full(count, -1)
    place[order] = np.arange(len(order))
    asked = nodes.at(order)
    leaf, turned = asked.modes == LEAF, np.isin(asked.modes, TURNED)
    if np.any(asked.columns[~leaf] < 0):
        raise FormatError(f"a tree looks at column {asked.columns[~leaf].min()}")
    equal = np.isin(asked.modes, (EQ, NEQ))
    true, false = (place[np.where(leaf, order, way)] for way in (asked.true, asked.false))
    below, above = np.where(turned, false, true), np.where(turned, true, false)
    missing = np.where(turned, ~asked.missing & ~equal, asked.missing) & ~leaf
    below, above = np.where(leaf, 0, below), np.where(leaf, 0, above)
    columns = np.where(leaf, -1, asked.columns)
    return Forest(place[list(roots)], columns, thresholds_of(asked), below, above, equal, missing, place)


def thresholds_of(nodes: Questions) -> np.ndarray:
    """What a number must not exceed: of those that must be below a threshold, the number before it."""
    thresholds, strict = nodes.thresholds, np.isin(nodes.modes, (LT, GTE))
    lowest = thresholds.dtype.type(-np.inf)
    before = np.where(thresholds > lowest, np.nextafter(thresholds, lowest), thresholds.dtype.type(np.nan))
    thresholds = np.where(strict, before, np.where(nodes.modes == LEAF, thresholds.dtype.type(0), thresholds))
    return thresholds.astype(np.result_type(np.float32, thresholds.dtype))


def children_first(roots: Sequence[int], nodes: Questions) -> list[int]:
    """The nodes that are reached, each behind all that lead to it."""
    order: list[int] = []
    leaf, true, false = (nodes.modes == LEAF).tolist(), nodes.true.tolist(), nodes.false.tolist()
    count = len(leaf)
    state = bytearray(count)
    waiting = [*roots]
    while waiting:
        node = waiting[-1]
        if not 0 <= node < count:
            raise FormatError(f"a tree leads to node {node}, which is not there")
        if state[node] == NEW and not leaf[node]:
            state[node] = OPEN
            ways = true[node], false[node]
            if any(0 <= way < count and state[way] == OPEN for way in ways):
                raise FormatError(f"node {node} of a tree leads back to itself")
            waiting += [way for way in ways if not (0 <= way < count and state[way] == DONE)]
            continue
        waiting.pop()
        if state[node] != DONE:
            state[node] = DONE
            order.append(node)
    return order[::-1]


class AttributeNames(Record, eq=False):
    """The nodes of a file by a tree's and a node's number each, sorted: a file could choose numbers of equal hashes.

    Fields
        trees, numbers: those that occur, in order
        keys: a node's positions among both, as one number; in order
        order: per key, which node of the file has it
    """

    trees: np.ndarray
    numbers: np.ndarray
    keys: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, trees: np.ndarray, numbers: np.ndarray) -> "AttributeNames":
        """FormatError when two nodes have one name."""
        (each_tree, tree), (each, number) = (np.unique(x, return_inverse=True) for x in (trees, numbers))
        keys = tree * len(each) + number
        order = np.argsort(keys, kind="stable")
        if np.any(keys[order][1:] == keys[order][:-1]):
            raise FormatError("lists of nodes have different lengths, or name a node twice")
        return cls(each_tree, each, keys[order], order)

    def find(self, trees: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Which nodes have these names; -1 where none has."""
        if not len(self.order):
            return np.full(len(trees), -1)
        tree, has_tree = position(self.trees, trees)
        number, has_number = position(self.numbers, numbers)
        at, is_there = position(self.keys, tree * len(self.numbers) + number)
        return np.where(has_tree & has_number & is_there, self.order[at], -1)


def position(values: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where some numbers stand in a sorted array, and whether they do."""
    at = np.minimum(np.searchsorted(values, numbers), len(values) - 1)
    return at, values[at] == numbers


def named_forest(c: Context) -> tuple[Forest, AttributeNames]:
    """Trees whose nodes have a tree's and a node's number each; and which node has which."""
    trees, numbers = integers(c, "nodes_treeids"), integers(c, "nodes_nodeids")
    values = c.attribute("nodes_values_as_tensor", c.attribute("nodes_values"))
    values = np.asarray(values, getattr(values, "dtype", np.float32)).reshape(-1)
    modes = modes_of(texts(c, "nodes_modes"))
    ways = [integers(c, f"nodes_{way}nodeids") for way in ("true", "false")]
    missing = np.asarray(c.attribute("nodes_missing_value_tracks_true") or np.zeros(len(trees)), bool)
    lists = (trees, numbers, values, integers(c, "nodes_featureids"), modes, *ways, missing)
    if len({len(each) for each in lists}) > 1:
        raise FormatError("lists of nodes have different lengths, or name a node twice")
    names = AttributeNames.of(trees, numbers)
    true, false = (names.find(trees, way) for way in ways)
    _, first = np.unique(trees, return_index=True)
    nodes = Questions(lists[3], values, modes, missing, true, false)
    return forest_of(c, np.sort(first).tolist(), nodes), names


def modes_of(names: Sequence[str]) -> np.ndarray:
    """Positions in MODES, and LEAF. FormatError for any other mode."""
    numbers = {mode: i for i, mode in enumerate(MODES)} | {"LEAF": LEAF}
    for mode in names:
        if mode not in numbers:
            raise FormatError(f"the mode {mode!r:.40} of a node is not one of {', '.join(MODES)}, LEAF")
    return np.array([numbers[mode] for mode in names], np.int64)


def integers(c: Context, name: str) -> np.ndarray:
    """An attribute that lists integers."""
    array = np.asarray(c.required(name))
    if array.ndim != 1 or (array.size and array.dtype.kind != "i"):
        raise FormatError(f"attribute {name} is not a list of integers")
    return array.astype(np.int64)


def texts(c: Context, name: str) -> list[str]:
    """An attribute that lists texts."""
    values = c.required(name)
    if not isinstance(values, list) or not all(isinstance(text, str) for text in values):
        raise FormatError(f"attribute {name} is no list of texts")
    return values


def weights_of(c: Context, kind: str, targets: int) -> tuple[Forest, np.ndarray, np.ndarray]:
    """Trees, and what each node adds to each target ``[nodes, targets]``; also the targets that are named.

    Parameters
        kind: how the attributes' names begin, ``class`` or ``target``
    """
    forest, names = named_forest(c)
    weights = c.attribute(f"{kind}_weights_as_tensor", c.attribute(f"{kind}_weights"))
    weights = np.asarray(weights, getattr(weights, "dtype", np.float32)).reshape(-1)
    trees, numbers, ids = (integers(c, f"{kind}_{name}") for name in ("treeids", "nodeids", "ids"))
    if len(trees) != len(numbers):
        raise FormatError(f"weights name {len(trees)} trees and {len(numbers)} nodes")
    rows = names.find(trees, numbers)
    if np.any(rows < 0):
        first = int(np.argmax(rows < 0))
        raise FormatError(f"a weight belongs to node {numbers[first]} of tree {trees[first]}, which is not there")
    return forest, weight_table(c, forest, rows, ids, weights, targets), ids


def weight_table(
    c: Context, forest: Forest, rows: np.ndarray, ids: np.ndarray, weights: np.ndarray, targets: int
) -> np.ndarray:
    """``[nodes, targets]`` from a node, a target and a weight each. FormatError when a target is not there."""
    outside = ids.size and not 0 <= ids.min() <= ids.max() < targets
    if not len(rows) == len(ids) == len(weights) or outside:
        raise FormatError(f"weights must be one for each node and target, and there are {targets} targets")
    c.spend(nbytes=len(forest.place) * targets * weights.itemsize, work=len(forest.place) * targets)
    table = np.zeros((len(forest.features), targets), weights.dtype)
    reached = forest.place[rows]
    np.add.at(table, (reached[reached >= 0], ids[reached >= 0]), weights[reached >= 0])
    return table


def each_tree(forest: Forest, table: np.ndarray, x: Node) -> Node:
    """What each tree says of each row: ``[n, trees, targets]``."""
    return cg.take(table, forest.leaves(x), 0)


def add_base_values(c: Context, scores: Node) -> Node:
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
    if len(labels) == 2 and ids.size and ids.min() == ids.max():
        total = cg.sum(each_tree(forest, table[:, ids[:1]], c[0]), 1)
        score = cg.astype(add_base_values(c, total), "float32")
        classes = cg.astype(score[:, 0] > (0.5 if positive else 0.0), "int64")
        return labels_of(labels, classes), both_classes(score, positive, how)
    scores = cg.astype(add_base_values(c, cg.sum(each_tree(forest, table, c[0]), 1)), "float32")
    return labels_of(labels, cg.argmax(scores, 1)), post_transform(scores, how)


@operator("ai.onnx.ml.TreeEnsembleRegressor")
def regressor(c: Context) -> Node:
    """``[n, targets]``: sums, means or extremes over trees."""
    forest, table, _ = weights_of(c, "target", c.attribute("n_targets", 1))
    scores = aggregate(each_tree(forest, table, c[0]), c.attribute("aggregate_function", "SUM"))
    return post_transform(cg.astype(add_base_values(c, scores), "float32"), c.attribute("post_transform", "NONE"))


def aggregate(x: Node, how: str) -> Node:
    """One of AGGREGATES over trees."""
    if how not in AGGREGATES:
        raise FormatError(f"aggregate_function {how!r:.40} is not one of {', '.join(AGGREGATES)}")
    return {"AVERAGE": cg.mean, "SUM": cg.sum, "MIN": cg.min, "MAX": cg.max}[how](x, 1)


@operator("ai.onnx.ml.TreeEnsemble")
def ensemble(c: Context) -> Node:
    """``[n, targets]`` of trees whose leaves are listed apart from their nodes."""
    nodes, count = split_ensemble(c), len(c.required("nodes_modes").reshape(-1))
    weights, targets = c.required("leaf_weights").reshape(-1), integers(c, "leaf_targetids")
    leaves = np.arange(count, count + len(weights))
    forest = forest_of(c, c.required("tree_roots"), nodes)
    table = weight_table(c, forest, leaves, targets, weights, c.required("n_targets"))
    how, after = c.attribute("aggregate_function", 1), c.attribute("post_transform", 0)
    scores = aggregate(each_tree(forest, table, c[0]), dict(enumerate(AGGREGATES)).get(how, str(how)))
    return post_transform(cg.astype(scores, c[0].dtype), dict(enumerate(TRANSFORMS)).get(after, str(after)))


def split_ensemble(c: Context) -> Questions:
    """The nodes of a TreeEnsemble: those that are listed, then the leaves, then a question for each further member."""
    modes, splits = (c.required(name).reshape(-1) for name in ("nodes_modes", "nodes_splits"))
    count, leaves = len(modes), len(c.required("leaf_weights").reshape(-1))
    if count and not 0 <= modes.min() <= modes.max() <= MEMBER:
        raise FormatError(f"the modes of nodes lie from {modes.min()} to {modes.max()}; 0 to {MEMBER} are supported")
    true, false = (ways_of(c, way, count) for way in ("true", "false"))
    missing = np.asarray(c.attribute("nodes_missing_value_tracks_true") or np.zeros(count), bool)
    lists = [integers(c, "nodes_featureids"), splits, modes.astype(np.int64), missing, true, false]
    if {len(each) for each in lists} != {count}:
        raise FormatError("lists of nodes have different lengths")
    listed = [np.concatenate([each, np.zeros(leaves, each.dtype)]) for each in lists]
    listed[2][count:] = LEAF
    return with_member_tests(c, Questions(*listed))


def with_member_tests(c: Context, nodes: Questions) -> Questions:
    """A node that looks for one of several numbers asks for the first, and leads to one that asks for the next."""
    asking = np.flatnonzero(nodes.modes == MEMBER)
    members = members_of(c)
    c.spend(nbytes=NODE_NBYTES * sum(map(len, members)), work=NODE_WORK * (len(asking) + sum(map(len, members))))
    more: list[np.ndarray] = []  # positions of nodes of which further questions are copies
    total = len(nodes.modes)
    thresholds, false = [nodes.thresholds], [nodes.false]
    nodes.modes[asking] = EQ
    for i, node in enumerate(asking):
        numbers = np.asarray((members[i] if i < len(members) else []) or [np.nan], nodes.thresholds.dtype)
        further = np.arange(total, total + len(numbers) - 1)
        elsewhere = np.append(further, nodes.false[node])
        nodes.thresholds[node], nodes.false[node] = numbers[0], elsewhere[0]
        thresholds.append(numbers[1:])
        false.append(elsewhere[1:])
        more.append(np.full(len(further), node))
        total += len(further)
    order = np.concatenate([np.arange(len(nodes.modes)), *more]).astype(np.int64)
    questions = nodes.at(order)
    return replace(questions, thresholds=np.concatenate(thresholds), false=np.concatenate(false))


def ways_of(c: Context, way: str, count: int) -> np.ndarray:
    """Where each node leads: a node, or a leaf, which are numbered behind the nodes."""
    places, leaf = integers(c, f"nodes_{way}nodeids"), integers(c, f"nodes_{way}leafs")
    if len(places) != len(leaf):
        raise FormatError(f"nodes_{way}nodeids and nodes_{way}leafs have different lengths")
    return places + np.where(leaf != 0, count, 0)


def members_of(c: Context) -> list[list[float]]:
    """The numbers that each node of mode MEMBER looks for: lists one after the other, with NaN behind each."""
    values = c.attribute("membership_values")
    members: list[list[float]] = [[]]
    for value in [] if values is None else values.reshape(-1).tolist():
        if np.isnan(value):
            members.append([])
        else:
            members[-1].append(value)
    return members
