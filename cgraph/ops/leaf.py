"""Leaves: Var, whose value is given at each run, and Const, whose value is known when the graph is built."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cgraph.alignment import aligned_memory
from cgraph.errors import DTypeError, GraphError, InputError, UnassignedError
from cgraph.ir.graph import Node, Op, apply, user_line
from cgraph.ir.spec import Spec, dtype_of, shape_of
from cgraph.kernels.mapped import aligned, copy_to, in_c_order, in_memory

_HASHED_NBYTES = 1 << 16


@dataclass(eq=False)
class Cell:
    """The one thing that changes: a Var's value.

    Fields
        array: the value, or None
        version: counts the changes
        shared: these very bytes are used elsewhere or may not be written, so the next change goes to new ones
    """

    array: np.ndarray | None = None
    version: int = 0
    shared: bool = False

    def share(self) -> np.ndarray | None:
        """The array, for someone who keeps it: it will not change any more."""
        self.shared = True
        return self.array

    def change(self, spec: Spec, keep: bool = False) -> np.ndarray:
        """The array, to be written: a new one when there is none or it is shared. `keep`: with the value it has."""
        old = self.array
        if old is None or self.shared:
            self.array, self.shared = aligned_empty(spec), False
            if keep and old is not None:
                self.array[...] = old
        self.version += 1
        return self.array  # type: ignore[return-value]

    def hold(self, array: np.ndarray) -> None:
        """Take an array as it is; it will not change."""
        self.array, self.shared = array, True
        self.version += 1


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
        if self.cell.array is None:
            raise UnassignedError(f"{self.name} {self.spec} (made at {self.where}) has no value; assign one first")
        return self.cell.array.copy()

    @property
    def is_assigned(self) -> bool:
        return self.cell.array is not None

    def assign(self, value: Any, copy: bool = True) -> "Var":
        """Give the Var a value, whose shape and dtype must be its own; numbers and lists take its dtype.

        It is copied, unless `copy` is false: then the array, perhaps one in a mapped file, must not change any more.
        The Var's next value takes new bytes.
        """
        value = fitting_array(value, self.spec, self.name)
        if copy:
            copy_to(self.cell.change(self.spec), value)
        else:
            self.cell.hold(aligned(in_c_order(value)))
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
