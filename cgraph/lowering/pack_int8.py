"""Constants of products of bytes, packed once."""

from collections.abc import Iterable
from functools import partial
from math import prod

import numpy as np

from cgraph.ir.graph import Node, Op, apply
from cgraph.ir.roots import New, rebuild
from cgraph.kernels.conv8.calls import ByteShape, Result, is_depthwise8
from cgraph.kernels.conv8.packed_weights import column_numbers, pack_scale, pack_start
from cgraph.kernels.depthwise8.calls import has_planes
from cgraph.kernels.target import Target
from cgraph.kernels.tile_products.calls import TileSize, pack_columns, pack_tiles, suits_tiles
from cgraph.ops.fixed import fixed_products
from cgraph.ops.leaf import Const
from cgraph.ops.physical.integer import IntegerMatmul, PackedIntegerMatmul, pack_bytes
from cgraph.ops.physical.tiled import TiledIntegerMatmul
from cgraph.passes.loop_bodies import in_bodies
from cgraph.record import Record, replace

START_BITS = 26  # of initial sums that leave room for places
LEAST_SHIFT, MOST_SHIFT = -20, -2  # of a bounded result
COLUMN_BITS, COLUMN_SHIFT = 23, -13  # of sums of unpacked pixels; the shift of channels that are always the same


PackedProduct = tuple[Op, tuple[Node, ...]]  # an op, and its operands but the first


def pack_integers(outputs: tuple[Node, ...], target: Target) -> tuple[Node, ...]:
    """Pack the constants of products of bytes, in bodies too: the same values, no packing in every run.

    Products of as many rows by the same constants share them. Not packed for blocks of a GPU's threads, which read any
    order.
    """
    if target.has_blocks:
        return outputs
    graph = in_bodies(outputs, partial(pack_integers, target=target))
    if not graph.has(IntegerMatmul):
        return graph
    products: dict[tuple, PackedProduct] = {}

    def change(node: Node, new: New) -> Node | None:
        if not isinstance(node.op, IntegerMatmul):
            return None
        x, *constants = operands = tuple([new[operand] for operand in node.operands])
        key = node.op, prod(x.shape[:-1]), *constants
        if key not in products:
            products[key] = pack_product(node, operands, target)
        op, packed = products[key]
        return apply(op, x, *packed)

    return rebuild(graph, change)


def pack_product(node: Node, operands: tuple[Node, ...], target: Target) -> PackedProduct:
    """Return the product on tile registers, if the target has them, or as tiles of a 1×1 convolution."""
    op, (x, *arrays) = node.op, operands
    assert isinstance(op, IntegerMatmul)
    y, bias, scale = (c.op.array for c in arrays)  # type: ignore[attr-defined]
    k, n = y.shape
    if target.tiles and suits_tiles(prod(x.shape[:-1]), k, 1):
        size = TileSize(k, n, 1)
        start = bias - op.zero * y.sum(0, dtype="int32")
        packed = [pack_tiles(size, y), pack_columns(size, start), pack_columns(size, scale)]
        return TiledIntegerMatmul(k, n, op.zero, op.result), constants_of(packed)
    shape = ByteShape(y.shape[0], 1, prod(x.shape[:-1]), y.shape[1], target)
    filters = np.ascontiguousarray(y.T)[:, :, None, None]
    constants = byte_constants(shape, filters, bias, scale, op.zero, op.result)
    packed = [pack_bytes(constants.shape, constants.filters), *constants.numbers]
    return PackedIntegerMatmul(constants.shape, op.zero, constants.result), constants_of(packed)


def constants_of(arrays: Iterable[np.ndarray]) -> tuple[Node, ...]:
    """Return arrays as constants, without a copy."""
    return tuple(Const(array, copy=False) for array in arrays)


class ByteConstants(Record, eq=False):
    """Constants of a convolution of bytes, and what they say about its kernel.

    Fields
        shape, result: of the convolution; unpacked and bounded where the constants allow it
        filters: int8 ``[k, c / groups, r, s]``; zeros for channels that are the same for all images
        numbers: initial sums and scales up to the last panel; of unpacked pixels those of `column_numbers`
    """

    shape: ByteShape
    result: Result
    filters: np.ndarray
    numbers: tuple[np.ndarray, ...]


def byte_constants(
    shape: ByteShape, filters: np.ndarray, bias: np.ndarray, scale: np.ndarray, zero: int, result: Result
) -> ByteConstants:
    """Return the constants of a convolution: initial sums are the bias minus the contribution of the images' zero
    point.

    The result is bounded where that is known; then channels that are the same for all images may have other numbers.
    """
    start = bias - (zero - shape.middle) * filters.sum((1, 2, 3), dtype="int32")
    if result.fixed and result.dtype == "u1" and shape.by_rows:
        reach = sums_reached(filters, shape.middle)
        columns = column_constants(shape, result, filters, start, scale, reach)
        if columns is not None:
            return columns
        other, scale_other = calmed(result, start, scale, reach)
        if is_bounded(other, scale_other, reach):
            result, start, scale = replace(result, bounded=True), other, scale_other
            if is_depthwise8(shape) and has_planes(shape) and result.join is None:
                shape = replace(shape, is_unpacked=True)
            elif not is_depthwise8(shape) and shape.target.dot == "halves":
                result = replace(result, has_one_scale=bool((scale == scale[:, :1]).all()))
            joins = shape.target.dot == "halves" and not result.has_one_scale
            result = replace(result, joins_places=joins and bool((np.abs(start) < 1 << START_BITS).all()))
    numbers = pack_start(shape, start, scale, result), pack_scale(shape, scale, result)
    return ByteConstants(shape, result, filters, numbers)


def column_constants(
    shape: ByteShape, result: Result, filters: np.ndarray, start: np.ndarray, scale: np.ndarray, reach: np.ndarray
) -> ByteConstants | None:
    """Return the constants of the kernel that unpacks pixels once for all filters, None if it cannot compute them."""
    if not shape.has_columns or is_depthwise8(shape) or result.join is not None:
        return None
    least, most = result_ends(result, start, scale, reach)
    same = (least == most) & (np.abs(start + reach) < 1 << 31).all(0)
    filters = np.where(same[:, None, None, None], 0, filters).astype("i1")
    start = np.where(same, (least - result.zero) << 1 - COLUMN_SHIFT, start).astype(start.dtype)
    scale = np.where(same, np.array([[1 << 30], [COLUMN_SHIFT]]), scale).astype(scale.dtype)
    if filters.min(initial=0) == -128 or not is_bounded(start, scale, sums_reached(filters, 0), COLUMN_BITS):
        return None
    shape = replace(shape, is_unpacked=True)
    numbers = column_numbers(shape, filters, start, scale, result.fixed == "once")
    return ByteConstants(shape, replace(result, bounded=True), filters, (numbers,))


def sums_reached(filters: np.ndarray, middle: int) -> np.ndarray:
    """Return the least and the largest sum of products of any bytes, less `middle`, with each filter, as int64
    ``[2, k]``.
    """
    ends = np.stack([filters.astype("i8") * end for end in (-middle, 255 - middle)])
    return np.stack([ends.min(0).sum((1, 2, 3)), ends.max(0).sum((1, 2, 3))])


def calmed(result: Result, start: np.ndarray, scale: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return initial sums and scales where channels whose result does not depend on the image are bounded.

    Trained networks have channels without effect, with biases and shifts of any size.
    """
    least, most = result_ends(result, start, scale, reach)
    middle = ((least - result.zero) << 1 - LEAST_SHIFT) - reach.sum(0) // 2
    constant = np.stack([np.full_like(scale[0], 1 << 30), np.full_like(scale[1], LEAST_SHIFT)])
    same = (
        (least == most)
        & (np.abs(start + reach) < 1 << 31).all(0)
        & (result_ends(result, middle, constant, reach) == least).all(0)
    )
    return np.where(same, middle, start).astype(start.dtype), np.where(same, constant, scale)


def result_ends(result: Result, start: np.ndarray, scale: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Return the bytes of the least and the largest sums, as int64 ``[2, k]``."""
    whole = fixed_products((start + reach).astype("i4"), scale[0], scale[1], result.fixed == "once").astype("i8")
    return np.clip(whole + result.zero, result.low, result.high)


def is_bounded(start: np.ndarray, scale: np.ndarray, reach: np.ndarray, bits: int = 30) -> bool:
    """Return True if 32 bits suffice to round all sums, which are below ``2**bits``; see `Result`."""
    small = np.abs(start + reach) < 1 << bits
    return bool(small.all() and (scale[1] >= LEAST_SHIFT).all() and (scale[1] <= MOST_SHIFT).all())
