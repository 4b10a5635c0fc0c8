"""The table of storage dtypes: floating-point formats that values are stored in. All computation is in float32.

A storage dtype is a record. Readers and writers of the table do the rest: conversion of arrays
(`cgraph.dtypes.convert`), loads and stores of kernels (`cgraph.kernels.llvm.storage`), the names that users pass, and
the checks of ops, which read these dtypes if they have ``takes_storage``. A new row needs no other change.
"""

from functools import cached_property
from typing import Any

import numpy as np

from cgraph.record import Record

FLOAT32_BIAS, FLOAT32_MANTISSA, FLOAT32_SIGN = 127, 23, 0x80000000
FLOAT32_INFINITY, FLOAT32_QUIET = 0x7F800000, 1 << 22  # the bits of an infinity; the quiet bit of a NaN


class StorageDtype(Record):
    """A floating-point format with fewer bits than float32: a sign, an exponent and a fraction.

    Widening to float32 is exact. Rounding is to the nearest number, ties to even; NaNs stay NaNs.

    Fields
        name: as users and the package ml_dtypes write it
        dtype: NumPy's dtype of arrays: its own where it has one, else a dtype of one field, so that ``x[name]`` are the
            bits as unsigned integers
        code: the short code in kernels: a letter and the bytes
        exponent, mantissa: bits
        has_infinity: False if only the largest bits are special, a NaN: larger numbers become NaN
        has_negative_zero: False if the bits of -0 are the only special ones, a NaN: larger numbers become NaN, -0
            becomes 0, and the bias is one more
        llvm: LLVM's name of the type, which one instruction converts on targets that have it; empty if none does
    """

    name: str
    dtype: np.dtype
    code: str
    exponent: int
    mantissa: int
    has_infinity: bool = True
    has_negative_zero: bool = True
    llvm: str = ""

    @property
    def is_native(self) -> bool:
        """True if NumPy computes with the dtype, so that `astype` converts it."""
        return self.dtype.names is None

    @property
    def bits(self) -> int:
        """Bits of a number."""
        return 1 + self.exponent + self.mantissa

    @property
    def unsigned(self) -> str:
        """The code of unsigned integers of the same size."""
        return f"u{self.dtype.itemsize}"

    @cached_property
    def bias(self) -> int:
        """The bias of the exponent."""
        return (1 << self.exponent - 1) - self.has_negative_zero

    @property
    def first_special(self) -> int:
        """The smallest bits, without sign, that are not a finite number; the bit of the sign if all are finite."""
        largest = (1 << self.bits - 1) - 1
        if not self.has_negative_zero:
            return largest + 1
        return largest ^ (1 << self.mantissa) - 1 if self.has_infinity else largest

    @property
    def largest(self) -> float:
        """The largest finite number."""
        exponent, fraction = divmod(self.first_special - 1, 1 << self.mantissa)
        return (1 + fraction / (1 << self.mantissa)) * 2.0 ** (exponent - self.bias)

    def widen(self, m: Any, raw: Any) -> Any:
        """Return the float32 numbers of bits.

        Parameters
            m: arithmetic on values: ``bits`` (reinterpret), ``cast``, ``select``, ``is_nan``; of arrays or of kernels
            raw: unsigned integers
        """
        shift, wide = FLOAT32_MANTISSA - self.mantissa, m.cast(raw, "u4")
        if self.bias == FLOAT32_BIAS:
            return m.bits(wide << shift, "f4")
        size = wide & (1 << self.bits - 1) - 1
        shifted = size << shift
        magnitude = m.bits(m.bits(shifted, "f4") * 2.0 ** (FLOAT32_BIAS - self.bias), "u4")
        special = shifted | (FLOAT32_INFINITY | FLOAT32_QUIET)
        if self.has_infinity:
            is_infinite = (wide & (1 << self.mantissa) - 1) == 0
            special = m.select(is_infinite, shifted | FLOAT32_INFINITY, special)
        is_special = size >= self.first_special if self.has_negative_zero else wide == self.first_special
        magnitude = m.select(is_special, special, magnitude)
        return m.bits(magnitude | ((wide & 1 << self.bits - 1) << (32 - self.bits)), "f4")

    def round(self, m: Any, x: Any) -> Any:
        """Return the bits of float32 numbers, rounded, as unsigned integers; `m` as in `widen`."""
        shift, bits = FLOAT32_MANTISSA - self.mantissa, m.bits(x, "u4")
        below_half = (1 << shift - 1) - 1
        if self.bias == FLOAT32_BIAS:
            nearest = bits + below_half + ((bits >> shift) & 1)
            return m.cast(m.select(m.is_nan(x), bits | FLOAT32_QUIET, nearest) >> shift, self.unsigned)
        sign, size = bits & FLOAT32_SIGN, bits & (FLOAT32_SIGN - 1)
        # the sum's last bit is that of the smallest number: the sum ends in the rounded bits of a subnormal number
        exponent = FLOAT32_MANTISSA + 1 - self.bias - self.mantissa
        small = m.bits(m.bits(size, "f4") + 2.0**exponent, "u4") - (exponent + FLOAT32_BIAS << FLOAT32_MANTISSA)
        rebias = FLOAT32_BIAS - self.bias << FLOAT32_MANTISSA
        normal = (size - rebias + below_half + ((size >> shift) & 1)) >> shift
        magnitude = m.select(size < rebias + (1 << FLOAT32_MANTISSA), small, normal)
        magnitude = m.select(size >= rebias + (self.first_special << shift), self.first_special, magnitude)
        sign = sign >> (32 - self.bits)
        if not self.has_negative_zero:
            magnitude = m.select(size > FLOAT32_INFINITY, self.first_special, magnitude)
            return m.cast(m.select(magnitude == 0, magnitude, magnitude | sign), self.unsigned)
        quiet_nan = self.first_special | 1 << self.mantissa - 1
        nan = ((size >> shift) & (1 << self.mantissa) - 1) | quiet_nan
        rounded = m.select(size > FLOAT32_INFINITY, nan, magnitude) | sign
        return m.cast(rounded, self.unsigned)


FLOAT16 = StorageDtype("float16", np.dtype("float16"), "f2", 5, 10, llvm="half")
BFLOAT16 = StorageDtype("bfloat16", np.dtype([("bfloat16", "<u2")]), "V2", 8, 7)
FLOAT8_E4M3FN = StorageDtype("float8_e4m3fn", np.dtype([("float8_e4m3fn", "u1")]), "V1", 4, 3, has_infinity=False)
FLOAT8_E5M2 = StorageDtype("float8_e5m2", np.dtype([("float8_e5m2", "u1")]), "W1", 5, 2)
FLOAT8_E4M3FNUZ = StorageDtype(
    "float8_e4m3fnuz", np.dtype([("float8_e4m3fnuz", "u1")]), "X1", 4, 3, has_infinity=False, has_negative_zero=False
)
FLOAT8_E5M2FNUZ = StorageDtype(
    "float8_e5m2fnuz", np.dtype([("float8_e5m2fnuz", "u1")]), "Y1", 5, 2, has_infinity=False, has_negative_zero=False
)

STORAGE_DTYPES = (FLOAT16, BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E4M3FNUZ, FLOAT8_E5M2FNUZ)
BY_DTYPE = {x.dtype: x for x in STORAGE_DTYPES}
BY_CODE = {x.code: x for x in STORAGE_DTYPES}
BY_NAME = {x.name: x for x in STORAGE_DTYPES}
