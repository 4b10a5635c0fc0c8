"""Padding, tiling and repeating: nothing but copies between views."""

from dataclasses import replace

from cgraph.kernels.calls.layout import broadcast
from cgraph.kernels.calls.move import copy_calls, fill_calls, flipped, part
from cgraph.kernels.kernel import Call, View

Widths = tuple[tuple[int, int], ...]


def pad_calls(out: View, x: View, widths: Widths, mode: str = "constant", value: float = 0) -> list[Call]:
    """``out = np.pad(x, widths, mode)``: ``constant`` (with `value`), ``edge``, ``reflect``, ``symmetric`` or ``wrap``.

    Axis after axis, the border is copied from what `out` already holds, so every element is written once.

    Raises
        ValueError: an unknown mode; an empty axis that is to be extended from its own elements
    """
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        raise ValueError(f"unknown padding mode {mode!r}")
    inner = out
    for axis, (low, _) in enumerate(widths):
        inner = part(inner, axis, low, x.shape[axis])
    calls = copy_calls(inner, x)
    for axis, (low, high) in enumerate(widths):
        n = x.shape[axis]
        grown = inner_but(out, x, widths, axis)
        if mode == "constant":
            calls += fill_calls(part(grown, axis, 0, low), value)
            calls += fill_calls(part(grown, axis, low + n, high), value)
        elif grown.size and (low or high):
            if n == 0:
                raise ValueError(f"padding {mode!r} needs an element along axis {axis} of {x.shape}")
            calls += extend_calls(part(grown, axis, low, n + high), axis, n, mode)
            calls += extend_calls(flipped(part(grown, axis, 0, low + n), (axis,)), axis, n, mode)
    return calls


def inner_but(out: View, x: View, widths: Widths, axis: int) -> View:
    """`out` without the border along the axes after `axis`."""
    for later in range(axis + 1, len(widths)):
        out = part(out, later, widths[later][0], x.shape[later])
    return out


def extend_calls(line: View, axis: int, n: int, mode: str) -> list[Call]:
    """Fill `line` along `axis` beyond its first `n` elements; the mirror image of this fills the other side.

    Mirrors and repeats are continued in steps of one period, each from the part before it.
    """
    calls, at, end = [], n, line.shape[axis]
    step = n - 1 if mode == "reflect" else n
    if mode == "edge" or step == 0:
        edge = part(line, axis, n - 1, 1)
        return copy_calls(part(line, axis, n, end - n), edge)
    while at < end:
        count = min(step, end - at)
        first = {"wrap": at - n, "symmetric": at - 1, "reflect": at - 2}[mode]
        calls += copy_calls(part(line, axis, at, count), part(line, axis, first, count, 1 if mode == "wrap" else -1))
        at += count
    return calls


def tile_calls(out: View, x: View, times: tuple[int, ...]) -> list[Call]:
    """``out = np.tile(x, times)``, one number for each axis of `x`."""
    for axis in range(len(times) - 1, -1, -1):
        n, stride = x.shape[axis], out.strides[axis]
        out = split(out, axis, (times[axis], n), (stride * n, stride))
        x = split(x, axis, (1, n), (0, x.strides[axis]))
    return copy_calls(out, broadcast(x, out.shape))


def repeat_calls(out: View, x: View, times: int, axis: int) -> list[Call]:
    """``out = np.repeat(x, times, axis)``."""
    n, stride = x.shape[axis], out.strides[axis]
    out = split(out, axis, (n, times), (stride * times, stride))
    return copy_calls(out, broadcast(split(x, axis, (n, 1), (x.strides[axis], 0)), out.shape))


def split(x: View, axis: int, shape: tuple[int, int], strides: tuple[int, int]) -> View:
    """One axis seen as two."""
    return replace(
        x,
        shape=(*x.shape[:axis], *shape, *x.shape[axis + 1 :]),
        strides=(*x.strides[:axis], *strides, *x.strides[axis + 1 :]),
    )
