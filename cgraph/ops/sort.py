"""Sorting along an axis, top k, binary search, distinct values. All sorts are stable; NaN comes last."""

from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.sort.calls import search_calls, sort_calls, sort_nbytes, unique_calls, unique_nbytes
from cgraph.kernels.target import Target
from cgraph.ops.compare import isnan
from cgraph.ops.complex import imag, real
from cgraph.ops.family import common_dtype
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import axis_of, items, ravel, zeros_like
from cgraph.ops.take import PutAlongAxis, take_along_axis

INDEX = np.dtype("int64")


def order_of(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Return the sorting indices: equal elements keep their order, NaN comes last."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    turned = np.argsort(np.flip(x, axis), axis, kind="stable")
    order = x.shape[axis] - 1 - np.flip(turned, axis)
    if x.dtype.kind != "f":
        return order
    nan = np.isnan(np.take_along_axis(x, order, axis))
    return np.take_along_axis(order, np.argsort(nan, axis, kind="stable"), axis)


class TopK(Op):
    """The first `count` elements in sorted order along an axis, and their indices (int64)."""

    axis: int
    count: int
    descending: bool

    def infer(self, x: Spec) -> Bundle:
        if not 0 <= self.count <= x.shape[self.axis]:
            raise ShapeError(
                f"k={self.count} of {x.shape[self.axis]} elements along axis {self.axis}; pass k within that length"
            )
        shape = (*x.shape[: self.axis], self.count, *x.shape[self.axis + 1 :])
        return Bundle((Spec(shape, x.dtype), Spec(shape, INDEX)))

    def meaning(self, x):
        indices = np.take(order_of(x, self.axis, self.descending), range(self.count), self.axis)
        return np.take_along_axis(x, indices, self.axis), indices

    def work(self, target: Target, x: Spec) -> Work:
        def calls(out: tuple[View, View], x: View, workspace: View | None = None) -> list[Call]:
            return sort_calls(target, *out, x, self.axis, workspace, self.descending)

        nbytes = sort_nbytes(target, x.shape, self.axis, code_of(x.dtype), code_of(INDEX), self.count)
        return Work(calls, nbytes, strided=True)

    def grad(self, node, g):
        x = node.operands[0]
        return (apply(PutAlongAxis(self.axis, "set"), zeros_like(x), items(node)[1], g[0]),)


class Sort(Op):
    """Elements in sorted order along an axis."""

    axis: int
    descending: bool

    def infer(self, x: Spec) -> Spec:
        return x

    def meaning(self, x):
        return np.take_along_axis(x, order_of(x, self.axis, self.descending), self.axis)

    def work(self, target: Target, x: Spec) -> Work:
        def calls(out: View, x: View, workspace: View | None = None) -> list[Call]:
            return sort_calls(target, out, None, x, self.axis, workspace, self.descending)

        return Work(calls, sort_nbytes(target, x.shape, self.axis, code_of(x.dtype), ""), strided=True)

    def grad(self, node, g):
        x = node.operands[0]
        indices = apply(Argsort(self.axis, self.descending), x)
        return (apply(PutAlongAxis(self.axis, "set"), zeros_like(x), indices, g),)


class Argsort(Sort):
    """The indices (int64) that sort the elements along an axis; equal ones keep their order."""

    def infer(self, x: Spec) -> Spec:
        return Spec(x.shape, INDEX)

    def meaning(self, x):
        return order_of(x, self.axis, self.descending)

    def work(self, target: Target, x: Spec) -> Work:
        def calls(out: View, x: View, workspace: View | None = None) -> list[Call]:
            return sort_calls(target, None, out, x, self.axis, workspace, self.descending)

        return Work(calls, sort_nbytes(target, x.shape, self.axis, code_of(x.dtype), code_of(INDEX)), strided=True)

    def grad(self, node, g):
        return (None,)


class Searchsorted(Op):
    """Insertion indices of values into an ascending row, as ``np.searchsorted``.

    Operands
        row: ascending ``[n]``, NaN last
        values: of the same dtype
    Fields
        right: insert after equal elements, else before them
    """

    right: bool

    def infer(self, row: Spec, values: Spec) -> Spec:
        if row.ndim != 1 or row.dtype != values.dtype:
            raise ShapeError(
                f"row {row} and values {values} do not fit; the row must have one axis and the dtype of the values"
            )
        return Spec(values.shape, INDEX)

    def meaning(self, row, values):
        return np.searchsorted(row, values, "right" if self.right else "left")

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(lambda out, row, values: search_calls(target, out, row, values, self.right), strided=True)

    def grad(self, node, g):
        return None, None


class Unique(Op):
    """The distinct elements in ascending order, at most `size`, padded with `fill`; and their number (int64)."""

    size: int
    fill: float | int | bool

    def infer(self, x: Spec) -> Bundle:
        return Bundle((Spec((self.size,), x.dtype), Spec((), INDEX)))

    def meaning(self, x):
        values = np.unique(x)
        out = np.full(self.size, self.fill, x.dtype)
        out[: len(values)] = values[: self.size]
        return out, np.array(len(values))

    def work(self, target: Target, x: Spec) -> Work:
        def calls(out: tuple[View, View], x: View, workspace: View | None = None) -> list[Call]:
            return unique_calls(target, *out, x, workspace, self.fill)

        return Work(calls, unique_nbytes(target, x.size, code_of(x.dtype)), strided=True)


# -- public functions -------------------------------------------------------------------------------------------------


def flat_or(x: Any, axis: int | None) -> tuple[Node, int]:
    """Return the operand and a non-negative axis; the flattened operand if the axis is None."""
    x = as_node(x)
    return (ravel(x), 0) if axis is None else (x, axis_of(axis, x.ndim))


@public
def sort(x: Any, axis: int | None = -1, *, kind: Any = None, stable: Any = None, descending: bool = False) -> Node:
    """Sort the elements along an axis, as ``np.sort``; always stable, NaN last."""
    x, axis = flat_or(x, axis)
    if x.dtype.kind == "c":
        return take_along_axis(x, complex_order(x, axis, descending), axis)
    return apply(Sort(axis, descending), x)


@public
def argsort(x: Any, axis: int | None = -1, *, kind: Any = None, stable: Any = None, descending: bool = False) -> Node:
    """Return the indices that sort the elements along an axis, as ``np.argsort``; always stable, NaN last."""
    x, axis = flat_or(x, axis)
    if x.dtype.kind == "c":
        return complex_order(x, axis, descending)
    return apply(Argsort(axis, descending), x)


def complex_order(x: Node, axis: int, descending: bool) -> Node:
    """Sort by real, then imaginary parts; last come NaN imaginary parts, then NaN real parts, then both."""
    missing = isnan(real(x)).astype("int8") * 2 + isnan(imag(x)).astype("int8")
    order = apply(Argsort(axis, descending), imag(x))
    for key, falls in ((real(x), descending), (missing, False)):
        order = take_along_axis(order, apply(Argsort(axis, falls), take_along_axis(key, order, axis)), axis)
    return order


@public
def top_k(x: Any, k: int, axis: int = -1, largest: bool = True) -> tuple[Node, Node]:
    """Return the k largest (or smallest) elements along an axis in sorted order, and their indices."""
    x = as_node(x)
    values, indices = items(apply(TopK(axis_of(axis, x.ndim), int(k), largest), x))
    return values, indices


@public
def searchsorted(row: Any, values: Any, side: str = "left") -> Node:
    """Return insertion indices of values into an ascending row, ``left`` or ``right`` of equal elements."""
    if side not in ("left", "right"):
        raise ShapeError(f"side={side!r} is unknown; use 'left' or 'right'")
    dtype = common_dtype(row, values)
    row, values = (as_node(v, dtype).astype(dtype) for v in (row, values))
    return apply(Searchsorted(side == "right"), row, values)


@public
def digitize(x: Any, bins: Any, right: bool = False) -> Node:
    """Return the index of the interval between ascending `bins` that contains each element, as ``np.digitize``."""
    return searchsorted(bins, x, "left" if right else "right")


@public
def unique(x: Any, size: int, fill: float | int | bool = 0) -> tuple[Node, Node]:
    """Return the distinct elements in ascending order, at most `size`, padded with `fill`; and their number."""
    x = as_node(x)
    values, count = items(apply(Unique(int(size), fill), x))
    return values, count
