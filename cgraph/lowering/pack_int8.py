"""Constants of products of bytes, packed once."""

from math import prod

import numpy as np

from cgraph.ir.graph import Node, apply
from cgraph.kernels.conv8.calls import ByteShape, pack_numbers
from cgraph.kernels.target import Target
from cgraph.ops.leaf import Const
from cgraph.ops.physical.integer import IntegerMatmul, PackedIntegerMatmul, pack_bytes


def pack_product(node: Node, operands: tuple[Node, ...], target: Target) -> Node:
    """Return the product as tiles of a 1×1 convolution."""
    op, (x, *constants) = node.op, operands
    assert isinstance(op, IntegerMatmul)
    y, bias, scale = (c.op.array for c in constants)  # type: ignore[attr-defined]
    shape = ByteShape(y.shape[0], 1, prod(x.shape[:-1]), y.shape[1], target)
    filters = np.ascontiguousarray(y.T)[:, :, None, None]
    constants_packed = [pack_bytes(shape, filters), *starts(shape, filters, bias, op.zero, scale)]
    return apply(PackedIntegerMatmul(shape, op.zero, op.result), x, *(Const(c, copy=False) for c in constants_packed))


def starts(
    shape: ByteShape, filters: np.ndarray, bias: np.ndarray, zero: int, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the initial sums (the bias minus the contribution of the images' zero point) and the scales, up to the
    last panel.
    """
    start = bias - zero * filters.sum((1, 2, 3), dtype="int32")
    return pack_numbers(shape, start), pack_numbers(shape, scale)
