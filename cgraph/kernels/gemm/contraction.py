"""Sums of products of strided views as products of matrices.

Every axis of the common shape is of one of four kinds: summed over (k), only in `y` (m), only in `x` (n), in both
(batch). A side whose axes do not merge into rows and columns is copied first, so that a convolution becomes a copy of
its windows and one product. The bytes of copies are bounded: a large batch is copied one piece at a time into one
workspace, and a long sum is added up from parts.
"""

from collections.abc import Iterator
from math import prod

from cgraph.kernels.expression import Trace
from cgraph.kernels.gemm.matmul_calls import matmul_calls, matmul_nbytes
from cgraph.kernels.kernel import Call, Pointer, View, collapse, contiguous, scratch_pointer
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.reduce.calls import reduce_calls, reduce_nbytes
from cgraph.kernels.target import Target
from cgraph.kernels.views.window_views import reorder_axes
from cgraph.record import Record, replace
from cgraph.system.alignment import aligned

MOST_COPIED = 8 << 20  # bytes of copied windows at a time: near the caches, far below an arena


class AxisKinds(Record):
    """The kinds of axes, each in order: summed, only in y, only in x, in both or not to be merged."""

    k: tuple[int, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    batch: tuple[int, ...]


class Contraction(Record):
    """``out = sum of x * y over axes``, for views of one shape; a view repeats along axes with stride 0.

    Fields
        target: the target of the products
        out: a view without the summed axes
        x, y: views of the common shape
        axes: the summed axes
    """

    target: Target
    out: View
    x: View
    y: View
    axes: tuple[int, ...]

    @property
    def result_axes(self) -> tuple[int, ...]:
        return tuple(i for i in range(len(self.x.shape)) if i not in self.axes)

    @property
    def sides(self) -> AxisKinds:
        """Return the kinds of axes; only the last axes of m and n that are even in the result, the others as batch."""

        def varies(v: View, i: int) -> bool:
            return v.strides[i] != 0 or v.shape[i] == 1

        only_y = [i for i in self.result_axes if not varies(self.x, i)]
        only_x = [i for i in self.result_axes if i not in only_y and not varies(self.y, i)]
        m, n = self._even(only_y), self._even(only_x)
        return AxisKinds(self.axes, m, n, tuple(i for i in self.result_axes if i not in m and i not in n))

    def _even(self, axes: list[int]) -> tuple[int, ...]:
        even: list[int] = []
        for i in reversed(axes):
            trial = [i, *even]
            places = [self.result_axes.index(a) for a in trial]
            extents, _ = collapse(tuple(self.out.shape[p] for p in places), tuple(self.out.strides[p] for p in places))
            if len(extents) > 1:
                break
            even = trial
        return tuple(even)

    @property
    def is_empty(self) -> bool:
        return 0 in self.x.shape

    # -- workspace ------------------------------------------------------------------------------------------------
    @property
    def copied(self) -> tuple[int, int]:
        """Return the bytes of copies of x and y, if each is copied whole."""
        s = self.sides
        return self._copy_nbytes(self.x, s.k, s.n), self._copy_nbytes(self.y, s.k, s.m)

    def _copy_nbytes(self, v: View, rows: tuple[int, ...], columns: tuple[int, ...]) -> int:
        if is_even(v, rows) and is_even(v, columns):
            return 0
        n = prod(v.shape[i] for i in range(len(v.shape)) if v.strides[i] or i in rows or i in columns)
        return aligned(n * v.itemsize)

    @property
    def pieces(self) -> int:
        """Return the number of pieces, along the first axis of the batch, else of the sum."""
        axis = self.cut_axis
        if axis is None:
            return 1
        return min(self.x.shape[axis], -(-sum(self.copied) // MOST_COPIED))

    @property
    def cut_axis(self) -> int | None:
        s = self.sides
        if sum(self.copied) <= MOST_COPIED:
            return None
        for i in (*s.batch, *s.k):
            if self.x.shape[i] > 1 and (self.x.strides[i] or self.y.strides[i]):
                return i
        return None

    @property
    def nbytes(self) -> int:
        """Bytes of workspace."""
        if self.is_empty:
            return 0
        axis = self.cut_axis
        if axis is None:
            return sum(self.copied) + self._product_nbytes()
        whole = max(p.nbytes for _, p in self._cuts(Pointer(None)))
        return whole + self._parts_nbytes(axis)

    def _parts_nbytes(self, axis: int) -> int:
        if axis not in self.axes:
            return 0
        shape = (self.pieces, *self.out.shape)
        n = prod(shape) * self.out.itemsize
        return aligned(n) + aligned(reduce_nbytes("sum", self.out.dtype, shape, (0,)))

    def _product_nbytes(self) -> int:
        return matmul_nbytes(self.target, *self._matrices(Pointer(None))[:3])

    # -- calls ----------------------------------------------------------------------------------------------------
    def calls(self, workspace: View | None) -> list[Call]:
        """Return the calls, in a workspace of at least `nbytes` bytes; ValueError if it is smaller."""
        at = scratch_pointer(workspace, self.nbytes) if self.nbytes else Pointer(None)
        axis = self.cut_axis
        if axis is None:
            return self._whole(at)
        calls: list[Call] = []
        pieces = list(self._cuts(at))
        start = at + self._parts_nbytes(axis)
        for _, piece in pieces:
            calls += piece.calls(contiguous(start, (piece.nbytes,), "u1"))
        if axis in self.axes:
            shape = (len(pieces), *self.out.shape)
            parts = contiguous(at, shape, self.out.dtype)
            rest = at + aligned(parts.size * parts.itemsize)
            sums = contiguous(rest, (reduce_nbytes("sum", self.out.dtype, shape, (0,)),), "u1")
            m = Trace()
            program = m.program(m.load(0, self.out.dtype))
            calls += reduce_calls(self.target, "sum", program, self.out, parts, axes=(0,), workspace=sums)
        return calls

    def _cuts(self, at: Pointer) -> Iterator[tuple[int, "Contraction"]]:
        """Yield the pieces: along an axis of the result each writes its own part, along a summed one a partial sum."""
        axis = self.cut_axis
        assert axis is not None
        count = self.pieces
        length = self.x.shape[axis]
        parts = contiguous(at, (count, *self.out.shape), self.out.dtype)
        for i in range(count):
            first, last = length * i // count, length * (i + 1) // count
            x, y = (slice_axis(v, axis, first, last) for v in (self.x, self.y))
            if axis in self.axes:
                out = View(parts.at + i * parts.strides[0], self.out.shape, parts.strides[1:], parts.dtype)
            else:
                out = slice_axis(self.out, self.result_axes.index(axis), first, last)
            yield i, replace(self, out=out, x=x, y=y)

    def _whole(self, at: Pointer) -> list[Call]:
        out, a, b, copies, end = self._matrices(at)
        rest = contiguous(end, (self._product_nbytes(),), "u1")
        return [*copies, *matmul_calls(self.target, out, a, b, workspace=rest)]

    def _matrices(self, at: Pointer) -> tuple[View, View, View, list[Call], Pointer]:
        """Return the result ``[batch, m, n]``, y ``[batch, m, k]``, x ``[batch, k, n]``, the copies, and the remaining
        workspace.
        """
        s = self.sides
        x, copies_x, at = self._side(self.x, s.k, s.n, at)
        y, copies_y, at = self._side(self.y, s.k, s.m, at)
        m, n, batch = (tuple(map(self.result_axes.index, axes)) for axes in (s.m, s.n, s.batch))
        out = merge_axes(self.out, m, n, batch)
        b = merge_axes(x, s.k, s.n, s.batch)
        a = merge_axes(y, s.m, s.k, s.batch)
        return out, a, b, copies_x + copies_y, at

    def _side(
        self, v: View, rows: tuple[int, ...], columns: tuple[int, ...], at: Pointer
    ) -> tuple[View, list[Call], Pointer]:
        """Return the view, or a copy of it with even rows and columns."""
        nbytes = self._copy_nbytes(v, rows, columns)
        if not nbytes:
            return v, [], at
        batch = tuple(i for i in range(len(v.shape)) if i not in rows and i not in columns)
        batch = tuple(i for i in batch if v.strides[i] or v.shape[i] == 1)
        order = (*batch, *rows, *columns)
        thin = reorder_axes(v, order)
        copy = contiguous(at, thin.shape, v.dtype)
        strides = [0] * len(v.shape)
        for i, step in zip(order, copy.strides):
            strides[i] = step
        return View(at, v.shape, tuple(strides), v.dtype), copy_calls(self.target, copy, thin), at + nbytes


def is_even(v: View, axes: tuple[int, ...]) -> bool:
    """Return True if the axes merge into one."""
    return len(collapse(tuple(v.shape[i] for i in axes), tuple(v.strides[i] for i in axes))[0]) <= 1


def merge_axes(v: View, rows: tuple[int, ...], columns: tuple[int, ...], batch: tuple[int, ...]) -> View:
    """Return the view as ``[batch..., rows, columns]``."""
    shape, strides = [v.shape[i] for i in batch], [v.strides[i] for i in batch]
    for axes in (rows, columns):
        sizes, (steps,) = collapse(tuple(v.shape[i] for i in axes), tuple(v.strides[i] for i in axes))
        shape.append(sizes[0] if sizes else 1)
        strides.append(steps[0] if steps else 0)
    return View(v.at, tuple(shape), tuple(strides), v.dtype)


def slice_axis(v: View, axis: int, first: int, last: int) -> View:
    """Return a slice of an axis."""
    shape = (*v.shape[:axis], last - first, *v.shape[axis + 1 :])
    return replace(v, at=v.at + first * v.strides[axis], shape=shape)
