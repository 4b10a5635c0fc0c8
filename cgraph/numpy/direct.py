"""NumPy functions that are ops of the graph, and traces and diagonals of the first two axes."""

from typing import Any

import numpy as np

from cgraph.ir.graph import Node
from cgraph.numpy.table import of
from cgraph.ops import arithmetic, compare, elementary
from cgraph.ops import diagonal as diagonals

__all__ = [
    "abs", "acos", "acosh", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "asin",
    "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_not",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "cbrt", "ceil", "copysign", "cos", "cosh", "diagonal",
    "divide", "equal", "exp", "exp2", "expm1", "floor", "floor_divide", "fmod", "greater", "greater_equal", "hypot",
    "invert", "isfinite", "isinf", "isnan", "left_shift", "less", "less_equal", "log", "log10", "log1p", "log2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply", "negative",
    "not_equal", "positive", "remainder", "right_shift", "rint", "sign", "sin", "sinh", "sqrt", "square", "subtract",
    "tan", "tanh", "trace", "true_divide", "trunc",
]  # fmt: skip

add = of(np.add)(arithmetic.add)
subtract = of(np.subtract)(arithmetic.subtract)
multiply = of(np.multiply)(arithmetic.multiply)
true_divide = of(np.true_divide)(arithmetic.true_divide)
floor_divide = of(np.floor_divide)(arithmetic.floor_divide)
remainder = of(np.remainder)(arithmetic.remainder)
maximum = of(np.maximum)(arithmetic.maximum)
minimum = of(np.minimum)(arithmetic.minimum)
negative = of(np.negative)(arithmetic.negative)
sign = of(np.sign)(arithmetic.sign)
square = of(np.square)(arithmetic.square)
floor = of(np.floor)(arithmetic.floor)
ceil = of(np.ceil)(arithmetic.ceil)
trunc = of(np.trunc)(arithmetic.trunc)
rint = of(np.rint)(arithmetic.rint)
positive = of(np.positive)(arithmetic.positive)
less = of(np.less)(compare.less)
less_equal = of(np.less_equal)(compare.less_equal)
greater = of(np.greater)(compare.greater)
greater_equal = of(np.greater_equal)(compare.greater_equal)
equal = of(np.equal)(compare.equal)
not_equal = of(np.not_equal)(compare.not_equal)
bitwise_and = of(np.bitwise_and)(compare.bitwise_and)
bitwise_or = of(np.bitwise_or)(compare.bitwise_or)
bitwise_xor = of(np.bitwise_xor)(compare.bitwise_xor)
invert = of(np.invert)(compare.invert)
left_shift = of(np.left_shift)(compare.left_shift)
right_shift = of(np.right_shift)(compare.right_shift)
logical_not = of(np.logical_not)(compare.logical_not)
logical_and = of(np.logical_and)(compare.logical_and)
logical_or = of(np.logical_or)(compare.logical_or)
logical_xor = of(np.logical_xor)(compare.logical_xor)
isnan = of(np.isnan)(compare.isnan)
isinf = of(np.isinf)(compare.isinf)
isfinite = of(np.isfinite)(compare.isfinite)
exp = of(np.exp)(elementary.exp)
exp2 = of(np.exp2)(elementary.exp2)
expm1 = of(np.expm1)(elementary.expm1)
log = of(np.log)(elementary.log)
log2 = of(np.log2)(elementary.log2)
log10 = of(np.log10)(elementary.log10)
log1p = of(np.log1p)(elementary.log1p)
sqrt = of(np.sqrt)(elementary.sqrt)
cbrt = of(np.cbrt)(elementary.cbrt)
sin = of(np.sin)(elementary.sin)
cos = of(np.cos)(elementary.cos)
tan = of(np.tan)(elementary.tan)
arcsin = of(np.arcsin)(elementary.arcsin)
arccos = of(np.arccos)(elementary.arccos)
arctan = of(np.arctan)(elementary.arctan)
sinh = of(np.sinh)(elementary.sinh)
cosh = of(np.cosh)(elementary.cosh)
tanh = of(np.tanh)(elementary.tanh)
arcsinh = of(np.arcsinh)(elementary.arcsinh)
arccosh = of(np.arccosh)(elementary.arccosh)
arctanh = of(np.arctanh)(elementary.arctanh)
arctan2 = of(np.arctan2)(elementary.arctan2)
hypot = of(np.hypot)(elementary.hypot)
fmod = of(np.fmod)(elementary.fmod)
copysign = of(np.copysign)(elementary.copysign)
divide, mod, abs = true_divide, remainder, arithmetic.abs
acos, acosh, asin, asinh, atan, atan2, atanh = arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh
bitwise_invert = bitwise_not = invert
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


@of(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
    """Return a diagonal of two axes, the first two by default, which become the last one."""
    return diagonals.diagonal(a, offset, axis1, axis2)


@of(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Node:
    """Return the sum of a diagonal of two axes, the first two by default."""
    return diagonal(a, offset, axis1, axis2).sum(-1, dtype)
