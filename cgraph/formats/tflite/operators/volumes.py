"""Convolutions of volumes, and their transposes. TFLite's order is ``[n, d, h, w, c]``."""

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.operators.conv import padding, reach
from cgraph.ir.graph import Node

FIRST, LAST = (0, 4, 1, 2, 3), (0, 2, 3, 4, 1)  # axes of [n, d, h, w, c] as [n, c, d, h, w], and back
FILTERS = (4, 3, 0, 1, 2)  # axes of [d, h, w, c, k] as [k, c, d, h, w]


@operator("CONV_3D")
def conv3d(c: TfliteContext) -> Node:
    x, f = volume(c, 0), c.filters(1, FILTERS)
    stride, dilation = sizes(c, "stride"), sizes(c, "dilation")
    if x.shape[1] != f.shape[1]:
        raise FormatError(f"filters {f.spec} do not have the {x.shape[1]} channels of {x.spec}")
    pad = padding(c, x.shape[2:], reach(f.shape[2:], dilation), stride)
    return with_bias(c, 2, cg.conv3d(x, f, stride=stride, pad=pad, dilation=dilation))


@operator("CONV_3D_TRANSPOSE")
def conv3d_transpose(c: TfliteContext) -> Node:
    """Import CONV_3D_TRANSPOSE; operands: the result's shape, filters ``[d, h, w, k, c]``, volumes, a bias."""
    shape, x, f = c.ints(0), volume(c, 2), c.filters(1, FILTERS)
    stride, dilation = sizes(c, "stride"), sizes(c, "dilation")
    if len(shape) != 5 or shape[0] != x.shape[0] or shape[4] != f.shape[1] or f.shape[0] != x.shape[1]:
        raise FormatError(f"the result's shape {shape} does not fit {x.spec} and {f.spec}")
    window, pixels = reach(f.shape[2:], dilation), tuple(shape[1:4])
    before = padding(c, pixels, window, stride)[:3]
    full = [(n - 1) * s + w for n, s, w in zip(x.shape[2:], stride, window)]
    rest = [n - b - out for n, b, out in zip(full, before, pixels)]
    pad, extra = (*before, *(max(n, 0) for n in rest)), tuple(max(-n, 0) for n in rest)
    y = cg.conv_transpose3d(x, f, stride=stride, pad=pad, dilation=dilation, output_pad=extra)
    return with_bias(c, 3, y)


def volume(c: TfliteContext, i: int) -> Node:
    """Return operand i as ``[n, c, d, h, w]``."""
    if c[i].ndim != 5:
        raise FormatError(f"operand {i} {list(c[i].shape)} does not have five axes")
    return c[i].plain.transpose(FIRST)


def sizes(c: TfliteContext, name: str) -> tuple[int, ...]:
    """Return an option of the three axes, each at least 1."""
    numbers = tuple(c.option(f"{name}_{axis}") for axis in "dhw")
    if min(numbers) < 1:
        raise FormatError(f"{name} is {list(numbers)}; each must be 1 or more")
    return numbers


def with_bias(c: TfliteContext, i: int, x: Node) -> Node:
    """Return volumes with the bias of each channel, operand i, and the activation, in the file's order of axes."""
    bias, y = c.get(i), x.transpose(LAST)
    return c.activated(y if bias is None else y + bias.plain)
