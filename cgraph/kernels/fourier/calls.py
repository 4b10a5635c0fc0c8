"""Calls of Fourier transforms along one axis, and their tables of roots of unity."""

from functools import cached_property, lru_cache
from math import prod

import numpy as np

from cgraph.kernels.fourier.signature import LINES
from cgraph.kernels.kernel import Call, Pointer, View, scratch_pointer
from cgraph.kernels.move.calls import memory_order
from cgraph.kernels.target import Target, code_generation
from cgraph.kernels.views.layout import outer_table, without
from cgraph.record import Record
from cgraph.system.alignment import aligned

RADICES = (4, 2, 3, 5)  # factors with separate code; other primes have a loop
LARGEST_FACTOR = 31  # transforms of lengths with larger prime factors take a chirp
MOST_GROUPS = 16  # tasks; each has scratch
GROUP_POINTS = 1 << 14  # of a task, at least
SHARE = 4  # the scratch of several tasks has at most 1 / SHARE of the array's bytes
VECTOR_POINTS = 1 << 14  # longer lines are transformed one at a time
TABLES = 32  # lengths whose tables are kept


class FourierJob(Record, eq=False):
    """A transform along one axis of an array, for one target.

    Fields
        part: dtype of real and imaginary parts
        n: points of the transform
        lines: how many there are
        lanes: lines at a time, 0 for one
        most_groups: tasks, at most
        reads, writes: see the signature
        scale: factor of all results
    """

    axis: int
    part: str
    n: int
    lines: int
    lanes: int
    most_groups: int
    reads: str
    writes: str
    inverse: bool
    scale: float

    @cached_property
    def by_chirp(self) -> bool:
        """True if the length has a prime factor that is too large."""
        return max(radices_of(self.n), default=1) > LARGEST_FACTOR

    @cached_property
    def size(self) -> int:
        """Points of the transforms that are computed by factors."""
        return chirp_size(self.n) if self.by_chirp else self.n

    @property
    def room(self) -> int:
        """Bytes of scratch of a task: two buffers of points."""
        return aligned(2 * self.size * 2 * int(self.part[1:]) * max(self.lanes, 1))

    @property
    def each(self) -> int:
        """Lines of a task."""
        points = self.lines * self.n
        share = points * 2 * int(self.part[1:]) // SHARE // self.room
        groups = max(1, min(self.most_groups, points // GROUP_POINTS, share))
        together = max(self.lanes, 1)
        return -(-self.lines // (groups * together)) * together

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return -(-self.lines // self.each) if self.lines else 0

    @property
    def nbytes(self) -> int:
        """Bytes of the workspace."""
        return self.tasks * self.room

    def calls(self, out: View, x: View, workspace: View | None) -> list[Call]:
        """Return the call; `out` may be the very view of `x`, but no other view of its bytes."""
        if not self.tasks:
            return []
        lines = memory_order(without(out, self.axis), without(x, self.axis))
        steps, rank = radices_of(self.size), len(lines[0].shape)
        chirp, spectrum = chirp_tables(self.n, self.part) if self.by_chirp else (None, None)
        call = LINES.call(
            (self.part, self.lanes, self.reads, self.writes, self.by_chirp), self.tasks,
            out=lines[0].at, x=lines[1].at, n=self.n, count=self.n if self.writes == "pairs" else out.shape[self.axis],
            x_n=x.strides[self.axis], out_n=out.strides[self.axis], inverse=int(self.inverse), scale=self.scale,
            size=self.size, roots=Pointer(roots_of(self.size, self.part)),
            chirp=None if chirp is None else Pointer(chirp), spectrum=None if spectrum is None else Pointer(spectrum),
            turns=Pointer(roots_of(2 * self.n, self.part)) if "packed" in (self.reads, self.writes) else None,
            lines=self.lines, each=self.each, scratch=scratch_pointer(workspace, self.nbytes), room=self.room,
            stages=len(steps), radices=steps, rank=rank, axes=outer_table(lines, rank),
        )  # fmt: skip
        return [call]


def fourier_job(
    target: Target, part: str, shape: tuple[int, ...], axis: int, inverse: bool = False, scale: float = 1.0
) -> FourierJob:
    """Return the transform of complex numbers."""
    cut = cut_lines(target, part, shape, axis)
    return FourierJob(axis, part, shape[axis], *cut, "complex", "complex", inverse, scale)


def real_job(
    target: Target, part: str, shape: tuple[int, ...], axis: int, inverse: bool = False, scale: float = 1.0
) -> FourierJob:
    """Return the transform of real numbers of this shape to the first half of their spectra, or its inverse.

    Real numbers of an even count are transformed as half as many complex ones.
    """
    cut, n = cut_lines(target, part, shape, axis), shape[axis]
    if n % 2:
        sides = ("half", "real") if inverse else ("real", "half")
        return FourierJob(axis, part, n, *cut, *sides, inverse, scale)
    sides = ("packed", "pairs") if inverse else ("pairs", "packed")
    return FourierJob(axis, part, n // 2, *cut, *sides, inverse, 2 * scale if inverse else scale)


def cut_lines(target: Target, part: str, shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Return the number of lines, how many are transformed at a time, 0 for one, and the maximum number of tasks."""
    lines = prod(shape) // shape[axis]
    lanes = min(target.lanes_of(part), 1 << (lines - 1).bit_length()) if lines else 1
    at_a_time = lanes if lanes > 1 and shape[axis] <= VECTOR_POINTS else 0
    return lines, at_a_time, MOST_GROUPS if code_generation(target).jit else 1  # code for others seldom has threads


def radices_of(n: int) -> list[int]:
    """Return factors of n: fours, then a two, threes, fives and larger primes, ascending."""
    factors, p = list[int](), 3
    for radix in RADICES:
        while n % radix == 0:
            factors.append(radix)
            n //= radix
    while n > 1:
        while n % p == 0:
            factors.append(p)
            n //= p
        p = p + 2 if p * p <= n else n
    return factors


def chirp_size(n: int) -> int:
    """Return the least length of at least 2 n - 1 points that has only the factors 2, 3 and 5."""
    size = 2 * n - 1
    while max(radices_of(size)) > RADICES[-1]:
        size += 1
    return size


@lru_cache(TABLES)
def roots_of(size: int, part: str) -> np.ndarray:
    """Return ``exp(-2 pi i k / size)`` for each k, real and imaginary parts alternating."""
    return pairs(unit(np.arange(size), size), part)


@lru_cache(TABLES)
def chirp_tables(n: int, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return ``exp(-pi i j j / n)``, and the transform of its conjugate as a filter, by its length.

    Source: L. Bluestein, A linear filtering approach to the computation of discrete Fourier transform, 1970.
    """
    j, size = np.arange(n), chirp_size(n)
    chirp, filters = unit(j * j % (2 * n), 2 * n), np.zeros(size, "complex128")
    filters[:n] = chirp.conj()
    filters[size - n + 1 :] = filters[n - 1 : 0 : -1]
    return pairs(chirp, part), pairs(np.fft.fft(filters) / size, part)


def unit(k: np.ndarray, n: int) -> np.ndarray:
    """Return ``exp(-2 pi i k / n)``, rounded once where a long double is longer than a float64."""
    angles = k.astype("longdouble") * (8 * np.arctan(np.longdouble(1)) / n)
    return np.cos(angles).astype("float64") - 1j * np.sin(angles).astype("float64")


def pairs(z: np.ndarray, part: str) -> np.ndarray:
    """Return real and imaginary parts alternating, in the dtype of parts."""
    return z.view("float64").astype(part)
