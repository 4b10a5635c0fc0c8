"""Elementwise functions composed of others. Those that are ops are in `cgraph.numpy.direct`."""

from math import log, pi
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, NoMeaningError
from cgraph.ir.graph import Node
from cgraph.numpy.table import of
from cgraph.ops import complex as parts
from cgraph.ops.arithmetic import maximum, minimum, remainder, rint, trunc
from cgraph.ops.arithmetic import reciprocal as float_reciprocal
from cgraph.ops.arithmetic import round as round_floats
from cgraph.ops.compare import equal, isfinite, isnan, logical_and, logical_not, not_equal, where
from cgraph.ops.elementary import arctan2, copysign, exp, exp2, log1p, sin
from cgraph.ops.family import common_dtype, common_float_dtype, real_node, unify, wide_node
from cgraph.ops.leaf import as_node
from cgraph.ops.power import power as any_power
from cgraph.ops.reduce import all as all_true
from cgraph.ops.shape import broadcast_to, zeros_like

__all__ = [
    "absolute", "allclose", "angle", "around", "array_equal", "array_equiv", "astype", "conj", "conjugate", "deg2rad",
    "degrees", "divmod", "fabs", "fix", "float_power", "fmax", "fmin", "heaviside", "imag", "isclose", "iscomplex",
    "isneginf", "isposinf", "isreal", "logaddexp", "logaddexp2", "modf", "nan_to_num", "power", "rad2deg",
    "radians", "real", "real_if_close", "reciprocal", "round", "sinc",
]  # fmt: skip


def floats(*xs: Any) -> list[Node]:
    """Return the operands in the float dtype that they have together, broadcast. DTypeError for complex ones."""
    dtype = common_float_dtype(*xs)
    return unify(*(real_node(as_node(x, dtype)) for x in xs), dtype=dtype)


def float_of(x: Any) -> Node:
    """Return the operand in the dtype in which a real function of it is computed."""
    return floats(x)[0]


@of(np.fabs)
def fabs(x: Any) -> Node:
    """Return the absolute value, in a float dtype."""
    return abs(float_of(x))


@of(np.absolute)
def absolute(x: Any) -> Node:
    """Return the absolute value."""
    return abs(as_node(x))


@of(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Node:
    """Return the operand in another dtype, or itself if it has that dtype."""
    return as_node(x).astype(dtype)


@of(np.reciprocal)
def reciprocal(x: Any) -> Node:
    """Return 1 / x; for integers the integer part, and 0 where x is 0."""
    x = wide_node(x)
    if x.dtype.kind in "fc":
        return float_reciprocal(x)
    x = x.astype("int8") if x.dtype.kind == "b" else x
    return where(equal(x, 1) | equal(x, -1) if x.dtype.kind == "i" else equal(x, 1), x, zeros_like(x))


@of(np.power)
def power(x1: Any, x2: Any) -> Node:
    """Return x1 to the power of x2. A constant negative power of integers is refused, as in NumPy; a computed one gives
    0.
    """
    exponent = x2 if isinstance(x2, int | np.integer | np.ndarray) and not isinstance(x2, bool) else None
    if common_dtype(x1, x2).kind in "iu" and exponent is not None and np.any(np.less(exponent, 0)):
        raise DTypeError(
            f"integers to the power of {exponent!r:.40} are not integers; use np.float_power, or convert them to floats"
        )
    return any_power(x1, x2)


@of(np.float_power)
def float_power(x1: Any, x2: Any) -> Node:
    """Return x1 to the power of x2 in float64 or complex128."""
    return any_power(*unify(x1, x2, dtype=np.result_type(common_dtype(x1, x2), np.float64)))


@of(np.round, np.around)
def round(a: Any, decimals: int = 0) -> Node:
    """Round to `decimals` places, halves to even; a negative number rounds integers to tens, hundreds, ..."""
    a = as_node(a)
    if a.dtype.kind not in "iu" or decimals >= 0:
        return round_floats(a, decimals)
    step = 10.0**-decimals
    return (rint(a / step) * step).astype(a.dtype)


around = round


@of(np.fix)
def fix(x: Any) -> Node:
    """Return the integer part, rounded towards 0."""
    return trunc(x)


@of(np.degrees, np.rad2deg)
def degrees(x: Any) -> Node:
    """Return degrees of radians."""
    return float_of(x) * (180 / pi)


@of(np.radians, np.deg2rad)
def radians(x: Any) -> Node:
    """Return radians of degrees."""
    return float_of(x) * (pi / 180)


rad2deg, deg2rad = degrees, radians


@of(np.divmod)
def divmod(x1: Any, x2: Any) -> tuple[Node, Node]:
    """Return the quotient, rounded down to an integer, and the remainder."""
    x1, x2 = unify(x1, x2)
    return x1 // x2, remainder(x1, x2)


@of(np.modf)
def modf(x: Any) -> tuple[Node, Node]:
    """Return the fractional part and the integer part, both with the sign of x."""
    x = float_of(x)
    whole = trunc(x)
    return copysign(where(isfinite(x), x - whole, where(isnan(x), x, zeros_like(x))), x), whole


@of(np.fmax)
def fmax(x1: Any, x2: Any) -> Node:
    """Return the larger operand; if one is NaN, the other."""
    return other_than_nan(maximum, x1, x2)


@of(np.fmin)
def fmin(x1: Any, x2: Any) -> Node:
    """Return the smaller operand; if one is NaN, the other."""
    return other_than_nan(minimum, x1, x2)


def other_than_nan(extreme: Any, x: Any, y: Any) -> Node:
    x, y = unify(x, y)
    return extreme(where(isnan(x), y, x), where(isnan(y), x, y))


@of(np.logaddexp)
def logaddexp(x1: Any, x2: Any) -> Node:
    """Return log(exp(x1) + exp(x2)) without overflow."""
    x, y = floats(x1, x2)
    return where(equal(x, y), 0.5 * x + 0.5 * y + log(2), maximum(x, y) + log1p(exp(-gap(x, y))))


@of(np.logaddexp2)
def logaddexp2(x1: Any, x2: Any) -> Node:
    """Return log2(2 ** x1 + 2 ** x2) without overflow."""
    x, y = floats(x1, x2)
    return where(equal(x, y), 0.5 * x + 0.5 * y + 1.0, maximum(x, y) + log1p(exp2(-gap(x, y))) * (1 / log(2)))


def gap(x: Node, y: Node) -> Node:
    """Return the absolute difference; 0 for equal operands, infinities included, so that no gradient there is NaN."""
    same = equal(x, y)
    return abs(where(same, zeros_like(x), x) - where(same, zeros_like(y), y))


@of(np.heaviside)
def heaviside(x1: Any, x2: Any) -> Node:
    """Return 0 below 0, x2 at 0, 1 above 0, and NaN for NaN."""
    x, y = floats(x1, x2)
    return where(isnan(x), x, where(equal(x, 0), y, (x > 0).astype(x.dtype)))


@of(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Node:
    """Replace NaN and infinities by numbers, infinities by default by the largest of the dtype."""
    x = as_node(x)
    x = x if x.dtype.kind == "f" else wide_node(x)
    if x.dtype.kind == "c":
        return parts.complex(*(nan_to_num(part, copy, nan, posinf, neginf) for part in (real(x), imag(x))))
    if x.dtype.kind != "f":
        return x
    most = np.finfo(x.dtype).max
    x = where(isnan(x), as_node(nan, x.dtype).astype(x.dtype), x)
    x = where(equal(x, np.inf), as_node(most if posinf is None else posinf, x.dtype).astype(x.dtype), x)
    return where(equal(x, -np.inf), as_node(-most if neginf is None else neginf, x.dtype).astype(x.dtype), x)


@of(np.sinc)
def sinc(x: Any) -> Node:
    """Return sin(pi x) / (pi x), and 1 at 0."""
    x = wide_node(x)
    x = pi * (x if x.dtype.kind in "fc" else x.astype("float64"))
    zero = equal(x, 0)
    safe = where(zero, 1.0, x)  # so that the gradient at 0 is 0, not NaN
    return where(zero, 1.0, sin(safe) / safe)


# -- complex parts ----------------------------------------------------------------------------------------------------

real, imag = of(np.real)(parts.real), of(np.imag)(parts.imag)


@of(np.conjugate)
def conjugate(x: Any) -> Node:
    """Return the conjugate: a real number itself."""
    x = as_node(x)
    return x.astype("int8") if x.dtype.kind == "b" else parts.conj(x)


conj = conjugate


@of(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Node:
    """Return a real number itself; of complex ones the dtype would depend on their values."""
    a = as_node(a)
    if a.dtype.kind == "c":
        raise NoMeaningError(
            f"the dtype of the result depends on the values of {a.name} {a.spec}; use np.real(x), or x.eval() first"
        )
    return a


@of(np.angle)
def angle(z: Any, deg: bool = False) -> Node:
    """Return the angle of a number in the plane: 0 or pi of real ones."""
    z = as_node(z)
    if z.dtype.kind == "c":
        phase = arctan2(imag(z), real(z))
    else:
        z = float_of(z.astype("int64") if z.dtype.kind == "b" else z)
        phase = where(isnan(z), z, where(copysign(1.0, z) < 0, pi, 0.0).astype(z.dtype))
    return phase * (180 / pi) if deg else phase


@of(np.isreal)
def isreal(x: Any) -> Node:
    """Return True where the imaginary part is 0, so everywhere for real numbers."""
    return logical_not(iscomplex(x))


@of(np.iscomplex)
def iscomplex(x: Any) -> Node:
    """Return True where the imaginary part is not 0."""
    x = as_node(x)
    return not_equal(imag(x), 0) if x.dtype.kind == "c" else zeros_like(x.astype(bool))


# -- comparing --------------------------------------------------------------------------------------------------------


@of(np.isposinf)
def isposinf(x: Any) -> Node:
    """Return True for positive infinity."""
    return equal(float_of(x), np.inf)


@of(np.isneginf)
def isneginf(x: Any) -> Node:
    """Return True for negative infinity."""
    return equal(float_of(x), -np.inf)


@of(np.isclose)
def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Node:
    """Return True where ``abs(a - b) <= atol + rtol * abs(b)``."""
    x, y = unify(a, b)
    x, y = (v if v.dtype.kind in "fc" else v.astype("float64") for v in (x, y))
    near = logical_and(isfinite(y), abs(x - y) <= atol + rtol * abs(y)) | equal(x, y)
    return near | (isnan(x) & isnan(y)) if equal_nan else near


@of(np.allclose)
def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Node:
    """Return whether all elements are close, as a bool node of rank 0 where NumPy returns a Python bool."""
    return all_true(isclose(a, b, rtol, atol, equal_nan))


@of(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Node:
    """Return whether shapes and all elements are equal, as a bool node of rank 0."""
    x, y = as_node(a1), as_node(a2)
    if x.shape != y.shape:
        return as_node(np.array(False))
    x, y = unify(x, y)
    same = equal(x, y)
    return all_true(same | (isnan(x) & isnan(y)) if equal_nan else same)


@of(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Node:
    """Return whether all elements are equal after broadcasting, as a bool node of rank 0."""
    x, y = as_node(a1), as_node(a2)
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return as_node(np.array(False))
    return array_equal(broadcast_to(x, shape), broadcast_to(y, shape))
