"""Half precision: two dtypes in which values are held, and none in which anything is computed.

float16 is NumPy's. bfloat16, of which NumPy has none, is the upper half of a float32: here a dtype with one field, so
that ``x["bfloat16"]`` shows the bits as uint16. Arrays of the package ml_dtypes hold the same bits, and are taken.
Either becomes float32 exactly; what becomes half is rounded once, to the nearest, ties to even.
"""

from typing import Any

import numpy as np

FLOAT16 = np.dtype("float16")
BFLOAT16 = np.dtype([("bfloat16", "<u2")])
HALVES = (FLOAT16, BFLOAT16)
FLOAT32 = np.dtype("float32")
QUIET, INFINITE = 0x40, 0x7F800000  # of a bfloat16: it is a NaN that no operation complains of; of a float32


def name_of(dtype: np.dtype) -> str:
    """What messages and files call a dtype."""
    return "bfloat16" if dtype == BFLOAT16 else str(dtype)


def resolve_dtype(dtype: Any) -> np.dtype:
    """NumPy's dtype for what a user writes, bfloat16 by its name or ml_dtypes' one. TypeError when it is none."""
    if isinstance(dtype, str) and dtype in ("bfloat16", "V2"):
        return BFLOAT16
    resolved = np.dtype(dtype)
    return (
        BFLOAT16 if resolved.kind == "V" and resolved.name == "bfloat16" else resolved
    )  # a name takes long to be made


def dtype_of_code(code: str) -> np.dtype:
    """NumPy's dtype of a kernel's short code."""
    return np.dtype("?") if code == "b1" else resolve_dtype(code)


def resolve_array(x: np.ndarray) -> np.ndarray:
    """The array itself; one of ml_dtypes' bfloat16 under the dtype that it has here."""
    return x.view(BFLOAT16) if x.dtype.kind == "V" and x.dtype.name == "bfloat16" else x


def computing_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype in which values of `dtype` are computed: its own, but float32 for half precision."""
    return FLOAT32 if dtype in HALVES else dtype


def convert(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An array in another dtype, each value rounded once; itself when it has that dtype."""
    if x.dtype == dtype:
        return x
    if x.dtype == BFLOAT16:
        x = (x["bfloat16"].astype(np.uint32) << 16).view(np.float32)
    return upper_halves(x).view(BFLOAT16) if dtype == BFLOAT16 else x.astype(dtype, copy=False)


def upper_halves(x: np.ndarray) -> np.ndarray:
    """The bits of numbers rounded to bfloat16, as uint16 in C order."""
    bits = np.array(x if x.dtype == FLOAT32 else round_to_odd(x.astype(np.float64)), order="C").view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> 16 & 1)
    is_nan = (bits & 0x7FFFFFFF) > INFINITE
    return (np.where(is_nan, bits | QUIET << 16, rounded) >> 16).astype(np.uint16)


def round_to_odd(x: np.ndarray) -> np.ndarray:
    """float64 as float32, an inexact one with an odd last bit: rounding that again is rounding once.

    Source: Boldo and Melquiond 2008, Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to
    odd, IEEE Transactions on Computers 57.
    """
    with np.errstate(over="ignore"):
        near = np.array(x, np.float32)
    bits = near.view(np.uint32)
    is_beyond = np.abs(near.astype(np.float64)) > np.abs(x)
    is_inexact = (near != x) & ~np.isnan(x)
    return np.where(is_inexact, (bits - is_beyond) | 1, bits).astype(np.uint32).view(np.float32)
