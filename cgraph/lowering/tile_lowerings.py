"""Lowering of convolutions to tile registers, and the images between them.

A convolution on tiles reads images in blocks of 64 bytes: bytes, or bfloat16 numbers. Its result is such an image, too,
if only such convolutions read it, directly or through pools, concats, depthwise convolutions and pointwise ops. Other
images are converted before they are read. Residuals have either form.
"""

from collections.abc import Collection, Iterable
from functools import partial
from math import prod

import numpy as np

from cgraph.dtypes.convert import FLOAT32, dtype_of_code
from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import Roots
from cgraph.kernels.conv.transpose_calls import TransposedShape
from cgraph.kernels.conv8.calls import ByteShape
from cgraph.kernels.depthwise.calls import is_depthwise
from cgraph.kernels.isa.records import TILE_ROW
from cgraph.kernels.pairs.paired_sides import gains_by_rounding
from cgraph.kernels.target import Target
from cgraph.kernels.tile_conv.calls import PIXEL, TileLayer, pack_tile_filters, suits_tile_conv
from cgraph.kernels.tile_conv.signature import CHANNELS, NUMBER
from cgraph.kernels.tile_conv.transposed_calls import TileTransposed, suits_tile_transposed
from cgraph.kernels.tile_products.calls import pack_columns
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
from cgraph.ops.physical.byte_pool import BytePool
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.ops.physical.conv_layer import (
    PLAIN_CHANNELS,
    byte_layer_of,
    is_transposed,
    layer_of,
    reads_plain,
    transposed_of,
)
from cgraph.ops.physical.form import NO_HALO, Form
from cgraph.ops.physical.integer import IntegerConv, PixelSum
from cgraph.ops.physical.table import ByteTable
from cgraph.ops.physical.tile_conv import (
    TileConv,
    TileImages,
    TileIntegerConv,
    WideDepthwise,
    pack_layer,
    pack_tile_bias,
    pack_wide_depthwise,
)
from cgraph.ops.physical.tile_filters import PackTileFilters, PackTileTransposed
from cgraph.ops.physical.tile_transposed import TileConvTranspose
from cgraph.ops.pool import MaxPool
from cgraph.ops.reduce import Sum
from cgraph.passes.fold_constants import constant_of, stored_array
from cgraph.record import Record, replace
from cgraph.system.alignment import round_up

LONG_SUM = 128  # products in a sum from which on tiles are faster than vectors by far: an estimate
MOST_GROWTH = 2  # bytes of images in blocks of 64 channels over those of their channels
PIXELS = (2, 3)  # axes of rows and columns
BYTE = np.dtype("uint8")


def tile_shape(node: Node, target: Target, is_plain: bool) -> ConvShape | TransposedShape | None:
    """Return the geometry of a convolution that is computed on tiles; None for any other node.

    Parameters
        is_plain: its images are plain
    """
    if not is_constant_conv(node):
        return computed_tile_shape(node, target, is_plain)
    shape = layer_of(node, target, is_plain and reads_plain(node))
    return shape if suits_tile_conv(shape) else None


def computed_tile_shape(node: Node, target: Target, is_plain: bool) -> ConvShape | TransposedShape | None:
    """Return the geometry of a convolution on tiles with filters that are packed in each run: one of images, or a
    transposed one, such as a gradient for images.
    """
    if node.dtype != FLOAT32 or stored_array(node.operands[1]) is not None:
        return None
    shape: ConvShape | TransposedShape
    if is_transposed(node):
        shape = transposed_of(node, target)
        suits, pixels = suits_tile_transposed(shape), shape.h * shape.w
    elif type(node.op.conv) is Conv2d:  # type: ignore[attr-defined]
        shape = layer_of(node, target, is_plain and reads_plain(node))
        suits, pixels = suits_tile_conv(shape), prod(shape.result)
    else:
        return None
    return shape if suits and gains_by_rounding(node.shape[0] * pixels, shape.k * shape.window.taps) else None


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


def byte_tile_shape(node: Node, target: Target, is_plain: bool) -> ByteShape | None:
    """Return the geometry of a convolution of bytes that can be computed on tiles; None for any other node.

    Parameters
        is_plain: its images are plain
    """
    if not isinstance(node.op, IntegerConv):
        return None
    few = is_plain and node.operands[0].shape[1] <= PLAIN_CHANNELS and node.op.conv.groups == 1
    shape = byte_layer_of(node, target, few)
    return shape if suits_tile_conv(shape) else None


class TileChoice(Record, eq=False):
    """Which nodes of a graph are computed on tiles, and which channel-blocked nodes have their images.

    Fields
        shapes: the geometry of each convolution on tiles
        images: nodes whose images are as tiles read them: bfloat16 numbers or bytes, in blocks of 64 bytes
    """

    shapes: dict[Node, ConvShape | TransposedShape]
    images: set[Node]

    @staticmethod
    def of(
        order: Iterable[Node], blocked: set[Node], graph: Roots, target: Target, options: LoweringOptions
    ) -> "TileChoice":
        """Return the choice for a target.

        Parameters
            order: all nodes
            blocked: the channel-blocked ones
        """
        if not target.tiles:
            return TileChoice({}, set())
        shapes: dict[Node, ConvShape | TransposedShape] = {}
        layers = [x for x in order if isinstance(x.op, ConvEpilogue | IntegerConv)]
        takes_bytes = gains_byte_tiles(layers)
        for x in layers:
            plain = x.operands[0] not in blocked
            is_float = isinstance(x.op, ConvEpilogue)
            shape = tile_shape(x, target, plain) if is_float else None
            if takes_bytes and not is_float:
                shape = byte_tile_shape(x, target, plain)
            if shape is not None and (not is_float or options.rounds(x)):
                shapes[x] = shape
        return TileChoice(shapes, images_of(shapes, blocked, graph, target) if shapes else set())


def gains_byte_tiles(layers: Iterable[Node]) -> bool:
    """Return True if most products of a graph's convolutions of bytes are in long sums, and their images fill blocks.

    Tiles need blocks of 64 channels, in which layers of few channels and depthwise ones are slower, and images larger.
    So a network has either tiles or vectors.
    """
    of_bytes = [x for x in layers if isinstance(x.op, IntegerConv)]
    in_blocks = sum(x.size // x.shape[1] * round_up(x.shape[1], TILE_ROW) for x in of_bytes if x.size)
    if in_blocks > MOST_GROWTH * sum(x.size for x in of_bytes):
        return False
    works = [(x.size * prod(x.operands[1].shape[1:]), prod(x.operands[1].shape[1:]) >= LONG_SUM) for x in of_bytes]
    return 2 * sum(work for work, is_long in works if is_long) > sum(work for work, _ in works)


def images_of(shapes: Collection[Node], blocked: set[Node], graph: Roots, target: Target) -> set[Node]:
    """Return the nodes with images as tiles read them: all their users, and their own operands, can have such.

    Results of convolutions with computed filters, as in training, stay float32, and so do those of convolutions of
    bytes. Where tiles compute only bytes, no number is rounded.
    """
    dtypes = {BYTE if isinstance(x.op, IntegerConv) else FLOAT32 for x in shapes}
    layers = {x for x in shapes if is_constant_conv(x) or (isinstance(x.op, IntegerConv) and x.dtype == BYTE)}
    images = {x for x in blocked if x in layers or is_wide_depthwise(x, target) or passes_on(x, blocked)}

    def reads(user: Node) -> bool:
        is_sum = isinstance(user.op, PixelSum) or (isinstance(user.op, Sum) and user.op.axes == PIXELS)
        return user in images or user in shapes or is_sum

    def stays(x: Node) -> bool:
        if x in graph.ends or x.dtype not in dtypes or not all(map(reads, graph.users[x])):
            return False
        return x in shapes or all(y in images for y in x.operands if y in blocked)

    while True:
        rest = {x for x in images if stays(x)}
        if rest == images:
            return images
        images = rest


def passes_on(x: Node, blocked: set[Node]) -> bool:
    """Return True for an op that can read and return images as tiles read them."""
    if x.dtype not in (FLOAT32, BYTE) or x.ndim != len(NO_HALO):
        return False
    channels = CHANNELS if x.dtype == FLOAT32 else TILE_ROW
    if isinstance(x.op, Concat):
        return all(y.shape[1] % channels == 0 for y in x.operands[:-1])
    if isinstance(x.op, Pointwise):
        is_whole = x.dtype == BYTE or x.shape[1] % channels == 0 or keeps_rest(x)
        return is_whole and all(y in blocked or constant_of(y) is not None for y in x.operands)
    return isinstance(x.op, MaxPool | ByteTable | BytePool) or (isinstance(x.op, AvgPool) and x.dtype == FLOAT32)


def in_tile_form(form: Form) -> Form:
    """Return the form of the same images as tiles read them."""
    return replace(form, dtype=NUMBER, lanes=CHANNELS) if form.dtype == "f4" else replace(form, lanes=TILE_ROW)


def tile_convolution(b: ImageBuilder, node: Node, shape: ConvShape | TransposedShape) -> Node:
    """Return a convolution on tiles, of images rounded to bfloat16."""
    if isinstance(shape, TransposedShape):
        return tile_transposed(b, node, shape)
    op, x = node.op, node.operands[0]
    assert isinstance(op, ConvEpilogue)
    scale, bias, residual = op.operands(node.operands)
    images, source = rounded(b, x, TileLayer(shape))
    weights = stored_array(node.operands[1])
    if weights is None:
        filters = apply(PackTileFilters(shape), b.plain(node.operands[1]))
    else:
        pack = partial(pack_layer, shape, weights, array_of(scale))
        filters = b.packed((node.operands[1], scale, shape.is_plain, CHANNELS), pack)
    operands = [images, filters, Const(pack_tile_bias(shape, array_of(bias)), copy=False)]
    result, other = b.forms[node], None
    if residual is not None:
        other = b.forms.get(residual, f4_form(b, residual))
        operands.append(b.in_form(residual, other))
    return apply(TileConv(shape, 0, node.shape[0], source, result, other, op.activation), *operands)


def tile_transposed(b: ImageBuilder, node: Node, shape: TransposedShape) -> Node:
    """Return a transposed convolution on tiles, of images rounded to bfloat16, with computed filters."""
    op, (x, f) = node.op, node.operands[:2]
    assert isinstance(op, ConvEpilogue)
    _, bias, _ = op.operands(node.operands)
    images, source = rounded(b, x, TileTransposed(shape))
    filters = apply(PackTileTransposed(shape), b.plain(f))
    numbers = Const(pack_tile_bias(shape, array_of(bias)), copy=False)
    return apply(TileConvTranspose(shape, source, b.forms[node], op.activation), images, filters, numbers)


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


def rounded(b: ImageBuilder, x: Node, layer: TileLayer | TileTransposed) -> tuple[Node, Form]:
    """Return float32 images as bfloat16 numbers, with the halo that a layer reads, and their form."""
    own = b.forms.get(x)
    if own is not None and own.dtype == NUMBER:
        return b.laned(x), own
    form = Form(*x.shape, layer.lanes, NUMBER, own.halo if own else layer.halo)  # type: ignore[call-arg,arg-type]
    if layer.lanes == PIXEL:
        return apply(TileImages(None, form), b.plain(x)), form
    source = own or f4_form(b, x)
    return apply(TileImages(source, form), b.in_form(x, source)), form


def tile_byte_convolution(b: ImageBuilder, node: Node, shape: ByteShape) -> Node:
    """Return a convolution of bytes on tiles."""
    op, (x, filters, bias, scale, *residual), layer = node.op, node.operands, TileLayer(shape)
    assert isinstance(op, IntegerConv)
    f, start, factor = (y.op.array for y in (filters, bias, scale))  # type: ignore[attr-defined]
    packed = b.packed((filters, layer), partial(pack_tile_filters, layer, f))
    start = start - op.zero * f.sum((1, 2, 3), dtype="int32")
    images, source = joined(b, x, layer, op.zero)
    operands = [images, packed, *(Const(pack_columns(layer.size, y), copy=False) for y in (start, factor))]
    other = None
    if residual:
        other = b.forms.get(residual[0], replace(b.forms[node], halo=NO_HALO))
        operands.append(b.in_form(residual[0], other))
    return apply(TileIntegerConv(shape, source, b.forms[node], op.result, other), *operands)


def joined(b: ImageBuilder, x: Node, layer: TileLayer, zero: int) -> tuple[Node, Form]:
    """Return bytes in blocks of 64 channels, or pixels of four, in a halo of their zero point, and their form."""
    own, lanes = b.forms.get(x), layer.lanes
    if own is not None and own.lanes == lanes:
        form = replace(own, fill=zero)
        return b.in_form(x, form), form
    form = Form(*x.shape, lanes, "u1", own.halo if own else layer.halo, zero)  # type: ignore[call-arg,arg-type]
    if own is None:
        return b.in_form(x, form), form
    return apply(TileImages(own, form), b.laned(x)), form


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
