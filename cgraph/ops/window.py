"""Windows that move over the axes after the first two, shared by convolution and pooling: sizes, and views of bytes.

Sizes are one number per such axis; a padding is all numbers before the axes, then all behind: ``(top, left, bottom,
right)``, as in ONNX.
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
    """How windows move.

    Fields
        window: elements of a window along each axis, >= 1
        stride: elements from one window to the next, >= 1
        pad: elements added before each axis, then behind each
        dilation: elements from one element of a window to the next, >= 1
    """

    window: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def extent(self) -> tuple[int, ...]:
        """Elements that a window spans along each axis."""
        return tuple((r - 1) * d + 1 for r, d in zip(self.window, self.dilation))

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The padding of each axis."""
        axes = len(self.window)
        return tuple(zip(self.pad[:axes], self.pad[axes:]))

    def result(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Windows along each axis of `shape`. ShapeError when a window does not fit."""
        counts = []
        for n, e, s, (before, behind) in zip(shape, self.extent, self.stride, self.pairs):
            if n + before + behind < e:
                raise ShapeError(f"a window of {e} does not fit an axis of {n} padded by {before} and {behind}")
            counts.append((n + before + behind - e) // s + 1)
        return tuple(counts)

    def ceil_result(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Windows along each axis, the last of which may reach over the padding, but begins before it."""
        counts = []
        for n, p, e, s, (before, behind) in zip(shape, self.result(shape), self.extent, self.stride, self.pairs):
            more = (n + before + behind - e) % s > 0 and p * s < n + before
            counts.append(p + more)
        return tuple(counts)

    def counts(self, shape: tuple[int, ...], results: tuple[int, ...], with_pad: bool) -> np.ndarray:
        """Elements of each window inside ``shape``, or inside its padding: ``[*results]``."""
        counts = np.ones((), np.int64)
        for n, p, r, s, d, (before, behind) in zip(shape, results, self.window, self.stride, self.dilation, self.pairs):
            at = np.arange(p)[:, None] * s + np.arange(r) * d - before
            low, high = (-before, n + behind) if with_pad else (0, n)
            counts = counts[..., None] * ((at >= low) & (at < high)).sum(1)
        return counts

    def leave_out(self, shape: tuple[int, ...], results: tuple[int, ...]) -> bool:
        """A window sees padding alone.

        Only one that begins before the axis can, with all its elements before it or with a step over all of it, or one
        that begins behind it. ShapeError when more windows than MOST_BEFORE would have to be looked at.
        """
        if 0 in results:
            return False
        for n, p, e, s, d, (before, _) in zip(shape, results, self.extent, self.stride, self.dilation, self.pairs):
            if e <= before or (p - 1) * s - before >= n:
                return True
            if n >= d:  # no step leads over the axis
                continue
            early = min(p, -(-before // s))
            if early > MOST_BEFORE:
                raise ShapeError(f"{early} windows of {e} begin in the padding of {before}; at most {MOST_BEFORE} may")
            if any((i * s - before) % d >= n for i in range(early)):
                return True
        return False

    def covered(self, results: tuple[int, ...]) -> tuple[int, ...]:
        """Elements along each padded axis that so many windows reach over."""
        return tuple((p - 1) * s + e if p else 0 for p, s, e in zip(results, self.stride, self.extent))

    def windows_of(self, x: np.ndarray, results: tuple[int, ...]) -> np.ndarray:
        """What each window sees of a padded array ``[n, c, ...]``: ``[n, c, *results, *window]``."""
        steps = x.strides[2:]
        strides = (*x.strides[:2], *products(steps, self.stride), *products(steps, self.dilation))
        return np.lib.stride_tricks.as_strided(x, (*x.shape[:2], *results, *self.window), strides, writeable=False)

    def padded_array(self, x: np.ndarray, results: tuple[int, ...], value: float | int) -> np.ndarray:
        """`x` in a frame of `value`, as far as the windows reach."""
        out = np.full((*x.shape[:2], *self.covered(results)), value, x.dtype)
        place, source = self.inside(x.shape[2:], results)
        out[(..., *place)] = x[(..., *source)]
        return out

    def collected(self, parts: Iterable[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """The sum ``[n, c, *shape]`` of what windows add: `parts` are ``[n, c, *results]``, one per element of one."""
        whole: Any = None
        for tap, part in zip(np.ndindex(self.window), parts):
            results = part.shape[2:]
            if whole is None:
                whole = np.zeros((*part.shape[:2], *self.covered(results)), part.dtype)
            starts = products(tap, self.dilation)
            place = [slice(t, t + max(p - 1, 0) * s + 1, s) for t, p, s in zip(starts, results, self.stride)]
            whole[(..., *place)] += part
        out = np.zeros((*whole.shape[:2], *shape), whole.dtype)
        inside, target = self.inside(shape, results)
        out[(..., *target)] = whole[(..., *inside)]
        return out

    def inside(self, shape: tuple[int, ...], results: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
        """Where the elements lie in the padded array, and which of them the windows reach."""
        place, source = [], []
        for n, m, (before, _) in zip(shape, self.covered(results), self.pairs):
            stop = max(min(m, before + n), before)
            place.append(slice(before, stop))
            source.append(slice(0, stop - before))
        return place, source


def padded_nbytes(moves: Windows, shape: tuple[int, ...], results: tuple[int, ...], itemsize: int) -> int:
    """Bytes of the padded copy of ``[n, c, ...]``; 0 when the windows stay inside."""
    covered = moves.covered(results)
    if not any(moves.pad[: len(covered)]) and all(m <= n for m, n in zip(covered, shape[2:])):
        return 0
    return int(np.prod((*shape[:2], *covered), dtype=np.int64)) * itemsize


def padded_view(
    target: Target, moves: Windows, x: View, results: tuple[int, ...], value: float | int, workspace: View | None
) -> tuple[list[Call], View]:
    """The calls that write a padded copy of `x` in a workspace, and its view; `x` itself where windows stay inside."""
    nbytes = padded_nbytes(moves, x.shape, results, x.itemsize)
    if not nbytes:
        return [], x
    frame = contiguous(scratch_pointer(workspace, nbytes), (*x.shape[:2], *moves.covered(results)), x.dtype)
    place, source = moves.inside(x.shape[2:], results)
    return fill_calls(target, frame, value) + copy_calls(target, crop(frame, place), crop(x, source)), frame


def spread_view(
    target: Target, moves: Windows, g: View, shape: tuple[int, ...], value: float | int, workspace: View | None
) -> tuple[list[Call], View]:
    """`g`, one element per window, laid out so that the windows of step 1 over it are its adjoint.

    Along each axis element j stands at ``j * stride + (window - 1) * dilation - before``, all else is `value`; the
    element i of the operand of `shape` was read by the windows at ``i .. i + (window - 1) * dilation``, last tap first.
    """
    lengths = tuple(n + e - 1 for n, e in zip(shape, moves.extent))
    at = scratch_pointer(workspace, spread_nbytes(moves, shape, g.shape[:2], g.itemsize))
    frame = contiguous(at, (*g.shape[:2], *lengths), g.dtype)
    place, source = [], []
    for n, length, s, e, (before, _) in zip(g.shape[2:], lengths, moves.stride, moves.extent, moves.pairs):
        origin = e - 1 - before
        first = max(0, -(origin // s))
        last = min(n, (length - 1 - origin) // s + 1)
        count = max(last - first, 0)
        place.append(slice(first * s + origin, first * s + origin + max(count - 1, 0) * s + (count > 0), s))
        source.append(slice(first, first + count))
    return fill_calls(target, frame, value) + copy_calls(target, crop(frame, place), crop(g, source)), frame


def spread_nbytes(moves: Windows, shape: tuple[int, ...], leading: tuple[int, ...], itemsize: int) -> int:
    """Bytes of `spread_view`."""
    return int(np.prod((*leading, *(n + e - 1 for n, e in zip(shape, moves.extent))), dtype=np.int64)) * itemsize


def crop(x: View, slices: Sequence[slice]) -> View:
    """The view of some slices, with positive steps, of the axes after the first two."""
    starts = [s.start for s in slices]
    lengths = tuple(len(range(s.start, s.stop, s.step or 1)) for s in slices)
    steps = tuple((s.step or 1) * stride for s, stride in zip(slices, x.strides[2:]))
    offset = sum(start * stride for start, stride in zip(starts, x.strides[2:])) if all(lengths) else 0
    return View(x.at + offset, (*x.shape[:2], *lengths), (*x.strides[:2], *steps), x.dtype)


def window_view(x: View, moves: Windows, results: tuple[int, ...]) -> View:
    """What each window sees of a padded view ``[n, c, ...]``: ``[n, c, *results, *window]``."""
    steps = x.strides[2:]
    strides = (*x.strides[:2], *products(steps, moves.stride), *products(steps, moves.dilation))
    return View(x.at, (*x.shape[:2], *results, *moves.window), strides, x.dtype)


def reverse_axes(x: View, axes: Sequence[int]) -> View:
    """The view with some axes in reverse order."""
    for axis in axes:
        x = x.moved(max(x.shape[axis] - 1, 0) * x.strides[axis])
        x = replace(x, strides=tuple(-s if i == axis else s for i, s in enumerate(x.strides)))
    return x


def products(steps: Sequence[int], factors: Sequence[int]) -> tuple[int, ...]:
    return tuple(a * b for a, b in zip(steps, factors))


def sizes(value: Sizes, axes: int, what: str) -> tuple[int, ...]:
    """One size >= 1 per axis. ShapeError otherwise."""
    numbers = (value,) * axes if isinstance(value, int) else tuple(int(n) for n in value)
    if len(numbers) != axes or any(n < 1 for n in numbers):
        raise ShapeError(f"{what} {list(numbers)} for {axes} axes; give one number >= 1, or one for each")
    return numbers


def pads(value: Sizes, axes: int) -> tuple[int, ...]:
    """The padding before each axis, then behind each; from one number, one per axis, or both."""
    numbers = (value,) * axes if isinstance(value, int) else tuple(int(n) for n in value)
    numbers = numbers * 2 if len(numbers) == axes else numbers
    if len(numbers) != 2 * axes or any(n < 0 for n in numbers):
        raise ShapeError(f"pad {list(numbers)} for {axes} axes; give one number >= 0, one per axis, or two per axis")
    return numbers
