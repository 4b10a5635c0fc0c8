"""Matrix products with 4-bit weights that have a scale and a zero point for each block along k."""

from math import prod
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.nibbles.calls import nibbles_calls, nibbles_nbytes
from cgraph.kernels.target import Target
from cgraph.ops.leaf import as_node

LEAST_BLOCK = 16


class BlockMatmul(Op):
    """``out[..., j] = sum over k of x[..., k] * (y[j, k] - zeros[j, b]) * scales[j, b]``, where k lies in block b.

    Operands
        x: float32 ``[..., k]``
        y: uint8 ``[n, blocks, block / 2]``, two values along k in a byte, the first in its low half; values after k are
            ignored
        scales: float32 ``[n, blocks]``; zeros: uint8 ``[n, blocks]``
    Raises
        DTypeError, ShapeError: operands of other dtypes or shapes; a block size that is not a power of 2, or below 16
    Source
        onnxruntime's operator MatMulNBits
    """

    def infer(self, x: Spec, y: Spec, scales: Spec, zeros: Spec) -> Spec:
        if [v.dtype.name for v in (x, y, scales, zeros)] != ["float32", "uint8", "float32", "uint8"]:
            raise DTypeError(
                f"x, y, scales and zeros are {x.dtype}, {y.dtype}, {scales.dtype} and {zeros.dtype}; "
                "pass float32, uint8, float32 and uint8"
            )
        if y.ndim != 3 or x.ndim < 1 or (scales.shape, zeros.shape) != (y.shape[:2], y.shape[:2]):
            raise ShapeError(
                f"scales {scales} and zeros {zeros} do not fit the blocks of y {y}; "
                "pass [n, blocks] for y [n, blocks, bytes]"
            )
        block = 2 * y.shape[2]
        if block < LEAST_BLOCK or block & (block - 1) or -(-x.shape[-1] // block) != y.shape[1]:
            raise ShapeError(
                f"x has {x.shape[-1]} elements along its last axis, y has {y.shape[1]} blocks of {block}; "
                f"use blocks whose size is a power of 2 >= {LEAST_BLOCK} and that cover x"
            )
        return Spec((*x.shape[:-1], y.shape[0]), x.dtype)

    def meaning(self, x, y, scales, zeros):
        n, blocks, half = y.shape
        numbers = np.stack([y & 15, y >> 4], -1).reshape(n, blocks, 2 * half).astype("float32")
        floats = (numbers - zeros[..., None]) * scales[..., None]
        return np.matmul(x, floats.reshape(n, blocks * 2 * half)[:, : x.shape[-1]].T)

    def multiply_adds(self, x: Spec, y: Spec, *rest: Spec) -> int:
        return x.size * y.shape[0]

    def work(self, target: Target, x: Spec, y: Spec, scales: Spec, zeros: Spec) -> Work:
        rows = prod(x.shape[:-1])

        def calls(out: View, x: View, y: View, scales: View, zeros: View, workspace: View | None = None) -> list[Call]:
            left, matrix = x.with_shape(rows, x.shape[-1]), out.with_shape(rows, y.shape[0])
            return nibbles_calls(target, matrix, left, y, scales, zeros, workspace)

        return Work(calls, nibbles_nbytes(target, rows, y.shape[0], y.shape[1], 2 * y.shape[2]))


@public
def block_matmul(x: Any, y: Any, scales: Any, zeros: Any = 8) -> Node:
    """Multiply `x` by the transpose of a matrix of 4-bit values, which stay packed in memory.

    ``out[..., j] = sum over k of x[..., k] * (y[j, k] - zeros[j, b]) * scales[j, b]``, where k lies in block b.

    Parameters
        x: float32 ``[..., k]``
        y: uint8 ``[n, blocks, block / 2]``, two values along k in a byte, the first in its low half
        scales: float32 ``[n, blocks]``
        zeros: uint8 ``[n, blocks]``, or one number
    Raises
        DTypeError, ShapeError: operands of other dtypes or shapes; a block size that is not a power of 2, or below 16
    """
    scales = as_node(scales)
    if not isinstance(zeros, Node):
        zeros = np.array(np.broadcast_to(np.asarray(zeros, "uint8"), scales.shape))
    return apply(BlockMatmul(), as_node(x), as_node(y), scales, as_node(zeros))
