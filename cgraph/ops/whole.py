"""Whole numbers: how many of their bits are set; greatest common divisors."""

from typing import Any

import numpy as np

from cgraph.errors import DTypeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import Spec
from cgraph.ops.compare import Bitwise
from cgraph.ops.family import unify
from cgraph.ops.host import OnHost
from cgraph.ops.leaf import as_node

ODD, PAIRS, NIBBLES, ONES = (int(byte * 8, 16) for byte in ("55", "33", "0f", "01"))
"""Every other bit, every other two, every other four, the lowest of every eight, of 64."""


class BitwiseCount(Bitwise):
    """How many bits of the magnitude are set (uint8): sums of neighbours, of pairs of them, of fours, of all bytes."""

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


class Gcd(OnHost):
    """The greatest common divisor of whole numbers."""

    def infer(self, x: Spec, y: Spec) -> Spec:
        if x.dtype.kind not in "iu":
            raise DTypeError(f"a divisor is of whole numbers, not of {x.dtype}")
        return x

    def meaning(self, x, y):
        return np.gcd(x, y)

    def grad(self, node, g):
        return None, None


@public
def bitwise_count(x: Any) -> Node:
    """How many bits of the magnitude of a whole number are set, as ``np.bitwise_count``."""
    x = as_node(x)
    return apply(BitwiseCount(), x.astype("uint8") if x.dtype.kind == "b" else x)


@public
def gcd(x: Any, y: Any) -> Node:
    """The greatest common divisor of whole numbers, as ``np.gcd``."""
    return apply(Gcd(), *unify(x, y))
