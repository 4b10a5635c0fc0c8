"""Weights of convolutions of bytes, initial sums and scales of results, in the order in which kernels read them."""

import numpy as np

from cgraph.kernels.conv8.calls import GROUP, ByteShape, Result
from cgraph.kernels.conv8.signature import PLACE_BITS, places_of
from cgraph.kernels.views.pack import spread_groups


def pack_conv8(shape: ByteShape, filters: np.ndarray) -> np.ndarray:
    """Return filters int8 ``[k, c / groups, r, s]`` as ``[panels, steps, groups of four channels, panel channels, 4]``;
    zero for unused channels. For few registers in the order of `in_halves`, `in_vectors` or
    `in_columns`.
    """
    width, groups = shape.panel_channels, shape.unroll // GROUP
    out = np.zeros((shape.panels, len(shape.steps), groups, width, GROUP), filters.dtype)
    channel, r, s = (x[:, None] for x in np.array(shape.steps).T)
    for panel in range(shape.panels):
        dense = filters[panel * width : (panel + 1) * width]
        if shape.groups > 1:
            dense = spread_groups(shape, dense, panel)
        inputs = np.arange(shape.unroll)
        if shape.by_taps:
            steps = np.pad(dense, ((0, 0), (0, 0), (0, 0), (0, -dense.shape[3] % GROUP)))[:, 0, r, s + inputs]
        else:
            read = int(channel.max()) + shape.unroll
            padded = np.pad(dense, ((0, 0), (0, max(read - dense.shape[1], 0)), (0, 0), (0, 0)))
            steps = padded[:, channel + inputs, r, s]  # [k, step, channel]
        by_group = steps.reshape(len(dense), len(shape.steps), groups, GROUP)
        out[panel, :, :, : len(dense)] = by_group.transpose(1, 2, 0, 3)
    if not shape.by_rows:
        return out
    if shape.is_unpacked:
        return in_columns(out)
    return in_vectors(out) if shape.is_across else in_halves(out, shape.pairs)


def in_vectors(packed: np.ndarray) -> np.ndarray:
    """Return weights ``[panels, steps, 1, 4 channels, 4 inputs]`` as ``[panels, steps / 4, 4 channels, 4 steps, 4
    inputs]``, with zeros for missing steps.
    """
    y = np.pad(packed[:, :, 0], ((0, 0), (0, -packed.shape[1] % GROUP), (0, 0), (0, 0)))
    return np.ascontiguousarray(y.reshape(len(y), -1, GROUP, GROUP, GROUP).transpose(0, 1, 3, 2, 4))


def in_halves(packed: np.ndarray, pairs: int) -> np.ndarray:
    """Return weights ``[panels, steps, 1, 4 channels, 4 inputs]`` as words of two channels of inputs 0 and 2, then of
    inputs 1 and 3: ``[panels, rest of pairs, steps, odd inputs, pairs, input, channel]``.
    """
    y = packed.reshape(*packed.shape[:2], 2 // pairs, pairs, 2, 2, 2)  # rest, pair, channel, input, odd
    return np.ascontiguousarray(y.transpose(0, 2, 1, 6, 3, 5, 4))


def in_columns(packed: np.ndarray) -> np.ndarray:
    """Return weights ``[panels, steps, 1, 4 channels, 4 inputs]`` as ``[first or second pair, panels, steps, 2
    channels, 4 inputs]``.
    """
    y = packed.reshape(*packed.shape[:2], 2, 2, GROUP)
    return np.ascontiguousarray(y.transpose(2, 0, 1, 3, 4))


def join_halves(weights: np.ndarray) -> np.ndarray:
    """Return int8 weights with every two neighbours a, b as the bytes of ``256 * -a + b``; no ``a`` is -128."""
    pairs = weights.reshape(-1, 2).astype("<i2")
    return (pairs[:, 1] - 256 * pairs[:, 0]).astype("<i2").view("i1").reshape(weights.shape)


def split_halves(weights: np.ndarray) -> np.ndarray:
    """Return the weights that `join_halves` joined."""
    low, high = weights.reshape(-1, 2).astype("i2").T
    return np.stack([-high - (low < 0), low], 1).astype("i1").reshape(weights.shape)


def column_numbers(
    shape: ByteShape, filters: np.ndarray, start: np.ndarray, scale: np.ndarray, once: bool
) -> np.ndarray:
    """Return the numbers of `cgraph.kernels.conv8.columns_emit`: ``[first or second pair, panels, (initial sum,
    factor), 2 channels]``. The initial sums wrap, and end with the places.

    Parameters
        start, scale: as for other kernels, of all filters
    """
    sums = 256 * start.astype("i8") + places_of(scale[1], once) + column_offsets(shape, filters)
    rows = pack_numbers(shape, np.stack([sums.astype("i4"), scale[0]]))
    return np.ascontiguousarray(rows.reshape(2, -1, 2, 2).transpose(2, 1, 0, 3))


def split_numbers(
    shape: ByteShape, filters: np.ndarray, numbers: np.ndarray, once: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the initial sums and the scales of which `column_numbers` returned the numbers."""
    sums, factors = numbers.transpose(2, 1, 0, 3).reshape(2, -1)[:, : shape.k]
    both = sums - column_offsets(shape, filters).astype("i4")
    return both >> 8, np.stack([factors, places_of(both & 255, once)])


def column_offsets(shape: ByteShape, filters: np.ndarray) -> np.ndarray:
    """Return what initial sums make up for, as int64: it depends on which inputs of a word are first and second."""
    along = filters.transpose(0, 3, 1, 2) if shape.by_taps else filters
    first, second = (along[:, i::2].sum((1, 2, 3), dtype="i8") for i in range(2))
    return 32769 * second - 256 * first


def has_short_shifts(shape: ByteShape, result: Result) -> bool:
    """Return True if the shifts of scales are stored as bytes: those of bounded results are."""
    return result.bounded and shape.target.dot == "halves"


def pack_start(shape: ByteShape, start: np.ndarray, scale: np.ndarray, result: Result) -> np.ndarray:
    """Return initial sums as kernels read them, up to the last panel's end: with places in their low bits if those are
    joined.
    """
    if result.joins_places:
        start = (start << PLACE_BITS | places_of(scale[1], result.fixed == "once")).astype(start.dtype)
    return pack_numbers(shape, start)


def split_start(shape: ByteShape, packed: np.ndarray, result: Result) -> np.ndarray:
    """Return the initial sums ``[k]`` that `pack_start` packed."""
    return packed[: shape.k] >> (PLACE_BITS if result.joins_places else 0)


def pack_scale(shape: ByteShape, scale: np.ndarray, result: Result) -> np.ndarray:
    """Return scales as kernels read them: up to the last panel's end; with `has_short_shifts` int32 ``[5 / 4 k]``,
    factors and then the bytes of the shifts, or ``[2]`` if there is one scale; factors if places are joined.
    """
    if not has_short_shifts(shape, result):
        return pack_numbers(shape, scale)
    if result.has_one_scale:
        return scale[:, 0].astype("i4")
    if result.joins_places:
        return pack_numbers(shape, scale[0])
    factors, shifts = pack_numbers(shape, scale)
    return np.concatenate([factors, shifts.astype("i1").view("<i4")])


def split_scale(shape: ByteShape, start: np.ndarray, packed: np.ndarray, result: Result) -> np.ndarray:
    """Return the scales ``[..., k]`` that `pack_start` and `pack_scale` packed."""
    if result.joins_places:
        shifts = places_of(start & (1 << PLACE_BITS) - 1, result.fixed == "once")
        return np.stack([packed, shifts])[:, : shape.k]
    if not has_short_shifts(shape, result):
        return packed[..., : shape.k]
    if result.has_one_scale:
        return np.repeat(packed[:, None], shape.k, 1)
    count = len(packed) * GROUP // (GROUP + 1)
    return np.stack([packed[:count], packed[count:].view("i1").astype("i4")])[:, : shape.k]


def pack_numbers(shape: ByteShape, x: np.ndarray) -> np.ndarray:
    """Return numbers ``[..., k]`` with zeros up to the last panel's end."""
    out = np.zeros((*x.shape[:-1], shape.panels * shape.panel_channels), x.dtype)
    out[..., : shape.k] = x
    return out
