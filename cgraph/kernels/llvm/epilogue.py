"""What a multiply-add tile does before it stores: the activation. Shared by conv, Winograd, depthwise and gemm."""

from collections.abc import Callable, Sequence

from cgraph.kernels.llvm.build import Builder, Ptr, Val

ACTIVATION_ARGS = {"general": "i8", "low": "f8", "high": "f8", "slope": "f8"}


class Activation:
    """``min(high, max(low, x if x > 0 else slope * x))`` with run-time bounds; a NaN stays a NaN.

    When the argument `general` is 0, the slope is 1 and there is no upper bound: one instruction. The four arguments
    lie from position `first` of the table and are read where they are used, so that they hold no register in between.
    """

    def __init__(self, k: Builder, first: int, dtype: str, lanes: int) -> None:
        self.k, self.first, self.dtype, self.lanes = k, first, dtype, lanes

    def store(self, xs: Sequence[Val], put: Callable[[int, Val], None]) -> None:
        """``put(i, activated xs[i])`` for each value, with one branch for all of them."""
        k = self.k
        low = self.bound(1)
        is_general = Ptr(k, k.function.args[0], "i8").load(self.first) != 0
        with k.if_else(is_general) as (then, otherwise):
            with then:
                high, slope = self.bound(2), self.bound(3)
                for i, x in enumerate(xs):
                    put(i, k.larger(low, k.smaller(high, k.select(x < 0.0, x * slope, x))))
            with otherwise:
                for i, x in enumerate(xs):
                    put(i, k.larger(low, x))

    def bound(self, i: int) -> Val:
        k = self.k
        x = k.cast(Ptr(k, k.function.args[0], "f8").load(self.first + i), self.dtype)
        return k.splat(x, self.lanes) if self.lanes else x
