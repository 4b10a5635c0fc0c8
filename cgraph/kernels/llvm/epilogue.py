"""The activation that a multiply-add tile applies before it stores; shared by conv, Winograd, depthwise and gemm."""

from collections.abc import Callable, Sequence
from functools import partial

from cgraph.kernels.expression import Program
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.flow import change_if
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vmath import evaluate


def activation(k: Builder, dtype: str) -> Callable[[Val], Val]:
    """Return the activation as a function without a branch; its defaults are infinite bounds and slope 1."""
    low, high, slope = (k.cast(k.number(name), dtype) for name in ("low", "high", "slope"))
    return lambda x: k.larger(low, k.smaller(high, k.select(x < 0.0, x * slope, x)))


class ActivationEmitter:
    """``min(high, max(low, x if x > 0 else slope * x))`` with run-time bounds; a NaN stays a NaN.

    If the argument `general` is 0, the slope is 1 and there is no upper bound: one instruction. The four arguments are
    loaded where they are used, so that they occupy no register before. A scalar program of one operand takes their
    place.
    """

    def __init__(self, k: Builder, dtype: str, lanes: int, program: Program = ()) -> None:
        self.k, self.dtype, self.lanes, self.program = k, dtype, lanes, program

    def store(self, xs: Sequence[Val], put: Callable[[int, Val], None]) -> None:
        """Call ``put(i, activated xs[i])`` for each value, with one branch for all of them."""
        k = self.k
        if self.program:
            for i, x in enumerate(xs):
                put(i, evaluate(k, self.program, partial(operand, x), self.lanes)[-1])
            return
        low = self.bound("low")
        is_general = k.number("general") != 0
        with k.if_else(is_general) as (then, otherwise):
            with then:
                high, slope = self.bound("high"), self.bound("slope")
                for i, x in enumerate(xs):
                    put(i, k.larger(low, k.smaller(high, k.select(x < 0.0, x * slope, x))))
            with otherwise:
                for i, x in enumerate(xs):
                    put(i, k.larger(low, x))

    def apply(self, xs: Sequence[Val]) -> list[Val]:
        """Return the activated values, with one branch for all of them."""
        k, low = self.k, self.bound("low")
        with change_if(k, k.number("general") != 0, xs) as s:
            high, slope = self.bound("high"), self.bound("slope")
            s.next = [k.smaller(high, k.select(x < 0.0, x * slope, x)) for x in xs]
        return [k.larger(low, x) for x in s.values]

    def bound(self, name: str) -> Val:
        x = self.k.cast(self.k.number(name), self.dtype)
        return self.k.splat(x, self.lanes) if self.lanes else x


def operand(x: Val, i: int) -> Val:
    """Return operand i of a program of one operand."""
    return x
