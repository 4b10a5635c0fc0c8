"""Convolutions, their transposes, and pooling over windows."""

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import Context, operator
from cgraph.formats.tflite.context import images as made
from cgraph.formats.tflite.value import Value
from cgraph.ir.graph import Node

SAME, VALID = 0, 1
Pads = tuple[int, int, int, int]


def padding(c: Context, sizes: tuple[int, ...], window: tuple[int, ...], stride: tuple[int, int]) -> Pads:
    """Padding before and behind the two axes; the odd pixel behind. `window`: with its gaps."""
    kind = c.option("padding")
    if kind not in (SAME, VALID):
        raise FormatError(f"the padding {kind} is not supported")
    if kind == VALID:
        return 0, 0, 0, 0
    wide = [max((-(-n // s) - 1) * s + w - n, 0) for n, w, s in zip(sizes, window, stride)]
    top, left = (n // 2 for n in wide)
    return top, left, wide[0] - top, wide[1] - left


def reach(window: tuple[int, ...], dilation: tuple[int, int]) -> tuple[int, ...]:
    """A window's pixels with those between its taps."""
    return tuple((n - 1) * d + 1 for n, d in zip(window, dilation))


def image(c: Context, i: int) -> Node:
    """Operand i ``[n, c, h, w]``."""
    if c[i].ndim != 4:
        raise FormatError(f"operand {i} {list(c[i].shape)} has not four axes")
    return c[i].images


def biased(c: Context, i: int, x: Node) -> Node:
    """Images and a bias for each of their channels, operand i, if it is there."""
    bias = c.get(i)
    return x if bias is None else x + bias.node.reshape((-1, 1, 1))


@operator("CONV_2D")
def conv(c: Context) -> Value:
    x, f = image(c, 0), c.filters(1, (0, 3, 1, 2))  # [k, r, s, c] -> [k, c, r, s]
    return convolved(c, x, f, groups_of(x, f))


@operator("DEPTHWISE_CONV_2D")
def depthwise(c: Context) -> Value:
    x, f = image(c, 0), c.filters(1, (3, 0, 1, 2))  # [1, r, s, k] -> [k, 1, r, s]
    return convolved(c, x, f, x.shape[1])


def groups_of(x: Node, f: Node) -> int:
    """Groups, of which an operator says nothing: as many as its filters read too few channels."""
    if x.shape[1] % f.shape[1]:
        raise FormatError(f"images of {x.shape[1]} channels and filters of {f.shape[1]} do not fit")
    return x.shape[1] // f.shape[1]


def convolved(c: Context, x: Node, f: Node, groups: int) -> Value:
    stride, dilation = c.sizes("stride"), c.sizes("dilation")
    pad = padding(c, x.shape[2:], reach(f.shape[2:], dilation), stride)
    y = cg.conv2d(x, f, stride=stride, pad=pad, dilation=dilation, groups=groups)
    return made(c.activated(biased(c, 2, y)))


@operator("TRANSPOSE_CONV")
def conv_transpose(c: Context) -> Value:
    """Operands: the result's shape, filters ``[k, r, s, c]``, images, perhaps a bias."""
    shape, x, f = c.ints(0), image(c, 2), c.filters(1, (3, 0, 1, 2))  # [k, r, s, c] -> [c, k, r, s]
    stride = c.sizes("stride")
    if len(shape) != 4 or shape[0] != x.shape[0] or shape[3] != f.shape[1]:
        raise FormatError(f"the result's shape {shape} does not fit {x.spec} and {f.spec}")
    top, left, *_ = padding(c, tuple(shape[1:3]), f.shape[2:], stride)
    full = [(n - 1) * s + w for n, s, w in zip(x.shape[2:], stride, f.shape[2:])]
    rest = [n - before - out for n, before, out in zip(full, (top, left), shape[1:3])]
    pad = (top, left, *(max(n, 0) for n in rest))
    y = cg.conv_transpose2d(x, f, stride=stride, pad=pad, output_pad=tuple(max(-n, 0) for n in rest))
    return made(c.activated(biased(c, 3, y)))


@operator("AVERAGE_POOL_2D", "MAX_POOL_2D")
def pool(c: Context) -> Value:
    """Pixels outside the image count for nothing."""
    x, window, stride = image(c, 0), c.sizes("window"), c.sizes("stride")
    function = cg.avg_pool2d if c.kind == "AVERAGE_POOL_2D" else cg.max_pool2d
    return made(c.activated(function(x, window, stride=stride, pad=padding(c, x.shape[2:], window, stride))))
