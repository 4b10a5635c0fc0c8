"""Integer functions: population count and greatest common divisor."""

from typing import Any

import numpy as np

from cgraph.errors import DTypeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ops.compare import Bitwise
from cgraph.ops.family import Pointwise, binary
from cgraph.ops.leaf import as_node

ODD, PAIRS, NIBBLES, ONES = (int(byte * 8, 16) for byte in ("55", "33", "0f", "01"))
"""Masks of 64 bits: every second bit, pair of bits and nibble, and the lowest bit of each byte."""


class BitwiseCount(Bitwise):
    """The number of set bits of the absolute value (uint8), by sums of neighbouring bits, pairs, nibbles and bytes."""

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        super().dtype(*dtypes)
        return np.dtype("uint8")

    def meaning(self, x):
        return np.bitwise_count(x)

    def scalar(self, m, x):
        x = m.cast(m.abs(x) if x.dtype[0] == "i" else x, "u" + x.dtype[1:])
        x = m.cast(x, "u8")
        x = x - (m.shr(x, 1) & ODD)
        x = (x & PAIRS) + (m.shr(x, 2) & PAIRS)
        x = (x + m.shr(x, 4)) & NIBBLES
        return m.shr(x * ONES, 56)

    def grad(self, node, g):
        return (None,)


class Gcd(Pointwise):
    """The greatest common divisor of integers."""

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        if dtypes[0].kind not in "iu":
            raise DTypeError(f"gcd needs integers, not {dtypes[0]}; convert with astype")
        return dtypes[0]

    def meaning(self, x, y):
        return np.gcd(x, y)

    def scalar(self, m, x, y):
        return m.apply("gcd", x, y)

    def grad(self, node, g):
        return None, None


@public
def bitwise_count(x: Any) -> Node:
    """Return the number of set bits of the absolute value of integers, as ``np.bitwise_count``."""
    x = as_node(x)
    return apply(BitwiseCount(), x.astype("uint8") if x.dtype.kind == "b" else x)


gcd = binary(Gcd)
