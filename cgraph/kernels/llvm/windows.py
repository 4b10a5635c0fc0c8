"""Helpers of window kernels: the larger of two values, the least value of a dtype."""

from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val, vector_type


def larger(k: Builder, x: Val, y: Val) -> Val:
    """The larger one; a NaN when either is."""
    value = k.larger(y, x)  # `x` when either is a NaN
    return k.select(k.is_nan(y), y, value) if y.is_float else value


def least(k: Builder, dtype: str, lanes: int) -> Val:
    """Return the least value of `dtype`."""
    if dtype[0] == "f":
        return k.const(float("-inf"), dtype, lanes)
    bits = 8 * int(dtype[1:])
    value = -(1 << (bits - 1)) if dtype[0] == "i" else 0
    kind = vector_type(dtype, lanes)
    return k.wrap(ir.Constant(kind, [value] * lanes if lanes else value), dtype, lanes)


def larger_with_tap(k: Builder, value: Val, tap: Val, best: Val, place: Val) -> list[Val]:
    """Return the larger of a value and the best so far, and its tap; a NaN is larger than any number."""
    is_larger = value > best
    if value.is_float:
        is_larger = is_larger | (k.is_nan(value) & ~k.is_nan(best))
    return [k.select(is_larger, value, best), k.select(is_larger, tap, place)]


def interpolate(x: Val, y: Val, weight: Val) -> Val:
    """Return the weighted mean of both, with the weight of the second."""
    spread = x.k.splat(weight, x.lanes) if x.lanes else weight
    return x * (1.0 - spread) + y * spread
