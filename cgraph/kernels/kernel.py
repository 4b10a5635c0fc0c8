"""What names a kernel, and what a call of one looks like; no machine code here.

A kernel is compiled once for its `family` (an emitter, ``module.function`` below `cgraph.kernels.llvm`) and its
`params` (what changes the machine code: dtype, tile, unroll). Everything else, sizes and strides included, is an
argument at run time, so a new shape never compiles.

All kernels are called as ``void kernel(const int64 *args, int64 first_task, int64 last_task)``.
"""

from collections.abc import Callable
from itertools import accumulate
from math import prod

from cgraph.record import Record, replace, set_field
from cgraph.system.alignment import aligned

ARENA = "arena"  # the base of addresses in the one buffer of a function
STOP = "stop word"  # the base of the pointer to the word that a kernel sets to end its run
LINE = 64  # bytes of a cache line

Param = int | float | str | bool | tuple | Record


class Kernel(Record):
    """The name of one piece of machine code: an emitter and the values it is specialised for."""

    family: str
    params: tuple[Param, ...] = ()

    @property
    def is_block(self) -> bool:
        """True if a task of this kernel is a block of GPU threads: its emitter stands in a ``gpu_emit.py``."""
        return ".gpu." in self.family

    def __str__(self) -> str:
        return f"{self.family}({', '.join(map(str, self.params))})"


class Callback(Record, eq=False):
    """A Python function in the place of a kernel; see `cgraph.kernels.callback`.

    Fields
        function: given the address of the call's arguments
        blas: it calls into BLAS or LAPACK
        views: what it reads and writes, the first `results` of them what it writes
        port: what the function is known by where each run has its own; None where all runs have this one
    """

    function: Callable[[int], None]
    blas: bool
    views: "tuple[View, ...]"
    results: int
    port: object = None


class Pointer(Record):
    """An address that is known when a program is bound: `offset` bytes into the memory called `base`.

    `base` is whatever the engine uses as a key, compared by identity: ``"arena"``, a Var, an array.
    """

    base: object
    offset: int = 0

    def __init__(self, base: object, offset: int = 0) -> None:
        """Written out, as a View's: compiling makes more of these two than of all other records together."""
        set_field(self, "base", base)
        set_field(self, "offset", offset)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pointer) and self.base is other.base and self.offset == other.offset

    def __hash__(self) -> int:
        return hash((id(self.base), self.offset))

    def __add__(self, nbytes: int) -> "Pointer":
        return Pointer(self.base, self.offset + nbytes)


class Slot(Record, eq=False):
    """The base of addresses in calls that several steps share: the number of one of the places that each step has."""

    number: int


class Call(Record):
    """One row of a program: a kernel, its arguments, and how many tasks it is cut into.

    Arguments are ints (passed as int64), floats (passed as the bits of a float64) and Pointers. `chunk` tasks are
    handed out at a time. Tasks of one call may run in any order and at once, so they never write the same bytes and
    never split a reduction.
    """

    kernel: Kernel | Callback
    args: tuple[int | float | Pointer, ...]
    tasks: int
    chunk: int = 1


class View(Record):
    """Where a value lives and how it is laid out: what an op's kernel facet is given for `out` and each operand.

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
        """Elements follow one another in C order; axes of one element do not count."""
        expected = self.itemsize
        for n, stride in zip(reversed(self.shape), reversed(self.strides)):
            if n != 1 and stride != expected:
                return False
            expected *= n
        return True

    def in_order_of(self, other: "View") -> bool:
        """Both have their elements in the same order, without gaps: C order, or that of the other, which has none."""
        same = self.shape == other.shape and self.strides == other.strides
        return same or (self.is_contiguous and other.is_contiguous)

    def shows_same(self, other: "View") -> bool:
        """Both show the same elements in the same places; strides along axes of one element do not count."""
        steps = zip(self.shape, self.strides, other.strides)
        alike = self.at == other.at and self.shape == other.shape and self.dtype == other.dtype
        return alike and all(a == b for n, a, b in steps if n != 1)

    def with_shape(self, *shape: int) -> "View":
        """The same contiguous bytes seen with another shape."""
        if not self.is_contiguous:
            raise ValueError(f"a strided view {self.shape} {self.strides} has no other shape")
        return contiguous(self.at, shape, self.dtype)

    def moved(self, nbytes: int) -> "View":
        return replace(self, at=self.at + nbytes)


def contiguous(at: Pointer, shape: tuple[int, ...], dtype: str) -> View:
    """A view in C order."""
    strides, step = [], int(dtype[1:])
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return View(at, tuple(shape), tuple(reversed(strides)), dtype)


def scratch_pointer(workspace: View | None, nbytes: int) -> Pointer:
    """Where a workspace of at least `nbytes` bytes begins. ValueError where there is none, or a smaller one."""
    size = 0 if workspace is None else workspace.size * workspace.itemsize
    if workspace is None or size < nbytes:
        raise ValueError(f"these calls need a workspace of {nbytes} bytes, not of {size}")
    return workspace.at


def split_scratch(workspace: View | None, *nbytes: int) -> list[View | None]:
    """A workspace in pieces of so many bytes, each aligned; None for empty pieces.

    Raises
        ValueError: the workspace is smaller than all of them
    """
    starts = list(accumulate((aligned(n) for n in nbytes), initial=0))
    if not any(nbytes):
        return [None] * len(nbytes)
    at = scratch_pointer(workspace, max(start + n for start, n in zip(starts, nbytes) if n))
    return [contiguous(at + start, (n,), "u1") if n else None for start, n in zip(starts, nbytes)]


def collapse(shape: tuple[int, ...], *strides: tuple[int, ...]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Merge neighbouring axes that every operand walks as one; drop axes of one element.

    Returns the merged shape and each operand's strides along it. A result of rank 0 means one element.
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
