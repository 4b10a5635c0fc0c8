"""A Builder for machines without a C library: its mathematics is part of the kernels."""

from functools import partial

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.rare import RARE, lgamma, remainder
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vfloat import lane_by_lane


class OwnMathematics(Builder):
    """Writes functions of its own in the place of the C library's, so that their bits do not depend on a library."""

    def c_function(self, name: str, *xs: Val) -> Val:
        return RARE[name](self, *xs)

    def lgamma(self, x: Val) -> Val:
        return lgamma(self, x)

    def float_remainder(self, x: Val, y: Val) -> Val:
        return lane_by_lane(self, partial(remainder, self), x, y)
