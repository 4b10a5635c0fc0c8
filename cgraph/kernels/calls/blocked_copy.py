"""Calls that change a layout: plain to blocked and back, frames of zeros, channels to other lanes (concat, slices)."""

from collections.abc import Sequence

from cgraph.kernels.calls.bands import band_of, banded_tasks
from cgraph.kernels.calls.blocked import Blocked, require_whole_blocks
from cgraph.kernels.calls.lowered import chunk_of
from cgraph.kernels.kernel import Call, Kernel, Pointer, View

Arguments = tuple[int | float | Pointer, ...]


def to_blocked_calls(out: Blocked, x: View) -> list[Call]:
    """``out`` (its interior) = plain images `x` ``[n, c, h, w]`` of any strides with pixels side by side."""
    require_whole_blocks(out)
    steps = plain_steps(x, (out.n, out.c, out.h, out.w))
    return [row_call("to_blocked", out, (x.at, *steps, out.origin, out.image, out.plane, out.row))]


def to_plain_calls(out: View, x: Blocked) -> list[Call]:
    """``out``, a view ``[n, c, h, w]`` with pixels side by side, = a blocked value."""
    require_whole_blocks(x)
    steps = plain_steps(out, (x.n, x.c, x.h, x.w))
    return [row_call("to_plain", x, (x.origin, x.image, x.plane, x.row, out.at, *steps))]


def plain_steps(x: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Elements from image, channel and row to the next. ValueError for another shape, or pixels apart."""
    if x.shape != shape or (x.strides[3] != x.itemsize and shape[3] > 1):
        raise ValueError(f"a view {x.shape} {x.strides} is no plain image {shape} with pixels side by side")
    return tuple(s // x.itemsize for s in x.strides[:3])


def row_call(name: str, x: Blocked, places: Arguments) -> Call:
    """A call over the rows of `x` in either direction; `places`: addresses and steps of both sides."""
    band = band_of(x.h, x.w)
    tasks = banded_tasks(x.n, x.blocks, x.h, band)
    args = (x.c, x.h, x.w, x.blocks, band, *places)
    return Call(Kernel(f"blocked_copy.{name}", (x.dtype,)), args, tasks, chunk_of(tasks, x.w * x.lanes * 0.4))


def zero_halo_calls(x: Blocked) -> list[Call]:
    """Zero the frame around every plane of the whole buffer of `x`; no call when there is no frame."""
    top, left, bottom, right = x.halo
    if not x.has_halo:
        return []
    rows, columns = top + x.h + bottom, left + x.w + right
    band = band_of(rows, columns)
    tasks = banded_tasks(x.n, x.buffer_blocks, rows, band)
    args: Arguments = (x.at, top, bottom, x.h, left, right, x.w, x.buffer_blocks, band)
    nanoseconds = 10 + (left + right) * 2.0
    return [Call(Kernel("blocked_copy.zero_halo", (x.dtype,)), args, tasks, chunk_of(tasks, nanoseconds))]


def copy_channels_calls(out: Blocked, x: Blocked, fill: bool = False) -> list[Call]:
    """``out = x`` where either may start inside a block: a part of a concatenation, or a slice of channels.

    Other lanes of the blocks of `out` keep their values, but with `fill` those after its last channel become zero: the
    last part of a buffer is written with it.
    """
    if (out.n, out.c, out.h, out.w) != (x.n, x.c, x.h, x.w):
        raise ValueError(f"channels [{x.n}, {x.c}, {x.h}, {x.w}] do not fill [{out.n}, {out.c}, {out.h}, {out.w}]")
    x_shift, o_shift = x.channel_offset % x.lanes, out.channel_offset % out.lanes
    stored = x.c + (-(o_shift + x.c) % x.lanes if fill else 0)
    blocks = -(-stored // x.lanes)
    band = band_of(x.h, x.w)
    args: Arguments = (
        x.c, stored, x.h, x.w, blocks, band, x_shift, o_shift,
        x.origin, x.image, x.plane, x.row, out.origin, out.image, out.plane, out.row,
    )  # fmt: skip
    tasks = banded_tasks(x.n, blocks, x.h, band)
    kernel = Kernel("blocked_copy.channels", (x.dtype, bool(x_shift or o_shift)))
    return [Call(kernel, args, tasks, chunk_of(tasks, x.w * 3.0))]


def concat_calls(out: Blocked, parts: Sequence[Blocked]) -> list[Call]:
    """``out`` = the channels of `parts` one after the other."""
    if sum(p.c for p in parts) != out.c:
        raise ValueError(f"{[p.c for p in parts]} channels do not make {out.c}")
    calls, first = [], 0
    for part in parts:
        last = first + part.c == out.c
        calls += copy_channels_calls(out.part(first, part.c), part, fill=last and ends_buffer(out))
        first += part.c
    return calls


def ends_buffer(x: Blocked) -> bool:
    """No channel of the buffer comes after those of `x`."""
    return x.channel_offset + x.c == (x.channels or x.channel_offset + x.c)
