"""Dot products of bytes and conversion of sums to bytes, shared by the tiles of 8-bit images and matrices.

Images are bytes 0 to 255, filters -128 to 127. No intermediate result saturates: the sums of every form are those of
int32, so their bits are the same on every target.
"""

from collections.abc import Sequence

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.flow import shuffle
from cgraph.kernels.llvm.halves import add_products, bytes_as_halves
from cgraph.kernels.llvm.instructions import call_instruction, has_instruction
from cgraph.kernels.llvm.values import Ptr, Val, vector_type

BEYOND = 1024.0  # further from 0 than any byte and zero point
ROUNDING = 12582912.0  # 1.5 * 2**23: a float32 near it has steps of 1
ROUNDING_BITS = 0x4B400000
GROUP = 4  # bytes whose products are added up in one lane


def as_vector(k: Builder, x: Val, dtype: str, lanes: int) -> Val:
    """Return the same bits as a vector of elements of another size."""
    return k.wrap(k.b.bitcast(x.v, vector_type(dtype, lanes)), dtype, lanes)


def dots(k: Builder, sums: Sequence[Val], groups: Sequence[Val], weights: Sequence[Val]) -> list[Val]:
    """Return ``sums[q, v] + groups[q] . weights[v]``: the four bytes of each lane, pixel by vector.

    Operands
        groups: four bytes as an int32, for all lanes, or four for each lane
        weights: ``[lanes][4]`` bytes with signs
    """
    return DOTS[k.target.dot](k, sums, groups, weights)


def splat_group(k: Builder, group: Val, lanes: int) -> Val:
    return group if group.lanes else k.splat(group, lanes)


def by_mixed(k: Builder, sums: Sequence[Val], groups: Sequence[Val], weights: Sequence[Val]) -> list[Val]:
    """Use one instruction for bytes without signs times bytes with signs; it does not saturate between products."""
    lanes, totals = sums[0].lanes, []
    words = [as_vector(k, w, "i4", lanes) for w in weights]
    for q, group in enumerate(groups):
        x = splat_group(k, group, lanes)
        for v, w in enumerate(words):
            y = sums[q * len(words) + v]
            totals.append(call_instruction(k, "mixed dot", lanes, y, x, w))
    return totals


def by_signed(k: Builder, sums: Sequence[Val], groups: Sequence[Val], weights: Sequence[Val]) -> list[Val]:
    """Use one instruction for bytes with signs: ``x . w == (x - 128) . w + 128 * sum(w)``."""
    lanes, totals = sums[0].lanes, []
    words = [as_vector(k, w, "i4", lanes) for w in weights]
    zero, half = k.const(0, "i4", lanes), k.const(0x40404040, "i4", lanes)
    shares = [call_instruction(k, "signed dot", lanes, zero, half, w) << 1 for w in words]
    for q, group in enumerate(groups):
        x = splat_group(k, group, lanes) ^ 0x80808080  # bytes less 128
        for v, (w, share) in enumerate(zip(words, shares)):
            y = sums[q * len(words) + v] + share
            totals.append(call_instruction(k, "signed dot", lanes, y, x, w))
    return totals


def by_pairs(k: Builder, sums: Sequence[Val], groups: Sequence[Val], weights: Sequence[Val]) -> list[Val]:
    """Use even and odd bytes as 16-bit numbers: two products are at most 65,280."""
    lanes, totals = sums[0].lanes, []
    wide = [as_vector(k, w, "i2", 2 * lanes) for w in weights]
    halves = [((w << 8) >> 8, w >> 8) for w in wide]
    for q, group in enumerate(groups):
        x = splat_group(k, group, lanes)
        even = as_vector(k, x & 0x00FF00FF, "i2", 2 * lanes)
        odd = as_vector(k, as_vector(k, x, "u2", 2 * lanes) >> 8, "i2", 2 * lanes)
        for v, (w_even, w_odd) in enumerate(halves):
            y = sums[q * len(halves) + v]
            totals.append(y + pair_sums(k, even, w_even) + pair_sums(k, odd, w_odd))
    return totals


def pair_sums(k: Builder, x: Val, y: Val) -> Val:
    """Return sums of two neighbouring products of 16 bits."""
    return call_instruction(k, "pair dot", x.lanes // 2, x, y)


def by_integers(k: Builder, sums: Sequence[Val], groups: Sequence[Val], weights: Sequence[Val]) -> list[Val]:
    """Multiply byte by byte in int32, on processors without an instruction for it."""
    lanes, totals = sums[0].lanes, []
    words = [as_vector(k, w, "i4", lanes) for w in weights]
    factors = [[(w << (24 - 8 * i)) >> 24 for i in range(GROUP)] for w in words]
    for q, group in enumerate(groups):
        x = splat_group(k, group, lanes)
        parts = [as_vector(k, as_vector(k, x, "u4", lanes) >> 8 * i, "i4", lanes) & 0xFF for i in range(GROUP)]
        for v, w in enumerate(factors):
            y = sums[q * len(factors) + v]
            for part, factor in zip(parts, w):
                y = y + part * factor
            totals.append(y)
    return totals


def by_halves(k: Builder, sums: Sequence[Val], groups: Sequence[Val], weights: Sequence[Val]) -> list[Val]:
    """Use instructions for two products of 16 bits, lane by lane, on processors without vectors."""
    lanes, totals = sums[0].lanes, list(sums)
    words = [as_vector(k, w, "i4", lanes) for w in weights]
    for lane in range(lanes):
        factors = [halves_of(k, k.lane(w, lane), True) for w in words]
        for q, group in enumerate(groups):
            x = halves_of(k, k.lane(group, lane) if group.lanes else group, False)
            for v, factor in enumerate(factors):
                at = q * len(words) + v
                y = k.lane(totals[at], lane)
                for part, other in zip(x, factor):
                    y = add_products(k, part, other, y)
                totals[at] = k.with_lane(totals[at], lane, y)
    return totals


def halves_of(k: Builder, word: Val, signed: bool) -> tuple[Val, Val]:
    """Return bytes 0 and 2 of a word, and bytes 1 and 3, as numbers of 16 bits."""
    return bytes_as_halves(k, word, 0, signed), bytes_as_halves(k, word, 1, signed)


DOTS = {
    "across": by_integers,
    "halves": by_halves,
    "mixed": by_mixed,
    "signed": by_signed,
    "pairs": by_pairs,
    "plain": by_integers,
}


def fixed_product(k: Builder, x: Val, factor: Val, shift: Val, once: bool) -> Val:
    """Return ``x * factor * 2**(shift - 31)`` of int32 in integer arithmetic; see `cgraph.ops.fixed`."""
    if once:
        places = k.cast(31 - shift, "i8")
        half = k.const(1, "i8", x.lanes) << (places - 1)
        return k.cast((k.cast(x, "i8") * k.cast(factor, "i8") + half) >> places, "i4")
    zero = k.const(0, "i4", x.lanes)
    left, right = k.larger(shift, zero), k.larger(-shift, zero)
    wide = k.cast(x << left, "i8") * k.cast(factor, "i8") + (1 << 30)
    high = k.cast(k.bits(wide, "u8") >> 31, "i4")  # bits above those of an int32 are dropped
    mask = (k.const(1, "i4", x.lanes) << right) - 1
    beyond = (high & mask) > (mask >> 1) + k.select(high < 0, k.const(1, "i4", x.lanes), zero)
    return (high >> right) + k.select(beyond, k.const(1, "i4", x.lanes), zero)


def round_to_integer(k: Builder, x: Val) -> Val:
    """Round a float32 near 0 to an integer, halves to even."""
    if k.target.fma:
        return k.intrinsic("rint", x)
    x = k.larger(k.smaller(x, BEYOND), -BEYOND)
    return (x + ROUNDING) - ROUNDING


def to_bytes(k: Builder, four: Sequence[Val], zero: Val, low: Val, high: Val, fits: bool = False) -> Val:
    """Return four vectors of float32 as consecutive bytes: ``clip(rint(x) + zero, low, high)``.

    Parameters
        zero: int16; low, high: bytes
        fits: all numbers are less than 2**31
    """
    lanes = four[0].lanes
    if not has_instruction(k, "pack u1", 4 * lanes):
        return plain_bytes(k, four, zero, low, high)
    words = [to_int(k, x, fits) for x in four]
    halves = [call_instruction(k, "pack i2", 2 * lanes, *words[i : i + 2]) for i in (0, 2)]
    halves = [k.intrinsic("sadd.sat", y, k.splat(zero, 2 * lanes)) for y in halves]
    y = call_instruction(k, "pack u1", 4 * lanes, *halves)
    y = k.intrinsic("umax", y, k.splat(low, 4 * lanes))
    y = k.intrinsic("umin", y, k.splat(high, 4 * lanes))
    # packs work within 128 bits: int32 4 * j + i of them is part j of vector i
    parts = lanes // 4
    y = as_vector(k, y, "i4", lanes)
    return as_vector(k, shuffle(k, y, y, [4 * j + i for i in range(4) for j in range(parts)]), "u1", 4 * lanes)


def to_int(k: Builder, x: Val, fits: bool) -> Val:
    """Convert to int32, halves to even; bounded above first if not all numbers fit, since the instruction returns its
    least number beyond 2**31.
    """
    return call_instruction(k, "nearest", x.lanes, x if fits else k.smaller(x, BEYOND))


def plain_bytes(k: Builder, four: Sequence[Val], zero: Val, low: Val, high: Val) -> Val:
    """Return the same by arithmetic, without special instructions."""
    quarters = []
    for x in four:
        near = k.larger(k.smaller(x, BEYOND), -BEYOND) + ROUNDING
        y = k.bits(near, "i4") - ROUNDING_BITS + k.splat(k.cast(zero, "i4"), x.lanes)
        y = k.larger(k.smaller(y, k.splat(k.cast(high, "i4"), x.lanes)), k.splat(k.cast(low, "i4"), x.lanes))
        quarters.append(k.cast(y, "u1"))
    return k.join(k.join(*quarters[:2]), k.join(*quarters[2:]))


def store_bytes(
    k: Builder, out: Ptr, pixels: Sequence[Val], zero: Val, low: Val, high: Val, fits: bool = False
) -> None:
    """Store neighbouring pixels of a block as bytes: ``[pixels][lanes]``; see `to_bytes`."""
    lanes = pixels[0].lanes
    for q in range(0, len(pixels), GROUP):
        some = list(pixels[q : q + GROUP])
        packed = to_bytes(k, some + [some[-1]] * (GROUP - len(some)), zero, low, high, fits)
        if len(some) == GROUP:
            out.store(packed, q * lanes)
            continue
        for i in range(len(some)):
            out.store(k.slice(packed, i * lanes, lanes), (q + i) * lanes)
