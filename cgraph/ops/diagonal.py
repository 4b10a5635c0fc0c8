"""Triangles and diagonals of matrices, by default over the last two axes."""

from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.index.calls import triangle_calls
from cgraph.kernels.kernel import View
from cgraph.kernels.target import Target
from cgraph.ops.leaf import Const, as_node
from cgraph.ops.shape import ViewOp, axis_of, moveaxis, reshape, zeros
from cgraph.ops.slicing import set_slice


class Triangle(Op):
    """The elements on one side of a diagonal, the diagonal included; zeros on the other side.

    Fields
        offset: the diagonal; 0 is the main one, positive ones are above it
        upper: keep the elements above, else those below
    """

    takes_complex = True

    offset: int
    upper: bool

    def infer(self, x: Spec) -> Spec:
        if x.ndim < 2:
            raise ShapeError(f"the operand {x} has {x.ndim} axes, but needs at least two; use expand_dims or diag")
        return x

    def meaning(self, x):
        return np.triu(x, self.offset) if self.upper else np.tril(x, self.offset)

    def work(self, target: Target, x: Spec) -> Work:
        return Work(
            lambda out, x: triangle_calls(target, out, x, self.offset, self.upper), overwrites=(0,), strided=True
        )

    def grad(self, node, g):
        return (apply(self, g),)


class Diagonal(ViewOp):
    """The elements of a diagonal of the last two axes, as one axis."""

    offset: int

    def place(self, shape: tuple[int, ...]) -> tuple[int, int, int]:
        """Return the row and column of the first element, and the number of elements."""
        row, column = max(-self.offset, 0), max(self.offset, 0)
        return row, column, max(min(shape[-2] - row, shape[-1] - column), 0)

    def infer(self, x: Spec) -> Spec:
        if x.ndim < 2:
            raise ShapeError(f"the operand {x} has {x.ndim} axes, but needs at least two; use expand_dims or diag")
        return Spec((*x.shape[:-2], self.place(x.shape)[2]), x.dtype)

    def meaning(self, x):
        return np.diagonal(x, self.offset, -2, -1)

    def alias(self, x: View) -> View:
        row, column, n = self.place(x.shape)
        offset = row * x.strides[-2] + column * x.strides[-1] if n else 0
        return View(x.at + offset, (*x.shape[:-2], n), (*x.strides[:-2], x.strides[-2] + x.strides[-1]), x.dtype)

    def grad(self, node, g):
        return (place_diagonal(g, node.operands[0].shape[-2:], self),)


def place_diagonal(values: Node, shape: tuple[int, int], op: Diagonal) -> Node:
    """Return zeros ``[..., *shape]`` with `values` on a diagonal."""
    row, column, n = op.place(shape)
    rows, columns = shape
    flat = zeros((*values.shape[:-1], rows * columns), values.dtype)
    if n:
        first, step = row * columns + column, columns + 1
        flat = set_slice(flat, (..., slice(first, first + (n - 1) * step + 1, step)), values)
    return reshape(flat, (*values.shape[:-1], rows, columns))


# -- public functions -------------------------------------------------------------------------------------------------


@public
def triu(x: Any, k: int = 0) -> Node:
    """Return the elements on and above the k-th diagonal of the last two axes, zeros below."""
    return apply(Triangle(int(k), True), as_node(x))


@public
def tril(x: Any, k: int = 0) -> Node:
    """Return the elements on and below the k-th diagonal of the last two axes, zeros above."""
    return apply(Triangle(int(k), False), as_node(x))


@public
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
    """Return the elements of a diagonal of two axes as a new last axis, as ``np.diagonal``."""
    x = as_node(x)
    if x.ndim < 2 or axis_of(axis1, x.ndim) == axis_of(axis2, x.ndim):
        raise ShapeError(f"axes {axis1} and {axis2} of {x.name} {x.spec} must differ. Pass two different axes")
    return apply(Diagonal(int(offset)), moveaxis(x, (axis1, axis2), (-2, -1)))


@public
def diag(x: Any, k: int = 0) -> Node:
    """Return a square matrix with the vector `x` on its k-th diagonal, or the k-th diagonal of the matrix `x`."""
    x = as_node(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(f"{x.name} {x.spec} has {x.ndim} axes; pass a vector or a matrix, or use diagonal")
    n = x.size + np.abs(k)
    return place_diagonal(x, (int(n), int(n)), Diagonal(int(k)))


@public
def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
    """Return the sum of a diagonal of two axes, as ``np.trace``."""
    return diagonal(x, offset, axis1, axis2).sum(-1)


@public
def eye(n: int, m: int | None = None, k: int = 0, dtype: Any = "float32") -> Node:
    """Return a constant ``[n, m]`` with ones on the k-th diagonal and zeros elsewhere."""
    return Const(np.eye(n, m, k, dtype))
