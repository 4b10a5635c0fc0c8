"""Softmax, its logarithm, and the logarithm of the sum of exponentials, along one axis.

Three passes over data that stays in the cache: the maximum, the sum of ``e**(x - max)`` (compensated), the result.
``rows``: vectors have neighbouring elements of one row. ``columns``: vectors have as many independent sums, with the
axis across memory. `out` may be `x`.
"""

from types import SimpleNamespace

from cgraph.kernels.llvm.accumulate import Accumulator, State, get, put
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vexp import exp
from cgraph.kernels.llvm.vfloat import magnitude, two_sum
from cgraph.kernels.llvm.vlog import log
from cgraph.kernels.llvm.vmath import largest
from cgraph.kernels.pointwise.emit import RowStream, load_vector, streams_of
from cgraph.kernels.pointwise.rowwise import each
from cgraph.kernels.softmax.signature import MOST_COLUMNS
from cgraph.kernels.views.layout import CHAIN
from cgraph.kernels.walk.emit import store_strided, walk

INFINITY = float("inf")


def rows(k: Builder, kind: str, dtype: str, access: str) -> None:
    """`kind`: ``softmax``, ``log_softmax`` or ``logsumexp``, whose out has one element per row. Task: some rows."""
    lanes = 2 * k.target.lanes_of(dtype)
    a = k.args()
    streams = streams_of(k, places(a), [dtype, dtype], access, lanes)
    row_sum = RowSum(k, streams, a.columns, lanes)
    first, last = k.tasks()
    low, high = first * a.each, k.smaller(last * a.each, a.rows)

    def row(_: Val, offsets: list[Val]) -> None:
        starts = [s.base + o for s, o in zip(streams, offsets)]
        most = row_sum.maximum(starts)
        if kind == "logsumexp":
            most = finite_or_zero(k, most)
        total = row_sum.exponentials(starts, most, keep=kind == "softmax")
        if kind == "logsumexp":
            k.pointer(starts[1], dtype).store(most + log(k, total))
        elif kind == "softmax":
            inverse = 1.0 / total
            row_sum.map(starts, 1, lambda e: e * inverse)
        else:
            last = log(k, total)
            row_sum.map(starts, 0, lambda x: (x - most) - last)

    walk(k, a.axes, a.rank, 2, low, high, row)


def places(a: SimpleNamespace) -> list[tuple[Val, Val]]:
    """Return address and column stride of x and out."""
    return [(a.x, a.x_step), (a.out, a.out_step)]


def finite_or_zero(k: Builder, x: Val) -> Val:
    """Return `x` with infinities replaced by 0, because ``inf - inf`` would turn a right result into NaN."""
    return k.select(magnitude(k, x) == INFINITY, k.const(0.0, x.dtype, x.lanes), x)


class RowSum:
    """Emits the passes over one row; stream 0 is x, stream 1 is out. Mutable: its slots."""

    def __init__(self, k: Builder, streams: list[RowStream], columns: Val, lanes: int) -> None:
        self.k, self.streams, self.columns, self.lanes = k, streams, columns, lanes
        dtype = streams[0].dtype
        self.largest, self.sum = Accumulator(k, "max", dtype), Accumulator(k, "sum", dtype)
        self.best = [k.slot(x) for x in self.largest.start(lanes)]
        self.state = [k.slot(x) for x in self.sum.start(lanes)]
        self.total = [k.slot(x) for x in self.sum.total_start(lanes)]

    def maximum(self, starts: list[Val]) -> Val:
        put(self.best, self.largest.start(self.lanes))

        def body(load, store, outside) -> None:
            x = load(0)
            if outside is not None:
                x = self.k.select(outside, constant(self.k, -INFINITY, x), x)
            put(self.best, self.largest.add(get(self.best), x, None))

        each(self.k, self.streams, starts, self.columns, self.lanes, (0,), (), body)
        return self.largest.join_lanes(get(self.best))[0]

    def exponentials(self, starts: list[Val], most: Val, keep: bool) -> Val:
        """Return the sum of e**(x - most); `keep` writes the terms to out."""
        put(self.total, self.sum.total_start(self.lanes))
        put(self.state, self.sum.start(self.lanes))

        def flush() -> None:
            put(self.total, self.sum.flush(get(self.total), get(self.state)))
            put(self.state, self.sum.start(self.lanes))

        def body(load, store, outside) -> None:
            term = exp(self.k, load(0) - most)
            if keep:
                store(1, term)
            if outside is not None:
                term = self.k.select(outside, constant(self.k, 0.0, term), term)
            put(self.state, self.sum.add(get(self.state), term, None))

        written = (1,) if keep else ()
        each(self.k, self.streams, starts, self.columns, self.lanes, (0,), written, body, chain=(CHAIN, flush))
        return self.sum.finish(self.sum.join_lanes(get(self.total)))[0]

    def map(self, starts: list[Val], source: int, f) -> None:
        """Compute ``out = f(stream source)``"""
        each(
            self.k,
            self.streams,
            starts,
            self.columns,
            self.lanes,
            (source,),
            (1,),
            lambda load, store, _: store(1, f(load(source))),
        )


def constant(k: Builder, x: float, like: Val) -> Val:
    """Return `x` in every lane, with the dtype and lanes of `like`."""
    return k.const(x, like.dtype, like.lanes)


def columns(k: Builder, kind: str, dtype: str, access: str) -> None:
    """`kind`: as in `rows`. Task: one block of columns, a vector wide or more, of one row."""
    lanes = k.target.lanes_of(dtype)
    a = k.args()
    streams = streams_of(k, places(a), [dtype, dtype], access, lanes)
    run = ColumnSums(k, kind, streams, (a.x_along, a.out_along), a.length, lanes)
    with k.task_loop() as task:
        start = (task % a.blocks) * a.block
        width = k.smaller(start + a.block, a.columns) - start

        def kept_row(_: Val, offsets: list[Val], start: Val = start, width: Val = width) -> None:
            run.emit([s.base + o + start * s.stride for s, o in zip(streams, offsets)], width)

        walk(k, a.axes, a.rank, 2, task // a.blocks, task // a.blocks + 1, kept_row)


class ColumnSums:
    """Emits the passes over a block of columns; maxima and sums lie on the stack.

    The last vector may overlap columns of the one before. It has maxima and sums of its own; since `out` may be `x`,
    the passes that write skip the overlap.
    """

    def __init__(
        self, k: Builder, kind: str, streams: list[RowStream], steps: tuple[Val, Val], length: Val, lanes: int
    ) -> None:
        self.k, self.kind, self.streams, self.steps, self.length, self.lanes = k, kind, streams, steps, length, lanes
        self.sum = Accumulator(k, "sum", streams[0].dtype)
        columns = 1 if k.target.code == "ptx" else min(MOST_COLUMNS, k.target.block_columns)
        self.most, self.high, self.low = (k.stack_ptr(streams[0].dtype, columns) for _ in range(3))

    def emit(self, starts: list[Val], width: Val) -> None:
        k = self.k
        self.fill(width)
        self.walk(starts, width, self.enter_maximum)
        if self.kind == "logsumexp":
            with k.loop(0, width, self.lanes) as at:
                self.most.store(finite_or_zero(k, self.most.load(at, self.lanes)), at)
        self.walk(starts, width, self.enter_sum)
        with k.loop(0, width, self.lanes) as at:
            total = self.sum.finish([self.high.load(at, self.lanes), self.low.load(at, self.lanes)])[0]
            self.high.store(1.0 / total if self.kind == "softmax" else log(k, total), at)
        if self.kind == "logsumexp":
            with k.loop(0, width, self.lanes) as at:
                column = k.smaller(at, width - self.lanes)
                value = self.most.load(at, self.lanes) + self.high.load(at, self.lanes)
                self.store(starts[1], column, value)
            return
        self.write(starts, width)

    def fill(self, width: Val) -> None:
        with self.k.loop(0, width, self.lanes) as at:
            for array, value in ((self.most, -INFINITY), (self.high, 0.0), (self.low, 0.0)):
                array.store(self.k.const(value, array.dtype, self.lanes), at)

    def walk(self, starts: list[Val], width: Val, enter) -> None:
        """Call ``enter(x, position of its accumulators)`` for every vector of every row."""
        k = self.k
        with k.loop(0, self.length) as row, k.loop(0, width, self.lanes) as at:
            column = k.smaller(at, width - self.lanes)
            enter(load_vector(k, self.streams[0], starts[0] + row * self.steps[0], column, self.lanes), at)

    def enter_maximum(self, x: Val, at: Val) -> None:
        self.most.store(largest(self.k, self.most.load(at, self.lanes), x), at)

    def enter_sum(self, x: Val, at: Val) -> None:
        state: State = [self.high.load(at, self.lanes), self.low.load(at, self.lanes)]
        high, error = two_sum(state[0], exp(self.k, x - self.most.load(at, self.lanes)))
        self.high.store(high, at)
        self.low.store(state[1] + error, at)

    def write(self, starts: list[Val], width: Val) -> None:
        """Write the results; an overlapping vector is read and written for its own columns only."""
        k = self.k
        with k.loop(0, self.length) as row:
            at_x, at_out = (s + row * step for s, step in zip(starts, self.steps))
            whole = width // self.lanes * self.lanes
            last = k.slot(k.const(0.0, self.streams[0].dtype, self.lanes))
            with k.if_(whole < width):
                last.value = self.result(at_x, width - self.lanes, whole)
            with k.loop(0, whole, self.lanes) as at:
                self.store(at_out, at, self.result(at_x, at, at))
            with k.if_(whole < width):
                self.store(at_out, width - self.lanes, last.value)

    def result(self, at_x: Val, column: Val, place: Val) -> Val:
        x = load_vector(self.k, self.streams[0], at_x, column, self.lanes)
        y, last = x - self.most.load(place, self.lanes), self.high.load(place, self.lanes)
        return exp(self.k, y) * last if self.kind == "softmax" else y - last

    def store(self, at: Val, column: Val, value: Val) -> None:
        s = self.streams[1]
        if s.access == "v":
            (self.k.pointer(at, s.dtype) + column).store(value)
        else:
            store_strided(self.k, self.k.pointer(at + column * s.stride, s.dtype), s.stride, value)
