"""Conversion of dtypes and arrays, storage dtypes among them (`cgraph.dtypes.storage`).

Arrays of the package ml_dtypes have the same bits as arrays of storage dtypes that NumPy lacks, and are accepted.
Widening is exact; narrowing rounds once, to nearest, ties to even.
"""

from functools import cache
from typing import Any

import numpy as np

from cgraph.dtypes.storage import BY_CODE, BY_DTYPE, BY_NAME, StorageDtype

FLOAT32 = np.dtype("float32")
DOUBLE_BITS = 53  # of an integer that float64 holds
BELOW_DOUBLE = (1 << (64 - DOUBLE_BITS)) - 1  # the other bits of an integer of 64


def name_of(dtype: np.dtype) -> str:
    """Return the name of a dtype in messages and files."""
    storage = BY_DTYPE.get(dtype)
    return storage.name if storage else str(dtype)


def resolve_dtype(dtype: Any) -> np.dtype:
    """Return NumPy's dtype for a user's dtype, including storage dtypes by name or from ml_dtypes.

    Raises
        TypeError: it is not a dtype
    """
    if isinstance(dtype, str):
        storage = BY_NAME.get(dtype) or BY_CODE.get(dtype)
        if storage:
            return storage.dtype
    resolved = np.dtype(dtype)
    storage = foreign_storage(resolved)
    return storage.dtype if storage else resolved


def foreign_storage(dtype: np.dtype) -> StorageDtype | None:
    """Return the storage dtype that a dtype of ml_dtypes equals; None for any other dtype."""
    return BY_NAME.get(dtype.name) if dtype.isbuiltin == 2 else None  # `name` is slow


@cache
def code_of(dtype: np.dtype) -> str:
    """Return NumPy's short code: ``code_of(np.dtype("float32")) == "f4"``."""
    storage = BY_DTYPE.get(dtype)
    return storage.code if storage else f"{dtype.kind}{dtype.itemsize}"


def dtype_of_code(code: str) -> np.dtype:
    """Return NumPy's dtype for a kernel's short code."""
    return np.dtype("?") if code == "b1" else resolve_dtype(code)


def resolve_array(x: np.ndarray) -> np.ndarray:
    """Return the array itself, or a view with this library's dtype for an array of ml_dtypes."""
    storage = foreign_storage(x.dtype)
    return x.view(storage.dtype) if storage else x


def is_storage(dtype: np.dtype) -> bool:
    """Return True for a storage dtype, whose values are computed in float32."""
    return dtype in BY_DTYPE


def computing_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which values of `dtype` are computed: float32 for storage dtypes, else `dtype`."""
    return FLOAT32 if is_storage(dtype) else dtype


def convert(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert an array, rounding each value once; return the array itself if it has that dtype."""
    if x.dtype == dtype:
        return x
    source, target = BY_DTYPE.get(x.dtype), BY_DTYPE.get(dtype)
    if source and not source.is_native:
        x = widen(x, source)
    return x.astype(dtype, copy=False) if target is None or target.is_native else narrow(x, target)


def widen(x: np.ndarray, storage: StorageDtype) -> np.ndarray:
    """Return stored numbers as float32."""
    bits = np.atleast_1d(x[storage.name])  # NumPy's scalars warn of integers that wrap
    return storage.widen(ArrayArithmetic, bits).reshape(x.shape)


def narrow(x: np.ndarray, storage: StorageDtype) -> np.ndarray:
    """Return numbers rounded to a storage dtype, in C order."""
    numbers = np.array(x if x.dtype == FLOAT32 else round_to_odd(as_float64(x)), order="C", ndmin=1)
    with np.errstate(all="ignore"):
        return storage.round(ArrayArithmetic, numbers).reshape(x.shape).view(storage.dtype)


class ArrayArithmetic:
    """The operations of `StorageDtype.widen` and `StorageDtype.round` on arrays."""

    @staticmethod
    def bits(x: np.ndarray, code: str) -> np.ndarray:
        return x.view(code)

    @staticmethod
    def cast(x: np.ndarray, code: str) -> np.ndarray:
        return x.astype(code)

    select = staticmethod(np.where)
    is_nan = staticmethod(np.isnan)


def as_float64(x: np.ndarray) -> np.ndarray:
    """Convert to float64; of integers that do not fit, set the last bit that does. See `round_to_odd`."""
    if x.dtype not in (np.int64, np.uint64):
        return x.astype(np.float64)
    largest, low = x.dtype.type(1 << DOUBLE_BITS), x.dtype.type(BELOW_DOUBLE)
    is_large = (x >= largest) | ((x <= -largest) if x.dtype == np.int64 else False)
    odd = ((x | low) ^ low) | (low + x.dtype.type(1))
    return np.where(is_large & ((x & low) != 0), odd, x).astype(np.float64)


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
