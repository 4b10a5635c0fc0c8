"""Convolutions, their transposes, and pooling over windows."""

from math import prod

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.context import images as to_images
from cgraph.formats.tflite.dynamic import asymmetric, pad_image, symmetric
from cgraph.formats.tflite.fixed import as_bytes, as_words, bounds_of, parts_of, subtract_zero
from cgraph.formats.tflite.value import SIGN, TfliteValue
from cgraph.ir.graph import Node, apply
from cgraph.kernels.conv8.calls import Result
from cgraph.ops.conv import Conv2d
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.physical.integer import IntegerConv, PixelSum
from cgraph.record import replace

SAME, VALID = 0, 1
PLACE, WORD = 64, 8  # bytes of memory of the tables of a row or column, and of a number
Pads = tuple[int, ...]


def padding(c: TfliteContext, sizes: tuple[int, ...], window: tuple[int, ...], stride: tuple[int, ...]) -> Pads:
    """Return the padding before all axes, then after them; an odd pixel goes after. `window` includes dilation gaps."""
    return pads_of(c.option("padding"), sizes, window, stride)


def pads_of(kind: int, sizes: tuple[int, ...], window: tuple[int, ...], stride: tuple[int, ...]) -> Pads:
    """Return the padding of a kind; see `padding`."""
    if kind not in (SAME, VALID):
        raise FormatError(f"the padding {kind} is not supported. Use SAME or VALID")
    if kind == VALID:
        return (0,) * (2 * len(sizes))
    wide = [max((-(-n // s) - 1) * s + w - n, 0) for n, w, s in zip(sizes, window, stride)]
    return (*(n // 2 for n in wide), *(n - n // 2 for n in wide))


def reach(window: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extent of a dilated window."""
    return tuple((n - 1) * d + 1 for n, d in zip(window, dilation))


def image(c: TfliteContext, i: int) -> Node:
    """Return operand i as ``[n, c, h, w]``."""
    if c[i].ndim != 4:
        raise FormatError(f"operand {i} {list(c[i].shape)} does not have four axes")
    return c[i].images


def add_bias(c: TfliteContext, i: int, x: Node) -> Node:
    """Add the bias of each channel, operand i, if present."""
    bias = c.get(i)
    return x if bias is None else x + bias.node.reshape((-1, 1, 1))


@operator("CONV_2D", on_bytes=True, on_words=True)
def conv(c: TfliteContext) -> TfliteValue:
    x, f = image(c, 0), c.filters(1, (0, 3, 1, 2))  # [k, r, s, c] -> [k, c, r, s]
    return convolve(c, x, f, groups_of(x, f))


@operator("DEPTHWISE_CONV_2D", on_bytes=True, on_words=True)
def depthwise(c: TfliteContext) -> TfliteValue:
    x, f = image(c, 0), c.filters(1, (3, 0, 1, 2))  # [1, r, s, k] -> [k, 1, r, s]
    return convolve(c, x, f, x.shape[1])


def groups_of(x: Node, f: Node) -> int:
    """Return the number of groups, which follows from the channels of images and filters."""
    if x.shape[1] % f.shape[1]:
        raise FormatError(
            f"images of {x.shape[1]} channels and filters of {f.shape[1]} do not fit: the former must be a multiple "
            "of the latter"
        )
    return x.shape[1] // f.shape[1]


def convolve(c: TfliteContext, x: Node, f: Node, groups: int) -> TfliteValue:
    stride, dilation = c.sizes("stride"), c.sizes("dilation")
    pad = padding(c, x.shape[2:], reach(f.shape[2:], dilation), stride)
    if c.is_quantised:
        return to_images(convolve_bytes(c, x, f, Conv2d(stride, pad, dilation, groups)))
    if c[1].quantised is not None:
        y = dynamic_conv(c, x, f, Conv2d(stride, pad, dilation, groups))
    else:
        y = cg.conv2d(x, f, stride=stride, pad=pad, dilation=dilation, groups=groups)
    return to_images(c.activated(add_bias(c, 2, y)))


def dynamic_conv(c: TfliteContext, x: Node, f: Node, op: Conv2d) -> Node:
    """Convolve floats, quantised per image, with int8 filters: exact integer sums, corrected for the zero point."""
    weights, by_filter = dynamic_filters(c, x, f), c[1].bytes.scales.reshape((-1, 1, 1))
    x8 = (symmetric if by_filter.size == 1 else asymmetric)(x, (1, 2, 3))
    c.spend(nbytes=prod(x.shape[2:]) + 2 * sum(op.pad) * sum(x.shape[2:]) + sum(op.pad) ** 2)
    total = sums_of(replace(op, pad=(0, 0, 0, 0)), 0, pad_image(x8, op.pad), weights)
    total = total - x8.zero * weights.sum((1, 2, 3), dtype="int32").reshape((-1, 1, 1))
    total = cg.astype(total, "float32")
    if by_filter.size > 1 and c.kind == "CONV_2D":
        return total * by_filter * x8.scale
    return total * (by_filter * x8.scale)


def dynamic_filters(c: TfliteContext, x: Node, f: Node) -> np.ndarray:
    """Return int8 filters of a float convolution."""
    if x.dtype != np.float32 or not c[1].bytes.is_signed:
        raise FormatError(f"{x.dtype} with filters of uint8 is not supported. Use int8 filters")
    return constant_filters(c, f)[0]


def convolve_bytes(c: TfliteContext, x: Node, f: Node, op: Conv2d) -> Node:
    """Convolve bytes: exact sums, scaled per filter and rounded twice."""
    weights, zero = constant_filters(c, f)
    if c.result.is_wide:
        return convolve_words(c, x, weights - np.float64(zero), op)
    scale = np.float64(c[0].bytes.scale) * c[1].bytes.scales.astype("float64") / np.float64(c.result.scale)
    bias, factors = bias_of(c, 2, len(weights)), parts_of(np.broadcast_to(scale, len(weights)))
    if not zero:
        result = Result("u1", c.result.zero, *bounds_of(c), fixed="twice")
        constants = (Const(y, copy=False) for y in (weights, bias, factors))
        return apply(IntegerConv(op, c[0].bytes.zero, result), x, *constants)
    ones = np.ones((op.groups, *weights.shape[1:]), "int8")  # sums of windows, to correct for the filters' zero point
    c.spend(nbytes=ones.nbytes)
    window_sums = cg.repeat(sums_of(op, c[0].bytes.zero, x, ones), len(weights) // op.groups, axis=1)
    total = sums_of(op, c[0].bytes.zero, x, weights) + bias.reshape((-1, 1, 1)) - window_sums * np.int32(zero)
    return as_bytes(cg.fixed_product(total, *factors.reshape((2, -1, 1, 1))), c.result, bounds_of(c))


def convolve_words(c: TfliteContext, x: Node, weights: np.ndarray, op: Conv2d) -> Node:
    """Convolve int16; float64 represents the sums exactly."""
    c.spend(nbytes=weights.nbytes)
    options = {"stride": op.stride, "pad": op.pad, "dilation": op.dilation, "groups": op.groups}
    return words_of(c, cg.conv2d(cg.astype(x, "float64"), weights, **options), 0, 2)


def words_of(c: TfliteContext, total: Node, i: int, bias: int) -> Node:
    """Return sums of int16 times int8 filters, scaled per filter; operands i and `bias` are the images and the bias."""
    if not c[i].bytes.is_wide or c[i].bytes.zero:
        raise FormatError("int16 results of int8, or of a zero point, are not supported. Use int16 without zero points")
    scale = np.float64(c[i].bytes.scale) * c[1].bytes.scales.astype("float64") / np.float64(c.result.scale)
    count = total.shape[1]
    wide = cg.astype(total, "int64") + bias_of(c, bias, count).astype("int64").reshape((-1, 1, 1))
    return as_words(wide, np.broadcast_to(scale, count).reshape((-1, 1, 1)), c.result, bounds_of(c))


def sums_of(op: Conv2d, zero: int, x: Node, weights: np.ndarray) -> Node:
    """Return the int32 sums of (bytes - zero point) * filters."""
    unused = np.zeros(len(weights), "int32"), np.ones(len(weights), "float32")  # a bias and scales
    return apply(IntegerConv(op, zero, Result("i4")), x, *(Const(y, copy=False) for y in (weights, *unused)))


def constant_filters(c: TfliteContext, f: Node) -> tuple[np.ndarray, int]:
    """Return int8 filters and their zero point; uint8 filters and zero points are shifted by -128."""
    quantised = c[1].bytes
    is_moved = quantised.is_signed and quantised.zeros.any()
    if not isinstance(f.op, ConstOp) or f.size == 0 or is_moved or quantised.is_wide:
        raise FormatError(
            "quantised filters that are computed, empty, of int16, or of int8 with a zero point are not supported. Use "
            "constant symmetric int8 filters"
        )
    if quantised.is_signed:
        return f.op.array, 0
    c.spend(nbytes=f.nbytes)
    return (f.op.array ^ np.uint8(SIGN)).view("int8"), quantised.zero - SIGN


def bias_of(c: TfliteContext, i: int, count: int) -> np.ndarray:
    """Return operand i, one int32 per filter; zeros if absent."""
    bias = np.zeros(count, "int32") if c.get(i) is None else c.constant(i).reshape(-1)
    if bias.dtype != np.int32 and not (bias.dtype == np.int64 and c.result.is_wide) or bias.size != count:
        raise FormatError(f"a bias of {bias.size} numbers of {bias.dtype} for {count} filters: give one int32 for each")
    return bias


@operator("TRANSPOSE_CONV", on_bytes=True, on_words=True)
def conv_transpose(c: TfliteContext) -> TfliteValue:
    """Import TRANSPOSE_CONV; operands: the result's shape, filters ``[k, r, s, c]``, images, an optional bias."""
    shape, x, f = c.ints(0), image(c, 2), c.filters(1, (3, 0, 1, 2))  # [k, r, s, c] -> [c, k, r, s]
    stride = c.sizes("stride")
    if len(shape) != 4 or shape[0] != x.shape[0] or shape[3] != f.shape[1]:
        raise FormatError(f"the result's shape {shape} does not fit {x.spec} and {f.spec}")
    top, left, *_ = padding(c, tuple(shape[1:3]), f.shape[2:], stride)
    full = [(n - 1) * s + w for n, s, w in zip(x.shape[2:], stride, f.shape[2:])]
    rest = [n - before - out for n, before, out in zip(full, (top, left), shape[1:3])]
    options = {"stride": stride, "pad": (top, left, *(max(n, 0) for n in rest))}
    options["output_pad"] = tuple(max(-n, 0) for n in rest)
    if c.is_quantised:
        return to_images(conv_transpose_bytes(c, f, options))
    return to_images(c.activated(add_bias(c, 3, cg.conv_transpose2d(x, f, **options))))


def conv_transpose_bytes(c: TfliteContext, f: Node, options: dict) -> Node:
    """Return the transposed convolution of bytes; float64 represents its sums exactly."""
    weights, zero = constant_filters(c, f)
    c.spend(nbytes=8 * weights.size)
    x = cg.astype(subtract_zero(c[2], c[2].images), "float64")
    sums = cg.conv_transpose2d(x, weights.astype("float64") - zero, **options)
    if c.result.is_wide:
        return words_of(c, sums, 2, 3)
    total = cg.astype(sums, "int32")
    bias = bias_of(c, 3, f.shape[1]).reshape((-1, 1, 1))
    scale = np.float64(c[2].bytes.scale) * c[1].bytes.scales.astype("float64") / np.float64(c.result.scale)
    factor, shift = parts_of(np.broadcast_to(scale, f.shape[1])).reshape((2, -1, 1, 1))
    return as_bytes(cg.fixed_product(total + bias, factor, shift), c.result, bounds_of(c))


@operator("AVERAGE_POOL_2D", "MAX_POOL_2D", on_bytes=True)
def pool(c: TfliteContext) -> TfliteValue:
    """Import a pool; padding does not contribute."""
    x, window, stride = image(c, 0), c.sizes("window"), c.sizes("stride")
    pad = padding(c, x.shape[2:], window, stride)
    if c.is_quantised and not c.result.equals(c[0].bytes):
        raise FormatError("pools whose result has another scale are not supported. Use the scale of the operand")
    if c.is_quantised and c.kind == "AVERAGE_POOL_2D":
        return to_images(average_of_bytes(c, x, Conv2d(stride, pad, (1, 1), x.shape[1]), window))
    y = (cg.avg_pool2d if c.kind == "AVERAGE_POOL_2D" else cg.max_pool2d)(x, window, stride=stride, pad=pad)
    return to_images(cg.clip(y, *bounds_of(c)) if c.is_quantised and c.option("activation") else c.activated(y))


@operator("L2_POOL_2D")
def l2_pool(c: TfliteContext) -> TfliteValue:
    """Import L2_POOL_2D: the root of the mean square of each window; padding does not contribute."""
    x, window, stride = image(c, 0), c.sizes("window"), c.sizes("stride")
    pad = padding(c, x.shape[2:], window, stride)
    return to_images(c.activated(cg.sqrt(cg.avg_pool2d(cg.square(x), window, stride=stride, pad=pad))))


def average_of_bytes(c: TfliteContext, x: Node, op: Conv2d, window: tuple[int, int]) -> Node:
    """Return the mean of quantised numbers, halves rounded away from zero."""
    _, channels, *pixels = x.shape
    if tuple(pixels) == window and not any(op.pad):
        total, count = apply(PixelSum(), x), np.full((1, 1), window[0] * window[1])
    else:
        size = channels * window[0] * window[1]
        c.spend(nbytes=size, work=size)
        total = sums_of(op, 0, x, np.ones((channels, 1, *window), "int8"))
        rows, columns = total.shape[2:]
        c.spend(nbytes=PLACE * (rows + columns) + 2 * WORD * rows * columns, work=rows * columns)
        inside = [count_taps(*sizes) for sizes in zip(pixels, window, op.stride, op.pad[:2], total.shape[2:])]
        count = np.multiply.outer(*inside)
    count = count.astype("int32")
    if not count.all():
        raise FormatError(f"a window of {window} lies outside its image of {x.shape[2:]} pixels")
    total = total - np.int32(c[0].bytes.sign) * count
    mean = cg.floor_divide(cg.abs(total) + count // 2, count)
    mean = cg.where(cg.less(total, 0), -mean, mean) + np.int32(c[0].bytes.sign)
    return cg.astype(cg.clip(mean, *bounds_of(c)), "uint8")


def count_taps(size: int, window: int, stride: int, before: int, count: int) -> np.ndarray:
    """Count the elements of each window that lie inside an axis."""
    start = np.arange(count) * stride - before
    return np.maximum(np.minimum(start + window, size) - np.maximum(start, 0), 0)
