"""Importers of decision trees: TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import FormatError, damaged_file
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.operators.scores import both_classes, class_labels, labels_of, names_labels, post_transform
from cgraph.ir.graph import Node
from cgraph.record import Record, replace

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
LEQ, LT, GTE, GT, EQ, NEQ = range(6)
MEMBER = 6  # the mode after MODES: set membership
LEAF = 7
NODE_NBYTES, NODE_WORK = 200, 2000  # bytes of a node while trees are sorted, and its cost in computed elements
NEW, OPEN, DONE = range(3)  # states of a depth-first search: not visited, on the path, finished
TURNED = (GTE, GT, NEQ)  # negations of the other modes
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


class Forest(Record, eq=False):
    """Trees as arguments of `tree_leaves`.

    Fields
        roots, features, thresholds, below, above, equal, missing: its tables
        place: index of each node of the file in these tables
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
        """Return the leaf of each row and tree."""
        dtype = np.result_type(x.dtype if x.dtype.kind == "f" else np.float32, self.thresholds.dtype)
        tables = self.roots, self.features, self.thresholds.astype(dtype), self.below, self.above
        return cg.tree_leaves(cg.astype(x, dtype), *tables, self.equal, self.missing)


class Questions(Record, eq=False):
    """The nodes of the trees in a file, one array per property.

    Fields
        columns: the column that a node tests
        thresholds: the value that it compares with
        modes: the comparison, as an index into MODES; LEAF for a leaf
        missing: True if NaN takes the true branch
        true, false: the child nodes
    """

    columns: np.ndarray
    thresholds: np.ndarray
    modes: np.ndarray
    missing: np.ndarray
    true: np.ndarray
    false: np.ndarray

    def at(self, order: Any) -> "Questions":
        """Return some nodes, in this order."""
        return Questions(*(getattr(self, name)[order] for name in self._fields))


def forest_of(c: Context, roots: Sequence[int], nodes: Questions) -> Forest:
    """Build trees from the nodes of a file.

    Parents precede their children. FormatError if a child does not exist, or there is a cycle.
    """
    count = len(nodes.modes)
    c.spend(nbytes=NODE_NBYTES * count, work=NODE_WORK * count)
    order = np.asarray(children_first(roots, nodes), np.int64)
    place = np.full(count, -1)
    place[order] = np.arange(len(order))
    asked = nodes.at(order)
    leaf, turned = asked.modes == LEAF, np.isin(asked.modes, TURNED)
    if np.any(asked.columns[~leaf] < 0):
        raise damaged_file(f"a tree tests column {asked.columns[~leaf].min()}; columns count from 0")
    equal = np.isin(asked.modes, (EQ, NEQ))
    true, false = (place[np.where(leaf, order, way)] for way in (asked.true, asked.false))
    below, above = np.where(turned, false, true), np.where(turned, true, false)
    missing = np.where(turned, ~asked.missing & ~equal, asked.missing) & ~leaf
    below, above = np.where(leaf, 0, below), np.where(leaf, 0, above)
    columns = np.where(leaf, -1, asked.columns)
    return Forest(place[list(roots)], columns, thresholds_of(asked), below, above, equal, missing, place)


def thresholds_of(nodes: Questions) -> np.ndarray:
    """Return inclusive thresholds: the preceding number for strict comparisons."""
    thresholds, strict = nodes.thresholds, np.isin(nodes.modes, (LT, GTE))
    lowest = thresholds.dtype.type(-np.inf)
    before = np.where(thresholds > lowest, np.nextafter(thresholds, lowest), thresholds.dtype.type(np.nan))
    thresholds = np.where(strict, before, np.where(nodes.modes == LEAF, thresholds.dtype.type(0), thresholds))
    return thresholds.astype(np.result_type(np.float32, thresholds.dtype))


def children_first(roots: Sequence[int], nodes: Questions) -> list[int]:
    """Return the reached nodes in topological order."""
    order: list[int] = []
    leaf, true, false = (nodes.modes == LEAF).tolist(), nodes.true.tolist(), nodes.false.tolist()
    count = len(leaf)
    state = bytearray(count)
    waiting = [*roots]
    while waiting:
        node = waiting[-1]
        if not 0 <= node < count:
            raise damaged_file(f"a tree refers to node {node}, which does not exist")
        if state[node] == NEW and not leaf[node]:
            state[node] = OPEN
            ways = true[node], false[node]
            if any(0 <= way < count and state[way] == OPEN for way in ways):
                raise damaged_file(f"node {node} of a tree is its own descendant")
            waiting += [way for way in ways if not (0 <= way < count and state[way] == DONE)]
            continue
        waiting.pop()
        if state[node] != DONE:
            state[node] = DONE
            order.append(node)
    return order[::-1]


class AttributeNames(Record, eq=False):
    """An index of nodes by tree and node number; sorted, since crafted numbers could have equal hashes.

    Fields
        trees, numbers: the distinct numbers, sorted
        keys: a node's indices in both, as one number; sorted
        order: the node of each key
    """

    trees: np.ndarray
    numbers: np.ndarray
    keys: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, trees: np.ndarray, numbers: np.ndarray) -> "AttributeNames":
        """Create the index. FormatError if two nodes have one name."""
        (each_tree, tree), (each, number) = (np.unique(x, return_inverse=True) for x in (trees, numbers))
        keys = tree * len(each) + number
        order = np.argsort(keys, kind="stable")
        twice = order[1:][keys[order][1:] == keys[order][:-1]]
        if len(twice):
            at = twice[0]
            raise FormatError(
                f"node {numbers[at]} of tree {trees[at]} is listed twice. Give each node a different number"
            )
        return cls(each_tree, each, keys[order], order)

    def find(self, trees: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return the nodes of these names; -1 for none."""
        if not len(self.order):
            return np.full(len(trees), -1)
        tree, has_tree = position(self.trees, trees)
        number, has_number = position(self.numbers, numbers)
        at, is_there = position(self.keys, tree * len(self.numbers) + number)
        return np.where(has_tree & has_number & is_there, self.order[at], -1)


def position(values: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of numbers in a sorted array, and whether it contains them."""
    at = np.minimum(np.searchsorted(values, numbers), len(values) - 1)
    return at, values[at] == numbers


def named_forest(c: Context) -> tuple[Forest, AttributeNames]:
    """Build trees whose nodes are identified by tree and node number; return also the index."""
    trees, numbers = integers(c, "nodes_treeids"), integers(c, "nodes_nodeids")
    values = c.attribute("nodes_values_as_tensor", c.attribute("nodes_values"))
    values = np.asarray(values, getattr(values, "dtype", np.float32)).reshape(-1)
    modes = modes_of(texts(c, "nodes_modes"))
    ways = [integers(c, f"nodes_{way}nodeids") for way in ("true", "false")]
    missing = np.asarray(c.attribute("nodes_missing_value_tracks_true") or np.zeros(len(trees)), bool)
    lists = (trees, numbers, values, integers(c, "nodes_featureids"), modes, *ways, missing)
    if len({len(each) for each in lists}) > 1:
        raise damaged_file(f"lists of nodes have different lengths: {', '.join(str(len(each)) for each in lists)}")
    names = AttributeNames.of(trees, numbers)
    true, false = (names.find(trees, way) for way in ways)
    _, first = np.unique(trees, return_index=True)
    nodes = Questions(lists[3], values, modes, missing, true, false)
    return forest_of(c, np.sort(first).tolist(), nodes), names


def modes_of(names: Sequence[str]) -> np.ndarray:
    """Convert mode names to indices into MODES, or LEAF. FormatError for any other mode."""
    numbers = {mode: i for i, mode in enumerate(MODES)} | {"LEAF": LEAF}
    for mode in names:
        if mode not in numbers:
            raise FormatError(f"the mode {mode!r:.40} of a node is not supported. Use {', '.join(MODES)} or LEAF")
    return np.array([numbers[mode] for mode in names], np.int64)


def integers(c: Context, name: str) -> np.ndarray:
    """Return an attribute that is a list of integers."""
    array = np.asarray(c.required(name))
    if array.ndim != 1 or (array.size and array.dtype.kind != "i"):
        raise FormatError(f"attribute {name} is not a list of integers")
    return array.astype(np.int64)


def texts(c: Context, name: str) -> list[str]:
    """Return an attribute that is a list of strings."""
    values = c.required(name)
    if not isinstance(values, list) or not all(isinstance(text, str) for text in values):
        raise FormatError(f"attribute {name} is not a list of strings")
    return values


def weights_of(c: Context, kind: str, targets: int) -> tuple[Forest, np.ndarray, np.ndarray]:
    """Return trees, the weights ``[nodes, targets]``, and the targets that occur.

    Parameters
        kind: prefix of the attribute names, ``class`` or ``target``
    """
    forest, names = named_forest(c)
    weights = c.attribute(f"{kind}_weights_as_tensor", c.attribute(f"{kind}_weights"))
    weights = np.asarray(weights, getattr(weights, "dtype", np.float32)).reshape(-1)
    trees, numbers, ids = (integers(c, f"{kind}_{name}") for name in ("treeids", "nodeids", "ids"))
    if len(trees) != len(numbers):
        raise damaged_file(f"weights name {len(trees)} trees and {len(numbers)} nodes")
    rows = names.find(trees, numbers)
    if np.any(rows < 0):
        first = int(np.argmax(rows < 0))
        raise damaged_file(f"a weight belongs to node {numbers[first]} of tree {trees[first]}, which does not exist")
    if kind == "target" and targets == 1 and len(rows) == len(ids) == len(weights):
        rows, first_weights = np.unique(rows, return_index=True)  # onnxruntime reads the first weight of a leaf alone
        ids, weights = ids[first_weights], weights[first_weights]
    return forest, weight_table(c, forest, rows, ids, weights, targets), ids


def weight_table(
    c: Context, forest: Forest, rows: np.ndarray, ids: np.ndarray, weights: np.ndarray, targets: int
) -> np.ndarray:
    """Return the weights ``[nodes, targets]`` from (node, target, weight). FormatError if a target does not exist."""
    outside = ids.size and not 0 <= ids.min() <= ids.max() < targets
    if not len(rows) == len(ids) == len(weights) or outside:
        raise damaged_file(
            f"a weight names a target outside 0 to {targets - 1}, or lists of weights have different lengths"
        )
    c.spend(nbytes=len(forest.place) * targets * weights.itemsize, work=len(forest.place) * targets)
    table = np.zeros((len(forest.features), targets), weights.dtype)
    reached = forest.place[rows]
    np.add.at(table, (reached[reached >= 0], ids[reached >= 0]), weights[reached >= 0])
    return table


def each_tree(forest: Forest, table: np.ndarray, x: Node) -> Node:
    """Return the output of each tree for each row: ``[n, trees, targets]``."""
    return cg.take(table, forest.leaves(x), 0)


def add_base_values(c: Context, scores: Node) -> Node:
    """Add base values, one for all targets or one per target."""
    base = c.attribute("base_values_as_tensor", c.attribute("base_values"))
    if base is None or not np.size(base):
        return scores
    if np.size(base) not in (1, scores.shape[-1]):
        raise FormatError(
            f"{np.size(base)} base values do not fit {scores.shape[-1]} targets: give one or one for each"
        )
    return scores + np.asarray(base, scores.dtype).reshape(-1)


@operator("ai.onnx.ml.TreeEnsembleClassifier")
@names_labels
def classifier(c: Context) -> tuple[Node, Node]:
    """Import TreeEnsembleClassifier: the label of each row and its scores."""
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
    """Import TreeEnsembleRegressor: sums, means, minima or maxima over trees, ``[n, targets]``."""
    forest, table, _ = weights_of(c, "target", c.attribute("n_targets", 1))
    scores = aggregate(each_tree(forest, table, c[0]), c.attribute("aggregate_function", "SUM"))
    return post_transform(cg.astype(add_base_values(c, scores), "float32"), c.attribute("post_transform", "NONE"))


def aggregate(x: Node, how: str) -> Node:
    """Aggregate over trees, by one of AGGREGATES."""
    if how not in AGGREGATES:
        raise FormatError(f"aggregate_function {how!r:.40} is not supported. Use {', '.join(AGGREGATES)}")
    return {"AVERAGE": cg.mean, "SUM": cg.sum, "MIN": cg.min, "MAX": cg.max}[how](x, 1)


@operator("ai.onnx.ml.TreeEnsemble")
def ensemble(c: Context) -> Node:
    """Import TreeEnsemble, whose leaves are listed separately from its nodes: ``[n, targets]``."""
    nodes, count = split_ensemble(c), len(c.required("nodes_modes").reshape(-1))
    weights, targets = c.required("leaf_weights").reshape(-1), integers(c, "leaf_targetids")
    leaves = np.arange(count, count + len(weights))
    forest = forest_of(c, c.required("tree_roots"), nodes)
    table = weight_table(c, forest, leaves, targets, weights, c.required("n_targets"))
    how, after = c.attribute("aggregate_function", 1), c.attribute("post_transform", 0)
    scores = aggregate(each_tree(forest, table, c[0]), dict(enumerate(AGGREGATES)).get(how, str(how)))
    return post_transform(cg.astype(scores, c[0].dtype), dict(enumerate(TRANSFORMS)).get(after, str(after)))


def split_ensemble(c: Context) -> Questions:
    """Return the nodes of a TreeEnsemble: inner nodes, leaves, then a test for each further member of a set."""
    modes, splits = (c.required(name).reshape(-1) for name in ("nodes_modes", "nodes_splits"))
    count, leaves = len(modes), len(c.required("leaf_weights").reshape(-1))
    if count and not 0 <= modes.min() <= modes.max() <= MEMBER:
        raise FormatError(f"the modes of nodes lie from {modes.min()} to {modes.max()}; 0 to {MEMBER} are supported")
    true, false = (ways_of(c, way, count) for way in ("true", "false"))
    missing = np.asarray(c.attribute("nodes_missing_value_tracks_true") or np.zeros(count), bool)
    lists = [integers(c, "nodes_featureids"), splits, modes.astype(np.int64), missing, true, false]
    if {len(each) for each in lists} != {count}:
        raise damaged_file(f"lists of {count} nodes have the lengths {', '.join(str(len(each)) for each in lists)}")
    listed = [np.concatenate([each, np.zeros(leaves, each.dtype)]) for each in lists]
    listed[2][count:] = LEAF
    return with_member_tests(c, Questions(*listed))


def with_member_tests(c: Context, nodes: Questions) -> Questions:
    """Replace each set membership test by a chain of equality tests."""
    asking = np.flatnonzero(nodes.modes == MEMBER)
    members = members_of(c)
    c.spend(nbytes=NODE_NBYTES * sum(map(len, members)), work=NODE_WORK * (len(asking) + sum(map(len, members))))
    more: list[np.ndarray] = []  # nodes that further tests copy
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
    """Return the children of nodes; leaves are numbered after the inner nodes."""
    places, leaf = integers(c, f"nodes_{way}nodeids"), integers(c, f"nodes_{way}leafs")
    if len(places) != len(leaf):
        raise damaged_file(f"nodes_{way}nodeids and nodes_{way}leafs have different lengths")
    return places + np.where(leaf != 0, count, 0)


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
