"""The gamma function and its logarithm: the C library's, lane by lane; rare in array programs.

`lgamma_r` is used, since `lgamma` writes the sign to a variable that threads share.
"""

from cgraph.kernels.llvm.build import POINTER, Builder, Val, scalar_type
from cgraph.kernels.llvm.vfloat import lane_by_lane, libm, wide


def gamma(k: Builder, x: Val) -> Val:
    """The gamma function."""
    return libm(k, "tgamma", x)


def lgamma(k: Builder, x: Val) -> Val:
    """Logarithm of the magnitude of the gamma function."""
    if x.dtype == "f4":
        return wide(k, lgamma, x)
    f = k.declare("lgamma_r", scalar_type("f8"), [scalar_type("f8"), POINTER])
    sign = k.stack_ptr("i4", 2)
    return lane_by_lane(k, lambda y: k.wrap(k.b.call(f, [y.v, sign.v]), "f8"), x)
