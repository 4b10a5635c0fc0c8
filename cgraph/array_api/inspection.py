"""Dtypes, their limits, and the capabilities of the namespace."""

from typing import Any, NamedTuple

import numpy as np

from cgraph.array_api.array import Array

KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "c", "numeric": "iufc",
}  # fmt: skip
NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
DTYPES = {name: np.dtype(name) for name in NAMES}


class FloatLimits(NamedTuple):
    """The result of `finfo`, with the standard's field names."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


class IntegerLimits(NamedTuple):
    """The result of `iinfo`, with the standard's field names."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def dtype_in(x: Any) -> Any:
    return x.dtype if isinstance(x, Array) else x


def finfo(type: Any, /) -> FloatLimits:
    """Return the limits of a float dtype."""
    f = np.finfo(dtype_in(type))
    return FloatLimits(f.bits, float(f.eps), float(f.max), float(f.min), float(f.smallest_normal), f.dtype)


def iinfo(type: Any, /) -> IntegerLimits:
    """Return the limits of a dtype of integers."""
    i = np.iinfo(dtype_in(type))
    return IntegerLimits(i.bits, int(i.max), int(i.min), i.dtype)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return True if one dtype can become another without loss."""
    return bool(np.can_cast(dtype_in(from_), to))


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """Return the dtype of a combination of operands."""
    return np.result_type(*map(dtype_in, arrays_and_dtypes))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return True if the dtype is of a kind, or of one of several."""
    return bool(np.isdtype(dtype, kind))


class Information:
    """The object that `__array_namespace_info__` returns."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self) -> str:
        return "cpu"

    def devices(self) -> list[str]:
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        names = {"real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64"}
        return {kind: DTYPES[name] for kind, name in names.items()}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        kinds = (kind,) if isinstance(kind, str) else kind or tuple(KINDS)
        letters = "".join(KINDS[k] for k in kinds)
        return {name: dtype for name, dtype in DTYPES.items() if dtype.kind in letters}
