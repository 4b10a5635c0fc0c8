"""Lowering of convolutions to tile registers, and the images between them that stay bfloat16.

A convolution on tiles reads bfloat16 images. Its result is bfloat16, too, if only such convolutions read it, directly
or through pools, concats and pointwise ops; float32 images are rounded before they are read. Residuals have either
dtype.
"""

from collections.abc import Callable, Iterable
from functools import partial

from cgraph.dtypes.convert import FLOAT32, dtype_of_code
from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import Roots
from cgraph.kernels.depthwise.calls import is_depthwise
from cgraph.kernels.target import Target
from cgraph.kernels.tile_conv.calls import TileLayer, suits_tile_conv
from cgraph.kernels.tile_conv.signature import CHANNELS, NUMBER
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.lowering.image_builder import ImageBuilder, array_of
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.zero_proof import keeps_rest
from cgraph.ops.arithmetic import Cast
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.conv import Conv2d
from cgraph.ops.family import Pointwise
from cgraph.ops.fused import FusedPointwise
from cgraph.ops.join import Concat
from cgraph.ops.leaf import Const
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.ops.physical.conv_layer import layer_of, reads_plain
from cgraph.ops.physical.form import NO_HALO, Form
from cgraph.ops.physical.tile_conv import (
    RoundImages,
    TileConv,
    WideDepthwise,
    pack_layer,
    pack_tile_bias,
    pack_wide_depthwise,
)
from cgraph.ops.pool import MaxPool
from cgraph.ops.reduce import Sum
from cgraph.passes.fold_constants import constant_of, stored_array

PIXELS = (2, 3)  # axes of rows and columns


def tile_shape(node: Node, target: Target, options: LoweringOptions, is_plain: bool) -> ConvShape | None:
    """Return the geometry of a convolution that is computed on tiles; None for any other node.

    Parameters
        is_plain: its images are plain
    """
    if not (options.pairs and target.tiles and is_constant_conv(node)):
        return None
    shape = layer_of(node, target, is_plain and reads_plain(node))
    return shape if suits_tile_conv(shape) else None


def is_constant_conv(node: Node) -> bool:
    """Return True for a float32 convolution of images with constant filters."""
    if not isinstance(node.op, ConvEpilogue) or type(node.op.conv) is not Conv2d:
        return False
    return node.dtype == FLOAT32 and stored_array(node.operands[1]) is not None


def is_wide_depthwise(node: Node, target: Target) -> bool:
    """Return True for a depthwise convolution that can read and return bfloat16 images."""
    if not is_constant_conv(node) or node.op.has_residual:  # type: ignore[attr-defined]
        return False
    return is_depthwise(layer_of(node, target))


def bfloat16_images(laned: Iterable[Node], graph: Roots, target: Target, is_tiled: Callable[[Node], bool]) -> set[Node]:
    """Return the channel-blocked nodes whose images are bfloat16.

    Parameters
        laned: all channel-blocked nodes
        is_tiled: tells if a node is a convolution on tiles
    """
    if not target.tiles:
        return set()
    blocked = set(laned)
    images = {x for x in blocked if is_tiled(x) or is_wide_depthwise(x, target) or passes_on(x, blocked)}

    def reads(user: Node, x: Node) -> bool:
        return user in images or is_tiled(user) or (isinstance(user.op, Sum) and user.op.axes == PIXELS)

    def stays(x: Node) -> bool:
        if x in graph.ends or not all(reads(user, x) for user in graph.users[x]):
            return False
        return is_tiled(x) or all(y in images for y in x.operands if y in blocked)

    while True:
        rest = {x for x in images if stays(x)}
        if rest == images:
            return images
        images = rest


def passes_on(x: Node, blocked: set[Node]) -> bool:
    """Return True for an op that can read and return bfloat16 images."""
    if x.dtype != FLOAT32 or x.ndim != len(NO_HALO):
        return False
    if isinstance(x.op, Concat):
        return all(y.shape[1] % CHANNELS == 0 for y in x.operands[:-1])
    if isinstance(x.op, Pointwise):
        is_whole = x.shape[1] % CHANNELS == 0 or keeps_rest(x)
        return is_whole and all(y in blocked or constant_of(y) is not None for y in x.operands)
    return isinstance(x.op, MaxPool | AvgPool)


def tile_convolution(b: ImageBuilder, node: Node, shape: ConvShape) -> Node:
    """Return a convolution on tiles, of images rounded to bfloat16."""
    op, x = node.op, node.operands[0]
    assert isinstance(op, ConvEpilogue)
    scale, bias, residual = op.operands(node.operands)
    images, source = rounded(b, x, TileLayer(shape))
    weights = stored_array(node.operands[1])
    assert weights is not None
    pack = partial(pack_layer, shape, weights, array_of(scale))
    filters = b.packed((node.operands[1], scale, shape.is_plain, CHANNELS), pack)
    operands = [images, filters, Const(pack_tile_bias(shape, array_of(bias)), copy=False)]
    result, other = b.forms[node], None
    if residual is not None:
        other = b.forms.get(residual, f4_form(b, residual))
        operands.append(b.in_form(residual, other))
    return apply(TileConv(shape, 0, node.shape[0], source, result, other, op.activation), *operands)


def wide_depthwise(b: ImageBuilder, node: Node) -> Node:
    """Return a depthwise convolution of bfloat16 images."""
    op, x, shape = node.op, node.operands[0], layer_of(node, b.target)
    assert isinstance(op, ConvEpilogue)
    scale, bias, _ = op.operands(node.operands)
    weights = stored_array(node.operands[1])
    assert weights is not None
    pack = partial(pack_wide_depthwise, shape, weights, array_of(scale))
    filters = b.packed((node.operands[1], scale, WideDepthwise), pack)
    numbers = Const(pack_tile_bias(shape, array_of(bias)), copy=False)
    layer = WideDepthwise(shape, 0, node.shape[0], b.forms[x], b.forms[node], None, op.activation)
    return apply(layer, b.laned(x), filters, numbers)


def rounded(b: ImageBuilder, x: Node, layer: TileLayer) -> tuple[Node, Form]:
    """Return images as bfloat16 numbers, with the halo that a layer reads, and their form."""
    own, lanes = b.forms.get(x), layer.lanes
    if own is not None and own.dtype == NUMBER:
        return b.laned(x), own
    form = Form(*x.shape, lanes, NUMBER, own.halo if own else layer.halo)  # type: ignore[call-arg,arg-type]
    if layer.shape.is_plain:
        return apply(RoundImages(None, form), b.plain(x)), form
    source = own or f4_form(b, x)
    return apply(RoundImages(source, form), b.in_form(x, source)), form


def f4_form(b: ImageBuilder, x: Node) -> Form:
    """Return the form of float32 images without a halo."""
    return Form(*x.shape, b.target.channels_of("f4"))  # type: ignore[call-arg,arg-type]


def in_bfloat16(op: Pointwise, images: tuple[bool, ...]) -> FusedPointwise:
    """Return a pointwise op of bfloat16 images, computed in float32 and rounded once.

    Parameters
        images: for each operand, whether it is an image; others are float32
    """
    count = len(images)
    inner = op.body if isinstance(op, FusedPointwise) else ((op, tuple(range(count))),)
    casts = [i for i, is_image in enumerate(images) if is_image]
    moved = {i: count + j for j, i in enumerate(casts)} | {i: i + len(casts) for i in range(count, count + len(inner))}
    body: list[tuple[Pointwise, tuple[int, ...]]] = [(Cast(FLOAT32), (i,)) for i in casts]
    body += [(part, tuple(moved.get(i, i) for i in places)) for part, places in inner]
    return FusedPointwise(count, (*body, (Cast(dtype_of_code(NUMBER)), (count + len(body) - 1,))))
