"""The gamma function and its logarithm: the C library's, lane by lane; rare in array programs."""

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vfloat import lane_by_lane, libm, wide


def gamma(k: Builder, x: Val) -> Val:
    """The gamma function."""
    return libm(k, "tgamma", x)


def lgamma(k: Builder, x: Val) -> Val:
    """Logarithm of the magnitude of the gamma function."""
    if x.dtype == "f4":
        return wide(k, lgamma, x)
    return lane_by_lane(k, k.lgamma, x)
