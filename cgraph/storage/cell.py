"""Cell: the value of a Var, the only mutable part of a graph. It needs no graph, so saved functions have cells, too."""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, TypeVar

import numpy as np

from cgraph.dtypes.convert import computing_dtype, convert, name_of, resolve_array
from cgraph.errors import InputError, UnassignedError
from cgraph.ir.spec import Spec
from cgraph.kernels.mapped import aligned, copy_to, in_c_order
from cgraph.system.addresses import address_of
from cgraph.system.alignment import aligned_memory


class Variable(Protocol):
    """An object with a cell: a Var, or its counterpart in a saved function. Compared by identity."""

    @property
    def name(self) -> str: ...
    @property
    def spec(self) -> Spec: ...
    @property
    def where(self) -> str:
        """The user's line that created it."""

    @property
    def cell(self) -> "Cell": ...


V = TypeVar("V", bound=Variable)


class CellValue:
    """The value of a Var until it is assigned anew. Mutable: runs with an update edge to the Var write the array.

    Fields
        array: its bytes, or None
        version: a unique number, renewed by each run that may have written; None while a run may be writing, when no
            result computed from the array may be stored
        shared: these bytes are used elsewhere or may not be written, so a run writes into a copy
        done: a word that is 0 until a run has given the array its first contents; None if it has some
        newer: a device's copy that is newer than the array, or about to be; None if there is none
        equal: a device's copy with the array's contents; None if there is none
    """

    __slots__ = ("__weakref__", "_array", "_place", "_stamp", "done", "equal", "newer", "shared", "version")

    def __init__(self, array: np.ndarray | None = None, shared: bool = False) -> None:
        self._array, self.shared = array, shared
        self._place: tuple[np.ndarray, int] | None = None
        self.newer: Any = None
        self.equal: Any = None
        self.done: Any = None
        self._stamp: int | None = None
        self.version: int | None = next(_VERSIONS)

    @property
    def array(self) -> np.ndarray | None:
        """The array, fetched from a device that has a newer one; None if unassigned. Do not write it."""
        if self.newer is not None:
            fetched, self._stamp = self.newer.fetched(), None
            self._array, self.shared = fetched, False
            self.equal = self.newer
            self.newer = None  # last: until then the copy is fetched again
        return self._array

    @property
    def address(self) -> int:
        """The address of the array's first byte, cached because NumPy takes a microsecond to compute it."""
        array, place = self.array, self._place
        if place is None or place[0] is not array:
            assert array is not None
            place = self._place = (array, address_of(array))
        return place[1]

    @property
    def is_there(self) -> bool:
        there = self._array is not None or self.newer is not None
        if self.done is not None and self.newer is not None:
            self.newer.settle()  # a run that an exception left may still write: the word and other Vars would disagree
        return there and (self.done is None or bool(self.done[0]))

    def await_device(self, done: Any) -> None:
        """Leave the first contents to a device's copy, which is complete when the word `done` is not 0."""
        self._array = None
        self.done = done

    @property
    def stamp(self) -> int | None:
        """A unique number while runs read and write these bytes in place.

        None if the caller must check first: whoever moves the bytes removes the stamp before, and shared bytes have
        none, so that no exception can come between.
        """
        return None if self.shared or self.newer is not None else self._stamp

    def settle(self) -> int | None:
        """Return the stamp of an assigned value with bytes of its own."""
        if self._stamp is None and self.is_there:
            self._stamp = next(_VERSIONS)
        return self.stamp

    def writable(self, spec: Spec, done: np.ndarray) -> np.ndarray:
        """Return the array, for a run that writes all of it and then sets the word `done`; until then the Var is
        unchanged.
        """
        if not self.is_there:
            self.newer = None
            self.done = done
            self._array = aligned_empty(spec)
        elif self.shared:
            own = aligned_empty(spec)
            copy_to(own, self.array)  # type: ignore[arg-type]
            self._stamp = None
            self._array = own
            self.shared = False
        array = self.array
        self.equal = None
        return array  # type: ignore[return-value]

    def renew(self) -> None:
        """Set a new version after a run that may have written."""
        self.version = next(_VERSIONS)


_VERSIONS = itertools.count()


class Cell:
    """The container of a Var's value. An assignment is one change of `value`, so it happens completely or not at
    all."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = CellValue()

    @property
    def array(self) -> np.ndarray | None:
        """The array, fetched from a device that has a newer one; None if unassigned. Do not write it."""
        value = self.value
        return value.array if value.is_there else None

    def share(self) -> np.ndarray | None:
        """Return the array and never write it again."""
        value = self.value
        value.shared = True
        return value.array if value.is_there else None


def value_of(variable: Variable) -> np.ndarray:
    """Return a copy of a variable's value. UnassignedError if it has none."""
    array = variable.cell.array
    if array is None:
        raise unassigned(variable)
    return array.copy()


def unassigned(variable: Variable) -> UnassignedError:
    """Return the error for reading a variable without a value."""
    return UnassignedError(f"{variable.name} {variable.spec} (made at {variable.where}) has no value; assign one first")


def assign(variable: Variable, value: Any, copy: bool = True) -> None:
    """Give a variable a value of its shape and dtype; numbers and lists take its dtype, and float64 becomes float32.

    It is copied, unless `copy` is False: then the array, perhaps one in a mapped file, must not change any more. A run
    in progress keeps the bytes that it began with.
    """
    variable.cell.value = new_value(value, variable.spec, variable.name, copy)


def assign_all(values: Mapping[V, Any], copy: bool = True) -> None:
    """Assign several variables at once, each as `assign` does: all of them change, or none.

    Every value is checked and copied first. An exception at any moment, such as an interrupt, leaves all variables with
    their old values or all with their new ones, and a run in another thread reads either the old or the new ones.
    """
    commit([x.cell for x in values], [new_value(value, x.spec, x.name, copy) for x, value in values.items()])


def new_value(value: Any, spec: Spec, name: str, copy: bool = True) -> CellValue:
    """Return the value that `assign` gives a variable. InputError unless it fits."""
    array = fitting_array(value, spec, name, exact=not copy)
    if not copy:
        return CellValue(aligned(in_c_order(array)), shared=True)
    own = aligned_empty(spec)
    copy_to(own, array)
    return CellValue(own)


def commit(cells: Sequence["Cell"], values: Iterable[CellValue]) -> None:
    """Give each cell its new value in one step, which no exception, signal handler or other thread interrupts.

    The step is one call of C code that runs no Python code: the old values are released only afterwards, since
    callbacks of weak references to them are Python code.
    """
    set_all(cells, "value", list(values))


def set_all(holders: Sequence[Any], name: str, values: Sequence[Any]) -> None:
    """Set one attribute of several objects in one step, which nothing interrupts; frozen ones too."""
    old = [getattr(x, name) for x in holders]
    deque(map(object.__setattr__, holders, itertools.repeat(name), values), maxlen=0)
    del old


def fitting_array(value: Any, spec: Spec, name: str, exact: bool = False) -> np.ndarray:
    """Return `value` as an array of exactly this spec. InputError if it does not fit.

    Python numbers and lists take its dtype. Arrays keep theirs, which must be that of the spec, with one exception:
    float64, NumPy's default, is rounded to float32 (complex128 to complex64), unless a finite number would become
    infinite. Arrays of other libraries are read in place if they support DLPack.

    Parameters
        exact: refuse float64 for float32, too
    """
    if type(value) is np.ndarray and value.dtype == spec.dtype and value.shape == spec.shape:
        return value  # the usual case comes first, since every call checks every input
    if not isinstance(value, np.ndarray | np.generic):
        try:
            value = of_plain(value, spec.dtype) if isinstance(value, PLAIN) else foreign_array(value)
        except (TypeError, ValueError, OverflowError, BufferError, RuntimeError) as error:
            raise InputError(f"{name} expects {spec}, got {value!r:.60}: {error}. Pass an array of numbers") from None
    value = resolve_array(np.asarray(value))
    if value.dtype.kind not in NUMBERS:
        raise InputError(
            f"{name} expects {spec}, got {value.tolist()!r:.60}, which holds no numbers. Pass an array of numbers"
        )
    if not exact and value.shape == spec.shape and (value.dtype, spec.dtype) in ROUNDED:
        value = rounded_array(value, spec, name)
    check_fits(value, spec, name, exact)
    return value


def rounded_array(value: np.ndarray, spec: Spec, name: str) -> np.ndarray:
    """Return an array in the narrower dtype of the spec. InputError if a finite number would become infinite."""
    try:
        with np.errstate(over="raise", under="ignore"):
            return value.astype(spec.dtype)
    except FloatingPointError:
        most = np.finfo(spec.dtype).max
        raise InputError(
            f"{name} expects {spec}, got {value.dtype} with numbers beyond {most:.4g}, the largest {spec.dtype}. "
            f"Make it a Var of {value.dtype}, or scale the array"
        ) from None


def of_plain(value: Any, dtype: np.dtype) -> np.ndarray:
    """Return numbers and lists as an array of this dtype. ValueError for fractions where integers are needed."""
    if dtype.kind in "iu":
        array = np.asarray(value)
        if array.dtype.kind == "f" and not np.equal(array, np.floor(array)).all():
            raise ValueError(f"{name_of(dtype)} holds integers only. Round the numbers first")
    return convert(np.asarray(value, computing_dtype(dtype)), dtype)


def check_fits(value: Any, spec: Spec, name: str, exact: bool = True) -> None:
    """Raise InputError unless an array is exactly of this spec; `exact` as for `fitting_array`."""
    if value.dtype != spec.dtype and (exact or (value.dtype, spec.dtype) not in ROUNDED):
        raise InputError(
            f"{name} expects {spec}, got {name_of(value.dtype)}[{','.join(map(str, value.shape))}]. "
            f"Convert it with .astype({name_of(spec.dtype)!r})"
        )
    if value.shape != spec.shape:
        raise InputError(
            f"{name} expects {spec}, got {name_of(value.dtype)}[{','.join(map(str, value.shape))}]. Reshape it"
        )


NUMBERS = "biufcV"  # kinds of dtypes; V is that of storage dtypes that NumPy lacks
ROUNDED = frozenset([(np.dtype("float64"), np.dtype("float32")), (np.dtype("complex128"), np.dtype("complex64"))])
"""Dtypes of arrays, and the narrower ones to which they are rounded: NumPy makes them where nobody names a dtype."""
PLAIN = (bool, int, float, complex, list, tuple, range)
"""Values without a dtype of their own."""
IN_HOST_MEMORY = (1, 3)  # DLPack's numbers of devices: host memory, and pinned host memory


def foreign_array(value: Any) -> np.ndarray:
    """Return another library's array as NumPy's, without a copy where DLPack allows it. BufferError for a device's
    memory."""
    if not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    if value.__dlpack_device__()[0] not in IN_HOST_MEMORY:
        raise BufferError(
            f"it lies in the memory of the DLPack device {value.__dlpack_device__()}. Copy it to the host first, "
            "as with .cpu()"
        )
    return np.from_dlpack(value)


LIBRARIES = {"numpy": "numpy", "torch": "torch", "jax": "jax.numpy", "cupy": "cupy"}
"""Libraries whose arrays a call can return, and their modules that read arrays of others."""


def reader_of(library: str) -> Callable[[Any], Any]:
    """Return a function that converts our arrays to a library's, in place if the library can read that memory.

    Raises
        InputError: the library is none of LIBRARIES, or not installed
    """
    if not isinstance(library, str) or library not in LIBRARIES:
        raise InputError(
            f"{library!r} is not a library whose arrays can be returned. Use one of {', '.join(LIBRARIES)}"
        )
    try:
        module = import_module(LIBRARIES[library])
    except ImportError as error:
        raise InputError(f"arrays of {library} cannot be returned: {error}. Install the library") from None

    def read(x: Any) -> Any:
        if library == "numpy":
            return x
        if isinstance(x, np.ndarray):
            x = shareable(x)
        in_reach = library != "cupy" or not isinstance(x, np.ndarray)
        return module.from_dlpack(x) if in_reach else module.asarray(x)

    return read


def shareable(x: np.ndarray) -> np.ndarray:
    """Return the array, or a copy if it is read-only (others would write it) or reversed (torch would crash)."""
    return x if x.flags.writeable and all(step >= 0 for step in x.strides) else x.copy()


def aligned_empty(spec: Spec) -> np.ndarray:
    """Return an uninitialised array whose first byte is aligned."""
    return aligned_memory(spec.nbytes).view(spec.dtype).reshape(spec.shape)
