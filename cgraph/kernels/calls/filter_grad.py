"""Calls of the gradient of a convolution with respect to its filters, on plain views.

    df[k, c, i, j] = sum over n, p, q of
        g[n, k, p, q] * x[n, c, p*stride + i*dilation - top, q*stride + j*dilation - left]

Image by image: the pixels each tap meets are written as a matrix (im2col), which is multiplied by the image's
gradient and added. Images are added in order, so any number of threads gives the same bits.
"""

from math import prod

import numpy as np

from cgraph.kernels.calls.lowered import Lowered, chunk_of
from cgraph.kernels.calls.matmul import matmul_calls, matmul_scratch_nbytes
from cgraph.kernels.calls.window import Window
from cgraph.kernels.kernel import Call, Kernel, Pointer, View, contiguous
from cgraph.kernels.target import Target


def conv_filter_grad_calls(
    out: View,
    x: View,
    g: View,
    window: Window,
    groups: int = 1,
    scratch: Pointer | None = None,
    target: Target | None = None,
) -> Lowered:
    """``out[k, c / groups, r, s]`` = gradient for images `x` ``[n, c, h, w]`` and result gradient `g` ``[n, k, p, q]``.

    `out` and `g` are contiguous, `x` has any strides; at least one image; `scratch`: `conv_filter_grad_scratch_nbytes`.
    ValueError when shapes disagree or a view is not contiguous.
    """
    check_shapes(out, x, g, window, groups)
    if scratch is None:
        raise ValueError("the gradient of filters needs scratch")
    tables = taps_inside(x, g, window)
    calls: list[Call] = []
    for image in range(x.shape[0]):
        for group in range(groups):
            unfolded, call = unfold_call(part(x, image, group, groups), out, g, window, tables, scratch)
            views = product_views(out, g, unfolded, image, group, groups)
            rest = scratch + padded_nbytes(unfolded)
            calls += [call, *matmul_calls(*views, scratch=rest, target=target, adds=image > 0)]
    return Lowered(tuple(calls), tables)


def conv_filter_grad_scratch_nbytes(
    out: View, x: View, g: View, window: Window, groups: int = 1, target: Target | None = None
) -> int:
    """Bytes of workspace: the unfolded pixels of one group of one image, and what their product needs."""
    check_shapes(out, x, g, window, groups)
    unfolded = unfolded_view(out, g, Pointer(None))
    views = product_views(out, g, unfolded, 0, 0, groups)
    products = [matmul_scratch_nbytes(*views, target=target, adds=adds) for adds in (False, True)]
    return padded_nbytes(unfolded) + max(products)


def check_shapes(out: View, x: View, g: View, window: Window, groups: int) -> None:
    n, c, h, w = x.shape
    k = out.shape[0]
    if out.shape != (k, c // groups, *window.kernel) or g.shape != (n, k, *window.result(h, w)) or not n:
        raise ValueError(f"filters {out.shape}, images {x.shape} and gradient {g.shape} do not fit {window}")
    if not (out.is_contiguous and g.is_contiguous):
        raise ValueError("the gradients of filters and result are contiguous")


def part(x: View, image: int, group: int, groups: int) -> View:
    """The channels of one group of one image: ``[c / groups, h, w]``."""
    count = x.shape[1] // groups
    at = x.at + image * x.strides[0] + group * count * x.strides[1]
    return View(at, (count, *x.shape[2:]), x.strides[1:], x.dtype)


def unfolded_view(out: View, g: View, at: Pointer) -> View:
    """The matrix ``[c / groups * r * s, p * q]`` of one image."""
    return contiguous(at, (prod(out.shape[1:]), prod(g.shape[2:])), g.dtype)


def padded_nbytes(x: View) -> int:
    return -(-x.size * x.itemsize // 64) * 64


def product_views(out: View, g: View, unfolded: View, image: int, group: int, groups: int) -> tuple[View, View, View]:
    """``df[k, c r s] = g[k, p q] @ unfolded.T`` of one group of one image."""
    filters, depth = out.shape[0] // groups, unfolded.shape[1]
    df = contiguous(out.at, (filters, unfolded.shape[0]), out.dtype)
    pixels = contiguous(g.at, (filters, depth), g.dtype)
    across = View(unfolded.at, unfolded.shape[::-1], unfolded.strides[::-1], unfolded.dtype)
    first = image * groups + group
    return df.moved(group * df.size * df.itemsize), pixels.moved(first * pixels.size * g.itemsize), across


def taps_inside(x: View, g: View, window: Window) -> tuple[np.ndarray, np.ndarray]:
    """Per filter row and per filter column: the first and the last result (excluded) that meets the image there."""
    tables = []
    for axis in (0, 1):
        size, count = x.shape[2 + axis], g.shape[2 + axis]
        start = np.arange(window.kernel[axis]) * window.dilation[axis] - window.pad[axis]
        first = np.clip(-(start // window.stride[axis]), 0, count)
        last = np.clip(-((start - size) // window.stride[axis]), first, count)
        tables.append(np.ascontiguousarray(np.stack([first, last], axis=1), np.int64))
    return tables[0], tables[1]


def unfold_call(
    x: View, out: View, g: View, window: Window, tables: tuple[np.ndarray, np.ndarray], to: Pointer
) -> tuple[View, Call]:
    """Write the pixels that each tap meets."""
    unfolded = unfolded_view(out, g, to)
    plane, row, column = (s // x.itemsize for s in x.strides)
    (down, across), (top, left, *_) = window.stride, window.pad
    args: tuple[int | float | Pointer, ...] = (
        Pointer(tables[0]), Pointer(tables[1]), x.at, plane, row, column, *window.kernel, *g.shape[2:],
        down, across, *window.dilation, top, left, to,
    )  # fmt: skip
    tasks = unfolded.shape[0]
    kernel = Kernel("im2col.unfold", (x.dtype,))
    return unfolded, Call(kernel, args, tasks, chunk_of(tasks, unfolded.shape[1] * 0.5))
