"""Records of kernels and kernel calls, without machine code.

A kernel is compiled once for its `family`, which names an emitter (`cgraph.kernels.families`), and its `params`, which
change the machine code: dtype, tile, unroll. Everything else, including sizes and strides, is a run-time argument, so
a new shape compiles nothing.

All kernels are called as ``void kernel(const int64 *args, int64 first_task, int64 last_task)``.
"""

from collections.abc import Callable
from itertools import accumulate
from math import prod

from cgraph.kernels.control import BEGIN, BETWEEN, REPEAT, SKIP
from cgraph.record import Record, replace, set_field
from cgraph.system.alignment import aligned

ARENA = "arena"  # the base of addresses in a function's one buffer
STOP = "stop word"  # the base of the pointer to the word that a kernel sets to end its run
ARGS = "arguments"  # the base of addresses of arguments, which loops change
LINE = 64  # bytes of a cache line

Param = int | float | str | bool | tuple | Record


class Kernel(Record):
    """The name of one compiled function: its emitter and the values it is specialised for."""

    family: str
    params: tuple[Param, ...] = ()

    @property
    def is_block(self) -> bool:
        """True if a task of this kernel is a block of GPU threads; its emitter is in a ``gpu_emit.py``."""
        return ".gpu." in self.family

    @property
    def calls_lapack(self) -> bool:
        """True if a task of this kernel calls LAPACK."""
        return self.family.startswith("lapack.")

    def __str__(self) -> str:
        return f"{self.family}({', '.join(map(str, self.params))})"


class Callback(Record, eq=False):
    """A Python function in place of a kernel; see `cgraph.kernels.callback`.

    Fields
        function: called with the address of the call's arguments
        blas: True if it calls BLAS or LAPACK
        views: memory that it reads and writes; it writes the first `results` of them
        port: key under which each run supplies its own function; None where all runs use this one
    """

    function: Callable[[int], None]
    blas: bool
    views: "tuple[View, ...]"
    results: int
    port: object = None


class Jump(Record):
    """A row of a table that decides which row comes next, by its number in `cgraph.kernels.control`."""

    number: int

    def __str__(self) -> str:
        return {BEGIN: "begin the rounds", REPEAT: "repeat", SKIP: "skip unless", BETWEEN: "skip unless between"}[
            self.number
        ]


class Repeat(Record, eq=False):
    """In place of a kernel: the calls up to its `End` run `rounds` times.

    The arguments are the addresses of the bases in the first round.

    Fields
        rounds: number of rounds
        moving: bases of addresses that move from round to round, compared by identity
        strides: bytes that each of them moves
    """

    rounds: int
    moving: tuple[object, ...] = ()
    strides: tuple[int, ...] = ()


class Skip(Record, eq=False):
    """In place of a kernel: the calls up to its `End` run only if the byte at the argument has this value."""

    value: int


class Between(Record, eq=False):
    """In place of a kernel: the calls up to its `End` run only if ``low < x <= high`` for the int64 at the argument."""

    low: int
    high: int


class End(Record, eq=False):
    """In place of a kernel: the end of a `Repeat`, a `Skip` or a `Between`."""

    of: "Repeat | Skip | Between"


Marker = Repeat | Skip | Between | End


class Pointer(Record):
    """A symbolic address, resolved when a program is bound: `offset` bytes into the memory named `base`.

    `base` is a key of the engine, compared by identity: ``"arena"``, a Var or an array.
    """

    base: object
    offset: int = 0

    def __init__(self, base: object, offset: int = 0) -> None:
        """Set the fields directly, as in View: compiling creates more of these two than of all other records."""
        set_field(self, "base", base)
        set_field(self, "offset", offset)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pointer) and self.base is other.base and self.offset == other.offset

    def __hash__(self) -> int:
        return hash((id(self.base), self.offset))

    def __add__(self, nbytes: int) -> "Pointer":
        return Pointer(self.base, self.offset + nbytes)


class Slot(Record, eq=False):
    """The base of addresses in calls that several steps share: the number of one of a step's memory blocks."""

    number: int


class Call(Record):
    """One row of a program: a kernel, its arguments and its number of tasks.

    Arguments are ints (passed as int64), floats (passed as the bits of a float64) and Pointers. A thread takes `chunk`
    tasks at a time. The tasks of one call may run concurrently and in any order, so no two write the same bytes and
    none splits a reduction.
    """

    kernel: Kernel | Callback | Marker
    args: tuple[int | float | Pointer, ...]
    tasks: int
    chunk: int = 1


class View(Record):
    """The address and layout of a value, as an op's kernel facet gets it for `out` and for each operand.

    Fields
        at: address of the first element
        shape: elements along each axis
        strides: bytes from one element to the next along each axis; 0 where broadcast, negative where flipped
        dtype: NumPy's short code (``f4``, ``i8``, ``b1`` …)
    """

    at: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    def __init__(self, at: Pointer, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> None:
        set_field(self, "at", at)
        set_field(self, "shape", shape)
        set_field(self, "strides", strides)
        set_field(self, "dtype", dtype)

    @property
    def itemsize(self) -> int:
        return int(self.dtype[1:])

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """True if the elements are adjacent in C order; axes of one element do not count."""
        expected = self.itemsize
        for n, stride in zip(reversed(self.shape), reversed(self.strides)):
            if n != 1 and stride != expected:
                return False
            expected *= n
        return True

    def in_order_of(self, other: "View") -> bool:
        """Return True if both have their elements in the same order: equal layouts, or both contiguous."""
        same = self.shape == other.shape and self.strides == other.strides
        return same or (self.is_contiguous and other.is_contiguous)

    def shows_same(self, other: "View") -> bool:
        """Return True if both views address the same elements; strides along axes of one element do not count."""
        steps = zip(self.shape, self.strides, other.strides)
        alike = self.at == other.at and self.shape == other.shape and self.dtype == other.dtype
        return alike and all(a == b for n, a, b in steps if n != 1)

    def with_shape(self, *shape: int) -> "View":
        """Return a view of the same contiguous bytes with another shape.

        Raises
            ValueError: the view is strided
        """
        if not self.is_contiguous:
            raise ValueError(
                f"a view of shape {self.shape} with strides {self.strides} cannot be reshaped to {shape}: its elements "
                "are not adjacent. Copy it first"
            )
        return contiguous(self.at, shape, self.dtype)

    def moved(self, nbytes: int) -> "View":
        return replace(self, at=self.at + nbytes)


def contiguous(at: Pointer, shape: tuple[int, ...], dtype: str) -> View:
    """Return a view in C order."""
    strides, step = [], int(dtype[1:])
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return View(at, tuple(shape), tuple(reversed(strides)), dtype)


def marker_call(marker: Marker, *args: Pointer) -> Call:
    """Return the call that stands for a marker."""
    return Call(marker, args, 1)


def scratch_pointer(workspace: View | None, nbytes: int) -> Pointer:
    """Return the start of a workspace of at least `nbytes` bytes.

    Raises
        ValueError: there is no workspace, or it is smaller
    """
    size = 0 if workspace is None else workspace.size * workspace.itemsize
    if workspace is None or size < nbytes:
        raise ValueError(f"the workspace has {size} bytes, these calls need {nbytes}. Pass a larger workspace")
    return workspace.at


def split_scratch(workspace: View | None, *nbytes: int) -> list[View | None]:
    """Split a workspace into aligned views of `nbytes` bytes each; None for a size of 0.

    Raises
        ValueError: the workspace is smaller than all of them together
    """
    starts = list(accumulate((aligned(n) for n in nbytes), initial=0))
    if not any(nbytes):
        return [None] * len(nbytes)
    at = scratch_pointer(workspace, max(start + n for start, n in zip(starts, nbytes) if n))
    return [contiguous(at + start, (n,), "u1") if n else None for start, n in zip(starts, nbytes)]


def collapse(shape: tuple[int, ...], *strides: tuple[int, ...]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Merge neighbouring axes that are one axis for every operand, and drop axes of one element.

    Returns the merged shape and each operand's strides. Rank 0 means one element.
    """
    merged: list[list[int]] = []
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        steps = [s[axis] for s in strides]
        if merged and all(before == step * n for before, step in zip(merged[-1][1:], steps)):
            merged[-1] = [merged[-1][0] * n, *steps]
        else:
            merged.append([n, *steps])
    return tuple(m[0] for m in merged), [tuple(m[i + 1] for m in merged) for i in range(len(strides))]
