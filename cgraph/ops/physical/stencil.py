"""Pointwise ops whose result is part of a larger array: no bytes and no pass over memory of their own."""

from functools import partial

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.calls import boxes_around, copy_calls, fill_calls
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.stencil.calls import Sweep, stencil_calls, sweep_of
from cgraph.kernels.target import Target
from cgraph.ops.family import Pointwise, scalar_program
from cgraph.ops.slicing import Slice

PAGE = 4096  # bytes of workspace that are always allowed
SHARE = 4  # 1 / SHARE of an operand's bytes may be workspace that allows overwriting it


class Stencil(Op):
    """``out[place] = inner(windows of the operands)``, surrounded by one number, or by the elements of operand 0.

    An operand that is read around each element may still be overwritten: row by row, once its old rows are no longer
    needed.

    Fields
        inner: computes the elements
        windows: per operand of `inner`, the operand that it reads, and a slice of it
        place: the slice of the result that the elements fill; its steps are 1
        shape: of the result
        border: the number around them; None for the elements of operand 0
    """

    takes_complex = True

    inner: Pointwise
    windows: tuple[tuple[int, Slice], ...]
    place: Slice
    shape: tuple[int, ...]
    border: float | int | bool | None
    takes_storage = True

    @property
    def name(self) -> str:
        return f"{'set_slice' if self.border is None else 'pad'} of {self.inner.name}"

    def infer(self, *specs: Spec) -> Spec:
        inside = self.inner.infer(*(window.infer(specs[i]) for i, window in self.windows))
        whole = Spec(self.shape, inside.dtype)
        if self.place.infer(whole) != inside:
            raise ShapeError(f"elements {inside} do not fit the slice {self.place.lengths} of {whole}")
        if self.border is None and specs[0] != whole:
            raise ShapeError(f"operand {specs[0]} does not have the spec {whole} of the result")
        return whole

    def meaning(self, *xs):
        inside = self.inner.meaning(*(window.meaning(xs[i]) for i, window in self.windows))
        out = np.array(xs[0]) if self.border is None else np.full(self.shape, self.border, inside.dtype)
        out[self.place.index] = inside
        return out

    def work(self, target: Target, *specs: Spec) -> Work:
        whole = self.infer(*specs)
        allowed = range(len(specs)) if self.border is not None else (0,)
        overwrites = tuple(i for i in allowed if specs[i] == whole and self.may_take(i, whole))
        sweeps = (self.sweep(i, specs[i].dtype.itemsize) for i in overwrites)
        return Work(
            partial(self.calls, target), max((s.nbytes for s in sweeps if s), default=0), overwrites, strided=True
        )

    def may_take(self, i: int, whole: Spec) -> bool:
        """Return True if operand `i`, of the spec of the result, can be overwritten while its windows are read."""
        if any(step != 1 for k, window in self.windows for step in window.steps if k == i):
            return False
        sweep = self.sweep(i, whole.dtype.itemsize)
        return sweep is None or sweep.nbytes <= max(PAGE, whole.nbytes // SHARE)

    def sweep(self, i: int, itemsize: int) -> Sweep | None:
        """Return the way in which operand `i` is overwritten; None if each element is read only at its own position."""
        starts = (window.starts for k, window in self.windows if k == i)
        shifts = [tuple(a - b for a, b in zip(start, self.place.starts)) for start in starts]
        return sweep_of(self.place.lengths, itemsize, shifts)

    def calls(self, target: Target, out: View, *xs: View, workspace: View | None = None) -> list[Call]:
        """Compute the elements, then fill the border."""
        inside, views = self.place.alias(out), [window.alias(xs[i]) for i, window in self.windows]
        program = scalar_program(self.inner, tuple(x.dtype for x in views))
        overlap = next((i for i, x in enumerate(xs) if x.shows_same(out)), None)
        sweep = None if overlap is None else self.sweep(overlap, out.itemsize)
        if sweep is None:
            return pointwise_calls(target, program, inside, *views) + self.border_calls(target, out, xs, overlap)
        last = len(self.shape) - 1
        if self.border is None or sweep.axis == last:
            return stencil_calls(program, sweep, inside, views, workspace) + self.border_calls(target, out, xs, overlap)
        before = self.place.starts[last]
        ends = before, self.shape[last] - before - self.place.lengths[last], self.border
        calls = stencil_calls(program, sweep, inside, views, workspace, ends)
        return calls + self.border_calls(target, out, xs, overlap, last)

    def border_calls(
        self, target: Target, out: View, xs: tuple[View, ...], overlap: int | None, axes: int | None = None
    ) -> list[Call]:
        """Return the calls that fill the border along the first `axes`."""

        def sides(x: View) -> list[View]:
            return boxes_around(x, self.place.starts[:axes], self.place.lengths[:axes])

        if self.border is not None:
            return [call for side in sides(out) for call in fill_calls(target, side, self.border)]
        pairs = zip(sides(out), sides(xs[0])) if overlap is None else ()
        return [call for side, x in pairs for call in copy_calls(target, side, x)]
