"""Decision trees: for each row of numbers and each tree, the leaf that its questions lead to."""

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

PLACES = np.dtype("int32")


class TreeLeaves(Op):
    """The leaf that each tree sends each row to.

    Operands
        x: floats ``[n, columns]``
        roots: int32 ``[trees]``, the first node of each
        features, thresholds, below, above: of each node, as in `tree_leaves`; their places are known to be right
        kinds: uint8, EQUAL and MISSING of each node; none of either when it is left out
    Result
        int32 ``[n, trees]``
    """

    def infer(self, x: Spec, roots: Spec, features: Spec, thresholds: Spec, *rest: Spec) -> Spec:
        if x.dtype.kind != "f" or thresholds.dtype != x.dtype:
            raise DTypeError("rows and thresholds must be floats of one dtype")
        if any(spec.dtype != PLACES for spec in (roots, features, *rest[:2])):
            raise DTypeError("roots, features, below and above must be int32")
        if len(x.shape) != 2 or any(spec.shape != features.shape for spec in (thresholds, *rest)):
            raise ShapeError("rows must be [n, columns], and what is said of each node [nodes]")
        return Spec((x.shape[0], *roots.shape), PLACES)

    def meaning(self, x, roots, features, thresholds, below, above, kinds=None):
        nodes = np.broadcast_to(roots, (len(x), len(roots))).copy()
        rows = np.arange(len(x))[:, None]
        kinds = np.zeros(len(features), np.uint8) if kinds is None else kinds
        while nodes.size and (inside := features[nodes] >= 0).any():
            number, limit, kind = x[rows, features[nodes]], thresholds[nodes], kinds[nodes]
            is_below = np.where(kind & EQUAL, number == limit, number <= limit)
            is_below |= np.isnan(number) & (kind & MISSING > 0)
            nodes = np.where(inside, np.where(is_below, below[nodes], above[nodes]), nodes)
        return nodes.astype(PLACES)

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
    """The leaf that each decision tree sends each row to, as an int32 node's number ``[n, trees]``.

    A row whose number in a node's column is at most the threshold goes on below; any other, NaN too, above.

    Parameters
        x: rows ``[n, columns]``
        roots: the first node of each tree
        features: of each node the column that it looks at; -1 at a leaf
        thresholds: of each node, in the dtype of x; of a leaf anything
        below, above: of each node where to go from there; of a leaf anything
        equal: of each node, whether it asks if the number is the threshold
        missing: of each node, whether NaN goes below
    Raises
        PositionError: a column or a node is not there, or a node does not come before those that it leads to
    """
    x = as_node(x)
    tables = [np.asarray(table, PLACES) for table in (roots, features, below, above)]
    roots, features, below, above = tables
    check_trees(roots, features, below, above, x.shape[-1])
    flags = np.zeros(len(features), np.uint8)
    for flagged, flag in ((equal, EQUAL), (missing, MISSING)):
        if flagged is not None:
            flags |= np.where(np.asarray(flagged, bool), flag, 0).astype(np.uint8)
    operands = (roots, features, np.asarray(thresholds, x.dtype), below, above, *([flags] if flags.any() else []))
    return apply(TreeLeaves(), x, *map(Const, operands))


def check_trees(roots: np.ndarray, features: np.ndarray, below: np.ndarray, above: np.ndarray, columns: int) -> None:
    """PositionError unless every walk stays within rows and nodes, and comes to an end."""
    count = len(features)
    inside = np.flatnonzero(features >= 0)
    if features.size and features.max() >= columns:
        raise PositionError(f"a tree looks at column {features.max()}; rows have {columns}")
    if roots.size and not (roots.min() >= 0 and roots.max() < count):
        raise PositionError(f"the first node of a tree is outside its {count} nodes")
    for places in (below[inside], above[inside]):
        if (places <= inside).any() or (places >= count).any():
            raise PositionError(f"a node must lead to one that stands behind it, within {count} nodes")
