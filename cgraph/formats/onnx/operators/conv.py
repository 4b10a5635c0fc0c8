"""Importers of convolutions, transposed convolutions and pooling."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic_ops.operators import lowest, number, samples
from cgraph.formats.onnx.dynamic_ops.windows import conv_length, sliding, transposed_length
from cgraph.ir.graph import Node


def spatial(function: str, x: Node) -> Any:
    """Return the op for the number of spatial axes: ``conv2d`` for ``conv`` and two axes."""
    if not 3 <= x.ndim <= 5:
        raise FormatError(f"{x.ndim - 2} axes besides batch and channels are not supported. Use 1 to 3")
    return getattr(cg, f"{function}{x.ndim - 2}d")


def same_pads(
    mode: str, sizes: Sequence[int], window: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> list[int]:
    """Return SAME padding: zeros before each axis, then after each."""
    total = [max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0) for n, k, s, d in zip(sizes, window, stride, dilation)]
    small = [n // 2 for n in total]
    large = [n - m for n, m in zip(total, small)]
    return large + small if mode == "SAME_LOWER" else small + large


def conv_geometry(c: Context, x: Node, window: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return stride, padding and dilation of windows over ``[n, c, ...]``."""
    axes = len(window)
    stride = c.attribute("strides") or [1] * axes
    dilation = c.attribute("dilations") or [1] * axes
    mode = c.attribute("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        return stride, same_pads(mode, x.shape[2:], window, stride, dilation), dilation
    pads = [0] * 2 * axes if mode == "VALID" else c.attribute("pads") or [0] * 2 * axes
    return stride, pads, dilation


def add_bias(x: Node, bias: Node | None) -> Node:
    """Add one number to each channel of ``[n, c, ...]``."""
    return x if bias is None else x + cg.reshape(bias, (-1, *[1] * (x.ndim - 2)))


@operator("Conv")
@sliding(number(0), conv_length)
def conv(c: Context) -> Node:
    x, f = c[0], c[1]
    stride, pad, dilation = conv_geometry(c, x, f.shape[2:])
    pad, x = within(pad, x)
    y = spatial("conv", x)(x, f, stride, pad, dilation, c.attribute("group", 1))
    return add_bias(y, c.get(2))


def within(pad: list[int], x: Node) -> tuple[list[int], Node]:
    """Cut the operand for negative padding; return the remaining padding and the operand."""
    if min(pad) >= 0:
        return pad, x
    axes = len(pad) // 2
    cut = [slice(max(-pad[i], 0), x.shape[2 + i] - max(-pad[axes + i], 0)) for i in range(axes)]
    return [max(n, 0) for n in pad], x[(slice(None), slice(None), *cut)]


@operator("ConvTranspose")
@sliding(number(0), transposed_length)
def conv_transpose(c: Context) -> Node:
    """Import ConvTranspose; the padding determines the output size, or a given output size the padding."""
    x, f = c[0], c[1]
    axes, window = x.ndim - 2, f.shape[2:]
    stride = c.attribute("strides") or [1] * axes
    dilation = c.attribute("dilations") or [1] * axes
    extra = c.attribute("output_padding") or [0] * axes
    full = [(n - 1) * s + (k - 1) * d + 1 + e for n, s, k, d, e in zip(x.shape[2:], stride, window, dilation, extra)]
    mode, target = c.attribute("auto_pad", "NOTSET"), c.attribute("output_shape")
    pad = c.attribute("pads") or [0] * 2 * axes
    if target is None and mode in ("SAME_UPPER", "SAME_LOWER"):
        target = [n * s for n, s in zip(x.shape[2:], stride)]
    if target is not None:
        total = [n - m for n, m in zip(full, target[-axes:])]
        extra = [e + max(-n, 0) for e, n in zip(extra, total)]
        total = [max(n, 0) for n in total]
        small, large = [n // 2 for n in total], [n - n // 2 for n in total]
        pad = small + large if mode == "SAME_UPPER" else large + small
    y = spatial("conv_transpose", x)(x, f, stride, pad, dilation, c.attribute("group", 1), extra)
    return add_bias(y, c.get(2))


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
@samples(0)
def global_pool(c: Context) -> Node:
    x, axes = c[0], tuple(range(2, c[0].ndim))
    if c.kind == "GlobalLpPool":
        p = c.attribute("p", 2)
        return cg.power(cg.sum(cg.power(cg.abs(x), float(p)), axes, keepdims=True), 1.0 / p)
    return (cg.mean if c.kind == "GlobalAveragePool" else cg.max)(x, axes, keepdims=True)


def pool_geometry(c: Context, x: Node) -> tuple[list[int], list[int], list[int], list[int], bool]:
    """Return window, stride, padding, dilation, and ceil_mode."""
    window = c.required("kernel_shape")
    stride, pad, dilation = conv_geometry(c, x, window)
    return window, stride, pad, dilation, bool(c.attribute("ceil_mode", 0))


@operator("MaxPool")
def max_pool(c: Context) -> Any:
    """Import MaxPool; indices depend on the lengths, so these are fixed where indices are asked for."""
    return max_pool_and_indices(c) if c.asks(1) else largest_of_windows(c)


@sliding(lowest, conv_length)
def largest_of_windows(c: Context) -> Any:
    window, stride, pad, dilation, ceil = pool_geometry(c, c[0])
    return spatial("max_pool", c[0])(c[0], window, stride=stride, pad=pad, ceil=ceil, dilation=dilation)


@samples(0)
def max_pool_and_indices(c: Context) -> Any:
    x = c[0]
    window, stride, pad, dilation, ceil = pool_geometry(c, x)
    y = spatial("max_pool", x)(x, window, stride=stride, pad=pad, ceil=ceil, dilation=dilation)
    return y, max_indices(x, y, c, (window, stride, pad, dilation))


def max_indices(x: Node, pooled: Node, c: Context, geometry: tuple[list[int], ...]) -> Node:
    """Return the flat index of the maximum of each window, in C or Fortran order of the image axes."""
    seen_elements = pooled.size * prod(geometry[0])
    c.spend(nbytes=64 * (seen_elements + x.size), work=8 * seen_elements)
    index = window_index(x.shape[2:], pooled.shape[2:], *geometry)  # [*results, window], -1 in the padding
    inside = np.maximum(index, 0).reshape(-1)
    flat = cg.reshape(x, (*x.shape[:2], -1))
    elements = cg.reshape(cg.take(flat, inside, 2), (*x.shape[:2], *index.shape))
    low = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    elements = cg.where(index >= 0, elements, np.asarray(low, x.dtype))
    best = cg.expand_dims(cg.argmax(elements, -1), -1)
    order = np.arange(prod(x.shape[2:])).reshape(x.shape[2:])
    if c.attribute("storage_order", 0):
        order = np.arange(order.size).reshape(order.shape[::-1]).T
    names = np.broadcast_to(order.reshape(-1)[np.maximum(index, 0)], (*x.shape[:2], *index.shape))
    local = cg.take_along_axis(cg.positive(np.ascontiguousarray(names)), best, -1)
    start = np.arange(prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * (x.ndim - 2)) * prod(x.shape[2:])
    return cg.reshape(local, pooled.shape) + start


def window_index(
    sizes: Sequence[int],
    results: Sequence[int],
    window: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    dilation: Sequence[int],
) -> np.ndarray:
    """Return the flat indices of the elements of each window, -1 outside: ``[*results, elements of a window]``."""
    axes = len(sizes)
    index = np.zeros((*results, *window), np.int64)
    outside = np.zeros(index.shape, bool)
    for i, n in enumerate(sizes):
        along = np.arange(results[i])[:, None] * stride[i] - pad[i] + np.arange(window[i]) * dilation[i]
        shape = [1] * (2 * axes)
        shape[i], shape[axes + i] = along.shape
        along = along.reshape(shape)
        outside |= (along < 0) | (along >= n)
        index = index * n + along
    return np.where(outside, -1, index).reshape(*results, -1)


@operator("AveragePool")
@samples(0)
def average_pool(c: Context) -> Node:
    return average_pool_of(c, c[0])


def average_pool_of(c: Context, x: Node) -> Node:
    """Return the averages of windows of `x`, by the attributes of a pool."""
    window, stride, pad, dilation, ceil = pool_geometry(c, x)
    count_pad = bool(c.attribute("count_include_pad", 0))
    if max(dilation) == 1:
        return spatial("avg_pool", x)(x, window, stride=stride, pad=pad, ceil=ceil, count_pad=count_pad)
    return sum_windows(c, x, (window, stride, pad, dilation, ceil), count_pad)


@operator("LpPool")
@samples(0)
def lp_pool(c: Context) -> Node:
    x, p = c[0], c.attribute("p", 2)
    window, stride, pad, dilation, ceil = pool_geometry(c, x)
    total = sum_windows(c, cg.power(cg.abs(x), float(p)), (window, stride, pad, dilation, ceil), None)
    return cg.power(total, 1.0 / p)


def sum_windows(c: Context, x: Node, geometry: Any, count_pad: bool | None) -> Node:
    """Return sums of dilated windows (`count_pad` None), or averages that include the padding or not."""
    window, stride, pad, dilation, ceil = geometry
    axes = len(window)
    results = []
    for i, n in enumerate(x.shape[2:]):
        room = n + pad[i] + pad[axes + i] - (window[i] - 1) * dilation[i] - 1
        count = -(-room // stride[i]) + 1 if ceil else room // stride[i] + 1
        if ceil and (count - 1) * stride[i] >= n + pad[i]:
            count -= 1
        results.append(count)
    elements = prod(max(n, 0) for n in (*results, *window))
    c.spend(nbytes=64 * elements, work=8 * elements)
    index = window_index(x.shape[2:], results, window, stride, pad, dilation)
    flat = cg.reshape(x, (*x.shape[:2], -1))
    windows = cg.reshape(cg.take(flat, np.maximum(index, 0).reshape(-1), 2), (*x.shape[:2], *index.shape))
    total = cg.sum(cg.where(index >= 0, windows, cg.zeros_like(windows)), -1)
    if count_pad is None:
        return total
    padded = [n + pad[i] + pad[axes + i] for i, n in enumerate(x.shape[2:])]
    shifted = window_index(padded, results, window, stride, [0] * 2 * axes, dilation)
    counts = ((shifted if count_pad else index) >= 0).sum(-1)
    return total / counts.astype(x.dtype)
