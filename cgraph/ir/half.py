"""Half precision: two storage dtypes. All computation is in float32.

float16 is NumPy's. NumPy has no bfloat16, the upper half of a float32: here it is a dtype with one field, so that
``x["bfloat16"]`` shows the bits as uint16. Arrays of the package ml_dtypes have the same bits and are accepted.
Widening is exact; narrowing rounds once, to nearest, ties to even.
"""

from typing import Any

import numpy as np

FLOAT16 = np.dtype("float16")
BFLOAT16 = np.dtype([("bfloat16", "<u2")])
HALVES = (FLOAT16, BFLOAT16)
FLOAT32 = np.dtype("float32")
QUIET, INFINITE = 0x40, 0x7F800000  # the quiet bit of a bfloat16 NaN; the bits of a float32 infinity


def name_of(dtype: np.dtype) -> str:
    """Return the name of a dtype in messages and files."""
    return "bfloat16" if dtype == BFLOAT16 else str(dtype)


def resolve_dtype(dtype: Any) -> np.dtype:
    """Return NumPy's dtype for a user's dtype, including bfloat16 by name or from ml_dtypes. TypeError if invalid."""
    if isinstance(dtype, str) and dtype in ("bfloat16", "V2"):
        return BFLOAT16
    resolved = np.dtype(dtype)
    return BFLOAT16 if resolved.kind == "V" and resolved.name == "bfloat16" else resolved  # `name` is slow


def dtype_of_code(code: str) -> np.dtype:
    """Return NumPy's dtype for a kernel's short code."""
    return np.dtype("?") if code == "b1" else resolve_dtype(code)


def resolve_array(x: np.ndarray) -> np.ndarray:
    """Return the array itself, or a view with this library's dtype for ml_dtypes' bfloat16."""
    return x.view(BFLOAT16) if x.dtype.kind == "V" and x.dtype.name == "bfloat16" else x


def computing_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which values of `dtype` are computed: float32 for half precision, else `dtype`."""
    return FLOAT32 if dtype in HALVES else dtype


def convert(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert an array, rounding each value once; return the array itself if it has that dtype."""
    if x.dtype == dtype:
        return x
    if x.dtype == BFLOAT16:
        x = (x["bfloat16"].astype(np.uint32) << 16).view(np.float32)
    return upper_halves(x).view(BFLOAT16) if dtype == BFLOAT16 else x.astype(dtype, copy=False)


def upper_halves(x: np.ndarray) -> np.ndarray:
    """Return the bits of numbers rounded to bfloat16, as uint16 in C order."""
    bits = np.array(x if x.dtype == FLOAT32 else round_to_odd(x.astype(np.float64)), order="C").view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> 16 & 1)
    is_nan = (bits & 0x7FFFFFFF) > INFINITE
    return (np.where(is_nan, bits | QUIET << 16, rounded) >> 16).astype(np.uint16)


def round_to_odd(x: np.ndarray) -> np.ndarray:
    """Convert float64 to float32, setting the last bit of inexact results: rounding these again is rounding once.

    Source: Boldo and Melquiond 2008, Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to
    odd, IEEE Transactions on Computers 57.
    """
    with np.errstate(over="ignore"):
        near = np.array(x, np.float32)
    bits = near.view(np.uint32)
    is_beyond = np.abs(near.astype(np.float64)) > np.abs(x)
    is_inexact = (near != x) & ~np.isnan(x)
    return np.where(is_inexact, (bits - is_beyond) | 1, bits).astype(np.uint32).view(np.float32)
