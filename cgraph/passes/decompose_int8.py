"""Decomposition of int8 ops into plain ops, for devices without kernels for them."""

from math import prod

import numpy as np

from cgraph.ir.graph import Node, apply
from cgraph.ir.rewrite import rewrite
from cgraph.kernels.conv8.calls import Result
from cgraph.ops.arithmetic import clip
from cgraph.ops.fixed import fixed_product
from cgraph.ops.linear import matmul
from cgraph.ops.physical.integer import PIXELS, IntegerConv, IntegerMatmul, PixelSum
from cgraph.ops.reduce import sum as sum_along
from cgraph.ops.shape import reshape

LARGEST_PRODUCT = 255 * 128  # factors of a byte minus its zero point, and of a filter's element
EXACT_FLOAT32 = 1 << 24  # float32 represents every integer up to this one exactly


def decompose_int8(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Decompose int8 convolutions into float ones that are exact, and products into int32: same values, more nodes.

    Unchanged: results in float32, which only the pass `compute_integers` creates.
    """
    return rewrite(outputs, RULES)


def decompose_conv(node: Node) -> Node | None:
    """conv(x - zero, f) + bias, as bytes"""
    op, (x, f, bias, scale, *rest) = node.op, node.operands
    assert isinstance(op, IntegerConv)
    if rest or not is_whole(op.result):
        return None
    kind = "float32" if prod(f.shape[1:]) * LARGEST_PRODUCT <= EXACT_FLOAT32 else "float64"
    total = apply(op.conv, x.astype(kind) - float(op.zero), f.astype(kind)).astype("int32")
    total = total + reshape(bias, (-1, 1, 1))
    return total if op.result.dtype == "i4" else as_bytes(total, op.result, reshape(scale, (2, -1, 1, 1)))


def decompose_matmul(node: Node) -> Node | None:
    """(x - zero) @ y + bias, as bytes"""
    op, (x, y, bias, scale) = node.op, node.operands
    assert isinstance(op, IntegerMatmul)
    if not is_whole(op.result):
        return None
    total = matmul(x.astype("int32") - np.int32(op.zero), y.astype("int32")) + bias
    return total if op.result.dtype == "i4" else as_bytes(total, op.result, scale)


def decompose_sum(node: Node) -> Node:
    """the sum over pixels, of int32"""
    return sum_along(node.operands[0].astype("int32"), axis=PIXELS, keepdims=True).astype("int32")


def is_whole(result: Result) -> bool:
    """Return True if the op uses no floats in between."""
    return result.dtype == "i4" or bool(result.fixed)


def as_bytes(total: Node, result: Result, scale: Node) -> Node:
    """Return the sums times factors, shifted and clipped."""
    scaled = fixed_product(total, scale[0], scale[1], result.fixed == "once") + np.int32(result.zero)
    return clip(scaled, result.low, result.high).astype("uint8")


RULES = [(IntegerConv, decompose_conv), (IntegerMatmul, decompose_matmul), (PixelSum, decompose_sum)]
