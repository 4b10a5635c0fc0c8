"""Calls that change a layout: plain to channel-blocked and back, halos, channels to other lanes (concat, slices)."""

from collections.abc import Mapping, Sequence

from cgraph.kernels.blocked_copy.signature import CHANNELS, FILL_HALO, TO_BLOCKED, TO_PLAIN
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.signature import Signature
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView, require_whole_blocks
from cgraph.kernels.views.kernel_calls import chunk_of
from cgraph.kernels.views.row_bands import band_of, banded_tasks
from cgraph.record import replace

LONG_ROW = 128  # pixels, from which on rows are not joined


def to_blocked_calls(target: Target, out: BlockedView, x: View) -> list[Call]:
    """Copy plain images ``[n, c, h, w]`` to the interior of `out`; any strides, but contiguous pixels."""
    require_whole_blocks(out)
    if target.has_blocks and out.lanes == 1:
        plain_steps(x, (out.n, out.c, out.h, out.w))
        return copy_calls(target, pixels(out), x)
    out, x = with_long_rows(out, x)
    steps = plain_steps(x, (out.n, out.c, out.h, out.w))
    sides = {
        "x": x.at, **dict(zip(("x_image", "x_plane", "x_row"), steps)),
        "out": out.origin, "o_image": out.image, "o_plane": out.plane, "o_row": out.row,
    }  # fmt: skip
    return [row_call(TO_BLOCKED, out, sides)]


def to_plain_calls(target: Target, out: View, x: BlockedView) -> list[Call]:
    """Copy a channel-blocked value to `out`, a view ``[n, c, h, w]`` with contiguous pixels."""
    require_whole_blocks(x)
    if target.has_blocks and x.lanes == 1:
        plain_steps(out, (x.n, x.c, x.h, x.w))
        return copy_calls(target, out, pixels(x))
    x, out = with_long_rows(x, out)
    steps = plain_steps(out, (x.n, x.c, x.h, x.w))
    sides = {
        "x": x.origin, "x_image": x.image, "x_plane": x.plane, "x_row": x.row,
        "out": out.at, **dict(zip(("o_image", "o_plane", "o_row"), steps)),
    }  # fmt: skip
    return [row_call(TO_PLAIN, x, sides)]


def with_long_rows(blocked: BlockedView, plain: View) -> tuple[BlockedView, View]:
    """Return both values with several rows of pixels as one, if rows are adjacent in both.

    Squares of pixels and channels are copied, and the last one of a row overlaps its neighbour: short rows copy most
    pixels twice.
    """
    h, w = blocked.h, blocked.w
    adjacent = (
        not blocked.has_halo
        and blocked.row == w * blocked.lanes
        and plain.strides[2:] == (w * plain.itemsize, plain.itemsize)
    )
    if h < 2 or w >= LONG_ROW or not adjacent or plain.shape != (blocked.n, blocked.c, h, w):
        return blocked, plain
    rows = next(n for n in range(1, h + 1) if h % n == 0 and (n * w >= LONG_ROW or n == h))
    steps, size = (blocked.image, blocked.plane, rows * blocked.row), plain.itemsize
    shape, strides = (*plain.shape[:2], h // rows, rows * w), (*plain.strides[:2], rows * w * size, size)
    return replace(blocked, h=h // rows, w=rows * w, steps=steps), replace(plain, shape=shape, strides=strides)


def pixels(x: BlockedView) -> View:
    """Return all pixels of a value whose blocks are single channels."""
    steps = (x.image, x.plane, x.row, x.lanes)
    return View(x.origin, (x.n, x.c, x.h, x.w), tuple(s * x.itemsize for s in steps), x.dtype)


def plain_steps(x: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the elements from image, channel and row to the next. ValueError for another shape, or strided pixels."""
    if x.shape != shape or (x.strides[3] != x.itemsize and shape[3] > 1):
        raise ValueError(
            f"a view {x.shape} {x.strides} is not a plain image {shape} with contiguous pixels. Copy it first"
        )
    return tuple(s // x.itemsize for s in x.strides[:3])


def row_call(family: Signature, x: BlockedView, sides: Mapping[str, object]) -> Call:
    """Return a call over the rows of `x` in either direction; `sides`: addresses and steps of both."""
    band = band_of(x.h, x.w)
    tasks = banded_tasks(x.n, x.blocks, x.h, band)
    chunk = chunk_of(tasks, x.w * x.lanes * 0.4)
    return family.call((x.dtype, x.lanes), tasks, chunk, c=x.c, h=x.h, w=x.w, blocks=x.blocks, band=band, **sides)


def fill_halo_calls(x: BlockedView) -> list[Call]:
    """Fill the halo of every plane of the whole buffer of `x`; no call if there is no halo."""
    top, left, bottom, right = x.halo
    if not x.has_halo:
        return []
    rows, columns = top + x.h + bottom, left + x.w + right
    band = band_of(rows, columns)
    tasks = banded_tasks(x.n, x.buffer_blocks, rows, band)
    call = FILL_HALO.call(
        (x.dtype, x.lanes), tasks, chunk_of(tasks, 10 + (left + right) * 2.0),
        out=x.at, image=x.image, plane=x.plane, line=x.row, above=top, below=bottom, h=x.h, before=left, after=right,
        w=x.w, blocks=x.buffer_blocks, band=band, fill=x.fill,
    )  # fmt: skip
    return [call]


def copy_channels_calls(out: BlockedView, x: BlockedView, fill: bool = False) -> list[Call]:
    """Copy `x` to `out`. Either may start inside a block: a part of a concatenation, or a slice of channels.

    Other lanes of the blocks of `out` keep their values. With `fill`, those after its last channel become zero: the
    last part of a buffer is written with it.
    """
    if (out.n, out.c, out.h, out.w) != (x.n, x.c, x.h, x.w):
        raise ValueError(f"channels [{x.n}, {x.c}, {x.h}, {x.w}] do not fill [{out.n}, {out.c}, {out.h}, {out.w}]")
    x_shift, o_shift = x.channel_offset % x.lanes, out.channel_offset % out.lanes
    stored = x.c + (-(o_shift + x.c) % x.lanes if fill else 0)
    blocks = -(-stored // x.lanes)
    band = band_of(x.h, x.w)
    tasks = banded_tasks(x.n, blocks, x.h, band)
    call = CHANNELS.call(
        (x.dtype, bool(x_shift or o_shift)), tasks, chunk_of(tasks, x.w * 3.0),
        c=x.c, stored=stored, h=x.h, w=x.w, blocks=blocks, band=band, x_shift=x_shift, o_shift=o_shift,
        x=x.origin, x_image=x.image, x_plane=x.plane, x_row=x.row,
        out=out.origin, o_image=out.image, o_plane=out.plane, o_row=out.row,
    )  # fmt: skip
    return [call]


def concat_calls(out: BlockedView, parts: Sequence[BlockedView]) -> list[Call]:
    """Copy the channels of `parts` to `out`, one part after the other."""
    if sum(p.c for p in parts) != out.c:
        raise ValueError(
            f"parts of {[p.c for p in parts]} channels do not add up to the {out.c} channels of the result"
        )
    calls, first = [], 0
    for part in parts:
        last = first + part.c == out.c
        calls += copy_channels_calls(out.part(first, part.c), part, fill=last and ends_buffer(out))
        first += part.c
    return calls


def ends_buffer(x: BlockedView) -> bool:
    """Return True if no channel of the buffer comes after those of `x`."""
    return x.channel_offset + x.c == (x.channels or x.channel_offset + x.c)
