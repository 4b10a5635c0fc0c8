"""Decision trees: the leaf that each tree assigns to each row of numbers."""

from typing import Any

import numpy as np

from cgraph.errors import DTypeError, PositionError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.kernels.trees.calls import leaves_calls, pack_nodes, sums_calls
from cgraph.kernels.trees.signature import EQUAL, MISSING, UNIT, node_dtype
from cgraph.ops.leaf import Const, as_node

NODE_DTYPE, SUM_DTYPE = np.dtype("int32"), np.dtype("float64")


class TreeLeaves(Op):
    """The leaf that each tree assigns to each row.

    Operands
        x: floats ``[n, columns]``
        roots: int32 ``[trees]``, the first node of each tree
        nodes: bytes of a table of `node_dtype`, already checked
    Fields
        flags: the flags EQUAL and MISSING that some node has
    Result
        int32 ``[n, trees]``
    """

    flags: int

    def infer(self, x: Spec, roots: Spec, nodes: Spec) -> Spec:
        if x.dtype.kind != "f" or roots.dtype != NODE_DTYPE or nodes.dtype != np.uint8:
            raise DTypeError(f"rows {x}, roots {roots} and nodes {nodes} must be floats, int32 and uint8; use astype")
        if len(x.shape) != 2 or len(roots.shape) != 1 or nodes.shape[1:] != (node_dtype(x.dtype).itemsize,):
            raise ShapeError(f"rows {x}, roots {roots} and nodes {nodes} do not fit; call tree_leaves")
        return Spec((x.shape[0], *roots.shape), NODE_DTYPE)

    def meaning(self, x, roots, nodes):
        return leaves_of(x, roots, nodes)

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, x: View, roots: View, nodes: View) -> list[Call]:
            return leaves_calls(out, x, roots, nodes, self.flags)

        return Work(calls)


class TreeSums(Op):
    """The sum over trees of the weights of each row's leaves, added in the order of the trees in float64.

    Operands
        x, roots, nodes: as of `TreeLeaves`
        weights: floats ``[nodes, targets]``
    Fields
        flags: as of `TreeLeaves`
    Result
        float64 ``[n, targets]``
    """

    flags: int

    def infer(self, x: Spec, roots: Spec, nodes: Spec, weights: Spec) -> Spec:
        leaves = TreeLeaves(self.flags).infer(x, roots, nodes)
        if weights.dtype.kind != "f" or len(weights.shape) != 2 or weights.shape[0] != nodes.shape[0]:
            raise ShapeError(f"weights {weights} are not floats [nodes, targets] for nodes {nodes}")
        return Spec((leaves.shape[0], weights.shape[1]), SUM_DTYPE)

    def meaning(self, x, roots, nodes, weights):
        terms = weights[leaves_of(x, roots, nodes)].astype(SUM_DTYPE)
        return np.cumsum(terms, axis=1)[:, -1] if terms.shape[1] else terms.sum(1)

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, x: View, roots: View, nodes: View, weights: View) -> list[Call]:
            return sums_calls(out, x, roots, nodes, weights, self.flags)

        return Work(calls)


def leaves_of(x: np.ndarray, roots: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Return the leaf of each row in each tree."""
    table = np.ascontiguousarray(nodes).view(node_dtype(x.dtype))[:, 0]
    units = table.itemsize // UNIT
    rows, at = np.arange(len(x))[:, None], np.broadcast_to(roots, (len(x), len(roots)))
    while True:
        node = table[at]
        number = x[rows, node["column"] // x.itemsize] if x.size else np.zeros(at.shape, x.dtype)
        is_below = np.where(node["column"] & EQUAL, number == node["threshold"], number <= node["threshold"])
        is_below |= np.isnan(number) & (node["column"] & MISSING > 0)
        following = np.where(is_below, node["ways"][..., 1], node["ways"][..., 0]) // units
        if (following == at).all():
            break
        at = following
    return at.astype(NODE_DTYPE)


@public
def tree_leaves(
    x: Any, roots: Any, features: Any, thresholds: Any, below: Any, above: Any, equal: Any = None, missing: Any = None
) -> Node:
    """Return the leaf that each decision tree assigns to each row, as int32 node numbers ``[n, trees]``.

    A row goes on to `below` if its number in the node's column is at most the threshold, otherwise (NaN included) to
    `above`.

    Parameters
        x: rows ``[n, columns]``
        roots: the first node of each tree
        features: the column that each node reads; -1 at a leaf
        thresholds: of each node, in the dtype of x; any value at a leaf
        below, above: the next node; any value at a leaf
        equal: for each node, whether it tests equality with the threshold instead
        missing: for each node, whether NaN goes to `below`
    Raises
        PositionError: a column or node is out of range, or a node does not precede those it leads to
    """
    x = as_node(x)
    tables = [np.asarray(table, NODE_DTYPE) for table in (roots, features, below, above)]
    roots, features, below, above = tables
    check_trees(roots, features, below, above, x.shape[-1])
    flags = np.zeros(len(features), np.uint8)
    for flagged, flag in ((equal, EQUAL), (missing, MISSING)):
        if flagged is not None:
            flags |= np.asarray(flagged, bool) * np.uint8(flag)
    nodes = pack_nodes(features, np.asarray(thresholds, x.dtype), below, above, flags)
    return leaves_of_table(x, roots, nodes, int(np.bitwise_or.reduce(flags, initial=0)))


def leaves_of_table(x: Node, roots: np.ndarray, nodes: np.ndarray, flags: int) -> Node:
    """Return the leaves of a table that was checked before, which must not change afterwards.

    Parameters
        x, roots, nodes: operands of `TreeLeaves`
        flags: its field
    """
    nodes.flags.writeable = False
    return apply(TreeLeaves(flags), x, Const(roots), Const(nodes, copy=False))


def check_trees(roots: np.ndarray, features: np.ndarray, below: np.ndarray, above: np.ndarray, columns: int) -> None:
    """Raise PositionError unless every walk stays within rows and nodes and ends."""
    count = len(features)
    inside = np.flatnonzero(features >= 0)
    check_column(int(features.max(initial=-1)), columns)
    if roots.size and not (roots.min() >= 0 and roots.max() < count):
        raise PositionError(
            f"roots {roots.min()} to {roots.max()} are outside the {count} nodes; pass numbers from 0 to {count - 1}"
        )
    for children in (below[inside], above[inside]):
        if (children <= inside).any() or (children >= count).any():
            raise PositionError(
                f"a node leads to one before it or beyond the {count} nodes; order nodes from root to leaves"
            )


def check_column(last: int, columns: int) -> None:
    """Raise PositionError unless rows have the last column that nodes read."""
    if last >= columns:
        raise PositionError(f"a node reads column {last}, but rows have {columns}; pass columns below that")
