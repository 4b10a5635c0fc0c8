"""Integers times a fixed-point factor: a fraction of 31 bits and a power of two, as TFLite scales sums.

There are two ways to round. *Twice*: the product is reduced to 32 bits, halves rounded up, then shifted right, halves
rounded away from zero. *Once*: both in one step, halves rounded up. They differ by one in about one of a thousand sums.

Source: gemmlowp, doc/quantization.md; Jacob and others 2018, arXiv:1712.05877.
"""

from typing import Any

import numpy as np

from cgraph.errors import DTypeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ops.family import Pointwise, broadcast
from cgraph.ops.leaf import as_node

BITS = 31  # of a factor's fraction


class FixedProduct(Pointwise):
    """``x * factor * 2**(shift - 31)`` in integers, rounded.

    Operands
        x, factor, shift: int32; shifts from -31 to 30
    Fields
        once: round once, halves up; otherwise twice, the second time halves away from zero
    """

    once: bool

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        if any(dtype != np.int32 for dtype in dtypes):
            raise DTypeError(f"operands are {', '.join(map(str, dtypes))}, but must be int32; use astype")
        return dtypes[0]

    def meaning(self, x, factor, shift):
        return fixed_products(x, factor, shift, self.once)

    def scalar(self, m, x, factor, shift):
        if self.once:
            places = m.cast(BITS - shift, "i8")
            half = m.shl(m.const(1, "i8"), places - 1)
            return m.cast(m.shr(m.cast(x, "i8") * m.cast(factor, "i8") + half, places), "i4")
        left, right = m.max(shift, 0), m.max(-shift, 0)
        wide = m.cast(m.shl(x, left), "i8") * m.cast(factor, "i8") + (1 << (BITS - 1))
        high = m.cast(m.shr(wide, BITS), "i4")
        mask = m.shl(m.const(1, "i4"), right) - 1
        most = m.shr(mask, 1) + m.cast(high < 0, "i4")
        return m.shr(high, right) + m.cast((high & mask) > most, "i4")


class KnownFixedProduct(Pointwise):
    """A FixedProduct of a known factor and a shift that is not positive, in 32 bits.

    Operands
        x: int32
    Fields
        factor, shift: int32 each; a factor of at least 0, a shift from -30 to 0
        once: as in a FixedProduct
    """

    factor: int
    shift: int
    once: bool

    def meaning(self, x):
        return fixed_products(x, np.array(self.factor, "i4"), np.array(self.shift, "i4"), self.once)

    def scalar(self, m, x):
        """The product in two words; rounding adds what the last bits lack."""
        upper = m.cast(m.shr(m.cast(x, "i8") * m.const(self.factor, "i8"), 32), "i4")
        if self.once and self.shift < -1:
            return m.shr(m.shr(upper, -2 - self.shift) + 1, 1)
        lower = x * m.const(self.factor, "i4")
        if self.once and self.shift == -1:
            return upper + (m.shr(lower, BITS) & 1)
        high = m.shl(upper, 1) + (m.shr((m.shr(lower, BITS - 1) & 3) + 1, 1))
        if self.shift == 0:
            return high
        return m.shr(m.shr(high + m.shr(high, BITS), -1 - self.shift) + 1, 1)


def fixed_products(x: np.ndarray, factor: np.ndarray, shift: np.ndarray, once: bool) -> np.ndarray:
    """Compute a FixedProduct of arrays that broadcast."""
    wide, places = x.astype("i8"), np.asarray(shift, "i8")
    if once:
        half = np.left_shift(np.int64(1), BITS - 1 - places)
        return ((wide * factor + half) >> (BITS - places)).astype("i4")
    left, right = np.maximum(places, 0), np.maximum(-places, 0)
    moved = (wide << left).astype("i4").astype("i8")
    high = ((moved * factor + (1 << (BITS - 1))) >> BITS).astype("i4").astype("i8")
    mask = np.left_shift(np.int64(1), right) - 1
    return ((high >> right) + ((high & mask) > (mask >> 1) + (high < 0))).astype("i4")


@public
def fixed_product(x: Any, factor: Any, shift: Any, once: bool = False) -> Node:
    """Return ``x * factor * 2**(shift - 31)`` of int32, rounded twice as TFLite does, or once; see FixedProduct."""
    return apply(FixedProduct(once), *broadcast(*(as_node(y, np.dtype("int32")) for y in (x, factor, shift))))
