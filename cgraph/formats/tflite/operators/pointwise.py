"""Importers of elementwise operators: arithmetic, comparison, activations."""

from collections.abc import Callable
from math import erf, pi, sqrt
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.fixed import (
    as_bytes,
    bounds_of,
    halves_away,
    nearest,
    of_floats,
    parts_of,
    scale_factor,
    subtract_zero,
)
from cgraph.formats.tflite.value import TfliteValue
from cgraph.ir.graph import Node

BINARY: dict[str, Callable[..., Node]] = {
    "ADD": lambda x, y: x + y,
    "ATAN2": lambda x, y: cg.arctan2(x, y),
    "BITWISE_XOR": lambda x, y: cg.bitwise_xor(x, y),
    "DIV": lambda x, y: cg.true_divide(x, y) if x.dtype.kind == "f" else truncated_quotient(x, y),
    "EQUAL": lambda x, y: cg.equal(x, y),
    "FLOOR_DIV": lambda x, y: cg.floor_divide(x, y),
    "FLOOR_MOD": lambda x, y: cg.remainder(x, y),
    "GREATER": lambda x, y: cg.greater(x, y),
    "GREATER_EQUAL": lambda x, y: cg.greater_equal(x, y),
    "LESS": lambda x, y: cg.less(x, y),
    "LESS_EQUAL": lambda x, y: cg.less_equal(x, y),
    "LOGICAL_AND": lambda x, y: cg.logical_and(x, y),
    "LOGICAL_OR": lambda x, y: cg.logical_or(x, y),
    "MAXIMUM": lambda x, y: cg.maximum(x, y),
    "MINIMUM": lambda x, y: cg.minimum(x, y),
    "MUL": lambda x, y: x * y,
    "NOT_EQUAL": lambda x, y: cg.not_equal(x, y),
    "POW": lambda x, y: cg.power(x, y),
    "PRELU": lambda x, y: cg.prelu(x, y),
    "RIGHT_SHIFT": lambda x, y: cg.right_shift(x, cg.clip(y, 0, 8 * y.dtype.itemsize - 1)),
    "SQUARED_DIFFERENCE": lambda x, y: cg.square(x - y),
    "STABLEHLO_ADD": lambda x, y: x + y,
    "STABLEHLO_AND": lambda x, y: cg.bitwise_and(x, y),
    "STABLEHLO_MAXIMUM": lambda x, y: cg.maximum(x, y),
    "STABLEHLO_MINIMUM": lambda x, y: cg.minimum(x, y),
    "STABLEHLO_MULTIPLY": lambda x, y: x * y,
    "STABLEHLO_SHIFT_LEFT": lambda x, y: cg.left_shift(x, y),
    "SUB": lambda x, y: x - y,
}
GELU_SLOPE = sqrt(2 / pi)
FINE, FINE_WORDS = 1 << 20, 1 << 15  # fractions of a scale unit in which sums of bytes and of int16 are computed
WITH_ACTIVATION = ("ADD", "DIV", "MUL", "SUB")
UNARY: dict[str, Callable[[Node], Node]] = {
    "ABS": lambda x: cg.abs(x),
    "CEIL": lambda x: cg.ceil(x),
    "COS": lambda x: cg.cos(x),
    "ELU": lambda x: cg.elu(x),
    "EXP": lambda x: cg.exp(x),
    "FLOOR": lambda x: cg.floor(x),
    "HARD_SWISH": lambda x: cg.hard_swish(x),
    "LOG": lambda x: cg.log(x),
    "LOGICAL_NOT": lambda x: cg.logical_not(x),
    "LOGISTIC": lambda x: cg.sigmoid(x),
    "NEG": lambda x: cg.negative(x),
    "RELU": lambda x: cg.relu(x),
    "RELU6": lambda x: cg.relu6(x),
    "RELU_0_TO_1": lambda x: cg.clip(x, 0.0, 1.0),
    "RELU_N1_TO_1": lambda x: cg.clip(x, -1.0, 1.0),
    "ROUND": lambda x: cg.rint(x),
    "RSQRT": lambda x: cg.reciprocal(cg.sqrt(x)),
    "SIGN": lambda x: cg.sign(x),
    "SIN": lambda x: cg.sin(x),
    "SQRT": lambda x: cg.sqrt(x),
    "SQUARE": lambda x: cg.square(x),
    "TANH": lambda x: cg.tanh(x),
    "ZEROS_LIKE": lambda x: cg.zeros_like(x),
}


def truncated_quotient(x: Node, y: Node) -> Node:
    """Return x / y of integers rounded towards 0; 0 if y is 0."""
    magnitude = cg.floor_divide(cg.abs(x), cg.abs(y))
    return cg.where(cg.less(x, 0) != cg.less(y, 0), -magnitude, magnitude)


BINARY_OF_BYTES: dict[str, Callable[[TfliteContext, Node, Node], Node]] = {
    "ADD": lambda c, x, y: add_bytes(c, x, y, 1),
    "MUL": lambda c, x, y: multiply_bytes(c, x, y),
    "PRELU": lambda c, x, y: prelu_bytes(c, x, y),
    "SUB": lambda c, x, y: add_bytes(c, x, y, -1),
}
WORDS = ("ADD", "SUB")  # operators that are also computed on int16
ORDERED = ("MAXIMUM", "MINIMUM")  # apply to bytes directly, since quantisation is monotonic
BOUNDED = {"RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
CURVES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "EXP": lambda x: np.exp(x),
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x).astype("float32")),
    "TANH": lambda x: np.tanh(x),
}


@operator(*(BINARY.keys() - BINARY_OF_BYTES.keys() - {*ORDERED}))
@operator(*ORDERED, on_bytes=False)
@operator(*(BINARY_OF_BYTES.keys() - {*WORDS}), on_bytes=True)
@operator(*WORDS, on_bytes=True, on_words=True)
def binary(c: TfliteContext) -> TfliteValue:
    (x, y), first = c.alike(c[0], c[1])
    if c.is_quantised and c.kind in BINARY_OF_BYTES:
        return TfliteValue(BINARY_OF_BYTES[c.kind](c, subtract_zero(c[0], x), subtract_zero(c[1], y)), first=first)
    if x.dtype != y.dtype:
        raise FormatError(f"operands of {x.dtype} and {y.dtype}: both must have one dtype")
    combined = BINARY[c.kind](x, y)
    return TfliteValue(c.activated(combined) if c.kind in WITH_ACTIVATION else combined, first=first)


def add_bytes(c: TfliteContext, x: Node, y: Node, sign: int) -> Node:
    """Add bytes: scale both to one scale with 20 fractional bits, then scale the sum to that of the result.

    For int16, the fractional bits are 15.
    """
    sx, sy = c[0].bytes.scale, c[1].bytes.scale
    if c.result.is_wide and c.option("pot") and all(np.frexp(s)[0] == 0.5 for s in (sx, sy, c.result.scale)):
        raise FormatError("sums of int16 whose scales are powers of 2 are not supported. Use other scales, or 8 bits")
    fine = FINE_WORDS if c.result.is_wide else FINE
    wide = np.float64(np.float32(2) * max(sx, sy))
    factor, shift = parts_of(np.float64(sy) / wide)
    right = cg.fixed_product(y * np.int32(fine), np.int32(sign * factor), shift)
    total = scale_factor(x * np.int32(fine), np.float64(sx) / wide) + right
    return as_bytes(scale_factor(total, wide / np.float64(np.float32(fine) * c.result.scale)), c.result, bounds_of(c))


def multiply_bytes(c: TfliteContext, x: Node, y: Node) -> Node:
    scale = c[0].bytes.scale * c[1].bytes.scale / c.result.scale
    return as_bytes(scale_factor(x * y, scale), c.result, bounds_of(c))


def prelu_bytes(c: TfliteContext, x: Node, y: Node) -> Node:
    """Return x where x >= 0, else x * y, each with its own scale."""
    scale = c[0].bytes.scale
    below = scale_factor(x * y, scale * c[1].bytes.scale / c.result.scale)
    return as_bytes(cg.where(cg.less(x, 0), below, scale_factor(x, scale / c.result.scale)), c.result)


@operator(*(UNARY.keys() - CURVES.keys() - BOUNDED.keys() - {"HARD_SWISH"}))
@operator(*CURVES, *BOUNDED, "HARD_SWISH", on_bytes=True)
def unary(c: TfliteContext) -> TfliteValue:
    if not c.is_quantised:
        return TfliteValue(UNARY[c.kind](c[0].node), first=c[0].first)
    if c.kind in BOUNDED:
        x = scale_factor(subtract_zero(c[0]), c[0].bytes.scale / c.result.scale)
        return TfliteValue(as_bytes(x, c.result, bounds_of(c, BOUNDED[c.kind])), first=c[0].first)
    return TfliteValue(hard_swish(c), first=c[0].first) if c.kind == "HARD_SWISH" else of_floats(c, CURVES[c.kind])


def hard_swish(c: TfliteContext) -> Node:
    """Return x * relu6(x + 3) / 6 in 16-bit fixed point, with 7 fractional bits of `x`."""
    fine = np.float32(1 / 128) * c[0].bytes.scale
    (out, left), (slope, up) = (
        parts_of(np.float64(scale)).tolist() for scale in (fine / c.result.scale, fine / np.float32(3 / 32768))
    )
    if left > 0:
        raise FormatError("the result's scale is too small for its operand's")
    x = subtract_zero(c[0]) * np.int32(128)
    share = saturate(x * np.int32(1 << min(up - 1, 8))) if up > 0 else x  # 8: all but 0 is at its end then
    share = high16(share, slope)
    share = saturate(share * np.int32(2)) if up > 0 else divide(share, -up)
    share = cg.right_shift(share + np.int32(1 << 15), np.int32(1))
    product = share * high16(x, out)
    magnitude = cg.right_shift(cg.abs(product), np.int32(15))
    return as_bytes(divide(cg.where(cg.less(product, 0), -magnitude, magnitude), -left), c.result)


def saturate(x: Node) -> Node:
    """Clip to 16 bits."""
    return cg.clip(x, np.int32(-(2**15)), np.int32(2**15 - 1))


def high16(x: Node, factor: int) -> Node:
    """Return ``x * factor / 2**31`` with the upper 15 bits of the factor, halves rounded up."""
    short = np.int32(min((factor + (1 << 15)) >> 16, 2**15 - 1))
    return cg.right_shift(x * short + np.int32(1 << 14), np.int32(15))


def divide(x: Node, places: int) -> Node:
    """Return ``x / 2**places``, halves rounded away from zero."""
    magnitude = cg.right_shift(cg.abs(x) + np.int32((1 << places) >> 1), np.int32(places))
    return cg.where(cg.less(x, 0), -magnitude, magnitude)


@operator("GELU", on_bytes=True)
def gelu(c: TfliteContext) -> TfliteValue:
    is_approximate, x = c.option("approximate"), c[0].node
    if c.is_quantised:
        return of_floats(c, gelu_by_tanh if is_approximate else gelu_by_erf)
    return TfliteValue(gelu_by_tanh(x) if is_approximate else cg.gelu(x), first=c[0].first)


def gelu_by_tanh(x: Any) -> Any:
    """Return the approximate gelu of an array or a node."""
    return 0.5 * x * (1.0 + np.tanh(GELU_SLOPE * (x + 0.044715 * x * x * x)))


def gelu_by_erf(x: np.ndarray) -> np.ndarray:
    """Return the gelu of an array."""
    return 0.5 * x * (1.0 + np.vectorize(erf)(x / sqrt(2)))


@operator("LEAKY_RELU", on_bytes=True, on_words=True)
def leaky_relu(c: TfliteContext) -> TfliteValue:
    if c.is_quantised:
        x, ratio = subtract_zero(c[0]), c[0].bytes.scale / c.result.scale
        below = scale_factor(x, c[0].bytes.scale * np.float32(c.option("alpha")) / c.result.scale)
        return TfliteValue(as_bytes(cg.where(cg.less(x, 0), below, scale_factor(x, ratio)), c.result), first=c[0].first)
    return TfliteValue(cg.leaky_relu(c[0].node, c.option("alpha")), first=c[0].first)


@operator("ADD_N")
def add_n(c: TfliteContext) -> TfliteValue:
    nodes, first = c.alike()
    total = nodes[0]
    for x in nodes[1:]:
        total = total + x
    return TfliteValue(total, first=first)


@operator("CAST")
def cast(c: TfliteContext) -> TfliteValue:
    """Import CAST; complex numbers become real by their real part."""
    x, dtype = c[0].node, c.dtypes[0]
    is_cut = x.dtype.kind == "c" and dtype.kind != "c"
    return TfliteValue(cg.astype(cg.real(x) if is_cut else x, dtype), first=c[0].first)


@operator("SELECT", "SELECT_V2")
def select(c: TfliteContext) -> TfliteValue:
    """Import SELECT and SELECT_V2; the condition of the former may have one element per row of axis 0."""
    if c.kind == "SELECT" and c[0].ndim == 1 and c[1].ndim > 1:
        return TfliteValue(cg.where(c[0].plain.reshape((-1, *[1] * (c[1].ndim - 1))), c[1].plain, c[2].plain))
    (p, x, y), first = c.alike()
    return TfliteValue(cg.where(p, x, y), first=first)


@operator("BITCAST")
def bitcast(c: TfliteContext) -> TfliteValue:
    """Import BITCAST to a dtype of the same size."""
    return TfliteValue(cg.bitcast(c[0].node, c.dtypes[0]), first=c[0].first)


@operator("FAKE_QUANT")
def fake_quant(c: TfliteContext) -> TfliteValue:
    """Import FAKE_QUANT: floats rounded to equal steps between two limits, which are moved so that 0 is a step.

    Source: tensorflow/lite/kernels/internal/quantization_util.h, NudgeQuantizationRange.
    """
    low, high, bits = np.float32(c.option("min")), np.float32(c.option("max")), c.option("bits")
    if not (2 <= bits <= 16 and low <= 0 <= high and low < high and np.isfinite(high - low)):
        raise FormatError(f"{bits} bits from {low} to {high}: give 2 to 16 bits, and finite limits with 0 between them")
    if c.option("narrow"):
        raise FormatError("narrow_range is not supported, as in LiteRT. Use the whole range")
    most = np.float32(2**bits - 1)
    scale = (high - low) / most
    zero = np.clip(nearest(-low / scale), 0, most).astype("float32")
    start, end = -zero * scale, (most - zero) * scale
    steps = (cg.clip(c[0].node, start, end) - start) * (np.float32(1) / scale)
    return TfliteValue(halves_away(steps) * scale + start, first=c[0].first)
