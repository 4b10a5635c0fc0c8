"""Products of matrices, and all that is made of them: dot, outer, tensordot, kron.

Transposes cost nothing: the product reads operands of any strides.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import product as every
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.expression import code_of
from cgraph.kernels.gemm.matmul_calls import matmul_calls, matmul_nbytes
from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.move.calls import fill_calls
from cgraph.kernels.target import Target
from cgraph.ops.arithmetic import multiply
from cgraph.ops.complex import complex, conj, imag, real
from cgraph.ops.family import common_dtype, real_dtype
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import broadcast_to, distinct_axes, expand_dims, ravel, reshape, swapaxes, transpose


class Matmul(Op):
    """Products of matrices: ``out[..., i, j] = sum over k of x[..., i, k] * y[..., k, j]``.

    Operands
        x, y: ``[..., m, k]`` and ``[..., k, n]`` of one dtype and the same leading axes
    Result
        ``[..., m, n]`` of that dtype; whole numbers wrap
    Raises
        ShapeError: k or the leading axes differ
    """

    def infer(self, x: Spec, y: Spec) -> Spec:
        if x.dtype != y.dtype or x.dtype.kind == "b":
            raise DTypeError("the operands must be numbers of one dtype")
        if x.ndim < 2 or y.ndim != x.ndim or x.shape[:-2] != y.shape[:-2]:
            raise ShapeError("the operands must be matrices with the same leading axes")
        if x.shape[-1] != y.shape[-2]:
            raise ShapeError(f"the first has {x.shape[-1]} columns, the second {y.shape[-2]} rows")
        return Spec((*x.shape[:-1], y.shape[-1]), x.dtype)

    def meaning(self, x, y):
        return np.matmul(x, y)

    def work(self, target: Target, x: Spec, y: Spec) -> Work:
        if x.shape[-1] == 0:
            return Work(lambda out, x, y: fill_calls(target, out, 0), strided=True)
        nbytes = workspace_nbytes(target, x.shape, y.shape, code_of(x.dtype))
        return Work(partial(matmul_calls, target), nbytes, strided=True, exact=partial(matmul_nbytes, target))

    def multiply_adds(self, x: Spec, y: Spec) -> int:
        return x.size * y.shape[-1]

    def grad(self, node, g):
        x, y = node.operands
        return apply(self, g, swapaxes(y, -1, -2)), apply(self, swapaxes(x, -1, -2), g)


@lru_cache(maxsize=4096)
def workspace_nbytes(target: Target, x: tuple[int, ...], y: tuple[int, ...], code: str, adds: bool = False) -> int:
    """Bytes that suffice for a product of these shapes, whatever the strides: the most over the ways they can lie."""
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
    """How many products may be one group: the sizes of runs of batch axes."""
    return sorted({prod(batch[i:j]) for i in range(len(batch) + 1) for j in range(i, len(batch) + 1)})


def laid_out(shape: tuple[int, ...], layout: str, code: str, spread: bool) -> View:
    """Matrices whose rows or columns, or neither, lie side by side; `spread`: all of them are one."""
    count, m, n = shape
    size = int(code[1:])
    row, column = {"rows": (n, 1), "columns": (1, m), "apart": (2 * n, 2)}[layout]
    batch = 0 if spread else m * row if layout != "columns" else m * n
    return View(Pointer(None), shape, (batch * size, row * size, column * size), code)


@public
def matmul(x: Any, y: Any) -> Node:
    """Product of matrices, ``x @ y``: leading axes broadcast; a vector is a row on the left, a column on the right."""
    dtype = common_dtype(x, y)
    if dtype.kind == "c":
        return product_of_parts(as_node(x), as_node(y), dtype)
    x, y = (as_node(v, dtype).astype(dtype) for v in (x, y))
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(f"{x.name} {x.spec} and {y.name} {y.spec}; multiply by a number with *")
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
    """The product of complex matrices by those of their parts: four, or two beside real matrices."""
    whole = [v.astype(dtype if v.dtype.kind == "c" else real_dtype(dtype)) for v in (x, y)]
    (a, b), (c, d) = ([real(v), imag(v)] if v.dtype.kind == "c" else [v, None] for v in whole)
    if b is None:
        return complex(matmul(a, c), matmul(a, d))
    if d is None:
        return complex(matmul(a, c), matmul(b, c))
    return complex(matmul(a, c) - matmul(b, d), matmul(a, d) + matmul(b, c))


def leading_shape(x: Node, y: Node) -> tuple[int, ...]:
    """The axes before the matrices, broadcast."""
    try:
        return np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise ShapeError(f"leading axes do not broadcast: {x.name} {x.spec}, {y.name} {y.spec}") from None


@public
def dot(x: Any, y: Any) -> Node:
    """As ``np.dot``: over the last axis of x and the last but one (or only) axis of y; with a number, the product."""
    x, y = as_node(x), as_node(y)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    if x.ndim <= 2 and y.ndim <= 2:
        return matmul(x, y)
    return tensordot(x, y, ((x.ndim - 1,), (max(y.ndim - 2, 0),)))


@public
def inner(x: Any, y: Any) -> Node:
    """The sum of products over the last axis of both, as ``np.inner``."""
    x, y = as_node(x), as_node(y)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    return tensordot(x, y, ((x.ndim - 1,), (y.ndim - 1,)))


@public
def vdot(x: Any, y: Any) -> Node:
    """The sum of products of all elements, those of x conjugate."""
    return matmul(conj(ravel(x)), ravel(y))


@public
def outer(x: Any, y: Any) -> Node:
    """Every element of x times every element of y: ``[x.size, y.size]``."""
    return multiply(expand_dims(ravel(x), 1), expand_dims(ravel(y), 0))


@public
def tensordot(x: Any, y: Any, axes: int | tuple[Sequence[int] | int, Sequence[int] | int] = 2) -> Node:
    """The sum of products over pairs of axes: `axes` of x with `axes` of y, or the last n with the first n."""
    x, y = as_node(x), as_node(y)
    if isinstance(axes, int):
        axes = (range(x.ndim - axes, x.ndim), range(axes))
    over_x, over_y = (distinct_axes(np.atleast_1d(a).tolist(), v.ndim) for a, v in zip(axes, (x, y), strict=True))
    if [x.shape[a] for a in over_x] != [y.shape[a] for a in over_y]:
        raise ShapeError(f"{x.name} {x.spec} over {[*over_x]} and {y.name} {y.spec} over {[*over_y]} differ")
    kept_x = [a for a in range(x.ndim) if a not in over_x]
    kept_y = [a for a in range(y.ndim) if a not in over_y]
    k = prod(x.shape[a] for a in over_x)
    left = reshape(transpose(x, (*kept_x, *over_x)), (prod(x.shape[a] for a in kept_x), k))
    right = reshape(transpose(y, (*over_y, *kept_y)), (k, prod(y.shape[a] for a in kept_y)))
    return reshape(matmul(left, right), (*(x.shape[a] for a in kept_x), *(y.shape[a] for a in kept_y)))


@public
def kron(x: Any, y: Any) -> Node:
    """The Kronecker product: every element of x times the whole of y."""
    x, y = as_node(x), as_node(y)
    ndim = max(x.ndim, y.ndim)
    xs, ys = (1,) * (ndim - x.ndim) + x.shape, (1,) * (ndim - y.ndim) + y.shape
    left = reshape(x, tuple(n for a in xs for n in (a, 1)))
    right = reshape(y, tuple(n for b in ys for n in (1, b)))
    return reshape(left * right, tuple(a * b for a, b in zip(xs, ys)))
