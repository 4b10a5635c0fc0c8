"""Lowering of depthwise convolutions of few channels on plain images."""

from collections.abc import Collection

import numpy as np

from cgraph.dtypes.convert import convert
from cgraph.ir.graph import Node, apply
from cgraph.kernels.mapped import is_finite
from cgraph.kernels.target import Target
from cgraph.lowering.image_builder import ImageBuilder, array_of
from cgraph.ops.leaf import Const
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.ops.physical.conv_layer import PLAIN_CHANNELS, is_transposed, window_of
from cgraph.ops.physical.frames import FramesConv
from cgraph.ops.physical.plain_depthwise import PlainDepthwise
from cgraph.passes.fold_constants import stored_array


def stays_plain(node: Node, target: Target, laned: Collection[Node]) -> bool:
    """Return True for a depthwise convolution of few channels of plain images, whose blocks would be mostly empty."""
    op = node.op
    if not isinstance(op, ConvEpilogue) or is_transposed(node) or isinstance(op.conv, FramesConv) or op.has_residual:
        return False
    (x, filters), c = node.operands[:2], node.shape[1]
    if target.lanes == 1 or c > PLAIN_CHANNELS or x in laned or not op.conv.groups == c == x.shape[1]:
        return False
    weights, window = stored_array(filters), window_of(node)
    if any(pad >= extent for pad, extent in zip(window.pad, window.extent * 2)):  # windows in the padding alone
        return False
    return node.size > 0 and weights is not None and is_finite(weights)


def plain_depthwise(b: ImageBuilder, node: Node) -> Node:
    op, (x, filters) = node.op, node.operands[:2]
    assert isinstance(op, ConvEpilogue)
    scale, bias, _ = op.operands(node.operands)
    weights, factors, addend = stored_array(filters), array_of(scale), array_of(bias)
    assert weights is not None
    f = convert(weights, x.dtype) if factors is None else convert(weights, x.dtype) * factors[:, None, None, None]
    offset = np.zeros(len(f), x.dtype) if addend is None else addend
    constants = Const(np.ascontiguousarray(f), copy=False), Const(np.ascontiguousarray(offset), copy=False)
    return apply(PlainDepthwise(window_of(node), op.activation), b.plain(x), *constants)
