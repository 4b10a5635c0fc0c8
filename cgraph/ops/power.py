"""Powers of floats and complex numbers, and of integers, which wrap."""

from typing import Any

import numpy as np

from cgraph.ir.graph import Node, apply, public
from cgraph.ops.arithmetic import Numeric, reciprocal, square
from cgraph.ops.compare import equal, not_equal, where
from cgraph.ops.elementary import log, sqrt
from cgraph.ops.family import Pointwise, common_dtype, unify
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import full, number_of, ones_like

MOST_FACTORS = 99  # of a complex number to an integer power; NumPy's limit


class Power(Pointwise):
    """x to the power of y, for floats or complex numbers. Complex 0 to a power without positive real part is NaN."""

    takes_complex = True

    def meaning(self, x, y):
        return np.power(x, y)

    def scalar(self, m, x, y):
        return m.pow(x, y)

    def grad(self, node, g):
        x, y = node.operands
        exponent = number_of(y) if y.dtype.kind == "f" else None
        if exponent:
            less = full(y.shape, exponent - 1, y.dtype)  # one number, which passes recognise
        else:  # 0 ** 0 has gradient 0, but 0 times 0 ** -1 is NaN
            less = where(equal(x, 0) & equal(y, 0), y, y - 1.0)
        # log(0) would make the second gradient NaN where that of 0 ** y is 0
        return g * y * power(x, less), g * node * log(where(has_log(x), x, ones_like(x)))


def has_log(x: Node) -> Node:
    """Return True where the logarithm of x is finite."""
    return not_equal(x, 0) if x.dtype.kind == "c" else x > 0


class IntegerPower(Numeric):
    """x to the power of y for integers; wraps. Negative exponents give 0."""

    def meaning(self, x, y):
        return np.where(y < 0, 0, np.power(x, np.maximum(y, 0))).astype(x.dtype)

    def scalar(self, m, x, y):
        result, one, zero = m.const(1, x.dtype), m.const(1, x.dtype), m.const(0, x.dtype)
        for bit in range(8 * int(x.dtype[1:]) - (x.dtype[0] == "i")):
            odd = m.ne(m.apply("shr", y, bit) & one, zero)
            result = m.where(odd, result * x, result)
            x = x * x
        return result if y.dtype[0] == "u" else m.where(y < 0, zero, result)


def multiply_out(x: Node, n: int) -> Node:
    """Return x to the power of n >= 0 by repeated squaring."""
    product = None
    for bit in f"{n:b}":
        product = product if product is None else square(product)
        if bit == "1":
            product = x if product is None else product * x
    return ones_like(x) if product is None else product


@public
def power(x: Any, y: Any) -> Node:
    """Return x to the power of y, as ``np.power``. Integers to a negative power give 0 (NumPy raises an error).

    Complex numbers to an integer power given as a Python number are multiplied out; other powers are ``exp(y log x)``.
    """
    if isinstance(y, int | float) and not isinstance(y, bool):
        x = as_node(x)
        if y == 1 and x.dtype != bool and common_dtype(x, y) == x.dtype:
            return x
        if y == 2 and common_dtype(x, y) == x.dtype:
            return square(x)
        if y == 0.5 and x.dtype.kind in "fc":
            return sqrt(x)
        if x.dtype.kind == "c" and float(y).is_integer() and abs(y) <= MOST_FACTORS:
            product = multiply_out(x, abs(int(y)))
            return reciprocal(product) if y < 0 else product
    x, y = unify(x, y)
    if x.dtype == bool:
        x, y = x.astype("int8"), y.astype("int8")
    return apply(Power() if x.dtype.kind in "fc" else IntegerPower(), x, y)
