"""Spec: what is known of a value before it is computed."""

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.half import HALVES, name_of, resolve_dtype
from cgraph.record import Record
from cgraph.system.alignment import aligned

DTYPES = tuple(
    np.dtype(t)
    for t in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
)
_SUPPORTED = frozenset((*DTYPES, *HALVES))
NAMES = ", ".join((*map(str, DTYPES), "and float16 and bfloat16 to hold values"))
LARGEST = 2**63 - 1
MOST_AXES = 32  # as many as NumPy broadcasts


class Spec(Record):
    """Shape and dtype of a value.

    Raises
        ShapeError: an axis is negative, there are more than MOST_AXES, or the bytes do not fit a 64-bit address
        DTypeError: the dtype is not one of bool, int8–int64, uint8–uint64, float32, float64, complex64, complex128, and
            float16 and bfloat16, which hold values
    """

    shape: tuple[int, ...]
    dtype: np.dtype

    def __post_init__(self) -> None:
        if self.dtype not in _SUPPORTED:
            raise DTypeError(f"dtype {self.dtype} is not supported; use one of {NAMES}")
        if min(self.shape, default=0) < 0:
            raise ShapeError(f"shape {list(self.shape)} has a negative axis")
        if len(self.shape) > MOST_AXES:
            raise ShapeError(f"a shape of {len(self.shape)} axes; at most {MOST_AXES} are supported")
        if prod([n or 1 for n in self.shape]) * self.dtype.itemsize > LARGEST:
            raise ShapeError(f"shape {list(self.shape)} of {self.dtype} needs more bytes than an address can count")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @cached_property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)

    @cached_property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{name_of(self.dtype)}[{','.join(map(str, self.shape))}]"


class Bundle(Record):
    """Several results of one op, laid one after another, each aligned."""

    specs: tuple[Spec, ...]

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """First byte of each result."""
        at, offsets = 0, []
        for spec in self.specs:
            offsets.append(at)
            at += aligned(spec.nbytes)
        return (*offsets, at)

    @property
    def nbytes(self) -> int:
        return self.offsets[-1]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.specs))})"


def dtype_of(dtype: Any) -> np.dtype:
    """A supported NumPy dtype from what a user writes: ``"float32"``, ``np.int64``, ``float``, ``"bfloat16"``."""
    try:
        resolved = resolve_dtype(dtype)
    except TypeError as error:
        raise DTypeError(f"{dtype!r} is not a dtype") from error
    if resolved not in _SUPPORTED:
        raise DTypeError(f"dtype {resolved} is not supported; use one of {NAMES}")
    return resolved


def shape_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    """A shape as a tuple of ints: ``3``, ``(3, 4)`` and ``[3, 4]`` are all fine."""
    if type(shape) is tuple and all(type(n) is int for n in shape):
        return shape
    try:
        return (int(shape),) if np.ndim(shape) == 0 else tuple(int(n) for n in shape)  # type: ignore[arg-type,union-attr]
    except (TypeError, ValueError, OverflowError) as error:
        raise ShapeError(f"{shape!r} is not a shape: a shape is known when the graph is built") from error
