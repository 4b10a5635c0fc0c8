"""Exponential, logarithmic, trigonometric, hyperbolic and error functions: pointwise, in a float dtype."""

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np

from cgraph.ir.graph import Node, apply
from cgraph.kernels.complex_math import FORMULAS
from cgraph.ops.arithmetic import square, trunc
from cgraph.ops.compare import equal, where
from cgraph.ops.family import Pointwise, binary, numeric_dtype, unary
from cgraph.ops.shape import ones_like, zeros_like


class Elementary(Pointwise):
    """Base of functions that are a primitive of the kernels and a function of NumPy or SciPy."""

    primitive: ClassVar[str] = ""
    numpy: ClassVar[Any] = None

    @property
    def takes_complex(self) -> bool:  # type: ignore[override]
        return self.primitive in FORMULAS

    def meaning(self, *xs):
        return type(self).numpy(*xs)

    def scalar(self, m, *xs):
        return m.apply(self.primitive, *xs)


class Exp(Elementary):
    """e to the power of x."""

    primitive, numpy = "exp", staticmethod(np.exp)

    def grad(self, node, g):
        return (g * node,)


class Exp2(Elementary):
    """2 to the power of x."""

    primitive, numpy = "exp2", staticmethod(np.exp2)

    def grad(self, node, g):
        return (g * node * math.log(2),)


class Expm1(Elementary):
    """exp(x) - 1, accurate near 0."""

    primitive, numpy = "expm1", staticmethod(np.expm1)

    def meaning(self, x):
        return complex_expm1(x) if x.dtype.kind == "c" else np.expm1(x)

    def grad(self, node, g):
        return (g * (node + 1.0),)


def complex_expm1(z: np.ndarray) -> np.ndarray:
    """Return exp(z) - 1 of complex numbers with C99's special values, which NumPy lacks."""
    a, b = z.real, z.imag
    e = np.array(np.exp(z))  # its special values are correct
    e.real = np.where(
        (np.abs(a) < 30) & (b != 0), np.expm1(a) * np.cos(b) - 2 * np.sin(b / 2) ** 2,
        np.where(b == 0, np.expm1(a) + 0.0, e.real - 1),
    )  # fmt: skip
    return e


class Log(Elementary):
    """The natural logarithm."""

    primitive, numpy = "log", staticmethod(np.log)

    def grad(self, node, g):
        return (g / node.operands[0],)


class Log2(Elementary):
    """The logarithm to base 2."""

    primitive, numpy = "log2", staticmethod(np.log2)

    def grad(self, node, g):
        return (g / (node.operands[0] * math.log(2)),)


class Log10(Elementary):
    """The logarithm to base 10."""

    primitive, numpy = "log10", staticmethod(np.log10)

    def grad(self, node, g):
        return (g / (node.operands[0] * math.log(10)),)


class Log1p(Elementary):
    """log(1 + x), accurate near 0."""

    primitive, numpy = "log1p", staticmethod(np.log1p)

    def grad(self, node, g):
        return (g / (node.operands[0] + 1.0),)


class Sqrt(Elementary):
    """The square root; NaN below 0.

    Fields
        is_flat: the gradient at 0 is 0, as for norms and standard deviations; otherwise it is infinite
    """

    primitive, numpy = "sqrt", staticmethod(np.sqrt)

    is_flat: bool = False

    def grad(self, node, g):
        if not self.is_flat:
            return (g * 0.5 / node,)
        zero = equal(node, 0)
        return (where(zero, zeros_like(g), g * 0.5 / where(zero, ones_like(node), node)),)


class Cbrt(Elementary):
    """The cube root, with the sign of x."""

    numpy = staticmethod(np.cbrt)

    def scalar(self, m, x):
        """Compute a power of the magnitude and refine it by one Newton step."""
        size = m.abs(x)
        root = m.pow(size, 1 / 3)
        better = root - (root - size / (root * root)) / 3.0
        is_exact = m.eq(size, 0.0) | m.eq(size, np.inf)
        return m.copysign(m.where(is_exact, size, better), x)

    def grad(self, node, g):
        return (g / (3.0 * square(node)),)


class Sin(Elementary):
    """Sine of radians."""

    primitive, numpy = "sin", staticmethod(np.sin)

    def grad(self, node, g):
        return (g * cos(node.operands[0]),)


class Cos(Elementary):
    """Cosine of radians."""

    primitive, numpy = "cos", staticmethod(np.cos)

    def grad(self, node, g):
        return (-g * sin(node.operands[0]),)


class Tan(Elementary):
    """Tangent of radians."""

    primitive, numpy = "tan", staticmethod(np.tan)

    def grad(self, node, g):
        return (g * (1.0 + node * node),)


class Arcsin(Elementary):
    """The angle in [-pi/2, pi/2] whose sine is x."""

    primitive, numpy = "asin", staticmethod(np.arcsin)

    def grad(self, node, g):
        return (g / root_of_one_less_square(node.operands[0]),)


class Arccos(Elementary):
    """The angle in [0, pi] whose cosine is x."""

    primitive, numpy = "acos", staticmethod(np.arccos)

    def grad(self, node, g):
        return (-g / root_of_one_less_square(node.operands[0]),)


def root_of_one_less_square(x: Node) -> Node:
    """Return ``sqrt(1 - x**2)``; for complex x by factors, which keep the sign of a zero at a branch cut."""
    return sqrt(1.0 - square(x)) if x.dtype.kind != "c" else sqrt(-(x - 1.0)) * sqrt(-(-x - 1.0))


class Arctan(Elementary):
    """The angle in [-pi/2, pi/2] whose tangent is x."""

    primitive, numpy = "atan", staticmethod(np.arctan)

    def grad(self, node, g):
        return (g / (1.0 + square(node.operands[0])),)


class Sinh(Elementary):
    """Hyperbolic sine."""

    primitive, numpy = "sinh", staticmethod(np.sinh)

    def grad(self, node, g):
        return (g * cosh(node.operands[0]),)


class Cosh(Elementary):
    """Hyperbolic cosine."""

    primitive, numpy = "cosh", staticmethod(np.cosh)

    def grad(self, node, g):
        return (g * sinh(node.operands[0]),)


class Tanh(Elementary):
    """Hyperbolic tangent."""

    primitive, numpy = "tanh", staticmethod(np.tanh)

    def grad(self, node, g):
        return (g * (1.0 - node * node),)  # uses the result, so x need not stay alive


class Arcsinh(Elementary):
    """The value whose hyperbolic sine is x."""

    primitive, numpy = "asinh", staticmethod(np.arcsinh)

    def grad(self, node, g):
        return (g / sqrt(square(node.operands[0]) + 1.0),)


class Arccosh(Elementary):
    """The value >= 0 whose hyperbolic cosine is x; NaN below 1."""

    primitive, numpy = "acosh", staticmethod(np.arccosh)

    def grad(self, node, g):
        (x,) = node.operands
        return (g / (sqrt(square(x) - 1.0) if x.dtype.kind != "c" else sqrt(x - 1.0) * sqrt(-(-x - 1.0))),)


class Arctanh(Elementary):
    """The value whose hyperbolic tangent is x."""

    primitive, numpy = "atanh", staticmethod(np.arctanh)

    def grad(self, node, g):
        return (g / (1.0 - square(node.operands[0])),)


class Arctan2(Elementary):
    """The angle of the point (y, x), in [-pi, pi]; the first operand is y."""

    primitive, numpy = "atan2", staticmethod(np.arctan2)

    def grad(self, node, g):
        y, x = node.operands
        size = square(x) + square(y)
        zero = equal(size, 0)
        scale = where(zero, zeros_like(g), g / where(zero, ones_like(size), size))
        return scale * x, -scale * y


class Hypot(Elementary):
    """sqrt(x * x + y * y), without intermediate overflow."""

    primitive, numpy = "hypot", staticmethod(np.hypot)

    def grad(self, node, g):
        x, y = node.operands
        zero = equal(node, 0)  # at the origin both gradients are 0
        g, size = where(zero, zeros_like(g), g), where(zero, ones_like(node), node)
        return g * x / size, g * y / size


class Fmod(Elementary):
    """The remainder of x / y with the sign of x; for integers, 0 where y is 0."""

    primitive, numpy = "fmod", staticmethod(np.fmod)

    def scalar(self, m, x, y):
        return m.fmod(x, y) if x.dtype[0] == "f" else m.rem(x, y)

    def grad(self, node, g):
        x, y = node.operands
        return g, -g * trunc(x / y)


class Copysign(Elementary):
    """The magnitude of x with the sign of y."""

    primitive, numpy = "copysign", staticmethod(np.copysign)

    def grad(self, node, g):
        x, y = node.operands
        one = ones_like(x)
        return g * copysign(one, x) * copysign(one, y), zeros_like(g)


def _scipy(name: str):
    def function(x):
        import scipy.special

        return getattr(scipy.special, name)(x)

    return staticmethod(function)


class Erf(Elementary):
    """The error function, 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x."""

    primitive, numpy = "erf", _scipy("erf")

    def grad(self, node, g):
        return (g * exp(-square(node.operands[0])) * (2 / math.sqrt(math.pi)),)


class Erfc(Elementary):
    """1 - erf(x), accurate for large x."""

    primitive, numpy = "erfc", _scipy("erfc")

    def grad(self, node, g):
        return (g * exp(-square(node.operands[0])) * (-2 / math.sqrt(math.pi)),)


exp, exp2, expm1 = unary(Exp, real=True), unary(Exp2, real=True), unary(Expm1, real=True)
log, log2, log10, log1p = (unary(op, real=True) for op in (Log, Log2, Log10, Log1p))
sqrt, cbrt = unary(Sqrt, real=True), unary(Cbrt, real=True)
sin, cos, tan = unary(Sin, real=True), unary(Cos, real=True), unary(Tan, real=True)
root_of_squares = partial(apply, Sqrt(is_flat=True))
arcsin, arccos, arctan = unary(Arcsin, real=True), unary(Arccos, real=True), unary(Arctan, real=True)
sinh, cosh, tanh = unary(Sinh, real=True), unary(Cosh, real=True), unary(Tanh, real=True)
arcsinh, arccosh, arctanh = unary(Arcsinh, real=True), unary(Arccosh, real=True), unary(Arctanh, real=True)
arctan2, hypot = binary(Arctan2, real=True), binary(Hypot, real=True)
fmod, copysign = binary(Fmod, numeric_dtype), binary(Copysign, real=True)
erf, erfc = unary(Erf, real=True), unary(Erfc, real=True)
