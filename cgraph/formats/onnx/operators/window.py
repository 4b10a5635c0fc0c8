"""Importers of Col2Im and MaxUnpool."""

from math import prod

from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.ir.graph import Node
from cgraph.ops.fold import fold_axis


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
