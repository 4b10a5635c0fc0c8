"""``np.emath``: functions of real numbers with complex results; always complex, since a dtype cannot depend on
values."""

from typing import Any

import numpy as np

from cgraph.ir.graph import Node
from cgraph.numpy.table import of
from cgraph.ops import elementary
from cgraph.ops import power as powers
from cgraph.ops.family import common_dtype, float_dtype
from cgraph.ops.leaf import as_node

__all__ = ["arccos", "arcsin", "arctanh", "log", "log10", "log2", "logn", "power", "sqrt"]


def complex_of(*xs: Any) -> list[Node]:
    """Return the operands as complex numbers of one dtype."""
    dtype = np.result_type(float_dtype(common_dtype(*xs)), np.complex64)
    return [as_node(x, dtype).astype(dtype) for x in xs]


@of(np.emath.sqrt)
def sqrt(x: Any) -> Node:
    """Return the square root, on the imaginary axis below 0."""
    return elementary.sqrt(*complex_of(x))


@of(np.emath.log)
def log(x: Any) -> Node:
    """Return the natural logarithm, with the imaginary part pi below 0."""
    return elementary.log(*complex_of(x))


@of(np.emath.log2)
def log2(x: Any) -> Node:
    """Return the logarithm to base 2."""
    return elementary.log2(*complex_of(x))


@of(np.emath.log10)
def log10(x: Any) -> Node:
    """Return the logarithm to base 10."""
    return elementary.log10(*complex_of(x))


@of(np.emath.logn)
def logn(n: Any, x: Any) -> Node:
    """Return the logarithm to base n."""
    return log(x) / log(np.asarray(n) if isinstance(n, int | float) else n)


@of(np.emath.power)
def power(x: Any, p: Any) -> Node:
    """Return x to the power of p."""
    x, p = complex_of(x, np.asarray(p) if isinstance(p, int | float) else p)
    return powers.power(x, p)


@of(np.emath.arccos)
def arccos(x: Any) -> Node:
    """Return the angle whose cosine is x."""
    return elementary.arccos(*complex_of(x))


@of(np.emath.arcsin)
def arcsin(x: Any) -> Node:
    """Return the angle whose sine is x."""
    return elementary.arcsin(*complex_of(x))


@of(np.emath.arctanh)
def arctanh(x: Any) -> Node:
    """Return the number whose hyperbolic tangent is x."""
    return elementary.arctanh(*complex_of(x))
