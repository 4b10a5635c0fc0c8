"""Spec: shape and dtype of a value."""

from collections.abc import Sequence
from functools import cached_property
from math import prod
from operator import index
from typing import Any

import numpy as np

from cgraph.dtypes.convert import name_of, resolve_dtype
from cgraph.dtypes.storage import BY_DTYPE, BY_NAME
from cgraph.errors import DTypeError, ShapeError
from cgraph.record import Record
from cgraph.system.alignment import aligned

DTYPES = tuple(
    np.dtype(t)
    for t in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
)
_SUPPORTED = frozenset((*DTYPES, *BY_DTYPE))
NAMES = ", ".join((*map(str, DTYPES), f"and for storage {', '.join(BY_NAME)}"))
LARGEST = 2**63 - 1
MOST_AXES = 32  # as many as NumPy broadcasts


class Spec(Record):
    """Shape and dtype of a value.

    Raises
        ShapeError: an axis is negative, there are more than MOST_AXES, or the bytes do not fit a 64-bit address
        DTypeError: the dtype is not bool, int8–int64, uint8–uint64, float32, float64, complex64, complex128, or a
            storage dtype of `cgraph.dtypes.storage`
    """

    shape: tuple[int, ...]
    dtype: np.dtype

    def __post_init__(self) -> None:
        if self.dtype not in _SUPPORTED:
            raise not_supported(self.dtype)
        if min(self.shape, default=0) < 0:
            raise ShapeError(f"shape {list(self.shape)} has a negative axis; use lengths >= 0")
        if len(self.shape) > MOST_AXES:
            raise ShapeError(
                f"shape {list(self.shape)} has {len(self.shape)} axes; at most {MOST_AXES} are supported, reshape first"
            )
        if prod([n or 1 for n in self.shape]) * self.dtype.itemsize > LARGEST:
            raise ShapeError(
                f"shape {list(self.shape)} of {self.dtype} needs more than 2**63 - 1 bytes; use smaller lengths"
            )

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @cached_property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @cached_property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{name_of(self.dtype)}[{','.join(map(str, self.shape))}]"


class Bundle(Record):
    """Several results of one op, contiguous, each aligned."""

    specs: tuple[Spec, ...]

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """The first byte of each result, and the end of the last."""
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
    """Return a supported NumPy dtype for ``"float32"``, ``np.int64``, ``float``, ``"bfloat16"`` and the like."""
    try:
        resolved = resolve_dtype(dtype)
    except TypeError as error:
        raise DTypeError(f"{dtype!r} is not a dtype; use one of {NAMES}") from error
    if resolved not in _SUPPORTED:
        raise not_supported(resolved)
    return resolved


def not_supported(dtype: np.dtype) -> DTypeError:
    """Return the error for a dtype that nodes cannot have."""
    here = dtype.newbyteorder("=")
    if here in _SUPPORTED:
        return DTypeError(f"dtype {dtype} has the other byte order; convert the array with x.astype({here.name!r})")
    return DTypeError(f"dtype {dtype} is not supported; use one of {NAMES}")


def whole(n: Any) -> int:
    """Return an integer, also of a float without fraction. TypeError or ValueError for anything else."""
    if not isinstance(n, float | np.floating):
        return index(n)
    if not float(n).is_integer():
        raise ValueError("a length is an integer")
    return int(n)


def shape_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    """Return a shape as a tuple of ints, from ``3``, ``(3, 4)`` or ``[3, 4]``."""
    if type(shape) is tuple and all(type(n) is int for n in shape):
        return shape
    try:
        return (whole(shape),) if np.ndim(shape) == 0 else tuple(whole(n) for n in shape)  # type: ignore[union-attr]
    except (TypeError, ValueError, OverflowError) as error:
        raise ShapeError(f"{shape!r} is not a shape; pass integers that are known when the graph is built") from error
