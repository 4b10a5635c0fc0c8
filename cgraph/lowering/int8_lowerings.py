"""Lowering of int8 ops on channel-blocked images."""

from functools import partial

import numpy as np

from cgraph.ir.graph import Node, apply
from cgraph.kernels.conv8.calls import ByteShape
from cgraph.kernels.depthwise8.calls import halo8
from cgraph.kernels.target import Target
from cgraph.lowering.image_builder import ImageBuilder
from cgraph.lowering.pack_int8 import byte_constants
from cgraph.lowering.tile_lowerings import tile_byte_convolution
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.physical.conv_layer import PLAIN_CHANNELS, byte_layer_of
from cgraph.ops.physical.form import NO_HALO, Form, Halo
from cgraph.ops.physical.integer import BlockedIntegerConv, BlockedPixelSum, IntegerConv, pack_bytes
from cgraph.ops.physical.lanes import ClearHalo
from cgraph.ops.shape import BroadcastTo, reshape
from cgraph.ops.slicing import Slice
from cgraph.record import replace


def byte_halo(node: Node, target: Target) -> Halo:
    """Return the halo that an IntegerConv reads around its images."""
    shape = byte_layer_of(node, target)
    return halo8(shape, shape.window)


def byte_fill(node: Node) -> int:
    """Return the value of the halo of an IntegerConv's images."""
    return node.op.zero  # type: ignore[attr-defined]


def byte_convolution(b: ImageBuilder, node: Node) -> Node:
    op, (x, filters, bias, scale, *residual) = node.op, node.operands
    assert isinstance(op, IntegerConv)
    if isinstance(layer := b.tiles.get(node), ByteShape):
        return tile_byte_convolution(b, node, layer)
    plain = x not in b.forms and x.shape[1] <= PLAIN_CHANNELS and op.conv.groups == 1
    shape = byte_layer_of(node, b.target, plain)
    if x in b.forms:
        source = replace(b.forms[x], fill=op.zero)
    else:
        source = Form(*x.shape, shape.source_lanes, "u1", halo8(shape, shape.window), op.zero)  # type: ignore[call-arg,arg-type]
    weights, starts, scales = (c.op.array for c in (filters, bias, scale))  # type: ignore[attr-defined]
    constants = byte_constants(shape, weights, starts, scales, op.zero, op.result)
    shape, result = constants.shape, constants.result
    key = (filters, bias, scale, shape) if shape.is_unpacked else (filters, shape)
    packed = b.packed(key, partial(pack_bytes, shape, constants.filters))
    operands = [b.in_form(x, source), packed, *(Const(c, copy=False) for c in constants.numbers)]
    other = None
    if residual:
        other = b.forms.get(residual[0], replace(b.forms[node], halo=NO_HALO))
        operands.append(b.in_form(residual[0], other))
    return apply(BlockedIntegerConv(shape, source, b.forms[node], result, other), *operands)


def byte_sum(b: ImageBuilder, node: Node) -> Node:
    """Return the sums over pixels, without unused channels."""
    form = b.forms[node.operands[0]]
    total = apply(BlockedPixelSum(form), b.laned(node.operands[0]))
    flat = reshape(total, (form.n, -1))
    return reshape(apply(Slice((0, 0), (1, 1), (form.n, form.c)), flat), node.shape)


def byte_table(b: ImageBuilder, node: Node) -> Node:
    """Return the result of a byte table on blocked images; the halo is filled again if the table changes its value."""
    x, table = node.operands
    form, before = b.forms[node], b.forms[x].fill
    out = apply(node.op, b.in_form(x, replace(form, fill=before)), b.plain(table))
    keeps = form.halo == NO_HALO or table.op.array[before] == form.fill  # type: ignore[attr-defined]
    return out if keeps else apply(ClearHalo(form), out)


def is_of_bytes(node: Node) -> bool:
    """Return True for a pointwise op of bytes and of values that are equal everywhere."""
    return all(x.operands[0].size == 1 if isinstance(x.op, BroadcastTo) else x.dtype == np.uint8 for x in node.operands)


def keeps_fill(node: Node, b: ImageBuilder) -> bool:
    """Return True if a pointwise op of bytes maps the halos of its operands to the halo of its result."""
    form = b.forms[node]
    frames = [frame_of(x, b.forms.get(x, form)) for x in node.operands]
    fills = [x for x in frames if x is not None]
    if len(fills) < len(frames):
        return False
    with np.errstate(all="ignore"):
        return node.op.meaning(*fills).item() == form.fill


def frame_of(x: Node, form: Form) -> np.ndarray | None:
    """Return the one number in the halo of an operand that is read in this form; None if it is unknown."""
    if not isinstance(x.op, BroadcastTo):
        return np.full(1, form.fill, "uint8")
    source = x.operands[0]
    return source.op.array.reshape(1) if isinstance(source.op, ConstOp) else None
