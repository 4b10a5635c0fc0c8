"""Powers by a constant as products, quotients and roots."""

from math import inf

from cgraph.ir.graph import Node
from cgraph.ir.rewrite import rewrite
from cgraph.ops.arithmetic import reciprocal
from cgraph.ops.compare import equal, where
from cgraph.ops.elementary import sqrt
from cgraph.ops.power import MOST_FACTORS, IntegerPower, Power, multiply_out
from cgraph.ops.shape import number_of, zeros_like

LARGEST = 4  # exponent of floats, whose products round each time


def multiply_powers(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Write powers by a constant as products: more nodes, which are fused, and less time.

    For floats whole exponents to 4, and 0.5, 1.5 and their opposites; for integers all to 99. Floats change in the last
    places; NaN, infinities and zeros with their signs stay those of ``np.power``.
    """
    return rewrite(outputs, RULES)


def power_of_floats(node: Node) -> Node | None:
    """x ** n -> x * ... * x, x ** -n -> the same of 1 / x, x ** 0.5 -> sqrt(x), x ** 1.5 -> x * sqrt(x)"""
    x, y = node.operands
    exponent = number_of(y) if x.dtype.kind == "f" else None
    if exponent is None or abs(exponent) > LARGEST or not (exponent.is_integer() or abs(exponent) in (0.5, 1.5)):
        return None
    # the reciprocal first: a product may overflow, or vanish, where the power does not
    base = reciprocal(x) if exponent < 0 else x
    if exponent.is_integer():
        return multiply_out(base, int(abs(exponent)))
    root = reciprocal(sqrt(x)) if exponent < 0 else sqrt(x)
    value = abs(root if abs(exponent) == 0.5 else base * root)  # -0.0 has the power of 0.0
    return where(equal(x, -inf), 0.0 if exponent < 0 else inf, value)


def power_of_integers(node: Node) -> Node | None:
    """x ** n -> x * ... * x, x ** -n -> 0"""
    x, y = node.operands
    exponent = number_of(y)
    if exponent is None or exponent > MOST_FACTORS:
        return None
    return zeros_like(x) if exponent < 0 else multiply_out(x, int(exponent))


RULES = [(Power, power_of_floats), (IntegerPower, power_of_integers)]
