"""Overlapping windows as a further axis: a view whose new axis has the stride of the axis it slides along."""

from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import Spec
from cgraph.kernels.kernel import View
from cgraph.ops.leaf import as_node
from cgraph.ops.pad import pad
from cgraph.ops.shape import ViewOp, axis_of, moveaxis, reshape


class Sliding(ViewOp):
    """``out[..., i, ..., j] = x[..., i + j, ...]``: all windows of `length` along an axis, as the last axis."""

    axis: int
    length: int

    def infer(self, x: Spec) -> Spec:
        n = x.shape[self.axis]
        if not 0 < self.length <= n:
            raise ShapeError(f"windows of {self.length} do not fit an axis of {n}; pass a length from 1 to {n}")
        shape = (*x.shape[: self.axis], n - self.length + 1, *x.shape[self.axis + 1 :], self.length)
        return Spec(shape, x.dtype)

    def meaning(self, x):
        return np.lib.stride_tricks.sliding_window_view(x, self.length, self.axis)

    def alias(self, x: View) -> View:
        shape = self.infer(Spec(x.shape, np.dtype(bool))).shape
        return View(x.at, shape, (*x.strides, x.strides[self.axis]), x.dtype)

    def grad(self, node, g):
        """Shift row j of ``[..., j, i]`` by j, by viewing padded rows as rows shorter by one, then sum the rows."""
        n = node.operands[0].shape[self.axis]
        rows = moveaxis(moveaxis(g, self.axis, -1), -2, -2)  # [..., j, i]
        rows = pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, self.length)])  # rows of n + 1
        flat = reshape(rows, (*rows.shape[:-2], self.length * (n + 1)))[..., : self.length * n]
        sums = reshape(flat, (*flat.shape[:-1], self.length, n)).sum(-2)
        return (moveaxis(sums, -1, self.axis),)


@public
def sliding(x: Any, length: int, axis: int = -1) -> Node:
    """Return every window of `length` elements along an axis, as a new last axis."""
    x = as_node(x)
    return apply(Sliding(axis_of(axis, x.ndim), int(length)), x)
