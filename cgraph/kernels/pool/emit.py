"""Pooling over windows, on channel-blocked images (a vector is a block's channels), plain views, and plain volumes.

Plain rows are computed a vector of columns at a time where all taps are inside the image, all others value by value:
the same bits. Means of images are sums in C order, those of volumes sums of columns. Tables describe which taps of a
window lie inside the image: per frame, row and column of the result the first and the last tap (excluded) and, for
averages, that axis's factor of the divisor.
"""

from collections.abc import Sequence
from functools import partial, reduce
from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import banded_rows, each_task, fold, shuffle
from cgraph.kernels.llvm.storage import register_dtype
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.llvm.windows import larger, least
from cgraph.kernels.pool.signature import SPAN
from cgraph.record import Record


@final
def window(k: Builder, dtype: str, lanes: int, across: int, step: int, kind: str, down: int, over: int) -> None:
    """`kind`: ``max`` (a NaN wins) or ``mean``. `down`, `over`: taps of a window of blocks, or 0 for loops over taps.

    Task: one row of one plane (channel or block of channels) of an image, by bands.
    """
    a = k.args()
    row_of = RowOfWindows(k, a, kind, lanes, across, step, kind == "mean")
    with banded_rows(k, a.planes, a.rows, a.band) as (image, channel, row):
        taps = taps_of(a.row_table, row, a.tap_row)
        x = a.x + (image * a.x_image + channel * a.x_plane + taps.start)
        out = a.out + (image * a.o_image + channel * a.o_plane + row * a.o_row)
        if down:
            row_of.emit_blocks(out, x, taps, down, over)
        else:
            row_of.emit(out, x, (taps,))


@final
def volume(k: Builder, dtype: str, lanes: int, across: int, step: int, kind: str) -> None:
    """As `window`, on plain volumes. Task: one row of one frame of a channel."""
    a = k.args()
    row_of = RowOfWindows(k, a, kind, lanes, across, step, False)
    with each_task(k, a.planes, a.frames, a.rows) as (image, channel, frame, row):
        along, down = taps_of(a.frame_table, frame, a.tap_frame), taps_of(a.row_table, row, a.tap_row)
        x = a.x + (image * a.x_image + channel * a.x_plane + along.start + down.start)
        out = a.out + (image * a.o_image + channel * a.o_plane + frame * a.o_frame + row * a.o_row)
        row_of.emit(out, x, (along, down))


class Taps(Record, eq=False):
    """The taps of a window along one axis that are inside the image.

    Fields
        first, stop: taps
        count: factor of the divisor
        start: elements from the image's corner to the first tap
        step: elements from one tap to the next
    """

    first: Val
    stop: Val
    count: Val
    start: Val
    step: Val


def taps_of(table: Ptr, i: Val, step: Val) -> Taps:
    """Return the taps of window `i` along an axis."""
    first, stop, count, start = ((table + i * 4).load(j) for j in range(4))
    return Taps(first, stop, count, start, step)


class RowOfWindows(Record, eq=False):
    """A row of results: the parameters of `window`, its arguments, and the order of the taps of plain images."""

    k: Builder
    a: SimpleNamespace
    kind: str
    lanes: int
    across: int
    step: int
    in_c_order: bool

    def emit(self, out: Ptr, x: Ptr, outer: Sequence[Taps]) -> None:
        """Compute all columns; `outer`: the taps along the other axes."""
        k, a, across = self.k, self.a, self.across
        inside = a.inner_stop - a.inner
        with k.loop(0, a.columns - inside if across else a.columns) as i:
            column = k.select(i < a.inner, i, i + inside) if across else i
            out.store(self.value(x, outer, column, self.lanes, 1), column * a.o_column)
        if not across:
            return
        with k.loop(0, inside, across) as i:  # the last vector ends with the last of these columns
            column = a.inner + k.smaller(i, inside - across)
            out.store(self.value(x, outer, column, across, self.step), column)

    def emit_blocks(self, out: Ptr, x: Ptr, taps: Taps, down: int, over: int) -> None:
        """Compute all columns of blocks, without loops over taps where all of them are inside the image."""
        k, a = self.k, self.a
        inside = k.select((taps.first == 0) & (taps.stop == down), a.inner_stop - a.inner, 0)
        with k.loop(0, a.columns - inside) as i:
            column = k.select(i < a.inner, i, i + inside)
            out.store(self.value(x, (taps,), column, self.lanes, 1), column * a.o_column)
        with k.if_(inside > 0):
            along = taps_of(a.column_table, a.inner, a.tap_column)
            first, to = x + along.start, out + a.inner * a.o_column
            with k.loop(0, inside) as i:
                total = self.whole_window(first + i * a.x_step, down, over)
                to.store(mean_of(k, total, (taps, along)) if self.kind == "mean" else total, i * a.o_column)

    def whole_window(self, at: Ptr, down: int, over: int) -> Val:
        """Return all elements of a window, reduced in C order."""
        k, a = self.k, self.a
        rows = [at + a.tap_row * j for j in range(down)]
        loads = [row.load(a.tap_column * j, self.lanes) for row in rows for j in range(over)]
        start = nothing(k, self.kind, at.dtype, self.lanes) if self.kind == "mean" else loads.pop(0)
        return reduce(partial(combine, k, self.kind), loads, start)

    def value(self, x: Ptr, outer: Sequence[Taps], column: Val, lanes: int, stride: int) -> Val:
        """Return the value of a window, or of `lanes` windows whose elements are `stride` apart."""
        k, a = self.k, self.a
        along = taps_of(a.column_table, column, a.tap_column)
        empty = nothing(k, self.kind, x.dtype, lanes)
        if self.lanes or self.in_c_order:
            value = reduced(k, self.kind, x + along.start, (*outer, along), empty, stride)
        else:
            with fold(k, along.first, along.stop, [x + along.start, empty]) as s:
                at, value = s.values
                down = reduced(k, self.kind, at, outer, empty, stride)
                s.next = [at + along.step, combine(k, self.kind, value, down)]
            value = s.values[1]
        return mean_of(k, value, (*outer, along)) if self.kind == "mean" else value


def nothing(k: Builder, kind: str, dtype: str, lanes: int) -> Val:
    """Return the value of a window without taps."""
    dtype = register_dtype(dtype)
    return k.const(0, dtype, lanes) if kind == "mean" else least(k, dtype, lanes)


def combine(k: Builder, kind: str, value: Val, tap: Val) -> Val:
    return value + tap if kind == "mean" else larger(k, value, tap)


def reduced(k: Builder, kind: str, at: Ptr, axes: Sequence[Taps], value: Val, stride: int = 1) -> Val:
    """Return `value` and the elements of all taps, reduced in C order."""
    if not axes:
        return combine(k, kind, value, load_apart(k, at, value.lanes, stride))
    taps, *inner = axes
    with fold(k, taps.first, taps.stop, [at, value]) as s:
        at, value = s.values
        s.next = [at + taps.step, reduced(k, kind, at, inner, value, stride)]
    return s.values[1]


def mean_of(k: Builder, total: Val, axes: Sequence[Taps]) -> Val:
    """Return the quotient of a sum and the number of elements that count."""
    number = axes[0].count
    for taps in axes[1:]:
        number = number * taps.count
    count = k.cast(number, total.dtype)
    return total / (k.splat(count, total.lanes) if total.lanes else count)


@final
def sweep(k: Builder, dtype: str, down: int, across: int, step: int, kind: str) -> None:
    """As `volume`: the taps along the other axes are reduced once for each column of the image, not for each window.

    The same bits, since a window is reduced column by column there, too. Columns of `SPAN` elements at most are on the
    stack. Padding is zeros or the least number there, so all windows are alike.
    """
    a = k.args()
    columns = k.stack_ptr(register_dtype(dtype), SPAN)
    row = RowBySweeps(k, a, kind, down, across, step, columns)
    with each_task(k, a.planes, a.frames, a.rows) as (image, channel, frame, r):
        outer = taps_of(a.frame_table, frame, a.tap_frame), taps_of(a.row_table, r, a.tap_row)
        x = a.x + (image * a.x_image + channel * a.x_plane + outer[0].start + outer[1].start)
        out = a.out + (image * a.o_image + channel * a.o_plane + frame * a.o_frame + r * a.o_row)
        with k.loop(0, a.columns, a.tile) as first:  # the last tile ends with the last column
            row.emit(out, x, outer, k.smaller(first, a.columns - a.tile))


class RowBySweeps(Record, eq=False):
    """A row of results: the parameters of `sweep`, its arguments, and the values of columns."""

    k: Builder
    a: SimpleNamespace
    kind: str
    down: int
    across: int
    step: int
    columns: Ptr

    def emit(self, out: Ptr, x: Ptr, outer: Sequence[Taps], first: Val) -> None:
        """Compute a tile of results."""
        k, a = self.k, self.a
        start = first * a.stride - a.left
        low = k.larger(-start, k.const(0, "i8"))
        high = k.smaller(a.width - start, a.span)
        for begin, end in ((k.const(0, "i8"), low), (high, a.span)):
            with k.loop(begin, end) as i:
                self.columns.store(nothing(k, self.kind, self.columns.dtype, 0), i)
        whole = k.select(high - low < self.down, low, high)
        with k.loop(low, whole, self.down) as i:
            self.reduce_columns(x + start, outer, k.smaller(i, high - self.down), self.down)
        with k.loop(whole, high) as i:
            self.reduce_columns(x + start, outer, i, 0)
        with k.loop(0, a.tile, max(self.across, 1)) as i:
            at = k.smaller(i, a.tile - self.across) if self.across else i
            out.store(self.value(outer, first, at), (first + at) * (1 if self.across else a.o_column))

    def reduce_columns(self, x: Ptr, outer: Sequence[Taps], i: Val, lanes: int) -> None:
        empty = nothing(self.k, self.kind, x.dtype, lanes)
        self.columns.store(reduced(self.k, self.kind, x + i, outer, empty), i)

    def value(self, outer: Sequence[Taps], first: Val, i: Val) -> Val:
        """Return the value of window `i` of the tile, or of several from there on."""
        k, a = self.k, self.a
        empty = nothing(k, self.kind, self.columns.dtype, self.across)
        with fold(k, k.const(0, "i8"), a.taps, [self.columns + i * a.stride, empty]) as s:
            at, value = s.values
            s.next = [at + a.tap_column, combine(k, self.kind, value, load_apart(k, at, self.across, self.step))]
        if self.kind != "mean":
            return s.values[1]
        count = k.cast(outer[0].count * outer[1].count, s.values[1].dtype)
        factors = load_apart(k, a.column_counts + (first + i), self.across, 1)
        return s.values[1] / (k.cast(factors, count.dtype) * (k.splat(count, self.across) if self.across else count))


def load_apart(k: Builder, at: Ptr, lanes: int, stride: int) -> Val:
    """Return `lanes` elements that are `stride` apart, and read nothing after the last of them."""
    if not lanes or stride == 1:
        return at.load(lanes=lanes)
    last = (lanes - 1) * stride
    values = at.load(lanes=lanes)
    for i in range(1, stride):
        first = min(i * lanes, last - lanes + 1)
        places = [lanes + j * stride - first if i * lanes <= j * stride < (i + 1) * lanes else j for j in range(lanes)]
        if i == 1:
            places = [j * stride if j * stride < lanes else place for j, place in enumerate(places)]
        values = shuffle(k, values, at.load(first, lanes=lanes), places)
    return values
