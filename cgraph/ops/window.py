"""Windows that slide over the axes after the first two, shared by convolution and pooling: sizes, and views of bytes.

Sizes are one number for each such axis. A padding lists all numbers before the axes, then all after them: ``(top,
left, bottom, right)``, as in ONNX.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.kernels.kernel import Call, View, contiguous, scratch_pointer
from cgraph.kernels.move.calls import copy_calls, fill_calls
from cgraph.kernels.target import Target
from cgraph.record import Record, replace

Sizes = int | Sequence[int]
MOST_BEFORE = 1 << 16


class Windows(Record):
    """Geometry of sliding windows.

    Fields
        window: elements of a window along each axis, >= 1
        stride: elements from one window to the next, >= 1
        pad: elements added before each axis, then after each axis
        dilation: elements from one window element to the next, >= 1
    """

    window: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def extent(self) -> tuple[int, ...]:
        """The length that a window spans along each axis."""
        return tuple((r - 1) * d + 1 for r, d in zip(self.window, self.dilation))

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The padding of each axis."""
        axes = len(self.window)
        return tuple(zip(self.pad[:axes], self.pad[axes:]))

    def result(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the number of windows along each axis of `shape`. ShapeError if a window does not fit."""
        return self.windows_that_fit(shape, (0,) * len(shape))

    def ceil_result(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the number of windows along each axis if the last may extend beyond the padding by less than a step.

        The last window must begin before the padding after the axis, as in PyTorch.
        """
        fitting = self.windows_that_fit(shape, tuple(s - 1 for s in self.stride))
        counts = []
        for n, p, e, s, (before, after) in zip(shape, fitting, self.extent, self.stride, self.pairs):
            more = (n + before + after - e) % s > 0 and p * s < n + before
            counts.append(p + more)
        return tuple(counts)

    def windows_that_fit(self, shape: tuple[int, ...], beyond: tuple[int, ...]) -> tuple[int, ...]:
        """Return the number of windows inside the padded axes; ShapeError if one extends further than `beyond`."""
        counts = []
        for n, e, s, more, (before, after) in zip(shape, self.extent, self.stride, beyond, self.pairs):
            if n + before + after + more * (n > 0) < e:
                raise ShapeError(
                    f"a window of {e} does not fit an axis of {n} padded by {before} and {after}; use more padding"
                )
            counts.append((n + before + after - e) // s + 1)
        return tuple(counts)

    def counts(self, shape: tuple[int, ...], results: tuple[int, ...], with_pad: bool) -> np.ndarray:
        """Return the number of elements of each window inside ``shape``, or inside its padding: ``[*results]``."""
        counts = np.ones((), np.int64)
        for n, p, r, s, d, (before, after) in zip(shape, results, self.window, self.stride, self.dilation, self.pairs):
            at = np.arange(p)[:, None] * s + np.arange(r) * d - before
            low, high = (-before, n + after) if with_pad else (0, n)
            counts = counts[..., None] * ((at >= low) & (at < high)).sum(1)
        return counts

    def leave_out(self, shape: tuple[int, ...], results: tuple[int, ...]) -> bool:
        """Return True if some window contains padding only.

        Such a window begins before the axis, with all its elements before it or with a step across the whole axis, or
        it begins after the axis. ShapeError if more than MOST_BEFORE windows would have to be checked.
        """
        if 0 in results:
            return False
        for n, p, e, s, d, (before, _) in zip(shape, results, self.extent, self.stride, self.dilation, self.pairs):
            if e <= before or (p - 1) * s - before >= n:
                return True
            if n >= d:  # no step crosses the whole axis
                continue
            early = min(p, -(-before // s))
            if early > MOST_BEFORE:
                raise ShapeError(f"{early} windows of {e} begin in the padding of {before}; at most {MOST_BEFORE} may")
            if any((i * s - before) % d >= n for i in range(early)):
                return True
        return False

    def reach(self, results: tuple[int, ...]) -> tuple[int, ...]:
        """Return the length along each padded axis that this number of windows covers."""
        return tuple((p - 1) * s + e if p else 0 for p, s, e in zip(results, self.stride, self.extent))

    def windows_of(self, x: np.ndarray, results: tuple[int, ...]) -> np.ndarray:
        """Return the elements of each window of a padded array ``[n, c, ...]``: ``[n, c, *results, *window]``."""
        steps = x.strides[2:]
        strides = (*x.strides[:2], *products(steps, self.stride), *products(steps, self.dilation))
        return np.lib.stride_tricks.as_strided(x, (*x.shape[:2], *results, *self.window), strides, writeable=False)

    def padded_array(self, x: np.ndarray, results: tuple[int, ...], value: float | int) -> np.ndarray:
        """Pad `x` with `value`, as far as the windows reach."""
        out = np.full((*x.shape[:2], *self.reach(results)), value, x.dtype)
        place, source = self.inside(x.shape[2:], results)
        out[(..., *place)] = x[(..., *source)]
        return out

    def fold(self, parts: Iterable[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """Return the sum ``[n, c, *shape]`` of windows; `parts` ``[n, c, *results]`` has one per window element."""
        whole: Any = None
        for tap, part in zip(np.ndindex(self.window), parts):
            results = part.shape[2:]
            if whole is None:
                whole = np.zeros((*part.shape[:2], *self.reach(results)), part.dtype)
            starts = products(tap, self.dilation)
            place = [slice(t, t + max(p - 1, 0) * s + 1, s) for t, p, s in zip(starts, results, self.stride)]
            whole[(..., *place)] += part
        out = np.zeros((*whole.shape[:2], *shape), whole.dtype)
        inside, target = self.inside(shape, results)
        out[(..., *target)] = whole[(..., *inside)]
        return out

    def inside(self, shape: tuple[int, ...], results: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
        """Return the slices of the padded array that hold elements, and those of the elements that windows reach."""
        place, source = [], []
        for n, m, (before, _) in zip(shape, self.reach(results), self.pairs):
            stop = max(min(m, before + n), before)
            place.append(slice(before, stop))
            source.append(slice(0, stop - before))
        return place, source

    def padded_nbytes(self, shape: tuple[int, ...], results: tuple[int, ...], itemsize: int) -> int:
        """Return the bytes of the padded copy of ``[n, c, ...]``; 0 if the windows stay inside."""
        covered = self.reach(results)
        if not any(self.pad[: len(covered)]) and all(m <= n for m, n in zip(covered, shape[2:])):
            return 0
        return int(np.prod((*shape[:2], *covered), dtype=np.int64)) * itemsize

    def padded_view(
        self, target: Target, x: View, results: tuple[int, ...], value: float | int, workspace: View | None
    ) -> tuple[list[Call], View]:
        """Return the calls that pad a copy of `x` in a workspace, and its view; `x` itself if none is needed."""
        nbytes = self.padded_nbytes(x.shape, results, x.itemsize)
        if not nbytes:
            return [], x
        padded = contiguous(scratch_pointer(workspace, nbytes), (*x.shape[:2], *self.reach(results)), x.dtype)
        place, source = self.inside(x.shape[2:], results)
        return fill_calls(target, padded, value) + copy_calls(target, crop(padded, place), crop(x, source)), padded

    def spread_view(
        self, target: Target, g: View, shape: tuple[int, ...], value: float | int, workspace: View | None
    ) -> tuple[list[Call], View]:
        """Spread `g`, one element for each window, so that windows of stride 1 over the result are its adjoint.

        Along each axis, element j is at ``j * stride + (window - 1) * dilation - before``, and all others are `value`.
        Element i of the operand of `shape` was read by the windows at ``i .. i + (window - 1) * dilation``, last window
        element first.
        """
        lengths = tuple(n + e - 1 for n, e in zip(shape, self.extent))
        at = scratch_pointer(workspace, self.spread_nbytes(shape, g.shape[:2], g.itemsize))
        padded = contiguous(at, (*g.shape[:2], *lengths), g.dtype)
        place, source = [], []
        for n, length, s, e, (before, _) in zip(g.shape[2:], lengths, self.stride, self.extent, self.pairs):
            origin = e - 1 - before
            first = max(0, -(origin // s))
            last = min(n, (length - 1 - origin) // s + 1)
            count = max(last - first, 0)
            place.append(slice(first * s + origin, first * s + origin + max(count - 1, 0) * s + (count > 0), s))
            source.append(slice(first, first + count))
        return fill_calls(target, padded, value) + copy_calls(target, crop(padded, place), crop(g, source)), padded

    def spread_nbytes(self, shape: tuple[int, ...], leading: tuple[int, ...], itemsize: int) -> int:
        """Return the bytes of `spread_view`."""
        return int(np.prod((*leading, *(n + e - 1 for n, e in zip(shape, self.extent))), dtype=np.int64)) * itemsize

    def window_view(self, x: View, results: tuple[int, ...]) -> View:
        """Return the elements of each window of a padded view ``[n, c, ...]``: ``[n, c, *results, *window]``."""
        steps = x.strides[2:]
        strides = (*x.strides[:2], *products(steps, self.stride), *products(steps, self.dilation))
        return View(x.at, (*x.shape[:2], *results, *self.window), strides, x.dtype)


def crop(x: View, slices: Sequence[slice]) -> View:
    """Return the view of slices with positive steps along the axes after the first two."""
    starts = [s.start for s in slices]
    lengths = tuple(len(range(s.start, s.stop, s.step or 1)) for s in slices)
    steps = tuple((s.step or 1) * stride for s, stride in zip(slices, x.strides[2:]))
    offset = sum(start * stride for start, stride in zip(starts, x.strides[2:])) if all(lengths) else 0
    return View(x.at + offset, (*x.shape[:2], *lengths), (*x.strides[:2], *steps), x.dtype)


def reverse_axes(x: View, axes: Sequence[int]) -> View:
    """Return the view with some axes reversed."""
    for axis in axes:
        x = x.moved(max(x.shape[axis] - 1, 0) * x.strides[axis])
        x = replace(x, strides=tuple(-s if i == axis else s for i, s in enumerate(x.strides)))
    return x


def products(steps: Sequence[int], factors: Sequence[int]) -> tuple[int, ...]:
    """Multiply element by element."""
    return tuple(a * b for a, b in zip(steps, factors))


def sizes(value: Sizes, axes: int, what: str) -> tuple[int, ...]:
    """Return one size >= 1 for each axis. ShapeError otherwise."""
    numbers = (value,) * axes if isinstance(value, int) else tuple(int(n) for n in value)
    if len(numbers) != axes or any(n < 1 for n in numbers):
        raise ShapeError(f"{what} {list(numbers)} for {axes} axes; pass one number >= 1, or one for each")
    return numbers


def pads(value: Sizes, axes: int) -> tuple[int, ...]:
    """Return the padding before each axis, then after each; from one number, one for each axis, or both."""
    numbers = (value,) * axes if isinstance(value, int) else tuple(int(n) for n in value)
    numbers = numbers * 2 if len(numbers) == axes else numbers
    if len(numbers) != 2 * axes or any(n < 0 for n in numbers):
        raise ShapeError(f"pad {list(numbers)} for {axes} axes; pass one number >= 0, one per axis, or two per axis")
    return numbers
