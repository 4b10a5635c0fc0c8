"""Channel-blocked images after lowering: conversions, clearing the halo, and the ops that work on such images."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from cgraph.dtypes.convert import computing_dtype, convert
from cgraph.errors import ShapeError
from cgraph.ir.cut import ROWS, Cut, index_array, row_by_row
from cgraph.ir.graph import Op
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.blocked_copy.calls import concat_calls, fill_halo_calls, to_blocked_calls, to_plain_calls
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.pool.calls import pool_calls
from cgraph.kernels.pool8.calls import average_pool8_calls
from cgraph.kernels.pool_indices.calls import place_calls, spread_calls
from cgraph.kernels.reduce.calls import reduce_calls
from cgraph.kernels.resize.calls import Strip
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.window import Window
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.join import Concat
from cgraph.ops.physical.byte_pool import BytePool
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.window_rows import WindowRows, rows_inside
from cgraph.ops.pool import Pool
from cgraph.ops.reduce import Sum
from cgraph.ops.regions import RoiAlign, RoiAlignGrad
from cgraph.ops.resize import Resize
from cgraph.record import replace

BOXES = 3  # operands of region features before the images: boxes, image indices, levels
COLUMNS = 3  # the axis of columns of channel-blocked images


def require(spec: Spec, form: Form) -> None:
    """Raise ShapeError unless a value is of this form."""
    if spec != form.spec:
        raise ShapeError(f"value {spec} is not of the form {form.spec}; convert it with ToBlocked")


def widened(form: Form, x: np.ndarray) -> np.ndarray:
    """Return blocked images as plain images, those of a storage dtype in float32."""
    return form.plain(convert(x, computing_dtype(x.dtype)))


class ToBlocked(Op):
    """Plain images ``[n, c, h, w]``, channel-blocked, with a zero halo."""

    form: Form

    def infer(self, x: Spec) -> Spec:
        if x.shape != self.form.logical:
            raise ShapeError(f"images {x} are not {list(self.form.logical)}; pass images of that shape")
        return self.form.spec

    def meaning(self, x):
        return self.form.to_blocked(x)

    def work(self, target: Target, x: Spec) -> Work:
        def calls(out: View, x: View) -> list[Call]:
            to = self.form.at(out)
            return [*fill_halo_calls(to), *to_blocked_calls(target, to, x)]

        return Work(calls)

    def row_rule(self, x: Spec) -> RowRule | None:
        return RowRule((0,), lambda rows: ToBlocked(self.form.first(rows)))

    def cut(self, x: Spec) -> Cut:
        form = self.form
        return Cut(
            (rows_inside(form),), lambda first, stop: ToBlocked(form.rows(first, stop)), form.halo[0], form.halo[2]
        )


class ToPlain(Op):
    """Channel-blocked images as ``[n, c, h, w]``."""

    form: Form

    def infer(self, x: Spec) -> Spec:
        require(x, self.form)
        return Spec(self.form.logical, x.dtype)

    def meaning(self, x):
        return self.form.plain(x)

    def work(self, target: Target, x: Spec) -> Work:
        return Work(lambda out, x: to_plain_calls(target, out, self.form.at(x)))

    def row_rule(self, x: Spec) -> RowRule | None:
        return RowRule((0,), lambda rows: ToPlain(self.form.first(rows)))

    def cut(self, x: Spec) -> Cut:
        top, h = self.form.halo[0], self.form.h
        rows = np.arange(top, top + h)
        return Cut(
            ((index_array(rows), index_array(rows + 1)),), lambda first, stop: ToPlain(self.form.strip(stop - first))
        )


class ClearHalo(Op):
    """The same images with zeros in the halo, after an op that does not keep them."""

    form: Form
    takes_storage = True

    def infer(self, x: Spec) -> Spec:
        require(x, self.form)
        return x

    def meaning(self, x):
        return self.form.to_blocked(self.form.plain(x))

    def work(self, target: Target, x: Spec) -> Work:
        def calls(out: View, x: View) -> list[Call]:
            first = [] if x == out else copy_calls(target, out, x)
            return [*first, *fill_halo_calls(self.form.at(out))]

        return Work(calls, overwrites=(0,))

    def row_rule(self, x: Spec) -> RowRule | None:
        return RowRule((0,), lambda rows: ClearHalo(self.form.first(rows)))

    def cut(self, x: Spec) -> Cut:
        form = self.form
        same = row_by_row(x.shape[2])
        return Cut((same,), lambda first, stop: ClearHalo(form.rows(first, stop)), form.halo[0], form.halo[2])


class ColumnSum(Op):
    """Channel-blocked images summed over columns: ``[n, c / lanes, rows, lanes]``, halo included.

    A sum over pixels thus has one order, columns before rows, whether its rows are computed at once or in bands.
    """

    form: Form
    takes_storage = True

    def infer(self, x: Spec) -> Spec:
        require(x, self.form)
        return Spec((*x.shape[:COLUMNS], x.shape[-1]), computing_dtype(x.dtype))

    def meaning(self, x):
        return convert(x, computing_dtype(x.dtype)).sum(COLUMNS)

    def work(self, target: Target, x: Spec) -> Work:
        program = Sum((COLUMNS,)).program(self.form.dtype)
        return Work(partial(reduce_calls, target, "sum", program, axes=(COLUMNS,), whole=True))

    def row_rule(self, x: Spec) -> RowRule | None:
        return RowRule((0,), lambda rows: ColumnSum(self.form.first(rows)))

    def cut(self, x: Spec) -> Cut:
        return Cut((row_by_row(x.shape[ROWS]),), lambda first, stop: ColumnSum(self.form.strip(stop - first)))


class BlockedOp(Op):
    """A logical op on channel-blocked images: the same meaning in another layout. A member defines `pixels`.

    Fields
        op: the computation
        sources: the form of each operand; None for one that is not an image
        result: the form of the result
    """

    op: Any
    sources: tuple[Form | None, ...]
    result: Form

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def can_fail(self) -> bool:  # type: ignore[override]
        return self.op.can_fail

    def infer(self, *specs: Spec) -> Spec:
        for spec, form in zip(specs, self.sources, strict=True):
            if form is not None:
                require(spec, form)
        return self.result.spec

    def meaning(self, *xs):
        plain = (x if form is None else widened(form, x) for x, form in zip(xs, self.sources))
        return self.result.to_blocked(convert(self.op.meaning(*plain), self.result.spec.dtype))

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, *xs: View) -> list[Call]:
            to = self.result.at(out)
            sources = (x if form is None else form.at(x) for x, form in zip(xs, self.sources))
            return [*fill_halo_calls(to), *self.pixels(target, to, *sources)]

        return Work(calls)

    def row_rule(self, *specs: Spec) -> RowRule | None:
        rule = self.op.row_rule(*[x if f is None else Spec(f.logical, x.dtype) for x, f in zip(specs, self.sources)])
        return rule and RowRule(rule.operands, partial(self.first_images, rule))

    def first_images(self, rule: RowRule, n: int) -> Op:
        """Return the op on the first n images of what is read image by image."""
        sources = [f.first(n) if f is not None and i in rule.operands else f for i, f in enumerate(self.sources)]
        return replace(self, op=rule.first(n), sources=tuple(sources), result=self.result.first(n))

    def pixels(self, target: Target, out: BlockedView, *xs: Any) -> Sequence[Call]:
        """Return the calls that fill the result except its halo."""
        raise NotImplementedError


class BlockedPool(BlockedOp):
    """The largest element of each window, or their mean."""

    takes_storage = True

    def pixels(self, target: Target, out: BlockedView, x: BlockedView) -> Sequence[Call]:
        if isinstance(self.op, BytePool):
            return average_pool8_calls(target, out, x, window_of(self.op), self.op.mean, self.op.count_pad).calls
        kind, include = ("mean", self.op.count_pad) if isinstance(self.op, AvgPool) else ("max", False)
        return pool_calls(target, out, x, window_of(self.op), kind, include).calls

    def cut(self, x: Spec) -> Cut:
        (source,) = self.sources
        assert source is not None
        rows = WindowRows(window_of(self.op), source.h, self.result)

        def band(first: int, stop: int) -> Op:
            begin, end, above, below = rows.span(first, stop)
            _, left, bottom, right = self.op.pad
            op = replace(self.op, pad=(above, left, bottom if below else 0, right))
            return BlockedPool(op, (source.strip(end - begin),), self.result.rows(first, stop))

        return Cut((rows.table(source.halo[0]),), band, self.result.halo[0], self.result.halo[2])


class BlockedPoolIndices(BlockedOp):
    """The index of the largest element in each window: int32, in blocks of as many channels as the images."""

    def pixels(self, target: Target, out: BlockedView, x: BlockedView) -> Sequence[Call]:
        return place_calls(target, out, x, window_of(self.op)).calls


class BlockedScatter(BlockedOp):
    """Elements added up at their indices: the gradient of max pooling."""

    def pixels(self, target: Target, out: BlockedView, places: BlockedView, g: BlockedView) -> Sequence[Call]:
        return spread_calls(target, out, places, g, window_of(self.op)).calls


class BlockedResize(BlockedOp):
    """Images with other numbers of rows and columns.

    Fields
        strip: the rows of the result and of the images; None for all of them
    """

    op: Resize
    strip: Strip | None = None

    def pixels(self, target: Target, out: BlockedView, x: BlockedView) -> Sequence[Call]:
        return self.op.calls(target, out, x, self.strip)

    def cut(self, x: Spec) -> Cut:
        (source,), top = self.sources, self.result.halo[0]
        assert source is not None
        low, high = self.op.rows_read(source.h)
        inside, _ = rows_inside(self.result)

        def band(first: int, stop: int) -> Op:
            result = self.result.rows(first, stop)
            begin, end = low[inside[first]], high[inside[stop - 1]]
            strip = Strip(max(first - top, 0), self.result.h, begin, source.h)
            return BlockedResize(self.op, (source.strip(end - begin),), result, strip)

        first, stop = (index_array(source.halo[0] + np.asarray(rows)[inside]) for rows in (low, high))
        return Cut(((first, stop),), band, top, self.result.halo[2])


class BlockedRoiAlign(BlockedOp):
    """Region features of images of several sizes."""

    op: RoiAlign

    def pixels(
        self, target: Target, out: BlockedView, boxes: View, batch: View, level: View, *levels: BlockedView
    ) -> Sequence[Call]:
        return self.op.calls(target, out, boxes, batch, level, levels)


class PlainRoiAlign(Op):
    """Region features of channel-blocked images as plain cells, for a consumer of plain values.

    Fields
        op: the computation
        sources: the form of each image size
    """

    op: RoiAlign
    sources: tuple[Form, ...]
    can_fail = True

    @property
    def name(self) -> str:
        return self.op.name

    def infer(self, *specs: Spec) -> Spec:
        for spec, form in zip(specs[BOXES:], self.sources, strict=True):
            require(spec, form)
        images = (Spec(form.logical, form.spec.dtype) for form in self.sources)
        return self.op.infer(*specs[:BOXES], *images)

    def meaning(self, *xs):
        images = (form.plain(x) for x, form in zip(xs[BOXES:], self.sources))
        return self.op.meaning(*xs[:BOXES], *images)

    def row_rule(self, *specs: Spec) -> RowRule | None:
        return RowRule(tuple(range(BOXES)), lambda rows: self)

    def work(self, target: Target, *specs: Spec) -> Work:
        def calls(out: View, boxes: View, batch: View, level: View, *levels: View) -> list[Call]:
            return self.op.calls(
                target, out, boxes, batch, level, [form.at(x) for x, form in zip(levels, self.sources)]
            )

        return Work(calls)


class BlockedRoiAlignGrad(BlockedOp):
    """The gradient of region features for the images of one size."""

    op: RoiAlignGrad

    def pixels(
        self, target: Target, out: BlockedView, boxes: View, batch: View, level: View, g: BlockedView
    ) -> Sequence[Call]:
        return self.op.calls(target, out, boxes, batch, level, g)


class JoinedImages(Concat):
    """Concatenated blocks of channels."""

    takes_storage = True

    @property
    def name(self) -> str:
        return "concat"


class BlockedConcat(BlockedOp):
    """Concatenated channels, where some operands do not begin at the first lane of a block."""

    takes_storage = True

    def pixels(self, target: Target, out: BlockedView, *xs: BlockedView) -> Sequence[Call]:
        return concat_calls(out, list(xs))

    def cut(self, *specs: Spec) -> Cut:
        def band(first: int, stop: int) -> Op:
            sources = (form.rows(first, stop) for form in self.sources if form is not None)
            return BlockedConcat(self.op, tuple(sources), self.result.rows(first, stop))

        same = row_by_row(self.result.shape[2])
        return Cut((same,) * len(specs), band, self.result.halo[0], self.result.halo[2])


def window_of(op: Pool) -> Window:
    """Return the window geometry of a pool."""
    return Window(op.window, op.stride, op.pad, op.dilation)  # type: ignore[arg-type]
