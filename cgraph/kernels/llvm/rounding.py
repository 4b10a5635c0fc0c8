"""Floats as whole numbers on processors without an instruction for it: exact, signs of zeros and NaN included."""

from typing import Any

Builder = Any  # of `cgraph.kernels.llvm.build`, which reads this file
Val = Any  # of `cgraph.kernels.llvm.values`

ROUNDINGS = frozenset(("rint", "floor", "ceil", "trunc"))
WHOLE = {"f4": 2.0**23, "f8": 2.0**52}  # from here on all floats are whole numbers


def round_by_sums(k: Builder, name: str, x: Val) -> Val:
    """Return the nearest whole number, halves to even, or the nearest one on one side."""
    size = k.intrinsic("fabs", x)
    source = size if name == "trunc" else x
    near = to_nearest(k, size, source)
    if name in ("floor", "trunc"):
        near = k.select(near > source, near - 1.0, near)
    if name == "ceil":
        near = k.select(near < source, near + 1.0, near)
    return k.intrinsic("copysign", near, x)


def to_nearest(k: Builder, size: Val, x: Val) -> Val:
    """Return the nearest whole number, halves to even; `size` is the magnitude of `x`.

    The last bit of a sum from 2**23 (float64: 2**52) on is 1.
    """
    whole = WHOLE[x.dtype]
    near = k.select(size < whole, (size + whole) - whole, size)
    return k.intrinsic("copysign", near, x)
