"""Activation functions: pointwise, in a float dtype."""

from math import pi
from typing import Any

import numpy as np

from cgraph.ir.graph import Node, apply, public
from cgraph.ops.arithmetic import between
from cgraph.ops.compare import where
from cgraph.ops.elementary import Erf, erf, exp, expm1, tanh
from cgraph.ops.family import Pointwise, float_dtype, real_node, unary
from cgraph.ops.shape import zeros_like

ROOT, DENSITY = 0.5**0.5, (2 * pi) ** -0.5  # of 1/2; of the normal distribution at 0
SLOPE, CUBE = 2 * DENSITY, 0.044715  # gelu's tanh


class Relu(Pointwise):
    """max(x, 0); NaN stays NaN."""

    def meaning(self, x):
        return np.maximum(x, np.zeros((), x.dtype))

    def scalar(self, m, x):
        return m.max(x, m.const(0, x.dtype))

    def grad(self, node, g):
        return (where(node > 0, g, zeros_like(g)),)


class Sigmoid(Pointwise):
    """The logistic function, 1 / (1 + exp(-x))."""

    def meaning(self, x):
        return (1 / (1 + np.exp(-x))).astype(x.dtype)

    def scalar(self, m, x):
        return m.sigmoid(x)

    def grad(self, node, g):
        return (g * node * (1.0 - node),)


class Softplus(Pointwise):
    """log(1 + exp(x)), computed without overflow."""

    def meaning(self, x):
        return np.logaddexp(x, np.zeros((), x.dtype))

    def scalar(self, m, x):
        return m.max(x, m.const(0, x.dtype)) + m.log1p(m.exp(-m.abs(x)))

    def grad(self, node, g):
        return (g * sigmoid(node.operands[0]),)


class Gelu(Pointwise):
    """x times the standard normal distribution function at x, or its tanh approximation; see `gelu`.

    It is one op, so only x stays alive for the gradient. Written as a product of sums, every intermediate value would.
    """

    approximate: bool = False

    def written_out(self, x, erf=erf, tanh=tanh):
        """Return the same value by plain operations, for nodes, or for arrays with these `erf` and `tanh`."""
        if self.approximate:
            return 0.5 * x * (1 + tanh(SLOPE * (x + CUBE * x * x * x)))
        return 0.5 * x * (1 + erf(x * ROOT))

    def meaning(self, x):
        return self.written_out(x, Erf().meaning, np.tanh)

    def scalar(self, m, x):
        """Use functions that stay exact for negative x: (1 + tanh y) / 2 is sigmoid(2y)."""
        return x * (m.sigmoid(2 * SLOPE * (x + CUBE * x * x * x)) if self.approximate else m.ndtr(x))

    def grad(self, node, g):
        (x,) = node.operands
        if not self.approximate:
            return (g * (0.5 * (1 + erf(x * ROOT)) + DENSITY * x * exp(-0.5 * x * x)),)
        bent = tanh(SLOPE * (x + CUBE * x * x * x))
        return (g * 0.5 * (1 + bent + SLOPE * x * (1 - bent * bent) * (1 + 3 * CUBE * x * x)),)


@public
def relu6(x: Any) -> Node:
    """Return x clipped to [0, 6]; the gradient at both bounds is 0."""
    return between(real_node(x), 0, 6, 0.0)


@public
def leaky_relu(x: Any, alpha: float = 0.01) -> Node:
    """Return x where x > 0, else alpha * x."""
    x = real_node(x)
    return where(x > 0, x, x * alpha)


@public
def elu(x: Any, alpha: float = 1.0) -> Node:
    """Return x where x > 0, else alpha * (exp(x) - 1)."""
    x = real_node(x)
    return where(x > 0, x, alpha * expm1(where(x > 0, 0, x)))  # not minimum, whose gradient at 0 is shared


@public
def selu(x: Any, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Node:
    """Return gamma * elu(x, alpha). Source: Klambauer et al. 2017, arXiv:1706.02515."""
    return gamma * elu(x, alpha)


@public
def celu(x: Any, alpha: float = 1.0) -> Node:
    """Return x where x > 0, else alpha * (exp(x / alpha) - 1)."""
    x = real_node(x)
    return where(x > 0, x, alpha * expm1(where(x > 0, 0, x) / alpha))


@public
def hard_sigmoid(x: Any, alpha: float = 0.2, beta: float = 0.5) -> Node:
    """Return alpha * x + beta clipped to [0, 1]."""
    return between(real_node(x) * alpha + beta, 0, 1, 0.0)


@public
def hard_swish(x: Any) -> Node:
    """Return x * hard_sigmoid(x, 1/6, 1/2). Source: Howard et al. 2019, arXiv:1905.02244."""
    return x * hard_sigmoid(x, 1 / 6, 0.5)


@public
def swish(x: Any) -> Node:
    """Return x * sigmoid(x), also called SiLU."""
    return x * sigmoid(x)


@public
def mish(x: Any) -> Node:
    """Return x * tanh(softplus(x))."""
    return x * tanh(softplus(x))


@public
def softsign(x: Any) -> Node:
    """Return x / (1 + abs(x))."""
    x = real_node(x)
    return x / (1 + abs(x))


@public
def thresholded_relu(x: Any, theta: float = 1.0) -> Node:
    """Return x where x > theta, else 0."""
    x = real_node(x)
    return where(x > theta, x, 0)


@public
def gelu(x: Any, approximate: bool = False) -> Node:
    """Return x * Phi(x), where Phi is the distribution function of the standard normal distribution.

    Parameters
        approximate: use the tanh approximation of Phi
    Source
        Hendrycks and Gimpel 2016, arXiv:1606.08415
    """
    x = real_node(x)
    return apply(Gelu(approximate), x.astype(float_dtype(x.dtype)))


@public
def prelu(x: Any, slope: Any) -> Node:
    """Return x where x > 0, else slope * x. `slope` broadcasts to x."""
    x = real_node(x)
    return where(x > 0, x, x * slope)


relu = unary(Relu)
sigmoid, softplus = unary(Sigmoid, real=True), unary(Softplus, real=True)
