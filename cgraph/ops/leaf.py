"""Leaves: Var, whose value is given at each run, and Const, whose value is known when the graph is built."""

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from cgraph.alignment import aligned_memory
from cgraph.errors import DTypeError, GraphError, InputError, UnassignedError
from cgraph.ir.graph import Node, Op, apply, user_line
from cgraph.ir.spec import Spec, dtype_of, shape_of
from cgraph.kernels.mapped import aligned, copy_to, in_c_order, in_memory

_HASHED_NBYTES = 1 << 16


class Value:
    """What a Var holds until it is assigned anew. Changes: runs with an update edge to the Var write into the array.

    Fields
        array: its bytes, or None
        version: a number that nothing else has, another one after each run that may have written; None while one may
            be writing, when nobody may keep what was computed from the array
        shared: these very bytes are used elsewhere or may not be written, so a run writes into a copy
        done: a word that is 0 until a run has given the array its first contents; None where it has some
        elsewhere: a device's copy that is as new as the array, or newer; None where there is none
    """

    __slots__ = ("__weakref__", "_array", "_is_old", "done", "elsewhere", "shared", "version")

    def __init__(self, array: np.ndarray | None = None, shared: bool = False) -> None:
        self._array, self.shared = array, shared
        self.elsewhere: Any = None
        self._is_old = False
        self.done: np.ndarray | None = None
        self.version: int | None = next(_VERSIONS)

    @property
    def array(self) -> np.ndarray | None:
        """Its bytes, fetched from the device that has newer ones, or None."""
        if self._is_old:
            self._array, self.shared = self.elsewhere.fetched(), False
            self._is_old = False
        return self._array

    @property
    def is_there(self) -> bool:
        there = self._array is not None or self._is_old
        return there and (self.done is None or bool(self.done[0]))

    def lies_elsewhere(self, copy: Any) -> None:
        """A device has written a newer value into its copy; ``copy.fetched()`` gives it in new bytes."""
        self.elsewhere, self._is_old, self.done = copy, True, None

    def writable(self, spec: Spec, done: np.ndarray) -> np.ndarray:
        """The array, for a run that writes all of it and then sets the word `done`; until then the Var is as it was."""
        if not self.is_there:
            self.done = done
            self._array = aligned_empty(spec)
        elif self.shared:
            own = aligned_empty(spec)
            copy_to(own, self.array)  # type: ignore[arg-type]
            self._array = own
            self.shared = False
        found = self.array
        self.elsewhere = None
        return found  # type: ignore[return-value]

    def renew(self) -> None:
        """A run that may have written is over."""
        self.version = next(_VERSIONS)


_VERSIONS = itertools.count()


class Cell:
    """The one thing that changes: a Var's value. An assignment is one change of `value`, and so whole or not at all."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = Value()

    @property
    def array(self) -> np.ndarray | None:
        """The present contents, or None; not to be written."""
        value = self.value
        return value.array if value.is_there else None

    def share(self) -> np.ndarray | None:
        """The array, for someone who keeps it: it will not change any more."""
        value = self.value
        value.shared = True
        return value.array if value.is_there else None


class VarOp(Op, eq=False):
    """A value given at each run."""

    spec: Spec
    label: str
    cell: Cell = field(default_factory=Cell)

    @property
    def name(self) -> str:
        return "var"

    def infer(self) -> Spec:
        return self.spec


class Var(Node):
    """A value given at each run, or held until changed.

    Parameters
        shape: axes, each >= 0
        dtype: bool, int8–int64, uint8–uint64, float32 or float64
        name: what messages and pictures call it, and how a Function takes it by keyword
    Raises
        ShapeError, DTypeError: a negative axis; a dtype that is not supported
    """

    __slots__ = ()

    def __init__(self, shape: int | Sequence[int] = (), dtype: Any = "float32", name: str | None = None) -> None:
        spec = Spec(shape_of(shape), dtype_of(dtype))
        super().__init__(VarOp(spec, ""), (), spec, user_line())
        object.__setattr__(self.op, "label", name or f"var{self.serial}")

    @property
    def cell(self) -> Cell:
        return self.op.cell  # type: ignore[attr-defined]

    @property
    def value(self) -> np.ndarray:
        """A copy of the value it holds. UnassignedError when it holds none."""
        array = self.cell.array
        if array is None:
            raise UnassignedError(f"{self.name} {self.spec} (made at {self.where}) has no value; assign one first")
        return array.copy()

    @property
    def is_assigned(self) -> bool:
        return self.cell.value.is_there

    def assign(self, value: Any, copy: bool = True) -> "Var":
        """Give the Var a value, whose shape and dtype must be its own; numbers and lists take its dtype.

        It is copied, unless `copy` is false: then the array, perhaps one in a mapped file, must not change any more.
        A run that is going on keeps the bytes that it has begun with.
        """
        value = fitting_array(value, self.spec, self.name)
        if copy:
            own = aligned_empty(self.spec)
            copy_to(own, value)
            self.cell.value = Value(own)
        else:
            self.cell.value = Value(aligned(in_c_order(value)), shared=True)
        return self


class ConstOp(Op):
    """A value known when the graph is built; equal small ones are one node."""

    array: np.ndarray
    label: str | None = None

    @property
    def name(self) -> str:
        return "const"

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstOp) and self._key == other._key

    @cached_property
    def _key(self) -> tuple:
        """What equal constants have in common."""
        a = self.array
        if a.nbytes > _HASHED_NBYTES:
            return (id(a), self.label)
        digest = a.tobytes() if a.nbytes <= 64 else hashlib.sha256(a.tobytes()).digest()
        return (a.shape, a.dtype.str, digest, self.label)

    def infer(self) -> Spec:
        return Spec(self.array.shape, self.array.dtype)

    def meaning(self) -> np.ndarray:
        return self.array


def Const(array: Any, dtype: Any = None, name: str | None = None, copy: bool = True) -> Node:
    """A value known for good.

    Parameters
        array: anything NumPy makes an array of; copied unless `copy` is false, when it must not change any more (small
            ones that lie in a mapped file are copied all the same)
        dtype: the dtype to give it; its own by default
    Raises
        DTypeError: a dtype that is not supported
    """
    if isinstance(array, Node):
        raise GraphError(f"{array!r} is a node already; a Const is made of plain values")
    found = np.asarray(array)
    found = np.array(found, dtype=dtype_of(dtype or found.dtype), copy=True if copy else None, order="C")
    found.flags.writeable = False if copy else found.flags.writeable
    found = in_memory(found) if found.nbytes <= _HASHED_NBYTES else found
    return apply(ConstOp(found, name))


def as_node(x: Any, dtype: np.dtype | None = None) -> Node:
    """`x` itself if it is a node, else a Const of it; Python numbers take `dtype`."""
    if isinstance(x, Node):
        return x
    if isinstance(x, bool | int | float) and dtype is not None:
        return Const(scalar_array(x, dtype))
    return Const(x)


def scalar_array(x: bool | int | float, dtype: np.dtype) -> np.ndarray:
    """A Python number as an array of rank 0. DTypeError when the dtype cannot hold it."""
    if isinstance(x, float) and dtype.kind in "iu" and not x.is_integer():
        raise DTypeError(f"{x} is no value of {dtype}")
    try:
        return np.array(x, dtype)
    except OverflowError as error:
        raise DTypeError(f"{x} is no value of {dtype}: {error}") from None


def fitting_array(value: Any, spec: Spec, name: str) -> np.ndarray:
    """`value` as an array of exactly this spec, or InputError; numbers and lists take the spec's dtype."""
    if isinstance(value, Node):
        raise InputError(f"{name} {spec} is given {value!r}, which holds no data; .eval() computes it")
    if not isinstance(value, np.ndarray | np.generic):
        try:
            value = np.asarray(value, spec.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{name} {spec} is given {value!r:.60}: {error}") from None
    if value.dtype != spec.dtype:
        raise InputError(
            f"{name} {spec} is given {value.dtype}[{','.join(map(str, value.shape))}]; "
            f"convert it first, with .astype({str(spec.dtype)!r})"
        )
    if value.shape != spec.shape:
        raise InputError(f"{name} {spec} is given {value.dtype}[{','.join(map(str, value.shape))}]")
    return np.asarray(value)


def aligned_empty(spec: Spec) -> np.ndarray:
    """An uninitialised array whose first byte is aligned."""
    return aligned_memory(spec.nbytes).view(spec.dtype).reshape(spec.shape)
