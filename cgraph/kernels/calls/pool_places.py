"""Calls of max pooling's gradient on plain images, which lie in C order."""

from cgraph.kernels.calls.lowered import chunk_of
from cgraph.kernels.calls.window import Window
from cgraph.kernels.kernel import Call, Kernel, Pointer, View

Arguments = tuple[int | Pointer, ...]


def geometry(image: View, result: View, window: Window) -> tuple[int, ...]:
    (r, s), (top, left, _, _) = window.kernel, window.pad
    return (*image.shape[2:], *result.shape[2:], r, s, *window.stride, top, left, *window.dilation)


def place_calls(out: View, x: View, window: Window) -> list[Call]:
    """``out`` (int32) = the position of the largest element in each window of `x`."""
    tasks = out.size // max(out.shape[3], 1)
    kernel = Kernel("pool_places.places", (x.dtype,))
    args: Arguments = (x.at, out.at, *geometry(x, out, window))
    return [Call(kernel, args, tasks, chunk_of(tasks, out.shape[3] * window.taps * 2.0))] if out.size else []


def spread_calls(out: View, places: View, g: View, window: Window) -> list[Call]:
    """``out`` = the elements `g` added up at their places."""
    tasks = out.shape[0] * out.shape[1]
    kernel = Kernel("pool_places.spread", (g.dtype,))
    args: Arguments = (places.at, g.at, out.at, *geometry(out, g, window))
    return [Call(kernel, args, tasks, chunk_of(tasks, g.shape[2] * g.shape[3] * 3.0))] if out.size else []
