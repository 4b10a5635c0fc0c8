"""Convolution of channel-blocked bytes on processors that add up the products of all bytes of two vectors.

A turn of the reduction reads four words of a pixel, each four channels of a tap, by a vector of their addresses, and
multiplies them with 16 weights of each of the four channels of a block. Bytes without signs are less by 128, which the
initial sums make up for.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from cgraph.kernels.conv8.emit import finish
from cgraph.kernels.conv8.halves_emit import vector_of
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import GROUP, as_vector
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import each_task, fold
from cgraph.kernels.llvm.instructions import call_instruction, has_instruction
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.record import Record

BYTES = 16  # of a vector
SIGNS = -0x7F7F7F80  # 0x80808080: four bytes less 128


class Pixel(Record):
    """The params of `rows`.

    Fields
        result, fixed, bounded, clips, joins, is_rows: as in `cgraph.kernels.conv8.halves_emit.Tile`
    """

    result: str
    fixed: str
    bounded: bool
    clips: bool
    joins: str
    is_rows: bool


@final
def rows(k: Builder, result: str, fixed: str, bounded: bool, clips: bool, joins: str, is_rows: bool) -> None:
    """Emit the results. Task: one row of one block of channels of an image."""
    p = Pixel(result, fixed, bounded, clips, joins, is_rows)
    a = k.args()
    with each_task(k, a.panels, a.rows) as (image, block, row):
        x = a.x + (image * a.x_image + a.panel_offsets.load(block) + row * a.x_row)
        out = a.out + (image * a.o_image + block * a.o_plane + row * a.o_row)
        residual = k.pointer(a.residual, "u1") + (image * a.r_image + block * a.r_plane + row * a.r_row)
        w, bias = a.w + block * a.w_panel, a.bias + block * GROUP
        with k.loop(0, a.columns) as column:
            starts = [bias.load(c) for c in range(GROUP)]
            sums = vector_of(k, reduce_turns(k, a, x + column * a.x_step, w, starts))
            put_vectors(k, p, a, [sums], residual + column * GROUP, out + column * a.o_step, block)


def reduce_turns(k: Builder, a: SimpleNamespace, x: Ptr, w: Ptr, sums: Sequence[Val]) -> list[Val]:
    """Return the sums of the channels of one pixel."""
    with fold(k, 0, a.turns, [w, a.offsets, *sums]) as s:
        w, offsets, *sums = s.values
        words = load_words(k, x, offsets.load(0, GROUP)) ^ SIGNS
        inputs = as_vector(k, words, "u1", BYTES)
        totals = [add_across(k, y, inputs, w.load(BYTES * c, BYTES)) for c, y in enumerate(sums)]
        s.next = [w + BYTES * GROUP, offsets + GROUP, *totals]
    return s.values[2:]


def load_words(k: Builder, x: Ptr, offsets: Val) -> Val:
    """Return four words at offsets in bytes."""
    if has_instruction(k, "load words", GROUP):
        base = k.wrap(k.b.ptrtoint(x.v, ir.IntType(32)), "i4")
        return call_instruction(k, "load words", GROUP, offsets + base)
    return vector_of(k, [(x + k.cast(k.lane(offsets, i), "i8")).as_dtype("i4").load(align=1) for i in range(GROUP)])


def add_across(k: Builder, total: Val, x: Val, y: Val) -> Val:
    """Return ``total`` plus the products of all bytes with signs of two vectors."""
    if has_instruction(k, "bytes dot"):
        return call_instruction(k, "bytes dot", 0, total, x, y)
    left, right = (k.cast(as_vector(k, z, "i1", BYTES), "i4") for z in (x, y))
    products = left * right
    for i in range(BYTES):
        total = total + k.lane(products, i)
    return total


def put_vectors(
    k: Builder, p: Any, a: SimpleNamespace, sums: Sequence[Val], residual: Ptr, out: Ptr, block: Val
) -> None:
    """Store the results of neighbouring pixels, each a vector of sums."""
    if not p.bounded or p.fixed == "once" or p.is_rows:
        finish(k, p, a, sums, residual, out, block)
        return
    factors = a.scale.as_dtype("i4") + block * GROUP
    factor, places = factors.load(0, GROUP), -factors.load(a.shifts, GROUP)
    half = (k.splat((k.cast(a.zero, "i4") << 1) + 1, GROUP) << places) >> 1
    low, high = (
        k.splat(k.cast(x, "i4") if p.clips else k.const(n, "i4"), GROUP) for x, n in ((a.low, 0), (a.high, 255))
    )
    for q, x in enumerate(sums):
        y = doubled_product(k, x, factor)
        y = (y + (y >> 31) + half) >> places  # as `rounded` in `cgraph.kernels.conv8.halves_emit`
        out.store(k.cast(k.intrinsic("smin", k.intrinsic("smax", y, low), high), "u1"), a.o_step * q)


def doubled_product(k: Builder, x: Val, y: Val) -> Val:
    """Return the upper words of ``2 * x * y``, rounded."""
    if has_instruction(k, "doubled product", x.lanes):
        return call_instruction(k, "doubled product", x.lanes, x, y)
    return k.cast((k.cast(x, "i8") * k.cast(y, "i8") + (1 << 30)) >> 31, "i4")
