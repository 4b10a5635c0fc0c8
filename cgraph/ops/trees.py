"""Decision trees: the leaf that each tree assigns to each row of numbers."""

from typing import Any

import numpy as np

from cgraph.errors import DTypeError, PositionError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.kernels.trees.calls import leaves_calls
from cgraph.kernels.trees.signature import EQUAL, MISSING
from cgraph.ops.leaf import Const, as_node

NODE_DTYPE = np.dtype("int32")


class TreeLeaves(Op):
    """The leaf that each tree assigns to each row.

    Operands
        x: floats ``[n, columns]``
        roots: int32 ``[trees]``, the first node of each tree
        features, thresholds, below, above: of each node, as in `tree_leaves`, already checked
        kinds: uint8, the flags EQUAL and MISSING of each node; none if absent
    Result
        int32 ``[n, trees]``
    """

    def infer(self, x: Spec, roots: Spec, features: Spec, thresholds: Spec, *rest: Spec) -> Spec:
        if x.dtype.kind != "f" or thresholds.dtype != x.dtype:
            raise DTypeError(
                f"rows are {x.dtype} and thresholds {thresholds.dtype}; use astype to give them one float dtype"
            )
        if any(spec.dtype != NODE_DTYPE for spec in (roots, features, *rest[:2])):
            raise DTypeError(
                f"roots {roots.dtype}, features {features.dtype}, below and above must be int32; use astype"
            )
        if len(x.shape) != 2 or any(spec.shape != features.shape for spec in (thresholds, *rest)):
            raise ShapeError(
                f"rows {x} and features {features} do not fit; pass [n, columns], and [nodes] for each table of nodes"
            )
        return Spec((x.shape[0], *roots.shape), NODE_DTYPE)

    def meaning(self, x, roots, features, thresholds, below, above, kinds=None):
        nodes = np.broadcast_to(roots, (len(x), len(roots))).copy()
        rows = np.arange(len(x))[:, None]
        kinds = np.zeros(len(features), np.uint8) if kinds is None else kinds
        while nodes.size and (inside := features[nodes] >= 0).any():
            number, limit, kind = x[rows, features[nodes]], thresholds[nodes], kinds[nodes]
            is_below = np.where(kind & EQUAL, number == limit, number <= limit)
            is_below |= np.isnan(number) & (kind & MISSING > 0)
            nodes = np.where(inside, np.where(is_below, below[nodes], above[nodes]), nodes)
        return nodes.astype(NODE_DTYPE)

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(
            out: View, x: View, roots: View, features: View, thresholds: View, below: View, above: View, *rest: View
        ) -> list[Call]:
            return leaves_calls(out, x, roots, (features, thresholds, below, above), rest[0] if rest else None)

        return Work(calls)


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
            flags |= np.where(np.asarray(flagged, bool), flag, 0).astype(np.uint8)
    operands = (roots, features, np.asarray(thresholds, x.dtype), below, above, *([flags] if flags.any() else []))
    return apply(TreeLeaves(), x, *map(Const, operands))


def check_trees(roots: np.ndarray, features: np.ndarray, below: np.ndarray, above: np.ndarray, columns: int) -> None:
    """Raise PositionError unless every walk stays within rows and nodes and ends."""
    count = len(features)
    inside = np.flatnonzero(features >= 0)
    if features.size and features.max() >= columns:
        raise PositionError(f"a node reads column {features.max()}, but rows have {columns}; pass columns below that")
    if roots.size and not (roots.min() >= 0 and roots.max() < count):
        raise PositionError(
            f"roots {roots.min()} to {roots.max()} are outside the {count} nodes; pass numbers from 0 to {count - 1}"
        )
    for children in (below[inside], above[inside]):
        if (children <= inside).any() or (children >= count).any():
            raise PositionError(
                f"a node leads to one before it or beyond the {count} nodes; order nodes from root to leaves"
            )
