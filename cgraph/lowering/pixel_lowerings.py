"""Lowering of transposed convolutions with few results to products on plain images."""

import numpy as np

from cgraph.dtypes.convert import convert
from cgraph.ir.graph import Node, apply
from cgraph.kernels.target import Target
from cgraph.lowering.image_builder import ImageBuilder, array_of
from cgraph.ops.conv import ConvTranspose
from cgraph.ops.leaf import Const
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.ops.physical.conv_layer import has_few_products, is_transposed
from cgraph.ops.physical.pixel_transpose import PixelTranspose, filters_of_pixels
from cgraph.passes.fold_constants import stored_array
from cgraph.passes.fuse_epilogues import LEAST_CHANNELS

MOST_CHANNELS = 8  # of a result: with more, most lanes of a block are filled
LEAST_SIZE = 8192  # numbers of a result whose windows overlap: fewer gain less than the calls that add windows take


def multiplies_pixels(node: Node, target: Target) -> bool:
    """Return True for a transposed convolution that is faster as a product on plain images than in blocks.

    Its products for each pixel of the result would fill at most the lanes of a block, most of them empty. Targets of
    one lane have no empty lanes, and small ones lack the memory for all products.
    """
    if not is_transposed(node) or target.lanes == 1 or target.is_small:
        return False
    x, filters = node.operands[:2]
    fills_blocks = max(x.shape[1], node.shape[1]) >= LEAST_CHANNELS
    if not side_by_side(node) and node.size < LEAST_SIZE and fills_blocks:
        return False
    few = node.shape[1] <= MOST_CHANNELS and has_few_products(node.op.conv, node.shape[1], filters.shape[2:])  # type: ignore[attr-defined]
    is_matrix = x.shape[3] > 1 and filters.size > x.shape[1]  # other kernels compute products of one row or column
    return few and is_matrix and node.size > 0 and x.size > 0 and stored_array(filters) is not None


def side_by_side(node: Node) -> bool:
    """Return True if the windows of a transposed convolution fill its result and do not overlap."""
    conv, window = node.op.conv, node.operands[1].shape[2:]  # type: ignore[attr-defined]
    whole = tuple(size * step for size, step in zip(node.operands[0].shape[2:], window))
    return window == conv.stride and not any(conv.pad) and node.shape[2:] == whole


def pixel_transpose(b: ImageBuilder, node: Node) -> Node:
    op, (x, filters) = node.op, node.operands[:2]
    assert isinstance(op, ConvEpilogue) and isinstance(op.conv, ConvTranspose)
    conv = op.conv
    scale, bias, _ = op.operands(node.operands)
    weights, (r, s) = stored_array(filters), filters.shape[2:]
    assert weights is not None

    def pack() -> np.ndarray:
        return filters_of_pixels(convert(weights, x.dtype), array_of(scale), conv.groups)

    matrix = b.packed((filters, scale, conv.groups, PixelTranspose), pack)
    addend = array_of(bias)
    column = [] if addend is None else [Const(addend[:, None, None])]
    return apply(PixelTranspose(conv, (r, s), bool(column), op.activation), b.plain(x), matrix, *column)
