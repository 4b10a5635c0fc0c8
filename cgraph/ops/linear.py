"""Matrix products, and functions built from them: dot, outer, tensordot, kron.

Transposes are free: the product reads operands of any strides.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import product as every
from math import prod
from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.gemm.matmul_calls import matmul_calls, matmul_nbytes
from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.move.calls import fill_calls
from cgraph.kernels.target import Target
from cgraph.ops.arithmetic import multiply
from cgraph.ops.complex import complex, conj, imag, real
from cgraph.ops.family import common_dtype, real_dtype
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import broadcast_to, distinct_axes, expand_dims, ravel, reshape, swapaxes, transpose

MATRIX_AXES = 2


class Matmul(Op):
    """Products of matrices: ``out[..., i, j] = sum over k of x[..., i, k] * y[..., k, j]``.

    Operands
        x, y: ``[..., m, k]`` and ``[..., k, n]`` of one dtype and the same leading axes
    Result
        ``[..., m, n]`` of that dtype; integers wrap
    Raises
        ShapeError: k or the leading axes differ
    """

    is_layer = True

    def infer(self, x: Spec, y: Spec) -> Spec:
        if x.dtype != y.dtype or x.dtype.kind == "b":
            raise DTypeError(f"operands are {x.dtype} and {y.dtype}; use astype to give them one dtype of numbers")
        if x.ndim < 2 or y.ndim != x.ndim or x.shape[:-2] != y.shape[:-2]:
            raise ShapeError(f"operands {x} and {y} must be matrices with equal leading axes; broadcast them first")
        if x.shape[-1] != y.shape[-2]:
            raise ShapeError(f"x has {x.shape[-1]} columns, y has {y.shape[-2]} rows; transpose or reshape one of them")
        return Spec((*x.shape[:-1], y.shape[-1]), x.dtype)

    def meaning(self, x, y):
        return np.matmul(x, y)

    def work(self, target: Target, x: Spec, y: Spec) -> Work:
        if x.shape[-1] == 0:
            return Work(lambda out, x, y: fill_calls(target, out, 0), strided=True)
        nbytes = workspace_nbytes(target, x.shape, y.shape, code_of(x.dtype))
        return Work(partial(matmul_calls, target), nbytes, strided=True, exact=partial(matmul_nbytes, target))

    def row_rule(self, x: Spec, y: Spec) -> RowRule | None:
        return RowRule((0,) if x.ndim == MATRIX_AXES else (0, 1), lambda rows: self)

    def multiply_adds(self, x: Spec, y: Spec) -> int:
        return x.size * y.shape[-1]

    def grad(self, node, g):
        x, y = node.operands
        return apply(self, g, swapaxes(y, -1, -2)), apply(self, swapaxes(x, -1, -2), g)


@lru_cache(maxsize=4096)
def workspace_nbytes(target: Target, x: tuple[int, ...], y: tuple[int, ...], code: str, adds: bool = False) -> int:
    """Return bytes that suffice for a product of these shapes, whatever the strides of the operands."""
    if prod(x) == 0 or prod(y) == 0:
        return 0
    m, n, most = x[-2], y[-1], 0
    for count, left, right, spread in every(runs(x[:-2]), LAYOUTS, LAYOUTS, (False, True)):
        a = laid_out((count, *x[-2:]), left, code, False)
        b = laid_out((count, *y[-2:]), right, code, spread)
        out = laid_out((count, m, n), "rows", code, False)
        most = max(most, matmul_nbytes(target, out, a, b, adds=adds))
    return most


LAYOUTS = ("rows", "columns", "apart")


def runs(batch: tuple[int, ...]) -> list[int]:
    """Return the possible numbers of products in one group: the sizes of runs of batch axes."""
    return sorted({prod(batch[i:j]) for i in range(len(batch) + 1) for j in range(i, len(batch) + 1)})


def laid_out(shape: tuple[int, ...], layout: str, code: str, spread: bool) -> View:
    """Return a view of matrices with contiguous rows or columns, or neither; with `spread`, all are one matrix."""
    _, m, n = shape
    size = int(code[1:])
    row, column = {"rows": (n, 1), "columns": (1, m), "apart": (2 * n, 2)}[layout]
    batch = 0 if spread else m * row if layout != "columns" else m * n
    return View(Pointer(None), shape, (batch * size, row * size, column * size), code)


@public
def matmul(x: Any, y: Any) -> Node:
    """Return the matrix product ``x @ y``.

    Leading axes broadcast. A vector is a row on the left and a column on the right, as in NumPy.

    Raises
        ShapeError: the inner dimensions differ, or an operand has rank 0
    """
    dtype = common_dtype(x, y)
    if dtype.kind == "c":
        return product_of_parts(as_node(x), as_node(y), dtype)
    x, y = (as_node(v, dtype).astype(dtype) for v in (x, y))
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(f"matmul of {x.name} {x.spec} and {y.name} {y.spec} needs axes; multiply by a number with *")
    if dtype.kind == "b":
        return matmul(x.astype("int64"), y.astype("int64")).astype(bool)
    left = x if x.ndim > 1 else expand_dims(x, 0)
    right = y if y.ndim > 1 else expand_dims(y, 1)
    if left.shape[-1] == right.shape[-2]:
        batch = leading_shape(x, y)
        left = broadcast_to(left, (*batch, *left.shape[-2:]))
        right = broadcast_to(right, (*batch, *right.shape[-2:]))
    else:
        left, right = (left, right) if left.ndim == right.ndim else (x, y)
    product = apply(Matmul(), left, right)
    rows, columns = (left.shape[-2],) * (x.ndim > 1), (right.shape[-1],) * (y.ndim > 1)
    return reshape(product, (*product.shape[:-2], *rows, *columns))


def product_of_parts(x: Node, y: Node, dtype: np.dtype) -> Node:
    """Return the product of complex matrices from products of their parts: four, or two if one operand is real."""
    whole = [v.astype(dtype if v.dtype.kind == "c" else real_dtype(dtype)) for v in (x, y)]
    (a, b), (c, d) = ([real(v), imag(v)] if v.dtype.kind == "c" else [v, None] for v in whole)
    if b is None:
        return complex(matmul(a, c), matmul(a, d))
    if d is None:
        return complex(matmul(a, c), matmul(b, c))
    return complex(matmul(a, c) - matmul(b, d), matmul(a, d) + matmul(b, c))


def leading_shape(x: Node, y: Node) -> tuple[int, ...]:
    """Return the broadcast shape of the axes before the matrices."""
    try:
        return np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise ShapeError(
            f"leading axes of {x.name} {x.spec} and {y.name} {y.spec} do not broadcast; use equal lengths or 1"
        ) from None


@public
def dot(x: Any, y: Any) -> Node:
    """Sum products over the last axis of x and the second last (or only) axis of y, as ``np.dot``."""
    x, y = as_node(x), as_node(y)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    if x.ndim <= 2 and y.ndim <= 2:
        return matmul(x, y)
    return tensordot(x, y, ((x.ndim - 1,), (max(y.ndim - 2, 0),)))


@public
def inner(x: Any, y: Any) -> Node:
    """Sum products over the last axis of both operands, as ``np.inner``."""
    x, y = as_node(x), as_node(y)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    return tensordot(x, y, ((x.ndim - 1,), (y.ndim - 1,)))


@public
def vdot(x: Any, y: Any) -> Node:
    """Sum the products of all elements, with those of x conjugated."""
    return matmul(conj(ravel(x)), ravel(y))


@public
def outer(x: Any, y: Any) -> Node:
    """Multiply every element of x by every element of y: ``[x.size, y.size]``."""
    return multiply(expand_dims(ravel(x), 1), expand_dims(ravel(y), 0))


@public
def tensordot(x: Any, y: Any, axes: int | tuple[Sequence[int] | int, Sequence[int] | int] = 2) -> Node:
    """Sum products over pairs of axes: `axes` of x and of y, or the last n of x and the first n of y."""
    x, y = as_node(x), as_node(y)
    if isinstance(axes, int):
        axes = (range(x.ndim - axes, x.ndim), range(axes))
    over_x, over_y = (distinct_axes(np.atleast_1d(a).tolist(), v.ndim) for a, v in zip(axes, (x, y), strict=True))
    if [x.shape[a] for a in over_x] != [y.shape[a] for a in over_y]:
        raise ShapeError(
            f"{x.name} {x.spec} over {[*over_x]} and {y.name} {y.spec} over {[*over_y]} differ; pass other axes="
        )
    rest_x = [a for a in range(x.ndim) if a not in over_x]
    rest_y = [a for a in range(y.ndim) if a not in over_y]
    k = prod(x.shape[a] for a in over_x)
    left = reshape(transpose(x, (*rest_x, *over_x)), (prod(x.shape[a] for a in rest_x), k))
    right = reshape(transpose(y, (*over_y, *rest_y)), (k, prod(y.shape[a] for a in rest_y)))
    return reshape(matmul(left, right), (*(x.shape[a] for a in rest_x), *(y.shape[a] for a in rest_y)))


@public
def kron(x: Any, y: Any) -> Node:
    """Return the Kronecker product: every element of x times the whole of y."""
    x, y = as_node(x), as_node(y)
    ndim = max(x.ndim, y.ndim)
    xs, ys = (1,) * (ndim - x.ndim) + x.shape, (1,) * (ndim - y.ndim) + y.shape
    left = reshape(x, tuple(n for a in xs for n in (a, 1)))
    right = reshape(y, tuple(n for b in ys for n in (1, b)))
    return reshape(left * right, tuple(a * b for a, b in zip(xs, ys)))
