"""Importers of reductions, softmax and normalisation."""

from math import prod

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, images, operator
from cgraph.formats.tflite.fixed import MOST, as_bytes, bytes_of, parts_of
from cgraph.formats.tflite.fixed_functions import LONG, SLOPE, START, STEPS, divide
from cgraph.formats.tflite.operators.conv import image
from cgraph.formats.tflite.value import TfliteValue
from cgraph.ir.graph import Node, apply
from cgraph.ops.physical.integer import PIXELS, PixelSum

REDUCE = {
    "MEAN": "mean", "SUM": "sum", "REDUCE_MAX": "max", "REDUCE_MIN": "min", "REDUCE_PROD": "prod", "REDUCE_ANY": "any",
    "REDUCE_ALL": "all",
}  # fmt: skip
SOFTMAX_NODES = 100
POWER_BITS, SUM_BITS = 5, 12  # integer bits of the argument of a power, and of a sum of powers
SMALL = 1e-6  # the smallest norm that L2_NORMALIZATION divides by


def axes_of(c: TfliteContext, x: TfliteValue) -> tuple[int, ...]:
    """Return the axes of operand 1 in the file's order, without repeats."""
    axes = c.ints(1)
    if any(not -x.ndim <= n < x.ndim for n in axes):
        raise FormatError(f"the axes {axes} are outside a tensor of {x.ndim} axes")
    return tuple(sorted({n % x.ndim for n in axes}))


@operator("SUM", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL")
@operator("REDUCE_MAX", "REDUCE_MIN", on_bytes=False)
@operator("MEAN", on_bytes=True)
def reduce(c: TfliteContext) -> TfliteValue:
    x, keep = c[0], c.option("keepdims")
    axes = axes_of(c, x)
    stays = x.first and (keep or 3 in axes or {1, 2} <= set(axes))  # what is left has the file's order
    node = x.node if stays else x.plain
    places = tuple(c.axis(n, x) for n in axes) if stays else axes
    if c.is_quantised and c.kind == "MEAN":
        y = mean_of_bytes(c, node, places, bool(keep))
        return TfliteValue(y, first=bool(stays and keep))
    y = cg.astype(getattr(cg, REDUCE[c.kind])(node, axis=places, keepdims=bool(keep)), node.dtype)
    return TfliteValue(y, first=bool(stays and keep))


def mean_of_bytes(c: TfliteContext, x: Node, axes: tuple[int, ...], keep: bool) -> Node:
    """Return the mean of bytes: an integer sum, scaled by a factor divided by the count and truncated."""
    count, zero = prod(x.shape[i] for i in axes), c[0].bytes.zero
    if not 0 < count * MOST < 1 << 31:
        raise FormatError(f"a sum of {count} numbers is not supported")
    if axes == PIXELS and x.ndim == 4:
        total = apply(PixelSum(), x)
        total = total if keep else total.reshape(x.shape[:2])
    else:
        total = cg.astype(cg.sum(cg.astype(x, "int32"), axis=axes, keepdims=keep), "int32")
    factor, shift = parts_of(np.float64(c[0].bytes.scale) / np.float64(c.result.scale)).astype("int64").tolist()
    more = min(count.bit_length() - 1, 32, 31 + shift)
    factor, shift = (factor << more) // count, shift - more
    return as_bytes(cg.fixed_product(total - np.int32(count * zero), np.int32(factor), np.int32(shift)), c.result)


@operator("ARG_MAX", "ARG_MIN", on_bytes=True)
def arg_max(c: TfliteContext) -> Node:
    axes = axes_of(c, c[0])
    if len(axes) != 1:
        raise FormatError(f"one axis is expected, not {len(axes)}")
    function = cg.argmax if c.kind == "ARG_MAX" else cg.argmin
    return cg.astype(function(c[0].plain, axis=axes[0]), c.dtypes[0])


@operator("LOG_SOFTMAX")
def log_softmax(c: TfliteContext) -> TfliteValue:
    return TfliteValue(cg.log_softmax(c[0].node, axis=c.axis(-1, c[0])), first=c[0].first)


@operator("SOFTMAX", on_bytes=True, on_words=True)
def softmax(c: TfliteContext) -> TfliteValue:
    axis, beta = c.axis(-1, c[0]), c.option("beta")
    if c.is_quantised and c.result.is_wide:
        return softmax_to_words(c, axis, beta)
    if c.is_quantised:
        return softmax_of_bytes(c, axis, beta)
    return TfliteValue(cg.softmax(c[0].node if beta == 1 else c[0].node * beta, axis=axis), first=c[0].first)


def softmax_of_bytes(c: TfliteContext, axis: int, beta: float) -> TfliteValue:
    """Return the softmax of bytes: a table of powers of the distance to the largest, summed in order in float32."""
    x, scale = cg.astype(c[0].node, "int32"), -c[0].bytes.scale * np.float32(beta)
    table = np.exp((scale * np.arange(256, dtype="float32")).astype("float64")).astype("float32")
    powers = cg.take(table, cg.max(x, axis=axis, keepdims=True) - x)
    last = (*[slice(None)] * axis, slice(-1, None))
    total = cg.cumsum(powers, axis=axis)[last]
    share = powers * (np.float32(1) / (total * c.result.scale))
    return TfliteValue(bytes_of(share, c.result), first=c[0].first)


def softmax_to_words(c: TfliteContext, axis: int, beta: float) -> TfliteValue:
    """Return the softmax of bytes as int16: fixed-point powers, times the reciprocal of their sum."""
    if c[0].bytes.is_wide or c.result.zero != c.result.limits[0]:
        raise FormatError("softmax of int16, or to it around another number than -32768, is not supported. Use 8 bits")
    factor, shift = parts_of(min(beta * np.float64(c[0].bytes.scale) * 2**26, 2.0**31 - 1)).tolist()
    if shift < 0:
        raise FormatError(f"a scale of {c[0].bytes.scale} with beta {beta} is too small for softmax to int16")
    c.allowance.spend("softmax to int16", nodes=SOFTMAX_NODES)
    distance, reach = np.arange(256), (31 << 26) >> shift
    arguments = LONG.product(-np.minimum(distance, reach) << shift, factor)
    powers = np.where(distance <= reach, LONG.exp_of_negative(arguments, POWER_BITS), 0)
    x = cg.astype(c[0].node, "int32")
    x = cg.max(x, axis=axis, keepdims=True) - x
    total = cg.sum(cg.take(divide(powers, SUM_BITS).astype("int64"), x), axis=axis, keepdims=True)
    length = cg.sum(cg.astype(cg.greater_equal(cg.expand_dims(total, -1), 2 ** np.arange(32)), "int64"), axis=-1)
    inverse = reciprocal_of(cg.left_shift(total, 32 - length) - np.int64(1 << 31))
    share = cg.astype(cg.fixed_product(cg.take(powers.astype("int32"), x), inverse, 0), "int64")
    places = length + np.int64(SUM_BITS - 17)
    share = cg.right_shift(share + cg.left_shift(np.int64(1), places - 1), places)
    return TfliteValue(as_bytes(cg.astype(cg.minimum(share, np.int64(2**16)), "int32"), c.result), first=c[0].first)


def reciprocal_of(x: Node) -> Node:
    """Return 1 / (1 + x) of int64 that hold 31 bits without integer bits; see `FixedPoint.reciprocal`."""
    half = cg.astype(cg.right_shift(x + np.int64(1 << 31), np.int64(1)), "int32")
    y = cg.fixed_product(half, SLOPE, 0) + np.int32(START)
    for _ in range(STEPS):
        rest = np.int32(1 << 29) - cg.fixed_product(half, y, 0)
        y = y + cg.fixed_product(y, rest, 0) * np.int32(4)
    return cg.astype(cg.minimum(cg.astype(y, "int64") * np.int64(2), np.int64(2**31 - 1)), "int32")


@operator("L2_NORMALIZATION")
def l2_normalization(c: TfliteContext) -> TfliteValue:
    root = cg.sqrt(cg.sum(cg.square(c[0].node), axis=c.axis(-1, c[0]), keepdims=True))
    return TfliteValue(c.activated(c[0].node / cg.maximum(root, SMALL)), first=c[0].first)


@operator("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(c: TfliteContext) -> TfliteValue:
    """Import LOCAL_RESPONSE_NORMALIZATION: ``x / (bias + alpha * s) ** beta``, s squares of near channels."""
    radius, x = c.option("radius"), image(c, 0)
    if radius < 0:
        raise FormatError(f"the radius {radius} is negative")
    size = 2 * min(radius, x.shape[1]) + 1
    alpha, beta, bias = (c.option(name) for name in ("alpha", "beta", "bias"))
    return images(cg.lrn(x, size, alpha * size, beta, bias))


@operator("CUMSUM")
def cumsum(c: TfliteContext) -> Node:
    x, axis = c[0].plain, c.axis(c.ints(1)[0], TfliteValue(c[0].plain))
    y = cg.flip(x, axis) if c.option("reverse") else x
    total = cg.astype(cg.cumsum(y, axis=axis), x.dtype)
    total = total - y if c.option("exclusive") else total
    return cg.flip(total, axis) if c.option("reverse") else total
