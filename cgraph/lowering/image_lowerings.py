"""Table of lowerings: one row for each op on channel-blocked images."""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np

from cgraph.dtypes.convert import code_of, convert
from cgraph.ir.cut import ROWS
from cgraph.ir.graph import Node, Op, apply
from cgraph.ir.roots import Roots
from cgraph.kernels.conv.lanes_rule import gains_by_lanes
from cgraph.kernels.conv.transpose_calls import TransposedShape, pack_transposed
from cgraph.kernels.depthwise.calls import is_depthwise
from cgraph.kernels.filter_grad.calls import FilterGrad
from cgraph.kernels.pairs.paired_sides import gains_by_rounding
from cgraph.kernels.target import Target
from cgraph.kernels.tile_conv.filter_grad_calls import TileFilterGrad
from cgraph.kernels.tile_conv.signature import NUMBER
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.winograd.rule import winograd_rule
from cgraph.lowering.clipped_lowerings import is_clipped, layer_halo, leaves_out_padding, source_form
from cgraph.lowering.depthwise_lowerings import plain_depthwise, stays_plain
from cgraph.lowering.frame_lowerings import frame_by_frame, frames_of, volumes_of_frames
from cgraph.lowering.image_builder import ImageBuilder, array_of
from cgraph.lowering.int8_lowerings import (
    byte_convolution,
    byte_fill,
    byte_halo,
    byte_sum,
    byte_table,
    is_of_bytes,
    keeps_fill,
)
from cgraph.lowering.pixel_lowerings import multiplies_pixels, pixel_transpose
from cgraph.lowering.tile_lowerings import in_bfloat16, tile_convolution, wide_depthwise
from cgraph.lowering.zero_proof import keeps_frame, keeps_rest
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.conv import ConvFilters
from cgraph.ops.family import Pointwise
from cgraph.ops.join import Concat
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.physical.byte_pool import BytePool
from cgraph.ops.physical.conv import BlockedConv, ConvEpilogue, pack_filters, pack_layer_bias, panel_of
from cgraph.ops.physical.conv_layer import (
    PLAIN_CHANNELS,
    filter_grad_halo,
    gradient_layer_of,
    is_filter_grad,
    is_transposed,
    layer_of,
    reads_plain,
    takes_pairs,
    transposed_of,
)
from cgraph.ops.physical.conv_transpose import BlockedConvTranspose, transposed_bias
from cgraph.ops.physical.filters import BlockedConvFilters, PackDepthwise, PackFilters, RoundFilters
from cgraph.ops.physical.form import NO_HALO, Form, Halo
from cgraph.ops.physical.frames import FromFrames, PadFrames, PoolFrames, ToFrames, stack_filters
from cgraph.ops.physical.integer import IntegerConv, PixelSum
from cgraph.ops.physical.lanes import (
    BOXES,
    BlockedConcat,
    BlockedOp,
    BlockedPool,
    BlockedPoolIndices,
    BlockedResize,
    BlockedRoiAlign,
    BlockedRoiAlignGrad,
    BlockedScatter,
    ClearHalo,
    ColumnSum,
    JoinedImages,
    PlainRoiAlign,
    ToBlocked,
)
from cgraph.ops.physical.table import ByteTable
from cgraph.ops.physical.tile_filters import TileConvFilters
from cgraph.ops.physical.tiled import suits_numbers
from cgraph.ops.pool import MaxPool, MaxPoolIndices, Pool, ScatterToIndices
from cgraph.ops.reduce import Sum
from cgraph.ops.regions import RoiAlign, RoiAlignGrad
from cgraph.ops.resize import Resize
from cgraph.ops.shape import BroadcastTo, broadcast_to, reshape
from cgraph.ops.slicing import Slice
from cgraph.passes.fold_constants import stored_array
from cgraph.record import Record, replace

PIXELS = ((2, 3), (0, 2, 3))


class LoweringContext(Record, eq=False):
    """The graph, and the nodes that are channel-blocked so far.

    Fields
        laned: nodes whose values are channel-blocked; grows
        graph: the graph to lower
        target: the target of the kernels
        by_rows: images are streamed by rows, so windows over plain images are channel-blocked, too, if they run in
            bands
    """

    laned: set[Node]
    graph: Roots
    target: Target
    by_rows: bool = False


class Lowering(Record, eq=False):
    """Lowering of the nodes of one op.

    Fields
        takes: predicate of the nodes that are lowered
        build: builds the physical node
        laned: True if the result is channel-blocked, False for a plain value
        plain: builds the plain value directly, if no node reads the blocked one
        halo: the halo that it reads around its first operand; None reads none
        alike: the operands that have the halo of the result, if they are channel-blocked
        fill: the value of the halo around its first operand, for bytes
    """

    takes: Callable[[Node, LoweringContext], bool]
    build: Callable[[ImageBuilder, Node], Node]
    laned: bool = True
    plain: Callable[[ImageBuilder, Node], Node] | None = None
    halo: Callable[[Node, Target], Halo] | None = None
    alike: Callable[[Node, LoweringContext], Sequence[Node]] = lambda node, context: ()
    fill: Callable[[Node], int] | None = None


def lowering_of(node: Node, context: LoweringContext) -> Lowering | None:
    """Return the row of the table for a node."""
    kind = Pointwise if isinstance(node.op, Pointwise) else type(node.op)
    row = LOWERINGS.get(kind)
    if multiplies_pixels(node, context.target):
        row = TRANSPOSED_PIXELS
    elif not context.by_rows and stays_plain(node, context.target, context.laned):
        row = FEW_FILTERS
    return row if row and row.takes(node, context) else None


# -- predicates of nodes -----------------------------------------------------------------------------------------------


def always(node: Node, context: LoweringContext) -> bool:
    return True


def reads_blocks(node: Node, context: LoweringContext) -> bool:
    """Return True if it reads channel-blocked images."""
    return node.operands[0] in context.laned


def reads_lanes(node: Node, context: LoweringContext) -> bool:
    """Return True if it reads channel-blocked images that are not uint8."""
    return reads_blocks(node, context) and node.operands[0].dtype != np.uint8


def reads_images(node: Node, context: LoweringContext) -> bool:
    """Return True if its input is channel-blocked or will be converted to it."""
    return reads_lanes(node, context) or (context.by_rows and node.dtype.kind == "f")


def pools_images(node: Node, context: LoweringContext) -> bool:
    assert isinstance(node.op, Pool)
    return (reads_blocks(node, context) or reads_images(node, context)) and len(node.op.window) == 2


def gains_blocks(node: Node, context: LoweringContext) -> bool:
    """Return True for frames of enough channels for blocks."""
    return node.shape[1] > PLAIN_CHANNELS and node.dtype.kind == "f" and node.size > 0


def is_served(node: Node, context: LoweringContext) -> bool:
    return is_filter_grad(node)


def is_for_gradient(node: Node, context: LoweringContext) -> bool:
    """Return True for indices of largest elements that only a pooling's gradient reads."""
    graph = context.graph
    inner = node not in graph.ends and all(isinstance(u.op, ScatterToIndices) for u in graph.users[node])
    return inner and pools_images(node, context)


def joins_channels(node: Node, context: LoweringContext) -> bool:
    return node.op.axis == 1 and all(x in context.laned for x in node.operands)  # type: ignore[attr-defined]


def sees_lanes(node: Node, context: LoweringContext) -> bool:
    """Return True if one of the images, which follow the boxes, is channel-blocked."""
    return all(x in context.laned for x in node.operands[BOXES:])


def sums_pixels(node: Node, context: LoweringContext) -> bool:
    """Return True for a sum over all pixels, and perhaps over all images."""
    return reads_lanes(node, context) and node.op.axes in PIXELS  # type: ignore[attr-defined]


def is_filled(node: Node, context: LoweringContext) -> bool:
    """Return True for a pointwise op on blocked images whose result is 0 in unused channels."""
    if node.ndim != 4 or all(x not in context.laned for x in node.operands):
        return False
    if node.dtype == np.uint8:
        return is_of_bytes(node)
    if any(x.dtype != node.dtype or not fits(x) for x in node.operands):
        return False
    return node.shape[1] % context.target.lanes_of(code_of(node.dtype)) == 0 or keeps_rest(node)


def fits(x: Node) -> bool:
    """Return True if an operand of a pointwise op is as large as the result, or broadcast over pixels."""
    if not isinstance(x.op, BroadcastTo):
        return True
    source = x.operands[0]
    return ((1,) * (4 - source.ndim) + source.shape)[2:] == (1, 1)


# -- operands with the halo of the result ------------------------------------------------------------------------------


def every_operand(node: Node, context: LoweringContext) -> Sequence[Node]:
    return node.operands


def first_operand(node: Node, context: LoweringContext) -> Sequence[Node]:
    return node.operands[:1]


def residuals(node: Node, context: LoweringContext) -> Sequence[Node]:
    """Return the residual if it may be overwritten: no other node reads it."""
    op = node.op
    residual = op.operands(node.operands)[2] if isinstance(op, ConvEpilogue) else next(iter(node.operands[4:]), None)
    return () if residual is None or not context.graph.is_inner(residual) else (residual,)


# -- builders
# -----------------------------------------------------------------------------------------------------------


def convolution(b: ImageBuilder, node: Node) -> Node:
    if node in b.tiles:
        return tile_convolution(b, node, b.tiles[node])
    return transposed_convolution(b, node) if is_transposed(node) else direct(b, node)


def direct(b: ImageBuilder, node: Node) -> Node:
    op, x = node.op, node.operands[0]
    assert isinstance(op, ConvEpilogue)
    scale, bias, residual = op.operands(node.operands)
    plain = reads_plain(node) and x not in b.forms
    if b.forms[node].dtype == NUMBER:
        return wide_depthwise(b, node)
    shape = layer_of(node, b.target, plain)
    weights, depth = stored_array(node.operands[1]), getattr(op.conv, "depth", None)
    n = node.shape[0] // (depth.volumes if depth else 1)
    if depth is not None and weights is not None:
        weights = stack_filters(weights, shape.c // depth.taps)
    is_whole = depth is None and not leaves_out_padding(node, b.target)
    pairs = is_whole and pairs_gain(b, shape, n, weights is not None) and b.options.rounds(node)
    is_float = weights is not None and weights.dtype == x.dtype and not pairs
    by_lanes = is_float and depth is None and gains_by_lanes(shape)
    tile = winograd_rule(shape, n, weights) if is_float and b.options.winograd and not by_lanes else 0
    is_cut = weights is not None and is_float and not (tile or by_lanes or depth) and is_clipped(shape, weights)
    is_mixed = weights is not None and not (tile or pairs)
    shape = replace(shape, is_mixed=is_mixed, by_lanes=by_lanes, is_clipped=is_cut)
    source = None if plain else source_form(b, x, shape)
    if weights is not None:
        key = node.operands[1], scale, tile, panel_of(shape, n, tile), shape.groups, shape.is_plain, pairs, by_lanes
        pack = partial(pack_filters, shape, n, tile, weights, array_of(scale), pairs)
        filters = b.packed(key, pack)
    else:
        filters = computed_filters(b, node, shape, pairs)
    images = b.plain(x) if source is None else b.in_form(x, source)
    operands = [images, filters, Const(pack_layer_bias(shape, array_of(bias)), copy=False)]
    result, other = b.forms[node], None
    if residual is not None:
        other = b.forms.get(residual, replace(result, halo=NO_HALO))
        operands.append(b.in_form(residual, other))
    return apply(BlockedConv(shape, tile, n, source, result, other, op.activation, pairs, depth), *operands)


def computed_filters(b: ImageBuilder, node: Node, shape: ConvShape | TransposedShape, pairs: bool) -> Node:
    """Return the filters of a convolution, packed in each run, and in pairs if they are rounded."""
    plain = b.plain(node.operands[1])
    if isinstance(shape, ConvShape) and is_depthwise(shape):
        return apply(PackDepthwise(shape), plain)
    filters = apply(PackFilters(shape), plain)
    return apply(RoundFilters.of(shape), filters) if pairs else filters


def pairs_gain(b: ImageBuilder, shape: ConvShape | TransposedShape, n: int, is_constant: bool) -> bool:
    """Return True if a layer can multiply pairs of bfloat16, and gains more than rounding costs.

    Parameters
        n: images
        is_constant: its filters are packed and rounded once
    """
    if not b.target.bf16 or b.target.tiles or not takes_pairs(shape):
        return False
    rows, columns = shape.result
    return is_constant or gains_by_rounding(n * rows * columns, shape.k * shape.window.taps)


def transposed_convolution(b: ImageBuilder, node: Node) -> Node:
    op, x = node.op, node.operands[0]
    assert isinstance(op, ConvEpilogue)
    scale, bias, _ = op.operands(node.operands)
    shape = transposed_of(node, b.target)
    source = b.form_of(x, shape.halo())
    weights = stored_array(node.operands[1])
    pairs = weights is None and pairs_gain(b, shape, node.shape[0], False) and b.options.rounds(node)
    if weights is not None:
        shape = replace(shape, by_lanes=gains_by_lanes(shape))
        pack = partial(pack_transposed, shape, convert(weights, x.dtype), array_of(scale))
        filters = b.packed((node.operands[1], scale, shape), pack)
    else:
        filters = computed_filters(b, node, shape, pairs)
    layer = BlockedConvTranspose(shape, source, b.forms[node], op.activation, pairs)
    return apply(layer, b.in_form(x, source), filters, Const(transposed_bias(shape, array_of(bias)), copy=False))


def filter_grad(b: ImageBuilder, node: Node) -> Node:
    x, g = node.operands
    plain = x.shape[1] <= PLAIN_CHANNELS and x not in b.forms
    shape = gradient_layer_of(node, b.target, plain)
    source = None if plain else b.form_of(x, shape.window.halo(*x.shape[2:]))
    form = b.form_of(g, NO_HALO)
    images = b.plain(x) if source is None else b.in_form(x, source)
    if tiles_gain(b, shape, x.shape[0]) and b.options.rounds(node):
        return apply(TileConvFilters(TileFilterGrad(shape, x.shape[0]), source, form), images, b.in_form(g, form))
    pairs = pairs_gain(b, shape, x.shape[0], False) and b.options.rounds(node)
    return apply(BlockedConvFilters(FilterGrad(shape, x.shape[0], pairs), source, form), images, b.in_form(g, form))


def tiles_gain(b: ImageBuilder, shape: ConvShape, n: int) -> bool:
    """Return True if the gradient for filters of `n` images is faster on tiles."""
    if not b.target.tiles or shape.dtype != "f4":
        return False
    pixels, lines = n * prod(shape.result), TileFilterGrad(shape, n).layer.c
    return suits_numbers(lines, pixels) and gains_by_rounding(pixels, shape.k * shape.window.taps)


def pool(b: ImageBuilder, node: Node) -> Node:
    return of_images(b, node, BlockedPool)


def places(b: ImageBuilder, node: Node) -> Node:
    return blocked_op(b, node, BlockedPoolIndices)


def resize(b: ImageBuilder, node: Node) -> Node:
    return of_images(b, node, BlockedResize)


def of_images(b: ImageBuilder, node: Node, kind: type[BlockedOp]) -> Node:
    """Return the op on images in their present form, or in one without a halo."""
    (x,) = node.operands
    source = b.form_of(x, NO_HALO)
    return apply(kind(node.op, (source,), b.forms[node]), b.in_form(x, source))


def regions(b: ImageBuilder, node: Node) -> Node:
    return blocked_op(b, node, BlockedRoiAlign)


def plain_regions(b: ImageBuilder, node: Node) -> Node:
    assert isinstance(node.op, RoiAlign)
    boxes, levels = map(b.plain, node.operands[:BOXES]), node.operands[BOXES:]
    align = PlainRoiAlign(node.op, tuple(b.forms[x] for x in levels))
    return apply(align, *boxes, *map(b.laned, levels))


def regions_grad(b: ImageBuilder, node: Node) -> Node:
    return blocked_op(b, node, BlockedRoiAlignGrad)


def blocked_op(b: ImageBuilder, node: Node, kind: type[BlockedOp]) -> Node:
    """Return the op on operands in their present forms: each blocked in its own form, or plain."""
    forms = tuple(b.forms.get(x) for x in node.operands)
    operands = (b.plain(x) if form is None else b.laned(x) for x, form in zip(node.operands, forms))
    return apply(kind(node.op, forms, b.forms[node]), *operands)


def scatter_gradient(b: ImageBuilder, node: Node) -> Node:
    x, g = node.operands
    form = b.form_of(g, NO_HALO)
    scatter = BlockedScatter(node.op, (b.forms[x], form), b.forms[node])
    return apply(scatter, b.laned(x), b.in_form(g, form))


def concat(b: ImageBuilder, node: Node) -> Node:
    forms = [replace(b.forms[x], fill=b.forms[node].fill) for x in node.operands]
    if all(f.c % f.lanes == 0 for f in forms[:-1]):
        return apply(JoinedImages(1), *map(b.in_form, node.operands, forms))
    return blocked_op(b, node, BlockedConcat)


def pixel_sum(b: ImageBuilder, node: Node) -> Node:
    """Return the sum over pixels, by columns, then by rows. The halo is included, since it is 0."""
    form, x = b.forms[node.operands[0]], b.laned(node.operands[0])
    by_image = node.op.axes == PIXELS[0]  # type: ignore[attr-defined]
    total = apply(Sum((ROWS,)), apply(ColumnSum(form), x)) if by_image else apply(node.op, x)
    flat = reshape(total, (-1, form.shape[1] * form.lanes))
    sliced = apply(Slice((0, 0), (1, 1), (flat.shape[0], form.c)), flat) if flat.shape[1] != form.c else flat
    return reshape(sliced, node.shape)


def pointwise(b: ImageBuilder, node: Node) -> Node:
    form = b.forms[node]
    is_rounded = form.dtype == NUMBER
    op = in_bfloat16(node.op, tuple(x in b.forms for x in node.operands)) if is_rounded else node.op  # type: ignore[arg-type]
    out = apply(op, *(operand(b, x, form) for x in node.operands))
    keeps = keeps_fill(node, b) if node.dtype == np.uint8 else keeps_frame(node)
    return out if form.halo == NO_HALO or keeps else apply(ClearHalo(form), out)


def operand(b: ImageBuilder, x: Node, form: Form) -> Node:
    """Return an operand of a blocked pointwise op: whole, or broadcast over pixels."""
    if not isinstance(x.op, BroadcastTo):
        return b.in_form(x, replace(form, fill=b.forms[x].fill) if x in b.forms else form)
    source = x.operands[0]
    if source.size == 1:
        return apply(BroadcastTo(form.shape), reshape(b.plain(source), ()))
    if source in b.forms and source.shape[1] == form.c:
        return apply(BroadcastTo(form.shape), b.in_form(source, replace(b.forms[source], halo=NO_HALO)))
    shape = (1,) * (4 - source.ndim) + source.shape
    thin = replace(form, n=shape[0], h=1, w=1, halo=NO_HALO, dtype=code_of(source.dtype))
    if isinstance(source.op, ConstOp):
        channels = Const(thin.to_blocked(np.broadcast_to(source.op.array.reshape(shape), thin.logical)))
    else:
        channels = apply(ToBlocked(thin), broadcast_to(reshape(b.plain(source), shape), thin.logical))
    return apply(BroadcastTo(form.shape), channels)


FEW_FILTERS = Lowering(always, plain_depthwise, laned=False)
TRANSPOSED_PIXELS = Lowering(always, pixel_transpose, laned=False)
LOWERINGS: dict[type[Op], Lowering] = {
    IntegerConv: Lowering(always, byte_convolution, halo=byte_halo, alike=residuals, fill=byte_fill),
    PixelSum: Lowering(reads_blocks, byte_sum, laned=False),
    ByteTable: Lowering(reads_blocks, byte_table, alike=first_operand),
    ConvEpilogue: Lowering(always, convolution, halo=layer_halo, alike=residuals),
    ConvFilters: Lowering(is_served, filter_grad, laned=False, halo=filter_grad_halo),
    MaxPool: Lowering(pools_images, pool),
    AvgPool: Lowering(pools_images, pool),
    BytePool: Lowering(always, pool),
    MaxPoolIndices: Lowering(is_for_gradient, places),
    ScatterToIndices: Lowering(reads_lanes, scatter_gradient),
    ToFrames: Lowering(gains_blocks, frames_of),
    FromFrames: Lowering(reads_blocks, volumes_of_frames, laned=False),
    PadFrames: Lowering(reads_blocks, frame_by_frame, alike=first_operand),
    PoolFrames: Lowering(reads_blocks, frame_by_frame, alike=first_operand),
    Resize: Lowering(reads_images, resize),
    RoiAlign: Lowering(sees_lanes, regions, plain=plain_regions),
    RoiAlignGrad: Lowering(sees_lanes, regions_grad),
    Concat: Lowering(joins_channels, concat, alike=every_operand),
    Sum: Lowering(sums_pixels, pixel_sum, laned=False),
    Pointwise: Lowering(is_filled, pointwise, alike=every_operand),
}
