"""Importers of Col2Im and MaxUnpool."""

from math import prod

import numpy as np

from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.operators.conv import spatial
from cgraph.ir.graph import Node


@operator("Col2Im")
def col2im(c: Context) -> Node:
    """Import Col2Im: add blocks ``[n, c * elements, blocks]`` into an image."""
    x, image, block = c[0], c.ints(1), c.ints(2)
    axes, size = len(block), prod(block)
    stride, dilation = c.attribute("strides", [1] * axes), c.attribute("dilations", [1] * axes)
    pad = c.attribute("pads", [0] * 2 * axes)
    results = [
        (n + pad[i] + pad[axes + i] - (b - 1) * d - 1) // s + 1
        for i, (n, b, d, s) in enumerate(zip(image, block, dilation, stride))
    ]
    channels = x.shape[1] // size
    blocks = cg.reshape(x, (x.shape[0], channels * size, *results))
    c.spend(nbytes=3 * size * size * (channels + 1) * x.dtype.itemsize)
    one = np.tile(np.eye(size, dtype=x.dtype).reshape(size, 1, *block), (channels, *[1] * (axes + 1)))
    reach = [(r - 1) * s + (b - 1) * d + 1 for r, s, b, d in zip(results, stride, block, dilation)]
    extra = [n + pad[i] + pad[axes + i] - r for i, (n, r) in enumerate(zip(image, reach))]
    return spatial("conv_transpose", blocks)(blocks, one, stride, pad, dilation, channels, extra)


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
