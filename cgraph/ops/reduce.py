"""Reductions over any axes: sums, products, extremes and their indices, logic; means and variances.

An op drops the axes it reduces; `keepdims` restores them with length 1, which moves no bytes. Dtypes are NumPy's:
integers and bool are summed in 64 bits, and their mean is float64.
"""

from collections.abc import Sequence
from functools import partial
from math import prod as product
from typing import Any, ClassVar

import numpy as np

from cgraph.dtypes.convert import code_of, computing_dtype, dtype_of_code
from cgraph.errors import ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.row_rule import RowRule, rows_of_all
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.expression import Program, Trace
from cgraph.kernels.reduce.calls import reduce_calls, reduce_nbytes
from cgraph.kernels.target import Target
from cgraph.kernels.views.timing import task_elements
from cgraph.ops.arithmetic import square
from cgraph.ops.compare import equal, isnan, where
from cgraph.ops.complex import imag, real
from cgraph.ops.elementary import root_of_squares
from cgraph.ops.family import quotient_dtype
from cgraph.ops.join import concat
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import axes_of, broadcast_to, expand_dims, reshape, transpose, zeros
from cgraph.ops.take import take_along_axis

Axis = int | Sequence[int] | None


class Reduction(Op):
    """Base of ops that reduce all elements along `axes` to one."""

    axes: tuple[int, ...]
    kind: ClassVar[str] = ""
    numpy: ClassVar[Any] = None

    def dtype(self, dtype: np.dtype) -> np.dtype:
        """Return the result's dtype from the operand's."""
        return dtype

    def infer(self, x: Spec) -> Spec:
        if self.kind in ("min", "max", "argmin", "argmax") and 0 in [x.shape[a] for a in self.axes]:
            raise ShapeError(
                f"{self.kind} of {x} along axes {list(self.axes)} has no elements; use other axes or pad the operand"
            )
        return Spec(tuple(n for i, n in enumerate(x.shape) if i not in self.axes), self.dtype(x.dtype))

    def meaning(self, x):
        return type(self).numpy(x, axis=self.axes)

    def program(self, code: str) -> Program:
        """Return the reduced expression of one element of the operand."""
        m = Trace()
        return m.program(m.cast(m.load(0, code), code_of(self.dtype(dtype_of_code(code)))))

    def row_rule(self, x: Spec) -> RowRule | None:
        return None if 0 in self.axes else rows_of_all(self, x.shape)

    def work(self, target: Target, x: Spec) -> Work:
        return self.work_of(target, self.program(code_of(x.dtype)), x.shape)

    def work_of(self, target: Target, program: Program, shape: tuple[int, ...]) -> Work:
        """Return the reduction of the results of `program` over elements of the operands, all of one shape."""
        part = task_elements(program)
        nbytes = reduce_nbytes(self.kind, program[-1][1], shape, self.axes, part)
        calls = partial(reduce_calls, target, self.kind, program, axes=self.axes, part=part)
        return Work(calls, nbytes, strided=True)


def sum_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which values are summed: 64 bits for integers and bool."""
    dtype = computing_dtype(dtype)
    return dtype if dtype.kind in "fc" else np.dtype("uint64" if dtype.kind == "u" else "int64")


def repeat_along(g: Node, axes: tuple[int, ...], shape: tuple[int, ...]) -> Node:
    """Repeat `g`, which lacks `axes`, along them."""
    return broadcast_to(reshape(g, keepdims_shape(shape, axes)), shape)


def keepdims_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape` with length 1 along `axes`."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


class Sum(Reduction):
    """The sum along axes."""

    takes_complex = True

    kind, numpy = "sum", staticmethod(np.sum)

    def dtype(self, dtype: np.dtype) -> np.dtype:
        return sum_dtype(dtype)

    def grad(self, node, g):
        return (repeat_along(g, self.axes, node.operands[0].shape),)


class Prod(Reduction):
    """The product along axes."""

    takes_complex = True

    kind, numpy = "prod", staticmethod(np.prod)

    def dtype(self, dtype: np.dtype) -> np.dtype:
        return sum_dtype(dtype)

    def grad(self, node, g):
        x = node.operands[0]
        order = [i for i in range(x.ndim) if i not in self.axes] + list(self.axes)
        flat = reshape(x.transpose(order), (*node.shape, product(x.shape[a] for a in self.axes)))
        to_x = reshape(product_gradient(flat, g), tuple(x.shape[a] for a in order))
        return (to_x.transpose(np.argsort(order).tolist()),)


def product_gradient(x: Node, g: Node) -> Node:
    """Return the gradient of the product along the last axis by pairwise products: no division, valid at zeros."""
    if x.size == 0:
        return x
    levels = []
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        levels.append((x[..., :half], x[..., half : 2 * half], x.shape[-1] % 2))
        rest = [x[..., 2 * half :]] if x.shape[-1] % 2 else []
        x = concat([levels[-1][0] * levels[-1][1], *rest], -1)
    g = expand_dims(g, -1)
    for left, right, odd in reversed(levels):
        pairs = g[..., : left.shape[-1]]
        g = concat([pairs * right, pairs * left, *([g[..., -1:]] if odd else [])], -1)
    return g


class Extreme(Reduction):
    """Base of minimum and maximum along axes; NaN if an element is NaN."""

    def grad(self, node, g):
        x = node.operands[0]
        ties = equal(x, repeat_along(node, self.axes, x.shape)).astype(x.dtype)
        share = g / sum(ties, self.axes)
        return (repeat_along(share, self.axes, x.shape) * ties,)


class Min(Extreme):
    """The smallest element along axes; NaN if one is NaN."""

    kind, numpy = "min", staticmethod(np.min)


class Max(Extreme):
    """The largest element along axes; NaN if one is NaN."""

    kind, numpy = "max", staticmethod(np.max)


class Logic(Reduction):
    """Base of reductions of ``x != 0`` to bool."""

    def dtype(self, dtype: np.dtype) -> np.dtype:
        return np.dtype(bool)


class Any_(Logic):
    """True if any element along the axes is not 0."""

    kind, numpy, name = "any", staticmethod(np.any), "any"


class All_(Logic):
    """True if no element along the axes is 0."""

    kind, numpy, name = "all", staticmethod(np.all), "all"


class ExtremeIndex(Reduction):
    """The index of an extreme in C order over the axes: the first of equal ones; the first NaN if there is one."""

    def infer(self, x: Spec) -> Spec:
        return Spec(super().infer(x).shape, np.dtype("int64"))

    def meaning(self, x):
        rest = [i for i in range(x.ndim) if i not in self.axes]
        count = product(x.shape[i] for i in self.axes)
        flat = x.transpose(*rest, *self.axes).reshape(*(x.shape[i] for i in rest), count)
        return type(self).numpy(flat, axis=-1)


class Argmin(ExtremeIndex):
    """The index of the smallest element along axes."""

    kind, numpy = "argmin", staticmethod(np.argmin)


class Argmax(ExtremeIndex):
    """The index of the largest element along axes."""

    kind, numpy = "argmax", staticmethod(np.argmax)


# -- public functions -------------------------------------------------------------------------------------------------


def reduce_node(op: type[Reduction], x: Any, axis: Axis, keepdims: bool) -> Node:
    """Return the node of a reduction; over no axes, the operand in the result's dtype."""
    x = as_node(x)
    axes = axes_of(axis, x.ndim)
    reduction = op(axes)
    if x.dtype.kind == "c" and issubclass(op, Logic):
        x = x.astype(bool)
    y = apply(reduction, x) if axes else x.astype(reduction.infer(x.spec).dtype)
    return reshape(y, keepdims_shape(x.shape, axes)) if keepdims else y


def total_node(op: type[Reduction], x: Any, axis: Axis, dtype: Any, keepdims: bool) -> Node:
    """Return a sum or product in the requested dtype; narrow integers wrap at the end, with the same result."""
    if dtype is None:
        return reduce_node(op, x, axis, keepdims)
    return reduce_node(op, as_node(x).astype(dtype), axis, keepdims).astype(dtype)


@public
def sum(x: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Node:
    """Sum along axes, all by default; integers are summed in 64 bits."""
    return total_node(Sum, x, axis, dtype, keepdims)


@public
def prod(x: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Node:
    """Multiply along axes, all by default; integers are multiplied in 64 bits."""
    return total_node(Prod, x, axis, dtype, keepdims)


@public
def min(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    """Return the smallest element along axes, all by default. ShapeError if there is none."""
    return extreme_node(Min, x, axis, keepdims)


@public
def max(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    """Return the largest element along axes, all by default. ShapeError if there is none."""
    return extreme_node(Max, x, axis, keepdims)


def extreme_node(op: type[Extreme], x: Any, axis: Axis, keepdims: bool) -> Node:
    """Return an extreme; complex numbers compare by real, then imaginary part, and NaN precedes all."""
    x = as_node(x)
    if x.dtype.kind != "c":
        return reduce_node(op, x, axis, keepdims)
    axes = axes_of(axis, x.ndim)
    rest = [i for i in range(x.ndim) if i not in axes]
    shape = tuple(x.shape[i] for i in rest)
    flat = reshape(transpose(x, (*rest, *axes)), (*shape, count(x, axes)))
    index = reduce_node(Argmax, is_extreme(op, flat, (len(rest),)), -1, keepdims=True)
    return reshape(take_along_axis(flat, index, -1), keepdims_shape(x.shape, axes) if keepdims else shape)


def is_extreme(op: type[Extreme], x: Node, axes: tuple[int, ...]) -> Node:
    """Return True for complex numbers that are extreme along axes: the NaN ones, if there are any."""
    least = -np.inf if op is Max else np.inf

    def best(part: Node) -> Node:
        return equal(part, repeat_along(apply(op(axes), part), axes, x.shape))

    first = best(real(x))
    best_of_both, missing = first & best(where(first, imag(x), least)), isnan(x)
    return where(repeat_along(any(missing, axes), axes, x.shape), missing, best_of_both)


@public
def any(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    """Return True if any element along the axes is not 0."""
    return reduce_node(Any_, x, axis, keepdims)


@public
def all(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    """Return True if no element along the axes is 0."""
    return reduce_node(All_, x, axis, keepdims)


@public
def argmin(x: Any, axis: int | None = None, *, keepdims: bool = False) -> Node:
    """Return the index of the smallest element along an axis; of the flattened operand by default."""
    return index_node(Argmin, x, axis, keepdims)


@public
def argmax(x: Any, axis: int | None = None, *, keepdims: bool = False) -> Node:
    """Return the index of the largest element along an axis; of the flattened operand by default."""
    return index_node(Argmax, x, axis, keepdims)


def index_node(op: type[ExtremeIndex], x: Any, axis: int | None, keepdims: bool) -> Node:
    """Return the node of the index of an extreme."""
    x = as_node(x)
    if x.ndim == 0:
        axes_of(axis, 1)  # as in NumPy, an operand without axes has one here
        return zeros((), "int64")
    if x.dtype.kind == "c":
        op, x = Argmax, is_extreme(Max if op is Argmax else Min, x, axes_of(axis, x.ndim))
    return reduce_node(op, x, axis, keepdims)


def count(x: Node, axis: Axis) -> int:
    """Return the number of elements that are reduced to one."""
    return product(x.shape[a] for a in axes_of(axis, x.ndim))


@public
def mean(x: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Node:
    """Return the mean along axes, all by default; float64 for integers, NaN if there are no elements."""
    x = as_node(x)
    x = x.astype(dtype or quotient_dtype(x.dtype))
    total = sum(x, axis, keepdims=keepdims)
    return total / np.asarray(count(x, axis), x.dtype)


@public
def var(x: Any, axis: Axis = None, *, ddof: int = 0, keepdims: bool = False) -> Node:
    """Return the variance along axes: the sum of squared distances from the mean, over the count minus `ddof`."""
    x = as_node(x)
    x = x.astype(quotient_dtype(x.dtype))
    total = sum(squared_size(x - mean(x, axis, keepdims=True)), axis, keepdims=keepdims)
    left = count(x, axis) - ddof
    return total / np.asarray(left if left > 0 else 0, total.dtype)


def squared_size(x: Node) -> Node:
    """Return the square of the absolute value, a real number."""
    return square(real(x)) + square(imag(x)) if x.dtype.kind == "c" else square(x)


@public
def std(x: Any, axis: Axis = None, *, ddof: int = 0, keepdims: bool = False) -> Node:
    """Return the standard deviation along axes; its gradient is 0 where it is 0."""
    return root_of_squares(var(x, axis, ddof=ddof, keepdims=keepdims))


@public
def count_nonzero(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    """Return the number of nonzero elements along axes."""
    return sum(as_node(x).astype(bool), axis, keepdims=keepdims)


@public
def ptp(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Node:
    """Return the largest minus the smallest element along axes."""
    return max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims)
