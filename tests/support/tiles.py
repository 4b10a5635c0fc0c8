"""What tile registers compute, in NumPy: the formula that was measured on Intel's processors."""

import numpy as np
from hypothesis import strategies as st

from cgraph.kernels.kernel import Pointer

STEP = 32  # numbers of a row of a register


def flushed(x: np.ndarray) -> np.ndarray:
    """Numbers below 2**-126 as 0 of their sign."""
    bits = x.view("u4")
    return np.where((bits & 0x7FFFFFFF) < 0x00800000, bits & 0x80000000, bits).view("f4")


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c of float32 numbers that have bfloat16's precision, rounded once: float64 sums are rounded to odd."""
    product, addend = a.astype("f8") * b, c.astype("f8")  # exact
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits = total.view("i8")
    moves = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    return np.where(moves, np.where((error > 0) == (total > 0), bits + 1, bits - 1), bits).view("f8").astype("f4")


def floats_of(bits: np.ndarray) -> np.ndarray:
    """The float32 numbers of bits of bfloat16 numbers."""
    return (bits.astype("u4") << 16).view("f4")


def tile_product(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``c + a @ b`` of one step: float32 ``[m, n]``, bits of bfloat16 numbers ``[m, k]`` and ``[k, n]``."""
    a, b = flushed(floats_of(a)), flushed(floats_of(b))
    with np.errstate(all="ignore"):
        totals = []
        for first in (0, 1):
            total = np.zeros(c.shape, "f4")
            for i in range(first, a.shape[1], 2):
                total = flushed(fused(a[:, i, None], b[None, i], total))
            totals.append(total)
        return flushed(flushed(c) + flushed(totals[0] + totals[1]))


def products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a @ b`` of bits of bfloat16 numbers, step by step, as kernels cut it."""
    total = np.zeros((a.shape[0], b.shape[1]), "f4")
    for first in range(0, a.shape[1], STEP):
        total = tile_product(total, a[:, first : first + STEP], b[first : first + STEP])
    return total


def bfloat16_bits(x: np.ndarray) -> np.ndarray:
    """The bits of float32 numbers rounded to bfloat16, ties to even; NaN stays NaN."""
    bits = x.astype("f4").view("u4").astype("u8")
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("u2")
    return np.where(np.isnan(x), (bits >> 16 | 0x40).astype("u2"), rounded)


def patch_products(patches: list[np.ndarray], side: np.ndarray) -> np.ndarray:
    """The sums ``[n, k, rows, columns]`` of patches ``[n, rows, columns, numbers]`` times ``side [all numbers, k]``."""
    left = np.concatenate(patches, axis=-1)
    sums = products(left.reshape(-1, left.shape[-1]), side)
    return sums.reshape(*left.shape[:3], -1).transpose(0, 3, 1, 2)


def layer_sizes(rows: int, columns: int) -> st.SearchStrategy:
    """Channels, rows, columns and filters of a small layer."""
    return st.tuples(st.integers(1, 70), st.integers(1, rows), st.integers(1, columns), st.integers(1, 70))


PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))
"""Kernels, strides and dilations."""
PADS = st.tuples(*[st.integers(0, 3)] * 4)


def room_for(layer, n):
    """Workspace full of NaN for `n` images, or None."""
    return Pointer(np.full(layer.nbytes(n), 0xFF, "u1")) if layer.phases else None
