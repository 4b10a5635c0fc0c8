"""Leaves: Var, whose value is given at each run, and Const, whose value is known when the graph is built."""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, GraphError
from cgraph.ir.graph import Node, Op, apply, locates_errors
from cgraph.ir.half import convert, resolve_array
from cgraph.ir.origin import user_line
from cgraph.ir.spec import Spec, dtype_of, shape_of
from cgraph.kernels.mapped import aligned, in_memory
from cgraph.storage.cell import Cell, assign, value_of

HASHED_NBYTES = 1 << 16


class VarOp(Op, eq=False):
    """A value given at each run."""

    spec: Spec
    label: str
    cell: Cell

    @property
    def name(self) -> str:
        return "var"

    def infer(self) -> Spec:
        return self.spec


class Var(Node):
    """A value given at each run, or held until changed.

    Parameters
        shape: axes, each >= 0
        dtype: bool, int8–int64, uint8–uint64, float32, float64, complex64 or complex128; float16 or
            bfloat16, which hold values
        name: what messages and pictures call it, and how a Function takes it by keyword
    Raises
        ShapeError, DTypeError, GraphError: a negative axis; a dtype that is not supported; a name that is no text
    """

    __slots__ = ()

    def __init__(self, shape: int | Sequence[int] = (), dtype: Any = "float32", name: str | None = None) -> None:
        spec = Spec(shape_of(shape), dtype_of(dtype))
        if not isinstance(name, str | None):
            raise GraphError(f"a Var's name is text, not {name!r:.60}")
        super().__init__(VarOp(spec, "", Cell()), (), spec, user_line())
        object.__setattr__(self.op, "label", name or f"var{self.serial}")

    cell = property(attrgetter("op.cell"))
    """Its `Cell`. Reading it runs no Python code, so that a run reads those of all its Vars in one step."""

    @property
    def value(self) -> np.ndarray:
        """A copy of the value it holds. UnassignedError when it holds none.

        A run in another thread that updates the Var may be writing meanwhile, so that some numbers are old and some
        new: ``function.between_runs(lambda: x.value)`` waits for it.
        """
        return value_of(self)

    @property
    def is_assigned(self) -> bool:
        return self.cell.value.is_there

    def assign(self, value: Any, copy: bool = True) -> "Var":
        """Give the Var a value, whose shape and dtype must be its own; numbers and lists take its dtype.

        It is copied, unless `copy` is false: then the array, perhaps one in a mapped file, must not change any more.
        A run that is going on keeps the bytes that it has begun with.
        """
        assign(self, value, copy)
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
        if a.nbytes > HASHED_NBYTES:
            return (id(a), self.label)
        digest = a.tobytes() if a.nbytes <= 64 else hashlib.sha256(a.tobytes()).digest()
        return (a.shape, a.dtype.str, digest, self.label)

    def infer(self) -> Spec:
        return Spec(self.array.shape, self.array.dtype)

    def meaning(self) -> np.ndarray:
        return self.array


@locates_errors
def Const(array: Any, dtype: Any = None, name: str | None = None, copy: bool = True) -> Node:
    """A value known for good.

    Parameters
        array: anything NumPy makes an array of; copied unless `copy` is false, when it must not change any more (small
            ones that lie in a mapped file, or at an odd address, are copied all the same: equal ones are one node)
        dtype: the dtype to give it; its own by default
    Raises
        DTypeError: a dtype that is not supported
        ArgumentError: no array can be made of it
    """
    return constant(array, dtype, name, copy)


def constant(array: Any, dtype: Any = None, name: str | None = None, copy: bool = True) -> Node:
    """`Const`, whose refusals the function that needs it makes its own."""
    if isinstance(array, Node):
        raise GraphError(f"{array!r} is a node already; a Const is made of plain values")
    values = resolve_array(np.asarray(array))
    values = convert(values, dtype_of(values.dtype if dtype is None else dtype))
    values = np.array(values, copy=True if copy else None, order="C")
    values.flags.writeable = False if copy else values.flags.writeable
    values = aligned(in_memory(values)) if values.nbytes <= HASHED_NBYTES else values
    return apply(ConstOp(values, name))


def as_node(x: Any, dtype: np.dtype | None = None) -> Node:
    """`x` itself if it is a node, else a Const of it; Python numbers take `dtype`."""
    if isinstance(x, Node):
        return x
    if isinstance(x, bool | int | float | complex) and dtype is not None:
        return constant(scalar_array(x, dtype))
    return constant(x)


def scalar_array(x: complex, dtype: np.dtype) -> np.ndarray:
    """A Python number as an array of rank 0. DTypeError when the dtype cannot hold it."""
    if isinstance(x, float) and dtype.kind in "iu" and not x.is_integer():
        raise DTypeError(f"{x} is no value of {dtype}")
    try:
        return np.array(x, dtype)
    except (OverflowError, TypeError) as error:
        raise DTypeError(f"{x} is no value of {dtype}: {error}") from None
