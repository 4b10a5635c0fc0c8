"""Importers of elementwise operators: arithmetic, comparison, logic, bits, conversion, selection."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from cgraph.dtypes.storage import BY_DTYPE
from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic.value import Array, counts_of, node_in, with_lengths
from cgraph.formats.onnx.dynamic_ops.operators import elementwise
from cgraph.formats.onnx.operators.few_bits import few_bits, kind_of
from cgraph.formats.onnx.tensors import BITS, dtype_of_number, is_float8, stored_dtype
from cgraph.ir.graph import Node

SAME_NAME = {
    "Abs": "abs", "Acos": "arccos", "Acosh": "arccosh", "Asin": "arcsin", "Asinh": "arcsinh", "Atan": "arctan",
    "Atanh": "arctanh", "BitwiseNot": "invert", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf",
    "Exp": "exp", "Floor": "floor", "IsNaN": "isnan", "Log": "log", "Mish": "mish",
    "Neg": "negative", "Not": "logical_not", "Reciprocal": "reciprocal", "Relu": "relu", "Round": "rint",
    "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Softplus": "softplus",
    "Softsign": "softsign", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
BINARY = {
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "And": "logical_and", "Or": "logical_or",
    "Xor": "logical_xor", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
    "Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal", "Less": "less",
    "LessOrEqual": "less_equal",
}  # fmt: skip
VARIADIC = {"Sum": "add", "Max": "maximum", "Min": "minimum"}


@operator(*SAME_NAME)
@elementwise
def unary(c: Context) -> Node:
    return getattr(cg, SAME_NAME[c.kind])(c[0])


@operator(*BINARY)
@elementwise
def binary(c: Context) -> Node:
    return getattr(cg, BINARY[c.kind])(c[0], second(c))


def second(c: Context) -> Node:
    """Return operand 1; before opset 7, attribute `axis` aligns it with operand 0."""
    y = c[1]
    if c.opset >= 7 or not c.attribute("broadcast", 0):
        return y
    axis = c.attribute("axis", c[0].ndim - y.ndim)
    behind = c[0].ndim - axis % max(c[0].ndim, 1) - y.ndim
    return cg.reshape(y, (*y.shape, *[1] * max(behind, 0)))


@operator("Div")
@elementwise
def divide(c: Context) -> Node:
    x, y = c[0], second(c)
    return cg.true_divide(x, y) if x.dtype.kind == "f" else truncated_quotient(x, y)


def truncated_quotient(x: Node, y: Node) -> Node:
    """Return x / y rounded towards 0, as in C."""
    if x.dtype.kind == "u":
        return cg.floor_divide(x, y)
    size = cg.floor_divide(cg.abs(x), cg.abs(y))
    return cg.where(cg.not_equal(x < 0, y < 0), -size, size)


@operator("Mod")
@elementwise
def modulo(c: Context) -> Node:
    x, y = c[0], c[1]
    if not c.attribute("fmod", 0):
        return cg.remainder(x, y)
    return cg.fmod(x, y) if x.dtype.kind == "f" else x - truncated_quotient(x, y) * y


@operator("Pow")
@elementwise
def power(c: Context) -> Node:
    x, y = c[0], second(c)
    return cg.power(x, cg.astype(y, x.dtype)) if x.dtype.kind == "f" else cg.astype(cg.power(x, y), x.dtype)


@operator(*VARIADIC)
@elementwise
def variadic(c: Context) -> Node:
    return reduce(getattr(cg, VARIADIC[c.kind]), c.nodes)


@operator("Mean")
@elementwise
def mean_of_operands(c: Context) -> Node:
    return reduce(cg.add, c.nodes) / float(len(c.operands))


@operator("Clip")
@elementwise
def clip(c: Context) -> Node:
    """Import Clip; bounds are attributes in opset 6, operands in opset 11."""
    x = c[0]
    low, high = c.attribute("min"), c.attribute("max")
    if c.opset >= 11:
        low, high = c.get(1), c.get(2)
    x = x if low is None else cg.maximum(x, low)
    return x if high is None else cg.minimum(x, high)


@operator("BitShift")
@elementwise
def bit_shift(c: Context) -> Node:
    return (cg.left_shift if c.required("direction") == "LEFT" else cg.right_shift)(c[0], c[1])


@operator("IsInf")
@elementwise
def is_infinite(c: Context) -> Node:
    x = c[0]
    low, high = c.attribute("detect_negative", 1), c.attribute("detect_positive", 1)
    if low and high:
        return cg.isinf(x)
    if not low and not high:
        return cg.zeros(x.shape, bool)
    return cg.equal(x, np.asarray(np.inf if high else -np.inf, x.dtype))


@operator("Where")
@elementwise
def where(c: Context) -> Node:
    return cg.where(c[0], c[1], c[2])


@operator("Cast")
@elementwise
def cast(c: Context) -> Node:
    number = c.required("to")
    return few_bits(c, c[0], number) if number in BITS else converted(c, c[0], dtype_of_number(number, "the result"))


@operator("CastLike")
def cast_like(c: Context) -> Array:
    x, number = c.array(0), kind_of(c, 1)
    node, dtype = node_in(x), stored_dtype(node_in(c.array(1)))
    return with_lengths(few_bits(c, node, number) if number else converted(c, node, dtype), counts_of(x))


def converted(c: Context, x: Node, dtype: np.dtype) -> Node:
    """Convert to another dtype. Numbers beyond the range of a float of 8 bits become the nearest one in it, unless the
    operator has ``saturate=0``.
    """
    if is_float8(dtype) and c.attribute("saturate", 1):
        largest = BY_DTYPE[dtype].largest
        x = cg.clip(x, -largest, largest)
    return cg.astype(x, dtype)


@operator("BitCast")
@elementwise
def bit_cast(c: Context) -> Node:
    return cg.bitcast(c[0], dtype_of_number(c.required("to"), "the result"))


def with_attributes(function: str, **defaults: float) -> Callable[[Context], Node]:
    """Return an importer for a function of one operand and attributes."""

    def importer(c: Context) -> Node:
        return getattr(cg, function)(c[0], *(c.attribute(name, value) for name, value in defaults.items()))

    return importer


for _name, _function, _defaults in (
    ("Celu", "celu", {"alpha": 1.0}),
    ("Elu", "elu", {"alpha": 1.0}),
    ("HardSigmoid", "hard_sigmoid", {"alpha": 0.2, "beta": 0.5}),
    ("HardSwish", "hard_swish", {}),
    ("LeakyRelu", "leaky_relu", {"alpha": 0.01}),
    ("Selu", "selu", {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    ("ThresholdedRelu", "thresholded_relu", {"alpha": 1.0}),
):
    operator(_name)(elementwise(with_attributes(_function, **_defaults)))


@operator("Gelu")
@elementwise
def gelu(c: Context) -> Node:
    return cg.gelu(c[0], c.attribute("approximate", "none") == "tanh")


@operator("Swish")
@elementwise
def swish(c: Context) -> Node:
    x, alpha = c[0], c.attribute("alpha", 1.0)
    return cg.swish(x) if alpha == 1.0 else x * cg.sigmoid(x * alpha)


@operator("Shrink")
@elementwise
def shrink(c: Context) -> Node:
    """Import Shrink: x moved towards 0 by `bias` if its magnitude exceeds `lambd`, else 0."""
    x, bias, limit = c[0], c.attribute("bias", 0.0), c.attribute("lambd", 0.5)
    pulled = cg.where(x < -limit, x + bias, cg.where(x > limit, x - bias, cg.zeros_like(x)))
    return cg.astype(pulled, x.dtype)


@operator("PRelu")
@elementwise
def prelu(c: Context) -> Node:
    """Import PRelu; before opset 7 the slope is per channel."""
    x, slope = c[0], c[1]
    if c.opset < 7 and slope.ndim == 1 and slope.size > 1:
        slope = cg.reshape(slope, (-1, *[1] * (x.ndim - 2)))
    return cg.prelu(x, slope)


@operator("Dropout")
@elementwise
def dropout(c: Context) -> Any:
    """Import Dropout: the identity, unless training mode is on with a ratio above 0."""
    x = c[0]
    ratio = c.number(1, 0.5) if c.opset >= 12 else c.attribute("ratio", 0.5)
    if c.opset < 12 or not c.number(2, False) or ratio == 0:
        return x, cg.ones(x.shape, bool)
    if not 0 <= ratio < 1:
        raise FormatError(f"ratio {ratio} is outside [0, 1): give one in it")
    mask = cg.random_bernoulli(cg.random_key(c.attribute("seed", 0)), x.shape, 1 - ratio)
    return cg.where(mask, x / (1 - ratio), cg.zeros_like(x)), mask
