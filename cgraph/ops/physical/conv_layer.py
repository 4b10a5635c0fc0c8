"""Kernel geometry of a convolution node."""

from math import prod

from cgraph.dtypes.convert import code_of
from cgraph.ir.graph import Node
from cgraph.kernels.conv.transpose_calls import TransposedShape
from cgraph.kernels.conv8.calls import ByteShape
from cgraph.kernels.depthwise.calls import is_depthwise
from cgraph.kernels.target import Target
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from cgraph.ops.conv import ConvFilters, ConvTranspose
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.ops.physical.form import Halo
from cgraph.ops.physical.frames import FramesConv
from cgraph.ops.physical.integer import IntegerConv
from cgraph.system.alignment import round_up

PLAIN_CHANNELS = 4  # images of at most this many channels stay plain: most lanes of a block would be empty
MOST_PRODUCTS = 16  # as many as numbers in a block of channels
LEAST_FILTERS = 4  # with fewer, most lanes of a filter gradient would be empty


def layer_of(node: Node, target: Target, is_plain: bool = False) -> ConvShape:
    """Return the geometry of a ConvEpilogue of a convolution."""
    assert isinstance(node.op, ConvEpilogue)
    c, h, w = node.operands[0].shape[1:]
    code = code_of(node.dtype)
    if isinstance(node.op.conv, FramesConv):
        c = node.op.conv.depth.taps * (c if is_plain else round_up(c, target.channels_of(code)))
    return ConvShape(c, h, w, node.shape[1], target, window_of(node), node.op.conv.groups, is_plain, code)


def byte_layer_of(node: Node, target: Target, is_plain: bool = False) -> ByteShape:
    """Return the geometry of an IntegerConv."""
    assert isinstance(node.op, IntegerConv)
    conv, (x, filters) = node.op.conv, node.operands[:2]
    window = Window(filters.shape[2:], conv.stride, conv.pad, conv.dilation)  # type: ignore[arg-type]
    c, h, w = x.shape[1:]
    return ByteShape(c, h, w, node.shape[1], target, window, conv.groups, is_plain)


def gradient_layer_of(node: Node, target: Target, is_plain: bool) -> ConvShape:
    """Return the geometry of the convolution whose filter gradient a ConvFilters computes."""
    assert isinstance(node.op, ConvFilters)
    op, (x, g) = node.op, node.operands
    c, h, w = x.shape[1:]
    window = Window(op.window, op.stride, op.pad, op.dilation)  # type: ignore[arg-type]
    return ConvShape(c, h, w, g.shape[1], target, window, 1, is_plain, code_of(x.dtype))


def is_filter_grad(node: Node) -> bool:
    """Return True for a filter gradient over two axes, of one group, with enough channels for blocked images."""
    op = node.op
    if not isinstance(op, ConvFilters) or len(op.window) != 2 or op.groups != 1 or node.dtype.kind != "f":
        return False
    return node.shape[0] >= LEAST_FILTERS and all(x.size for x in (node, *node.operands))


def transposed_of(node: Node, target: Target) -> TransposedShape:
    """Return the geometry of a ConvEpilogue of a transposed convolution."""
    assert isinstance(node.op, ConvEpilogue)
    c, h, w = node.operands[0].shape[1:]
    window, groups, code = window_of(node), node.op.conv.groups, code_of(node.dtype)
    rows, columns = TransposedShape(c, h, w, node.shape[1], target, window, (0, 0), groups, code).cropped
    more = node.shape[2] - rows, node.shape[3] - columns
    return TransposedShape(c, h, w, node.shape[1], target, window, more, groups, code)


def window_of(node: Node) -> Window:
    """Return the window of a ConvEpilogue."""
    conv = node.op.conv  # type: ignore[attr-defined]
    return Window(node.operands[1].shape[-2:], conv.stride, conv.pad, conv.dilation)  # type: ignore[arg-type]


def is_transposed(node: Node) -> bool:
    """Return True for a ConvEpilogue of a transposed convolution."""
    return isinstance(node.op, ConvEpilogue) and isinstance(node.op.conv, ConvTranspose)


def has_few_products(conv: ConvTranspose, channels: int, window: tuple[int, ...]) -> bool:
    """Return True if the products for a pixel of the result, of all channels, are at most `MOST_PRODUCTS`."""
    return channels * prod(window) <= MOST_PRODUCTS * prod(conv.stride)


def epilogue_halo(node: Node, target: Target) -> Halo:
    """Return the halo that a ConvEpilogue reads around its images."""
    if is_transposed(node):
        return transposed_of(node, target).halo()
    return layer_of(node, target).window.halo(*node.operands[0].shape[2:])


def filter_grad_halo(node: Node, target: Target) -> Halo:
    """Return the halo that a ConvFilters reads around its images."""
    return gradient_layer_of(node, target, False).window.halo(*node.operands[0].shape[2:])


def takes_pairs(shape: ConvShape | TransposedShape) -> bool:
    """Return True if the layer can multiply pairs of bfloat16: adjacent channels of blocked floats.

    Layers that can read plain images return False even if their images are blocked, so that the same layers round
    in each arrangement of a graph, for example if images arrive by rows.
    """
    if shape.dtype != "f4":
        return False
    if isinstance(shape, TransposedShape):
        return shape.groups == 1
    return not (shape.c <= PLAIN_CHANNELS and shape.groups == 1) and not is_depthwise(shape)


def reads_plain(node: Node) -> bool:
    """Return True if the layer reads plain images."""
    few = node.operands[0].shape[1] <= PLAIN_CHANNELS
    return few and node.op.conv.groups == 1 and not is_transposed(node)  # type: ignore[attr-defined]
