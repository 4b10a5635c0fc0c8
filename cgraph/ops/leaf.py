"""Leaves of the graph: Var, whose value comes with each run, and Const, whose value is known at build time."""

import hashlib
from functools import cached_property
from operator import attrgetter
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from cgraph.dtypes.convert import convert, resolve_array
from cgraph.errors import DTypeError, GraphError, ShapeError
from cgraph.ir.graph import Node, Op, apply, locates_errors
from cgraph.ir.origin import user_line
from cgraph.ir.spec import Spec, dtype_of, shape_of
from cgraph.ir.tracing import TRACE
from cgraph.kernels.mapped import aligned, in_memory
from cgraph.storage.cell import Cell, assign, foreign_array, value_of

HASHED_NBYTES = 1 << 16
LAST_USES: WeakValueDictionary[tuple, Node] = WeakValueDictionary()
"""The constants of large arrays, by the place of the array, as long as a graph reads them."""


class VarOp(Op, eq=False):
    """A value provided at each run."""

    spec: Spec
    label: str
    cell: Cell

    @property
    def name(self) -> str:
        return "var"


class Var(Node):
    """A variable: its value is passed at each run, or stored with `assign`.

        x = cg.Var((3,), name="x")
        w = cg.Var(np.ones((3, 3)))  # of this shape, dtype and value

    Parameters
        shape: axis lengths, each >= 0; or an array, whose shape, dtype and value the Var takes
        dtype: bool, int8–int64, uint8–uint64, float32, float64, complex64 or complex128; or a storage
            dtype, such as bfloat16 (docs/half.md). By default that of the array; float32 without one
        name: shown in messages and pictures, and the keyword under which a Function takes the value
    Raises
        ShapeError, DTypeError, GraphError: a negative axis, a fraction or a list of values in place of a shape; an
            unsupported dtype; a name that is not a str
    """

    __slots__ = ()

    def __init__(self, shape: Any = (), dtype: Any = None, name: str | None = None) -> None:
        array = None if isinstance(shape, int | tuple | list | Node) else array_like(shape)
        if array is None:
            spec = Spec(var_shape(shape), dtype_of("float32" if dtype is None else dtype))
        else:
            spec = Spec(array.shape, dtype_of(array.dtype if dtype is None else dtype))
        if not isinstance(name, str | None):
            raise GraphError(f"name={name!r:.60} is not text; pass a str or None")
        super().__init__(VarOp(spec, "", Cell()), (), spec, user_line())
        object.__setattr__(self.op, "label", name or f"var{self.serial}")
        if array is not None:
            assign(self, convert(array, spec.dtype))

    cell = property(attrgetter("op.cell"))
    """Its `Cell`. Reading it runs no Python code, so that a run reads those of all its Vars in one step."""

    @property
    def value(self) -> np.ndarray:
        """A copy of the stored value. UnassignedError if there is none.

        A run in another thread may be updating the Var meanwhile, so that elements of two versions mix;
        ``function.between_runs(lambda: x.value)`` waits for it.
        """
        return value_of(self)

    @property
    def is_assigned(self) -> bool:
        return self.cell.value.is_there

    def assign(self, value: Any, copy: bool = True) -> "Var":
        """Store a value of the Var's shape and dtype; numbers and lists are converted, float64 becomes float32.

        The value is copied unless `copy` is False. Then the array, which may be memory-mapped, must not change
        afterwards. A run in progress keeps the bytes with which it started.

        GraphError inside a function that `jit` traces: it would be assigned once, not in each call.
        """
        if TRACE.get() is not None:
            raise GraphError(
                f"{self.name} {self.spec} is assigned in a traced function, which would happen once and not in each "
                "call; return the new value and assign it outside, or use updates= of cg.compile"
            )
        assign(self, value, copy)
        return self


def var_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of a Var. ShapeError for a list of values, which is not one."""
    is_listed = isinstance(shape, list | tuple)
    if is_listed and any(isinstance(n, float | complex | list | tuple) for n in shape):
        raise ShapeError(f"{shape!r:.60} is not a shape of integers. For a Var of these values pass np.array(values)")
    return shape_of(shape)


def array_like(x: Any) -> np.ndarray | None:
    """Return the array that an object is, of NumPy or another library; None for one that is not, such as a number."""
    if isinstance(x, np.ndarray) or hasattr(x, "__dlpack__") or hasattr(x, "__array_interface__"):
        array = resolve_array(np.asarray(x) if isinstance(x, np.ndarray | np.generic) else foreign_array(x))
        return None if isinstance(x, np.integer) else array
    return None


class ConstOp(Op):
    """A value known at build time; equal small ones are one node."""

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
        """The value by which constants are compared and hashed."""
        a = self.array
        if a.nbytes > HASHED_NBYTES:
            return (id(a), self.label)
        digest = a.tobytes() if a.nbytes <= 64 else hashlib.sha256(a.tobytes()).digest()
        return (a.shape, a.dtype, digest, self.label)

    def infer(self) -> Spec:
        return Spec(self.array.shape, self.array.dtype)

    def meaning(self) -> np.ndarray:
        return self.array


@locates_errors
def Const(array: Any, dtype: Any = None, name: str | None = None, copy: bool = True) -> Node:
    """Return a constant.

    Parameters
        array: anything that NumPy converts to an array. It is copied unless `copy` is False; then it must not change
            afterwards. Small arrays in a mapped file or at an unaligned address are always copied: equal ones are one
            node
        dtype: of the constant; that of the array by default
        name: shown in messages and pictures
    Raises
        DTypeError: an unsupported dtype
        ArgumentError: NumPy cannot convert it to an array
    """
    return constant(array, dtype, name, copy)


def constant(array: Any, dtype: Any = None, name: str | None = None, copy: bool = True) -> Node:
    """Return a `Const` without adding a location to errors, which the calling function adds."""
    if isinstance(array, Node):
        raise GraphError(f"{array!r} is a node already; use it directly, or pass an array or a number")
    values = resolve_array(np.asarray(dense(array)))
    values = convert(values, dtype_of(values.dtype if dtype is None else dtype))
    if copy and values.nbytes > HASHED_NBYTES and values.flags.c_contiguous:
        return large_constant(values, name)
    values = np.array(values, copy=True if copy else None, order="C")
    values.flags.writeable = False if copy else values.flags.writeable
    values = aligned(in_memory(values)) if values.nbytes <= HASHED_NBYTES else values
    return apply(ConstOp(values, name))


def large_constant(values: np.ndarray, name: str | None) -> Node:
    """Return the constant of a large array: that of its last use, unless it has changed since.

    A script that reads one array in each round has one copy of it, not one for each round.
    """
    place = (values.__array_interface__["data"][0], values.shape, values.dtype, name)
    node = LAST_USES.get(place)
    if node is not None and same_bytes(node.op.array, values):  # type: ignore[attr-defined]
        return node
    values = np.array(values, copy=True, order="C")
    values.flags.writeable = False
    LAST_USES[place] = node = apply(ConstOp(values, name))
    return node


def same_bytes(x: np.ndarray, y: np.ndarray) -> bool:
    """Return True if two contiguous arrays of one shape and dtype have equal bytes."""
    words = np.uint64 if x.nbytes % 8 == 0 else np.uint8
    return bool((x.reshape(-1).view(words) == y.reshape(-1).view(words)).all())


def dense(x: Any) -> Any:
    """Return `x`. DTypeError if it is a sparse matrix of SciPy, which NumPy makes an array of one object of."""
    if not isinstance(x, np.ndarray) and hasattr(x, "toarray"):
        raise DTypeError(f"a {type(x).__name__} of shape {x.shape} is sparse; pass its .toarray()")
    return x


def as_node(x: Any, dtype: np.dtype | None = None) -> Node:
    """Return `x` itself if it is a node, else a Const of it; Python numbers are converted to `dtype`."""
    if isinstance(x, Node):
        return x
    if isinstance(x, bool | int | float | complex) and dtype is not None:
        return constant(scalar_array(x, dtype))
    return constant(x)


def scalar_array(x: complex, dtype: np.dtype) -> np.ndarray:
    """Return a Python number as an array of rank 0. DTypeError if the dtype cannot hold it."""
    if isinstance(x, float) and dtype.kind in "iu" and not x.is_integer():
        raise DTypeError(f"{dtype} cannot hold {x}; pass an integer, or convert the other operand with astype")
    try:
        return np.array(x, dtype)
    except (OverflowError, TypeError) as error:
        raise DTypeError(f"{dtype} cannot hold {x}: {error}; convert the other operand with astype") from None
