"""Nodes of trees by their names: the number of a tree and the number of a node in it."""

from collections.abc import Iterator

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.onnx.context import Context
from cgraph.record import Record

BLOCK = 1 << 16  # names that are looked up at once, so that the arrays in between stay small
TABLE_NBYTES, SORTED_NBYTES, NAME_WORK = 12, 100, 50  # bytes of a node in an index, and its cost in computed elements
RUN_NBYTES = 40  # bytes of consecutive nodes of one tree
MOST_GAPS = 2  # numbers of a table for each node


def blocks(count: int) -> Iterator[slice]:
    """Yield slices of at most BLOCK elements."""
    return (slice(at, min(at + BLOCK, count)) for at in range(0, count, BLOCK))


class NodeNames(Record, eq=False):
    """An index of nodes by name: a table of all numbers up to the largest one of each tree.

    Fields
        trees: the distinct numbers of trees, sorted
        starts: where each tree begins in `nodes`; one more than there are trees
        nodes: the node of each number, -1 for none
    """

    trees: np.ndarray
    starts: np.ndarray
    nodes: np.ndarray

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in self._fields)

    def find(self, trees: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return the nodes of these names as int32; -1 for none."""
        nodes = np.empty(len(trees), np.int32)
        for part in blocks(len(trees)):
            tree, has_tree = position(self.trees, trees[part])
            at = self.starts[tree] + numbers[part]
            exists = has_tree & (numbers[part] >= 0) & (numbers[part] < self.starts[tree + 1] - self.starts[tree])
            nodes[part] = np.where(exists, self.nodes[np.where(exists, at, 0)], -1)
        return nodes


class SortedNames(Record, eq=False):
    """An index of nodes by name: sorted, for numbers with gaps; crafted numbers could have equal hashes.

    Fields
        trees, numbers: the distinct numbers, sorted
        keys: a node's indices in both, as one number; sorted
        order: the node of each key
    """

    trees: np.ndarray
    numbers: np.ndarray
    keys: np.ndarray
    order: np.ndarray

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in self._fields)

    @classmethod
    def of(cls, trees: np.ndarray, numbers: np.ndarray) -> "SortedNames":
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
        """Return the nodes of these names as int32; -1 for none."""
        nodes = np.full(len(trees), -1, np.int32)
        for part in blocks(len(trees)) if len(self.order) else ():
            tree, has_tree = position(self.trees, trees[part])
            number, has_number = position(self.numbers, numbers[part])
            at, exists = position(self.keys, tree * len(self.numbers) + number)
            nodes[part] = np.where(has_tree & has_number & exists, self.order[at], -1)
        return nodes


def position(values: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of numbers in a sorted array, and whether it contains them."""
    at = np.minimum(np.searchsorted(values, numbers), len(values) - 1)
    return at, values[at] == numbers


def names_of(c: Context, trees: np.ndarray, numbers: np.ndarray) -> NodeNames | SortedNames:
    """Create the index of nodes. FormatError if two nodes have one name.

    Writers count the nodes of a tree from 0, so that usually a table is as long as the list of nodes.
    """
    count = len(trees)
    runs = int(np.count_nonzero(trees[1:] != trees[:-1])) + 1
    c.spend(nbytes=TABLE_NBYTES * count + RUN_NBYTES * runs, work=NAME_WORK * count)
    names = table_of_names(trees, numbers) if count else None
    if names is not None:
        return names
    c.spend(nbytes=SORTED_NBYTES * count, work=NAME_WORK * count)
    return SortedNames.of(trees, numbers)


def table_of_names(trees: np.ndarray, numbers: np.ndarray) -> NodeNames | None:
    """Return the table of nodes; None if it would have too many gaps, or if two nodes have one name."""
    starts = run_starts(trees)
    each = np.unique(trees[starts])
    largest = np.zeros(len(each), np.int64)
    for part in blocks(len(trees)):
        np.maximum.at(largest, np.searchsorted(each, trees[part]), numbers[part])
    size = sum(largest.tolist()) + len(each)
    if numbers.min() < 0 or size > MOST_GAPS * len(trees):
        return None
    begins = np.concatenate([[0], np.cumsum(largest + 1)])
    nodes = np.full(size, -1, np.int32)
    for part in blocks(len(trees)):
        nodes[begins[np.searchsorted(each, trees[part])] + numbers[part]] = np.arange(part.start, part.stop)
    return NodeNames(each, begins, nodes) if np.count_nonzero(nodes >= 0) == len(trees) else None


def run_starts(values: np.ndarray) -> np.ndarray:
    """Return where each run of equal values starts."""
    return np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1]) if len(values) else np.zeros(0, int)


def first_nodes(trees: np.ndarray) -> np.ndarray:
    """Return the first node of each tree, in the order of the file."""
    starts = run_starts(trees)
    _, first = np.unique(trees[starts], return_index=True)
    return np.sort(starts[first])
