"""Decision trees of a file: their nodes in the order in which they are evaluated."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import damaged_file
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context
from cgraph.formats.onnx.operators.node_names import BLOCK, blocks
from cgraph.ir.graph import Node
from cgraph.kernels.trees.calls import bytes_of_nodes, write_nodes
from cgraph.kernels.trees.signature import EQUAL, MISSING, node_dtype
from cgraph.ops.trees import check_column, leaves_of_table
from cgraph.record import Record

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
LEQ, LT, GTE, GT, EQ, NEQ = range(6)
MEMBER = 6  # the mode after MODES: set membership
LEAF = 7
TURNED = (GTE, GT, NEQ)  # negations of the other modes
PLACE = np.dtype(np.int32)
NODE_WORK = 200  # cost of a node in computed elements
LEVEL_NBYTES = 16  # bytes of a node of some trees while they are ordered
SHARED_NBYTES, SHARED_WORK = 200, 2000  # bytes and cost of a node of trees that share nodes or are very deep
NEW, OPEN, DONE = range(3)  # states of a depth-first search: not visited, on the path, finished
DEEP, NARROW = 1000, 32  # levels of trees that are visited as a whole; nodes of a further level
MOST_COLUMNS = np.iinfo(np.int32).max


class Forest(Record, eq=False):
    """Trees as operands of `TreeLeaves`.

    Fields
        roots: the first node of each tree
        table: nodes of `node_dtype`; parents precede their children
        flags: those that some node has
        last: the last column that a node tests, -1 for none
        place: index of each node of the file in the table, -1 for one that no tree reaches
    """

    roots: np.ndarray
    table: np.ndarray
    flags: int
    last: int
    place: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + self.place.nbytes + self.roots.nbytes

    def leaves(self, x: Node) -> Node:
        """Return the leaf of each row and tree."""
        check_column(self.last, x.shape[-1])
        dtype = self.table.dtype["threshold"]
        return leaves_of_table(cg.astype(x, dtype), self.roots, bytes_of_nodes(self.table), self.flags)


class Questions(Record, eq=False):
    """The nodes of the trees in a file, one array per property.

    Fields
        columns: the column that a node tests
        thresholds: the value that it compares with
        modes: the comparison, as an index into MODES; LEAF for a leaf
        missing: True if NaN takes the true branch
        true, false: the child nodes
        leaves: number of leaves that follow the nodes in these arrays
    """

    columns: np.ndarray
    thresholds: np.ndarray
    modes: np.ndarray
    missing: np.ndarray
    true: np.ndarray
    false: np.ndarray
    leaves: int = 0

    @property
    def count(self) -> int:
        """The number of all nodes."""
        return len(self.modes) + self.leaves

    def is_any(self, modes: Sequence[int]) -> np.ndarray:
        """Return whether each node has one of these modes."""
        return np.logical_or.reduce([self.modes == mode for mode in modes])

    def at(self, order: Any) -> "Questions":
        """Return some nodes, in this order."""
        arrays = (self.columns, self.thresholds, self.modes, self.missing, self.true, self.false)
        return Questions(*(array[order] for array in arrays))

    def inner(self, nodes: np.ndarray) -> np.ndarray:
        """Return those of some nodes that are not leaves."""
        listed = nodes[nodes < len(self.modes)] if self.leaves else nodes
        return listed[self.modes[listed] != LEAF]


def forest_of(c: Context, roots: np.ndarray, nodes: Questions) -> Forest:
    """Build trees from the nodes of a file, for operand 0.

    FormatError if a child does not exist, or a node is its own descendant.
    """
    x = c[0].dtype
    dtype = np.result_type(x if x.kind == "f" else np.float32, nodes.thresholds.dtype)
    with c.scratch():
        place = places_of(c, roots, nodes)
    reached_count = int(place.max(initial=-1)) + 1
    c.spend(nbytes=place.nbytes + node_dtype(dtype).itemsize * reached_count, work=NODE_WORK * nodes.count)
    table, flags, last = np.zeros(reached_count, node_dtype(dtype)), 0, -1
    for part in blocks(len(nodes.modes)):
        reached = np.flatnonzero(place[part] >= 0) + part.start
        asked = nodes.at(reached)
        leaf, turned, is_equal = asked.modes == LEAF, asked.is_any(TURNED), asked.is_any((EQ, NEQ))
        check_columns(asked.columns[~leaf])
        columns = np.where(leaf, -1, asked.columns).astype(np.int32)
        true, false = (place[np.where(leaf, 0, way)] for way in (asked.true, asked.false))
        below, above = np.where(turned, false, true), np.where(turned, true, false)
        missing = np.where(turned, ~asked.missing & ~is_equal, asked.missing) & ~leaf
        flagged = is_equal * np.uint8(EQUAL) | missing * np.uint8(MISSING)
        thresholds = thresholds_of(asked).astype(dtype, copy=False)
        write_nodes(table, place[reached], columns, thresholds, below, above, flagged)
        flags, last = flags | int(np.bitwise_or.reduce(flagged, initial=0)), max(last, int(columns.max(initial=-1)))
    write_leaves(table, place[len(nodes.modes) :])
    return Forest(place[roots], table, flags, last, place)


def write_leaves(table: np.ndarray, places: np.ndarray) -> None:
    """Write the leaves at places of a table; negative places are those of leaves that no tree reaches."""
    for part in blocks(len(places)):
        reached = places[part][places[part] >= 0]
        nothing = np.zeros(len(reached), np.int32)
        write_nodes(table, reached, nothing - 1, nothing, nothing, nothing, nothing)


def check_columns(columns: np.ndarray) -> None:
    """Raise FormatError unless a node may test each of these columns."""
    outside = (columns < 0) | (columns > MOST_COLUMNS)
    if outside.any():
        raise damaged_file(f"a tree tests column {columns[outside][0]}; columns count from 0 to {MOST_COLUMNS}")


def thresholds_of(nodes: Questions) -> np.ndarray:
    """Return inclusive thresholds: the preceding number for strict comparisons."""
    thresholds, strict = nodes.thresholds, nodes.is_any((LT, GTE))
    if strict.any():
        lowest = thresholds.dtype.type(-np.inf)
        before = np.where(thresholds > lowest, np.nextafter(thresholds, lowest), thresholds.dtype.type(np.nan))
        thresholds = np.where(strict, before, thresholds)
    return np.where(nodes.modes == LEAF, thresholds.dtype.type(0), thresholds)


def places_of(c: Context, roots: np.ndarray, nodes: Questions) -> np.ndarray:
    """Return the places of nodes, so that parents precede their children: those of the true branch first.

    A node that no tree reaches has a negative place.
    """
    c.spend(nbytes=2 * PLACE.itemsize * nodes.count, work=NODE_WORK * nodes.count)
    place = places_in_trees(c, roots, nodes)
    if place is not None:
        return place
    c.spend(nbytes=SHARED_NBYTES * nodes.count, work=SHARED_WORK * nodes.count)
    place, order = np.full(nodes.count, -1, PLACE), children_first(roots.tolist(), nodes)[::-1]
    place[order] = np.arange(len(order))
    return place


def places_in_trees(c: Context, roots: np.ndarray, nodes: Questions) -> np.ndarray | None:
    """Return the places in trees that share no node, level by level; None for others, and for deep narrow ones.

    Some trees at a time, so that their nodes stay in the processor's cache.
    """
    true, false = nodes.true, nodes.false
    place, size = np.full(nodes.count, -1, PLACE), np.zeros(nodes.count, PLACE)  # size: nodes of each subtree
    total, together = 0, max(1, BLOCK * len(roots) // max(nodes.count, 1))
    for first in range(0, len(roots), together):
        some = roots[first : first + together]
        with c.scratch():
            levels = levels_of(c, some, nodes, place)
        if levels is None:
            return None
        for level in reversed(levels):
            size[level] = 1
            inner = nodes.inner(level)
            size[inner] += size[true[inner]] + size[false[inner]]
        place[some] = total + np.cumsum(size[some]) - size[some]
        for level in levels:
            inner = nodes.inner(level)
            place[true[inner]] = place[inner] + 1
            place[false[inner]] = place[inner] + 1 + size[true[inner]]
        total += sum(map(len, levels))
    return place


def levels_of(c: Context, roots: np.ndarray, nodes: Questions, visited: np.ndarray) -> list[np.ndarray] | None:
    """Return nodes by their distance from the root; None if one is reached twice or does not exist.

    Parameters
        visited: negative for the nodes that no tree has reached; numbers of the others are written to it
    """
    levels, total, level = list[np.ndarray](), 0, roots
    while len(level):
        if level.min() < 0 or level.max() >= nodes.count or (visited[level] >= 0).any():
            return None
        c.spend(nbytes=LEVEL_NBYTES * len(level))
        numbers = np.arange(total, total + len(level), dtype=PLACE)
        visited[level] = numbers
        levels.append(level)
        total += len(level)
        if (visited[level] != numbers).any() or NARROW * (len(levels) - DEEP) > total:
            return None
        inner = nodes.inner(level)
        level = np.concatenate([nodes.true[inner], nodes.false[inner]])
    return levels


def children_first(roots: list[int], nodes: Questions) -> list[int]:
    """Return the reached nodes so that children precede their parents. FormatError for a cycle or a missing node."""
    order: list[int] = []
    leaf, true, false = (nodes.modes == LEAF).tolist(), nodes.true.tolist(), nodes.false.tolist()
    leaf += [True] * nodes.leaves
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
    return order
