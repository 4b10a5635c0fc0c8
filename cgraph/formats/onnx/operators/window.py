"""Importers of Col2Im and MaxUnpool."""

from math import prod
from typing import Any

from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.ir.graph import Node


@operator("Col2Im")
def col2im(c: Context) -> Node:
    """Import Col2Im: add blocks ``[n, c * elements, blocks]`` into an image, one axis after the other."""
    x, image, block = c[0], c.ints(1), c.ints(2)
    axes = len(block)
    stride, dilation = c.attribute("strides", [1] * axes), c.attribute("dilations", [1] * axes)
    pad = c.attribute("pads", [0] * 2 * axes)
    results = [
        (n + pad[i] + pad[axes + i] - (b - 1) * d - 1) // s + 1
        for i, (n, b, d, s) in enumerate(zip(image, block, dilation, stride))
    ]
    c.spend(nodes=3 * sum(max(b, 1) + s for b, s in zip(block, stride)))
    y = cg.reshape(x, (x.shape[0], x.shape[1] // prod(block), *block, *results))
    for i, n in enumerate(image):
        y = fold_axis(y, axes - i, (n, pad[i]), stride[i], dilation[i])
    return y


def fold_axis(x: Node, left: int, lengths: tuple[int, int], stride: int, dilation: int) -> Node:
    """Add the elements of windows along one axis: ``[n, c, elements, …, windows, …]`` becomes ``[n, c, …, length, …]``.

    Element a of window i is added at ``i * stride + a * dilation - before``. Those whose places have one remainder by
    the stride are sums of shifted slices.

    Parameters
        left: number of axes, from this one on, whose elements are not added yet
        lengths: of the axis, and of the padding before it
    """
    length, before = lengths
    axis, steps = x.ndim - left, [divmod(a * dilation, stride) for a in range(x.shape[2])]
    first, last = before // stride, -(-(before + length) // stride)  # of the windows that begin inside
    more = max(steps[-1][0] - first, 0)
    widths = [(0, 0)] * x.ndim
    widths[axis] = (more, max(last - x.shape[axis], 0))
    rows, middle = cg.pad(x, widths), (slice(None),) * (axis - 3)
    phases: list[Any] = [None] * stride
    for a, (step, phase) in enumerate(steps):
        part = rows[:, :, a, *middle, first + more - step : last + more - step]
        phases[phase] = part if phases[phase] is None else phases[phase] + part
    zero = cg.zeros_like(next(part for part in phases if part is not None))
    whole = cg.stack([zero if part is None else part for part in phases], axis)
    whole = cg.reshape(whole, (*zero.shape[: axis - 1], (last - first) * stride, *zero.shape[axis:]))
    return whole[:, :, *middle, before - first * stride : before - first * stride + length]


@operator("MaxUnpool")
def max_unpool(c: Context) -> Node:
    """Import MaxUnpool: scatter each element to its index in an image of zeros."""
    x, places = c[0], c[1]
    window = c.required("kernel_shape")
    axes = len(window)
    stride, pad = c.attribute("strides", [1] * axes), c.attribute("pads", [0] * 2 * axes)
    sizes = [(n - 1) * stride[i] - pad[i] - pad[axes + i] + window[i] for i, n in enumerate(x.shape[2:])]
    shape = (*x.shape[:2], *sizes)
    at = cg.ravel(cg.where(cg.less(places, 0), prod(shape), places))  # negative indices are outside
    y = cg.reshape(cg.scatter(cg.zeros(prod(shape), x.dtype), at, cg.ravel(x)), shape)
    target = c.ints(2)
    if target is None:
        return y
    return cg.pad(y, [(0, m - n) for n, m in zip(shape, target)])
