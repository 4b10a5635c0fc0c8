"""Convolution of channel-blocked 8-bit images, and products of 8-bit matrices, by register tiles.

As in `cgraph.kernels.conv.emit`, a table of offsets drives the reduction and `pixels` x `vectors` sums stay in
registers. A step broadcasts four bytes of a pixel, which are four channels, instead of one float.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from cgraph.kernels.conv.emit import each_tile, next_panel_share
from cgraph.kernels.conv8.signature import RATIOS
from cgraph.kernels.kernel import LINE
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import GROUP, dots, fixed_product, round_to_integer, store_bytes, to_bytes
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import change_if, first_lanes, fold, masked_store, prefetch
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.record import Record


class Tile(Record):
    """The params of `tile`.

    Fields
        pixels, vectors: neighbouring pixels and blocks of channels whose sums are in registers
        unroll: input channels of one step, a multiple of four
        x_step: bytes from one pixel of the tile to the next
        result: the result's dtype: ``u1``, ``f4`` or ``i4``
        fixed: rounding of a sum times its scale to an integer, ``once`` or ``twice``; empty for floats
        joins: conversion of the byte to a second one, perhaps with a residual: see `Result.joins`
        is_rows: pixels are rows of a matrix, a step apart; else they are channel-blocked
        has_terms: the sums of each pixel begin with a number of its own, besides the bias
        ahead: cache lines of the next panel of weights prefetched in each step, 0 if they are cached
    """

    pixels: int
    vectors: int
    unroll: int
    x_step: int
    result: str
    fixed: str
    joins: str
    is_rows: bool
    has_terms: bool
    ahead: int


@final
def tile(k: Builder, *params) -> None:
    """Emit sums as bytes ``clip(rint(sum * scale) + zero, low, high)``, as floats ``sum * scale``, or unchanged.

    Task: one tile of neighbouring pixels of a row and `vectors` blocks of channels; order and overlap as in
    `cgraph.kernels.conv.emit.tile`.
    """
    p = Tile(*params)
    a = k.args()
    lanes = k.target.lanes
    with each_tile(k, a, p.pixels) as at:
        x = a.x + (at.image * a.x_image + a.panel_offsets.load(at.panel) + at.row * a.x_row + at.column * p.x_step)
        w = a.w + (at.image * a.w_image + at.panel * a.w_panel)
        beyond = w + next_panel_share(k, a, at.t, p.ahead * LINE) if p.ahead else w
        sums = reduce_steps(k, p, a, x, w, beyond, first_sums(k, p, a, at.image, at.panel, at.column))
        out = a.out + (at.image * a.o_image + at.row * a.o_row + at.column * a.o_step)
        residual = k.pointer(a.residual, "u1") + (at.image * a.r_image + at.row * a.r_row + at.column * lanes)
        for v in range(p.vectors):
            block = at.panel * p.vectors + v
            finish(k, p, a, sums[v :: p.vectors], residual + block * a.r_plane, out + block * a.o_plane, block)


def first_sums(k: Builder, p: Tile, a: SimpleNamespace, image: Val, panel: Val, column: Val) -> list[Val]:
    """Return the initial sums of one tile."""
    lanes = k.target.lanes
    bias = a.bias + (image * a.b_image + panel * (p.vectors * lanes))
    starts = [bias.load(v * lanes, lanes) for v in range(p.vectors)]
    if not p.has_terms:
        return starts * p.pixels
    terms = k.pointer(a.terms, "i4") + (image * a.columns + column)
    return [start + terms.load(q) for q in range(p.pixels) for start in starts]


def reduce_steps(
    k: Builder, p: Tile, a: SimpleNamespace, x: Ptr, w: Ptr, beyond: Ptr, sums: Sequence[Val]
) -> list[Val]:
    """Return the sums of one tile over all steps of the offset table."""
    lanes = k.target.lanes
    with fold(k, 0, a.steps, [w, beyond, *sums]) as s:
        w, beyond, *sums = s.values
        at, words = x + a.offsets.load(s.i), w.as_dtype("i4")
        for i in range(p.ahead):
            prefetch(k, beyond + i * LINE, locality=2)
        for u in range(p.unroll // GROUP):
            weights = [words.load((u * p.vectors + v) * lanes, lanes, align=1) for v in range(p.vectors)]
            groups = [(at + (q * p.x_step + GROUP * u)).as_dtype("i4").load(align=1) for q in range(p.pixels)]
            sums = dots(k, sums, groups, weights)
        s.next = [w + p.unroll * p.vectors * lanes, beyond + p.ahead * LINE, *sums]
    return s.values[2:]


def finish(k: Builder, p: Any, a: SimpleNamespace, sums: Sequence[Val], residual: Ptr, out: Ptr, block: Val) -> None:
    """Convert the sums of neighbouring pixels of one block to results, as the Tile `p` says, and store them."""
    lanes = k.target.lanes
    put(k, p, a, requantise(k, p, a, sums, lambda q: residual + q * lanes, block), out, block)


def requantise(
    k: Builder, p: Any, a: SimpleNamespace, sums: Sequence[Val], residual: Callable[[int], Ptr], block: Val
) -> list[Val]:
    """Return the results of the sums of one vector of channels, as floats that are not yet rounded to bytes.

    Parameters
        p: has `fixed`, `result` and `joins`, as a Tile
        residual: returns the address of the residual of each sum
        block: number of the vector of channels
    """
    lanes = k.target.lanes
    if p.fixed:
        factors = a.scale.as_dtype("i4") + block * lanes
        factor, shift = factors.load(lanes=lanes), factors.load(a.shifts, lanes)
        sums = [k.cast(fixed_product(k, y, factor, shift, p.fixed == "once"), "f4") for y in sums]
    elif p.result != "i4":
        scale = a.scale.load(block * lanes, lanes)
        sums = [k.cast(y, "f4") * scale for y in sums]
    if not p.joins:
        return list(sums)
    low, high = numbers(k, a, lanes, "first_low", "first_high")
    values = [k.larger(k.smaller(round_to_integer(k, y), high), low) for y in sums]
    return (join_by_ratios if uses_ratios(k, p) else join_by_division)(k, a, values, residual)


def uses_ratios(k: Builder, p: Any) -> bool:
    """Return True if bytes are joined by multiply-adds, so that all quotients fit in int32."""
    return bool(p.joins == "ratios" and k.target.fma)


def numbers(k: Builder, a: SimpleNamespace, lanes: int, *names: str) -> list[Val]:
    """Return arguments as vectors of float32."""
    return [k.splat(k.cast(getattr(a, name), "f4"), lanes) for name in names]


def join_by_division(
    k: Builder, a: SimpleNamespace, values: Sequence[Val], residual: Callable[[int], Ptr]
) -> list[Val]:
    """Return ``(value * first + (residual - r_zero) * beside) / last``, which is converted to a byte next.

    In the order and with the roundings of ONNX's operators: no fused multiply-add, a true division.
    """
    lanes = values[0].lanes
    first, beside, r_zero, last, inverse = numbers(k, a, lanes, "first", "beside", "r_zero", "last", "inverse")
    values = [value * first for value in values]
    with change_if(k, a.residual != 0, values) as s:
        s.next = [y + (residual_value(k, residual(q), lanes) - r_zero) * beside for q, y in enumerate(values)]
    return [quotient(k, y, last, inverse) for y in s.values]


def join_by_ratios(k: Builder, a: SimpleNamespace, values: Sequence[Val], residual: Callable[[int], Ptr]) -> list[Val]:
    """Return the same up to last bits that change no byte: ``fma(value, ratio, fma(residual, r_ratio, offset))``."""
    lanes = values[0].lanes
    ratio, r_ratio, offset = numbers(k, a, lanes, *RATIOS)
    with change_if(k, a.residual != 0, [k.const(0, "f4", lanes)] * len(values)) as s:
        s.next = [k.fma(residual_value(k, residual(q), lanes), r_ratio, offset) for q in range(len(values))]
    return [k.fma(value, ratio, term) for value, term in zip(values, s.values)]


def residual_value(k: Builder, at: Ptr, lanes: int) -> Val:
    """Return bytes as float32."""
    return k.cast(k.cast(at.load(lanes=lanes), "i4"), "f4")


def quotient(k: Builder, x: Val, y: Val, inverse: Val) -> Val:
    """Return x / y correctly rounded, by the rounded inverse of y: a quarter of the time of a division.

    Two corrections by the remainder: the first brings the quotient next to the true one, the second rounds it.
    Source: Markstein 1990, Computation of elementary functions on the IBM RISC System/6000 processor.
    """
    if not k.target.fma:
        return x / y
    ratio = x * inverse
    for _ in range(2):
        ratio = k.fma(k.fma(-ratio, y, x), inverse, ratio)
    return ratio


def put(k: Builder, p: Any, a: SimpleNamespace, ys: Sequence[Val], out: Ptr, block: Val) -> None:
    lanes = k.target.lanes
    if p.result == "u1":
        bounds = k.cast(a.zero, "i2"), k.cast(a.low, "u1"), k.cast(a.high, "u1")
        if not p.is_rows:
            store_bytes(k, out, ys, *bounds, uses_ratios(k, p))
            return
        ys = [k.slice(to_bytes(k, [y] * GROUP, *bounds), 0, lanes) for y in ys]
    inside = first_lanes(k, a.channels - block * lanes, lanes) if p.is_rows else None
    for q, y in enumerate(ys):
        at = out + a.o_step * q
        if inside is None:
            at.store(y)
        else:
            masked_store(k, at, y, inside)
