"""Normalisation: rows by their own mean and variance, and across channels.

``rows``: a row is `segments` times `length` consecutive elements; mean and variance are taken over all of it (rounding
errors kept, the variance in a second pass about the mean). Scale and shift are one value per element of the row
(layer normalisation), per segment (instance and group normalisation: a segment is a channel), or absent. Where the mean
is taken as 0 there is one pass, and a scale per element without a shift.
``channels``: local response normalisation, vectors holding neighbouring positions of one channel.
"""

from collections.abc import Callable

from cgraph.kernels.llvm.accumulate import Accumulator, get, put
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.llvm.vpow import pow_
from cgraph.kernels.pointwise.emit import RowStream, streams_of
from cgraph.kernels.pointwise.rowwise import each
from cgraph.kernels.views.layout import CHAIN
from cgraph.record import Record


def rows(k: Builder, dtype: str, scales: str) -> None:
    """Normalise some rows.

    `scales`: ``element`` (one per element of a row), ``segment`` (one each), ``none``, or ``root`` (one per element,
    and the mean is taken as 0).
    """
    lanes = 2 * k.target.lanes_of(dtype)
    a = k.args()
    segments, length, epsilon = a.segments, a.length, k.cast(a.epsilon, dtype)
    places = [(a.x, a.x_step), (a.out, a.out_step), (a.scale, a.scale_step), (a.shift, a.shift_step)]
    streams = streams_of(k, places, [dtype] * 4, "vvvv", lanes)
    moments = Moments(k, streams, segments * length, lanes)
    first, last = k.tasks()
    with k.loop(first * a.each, k.smaller(last * a.each, a.rows)) as row:
        starts = [a.x + row * a.x_row, a.out + row * a.out_row]
        mean, inverse = (
            (None, moments.inverse(starts, None, epsilon)) if scales == "root" else moments.of(starts, epsilon)
        )
        if scales == "segment":
            with k.loop(0, segments) as s:
                at = (row % a.groups) * segments + s
                scale, shift = (k.pointer(x, dtype).load(at) for x in (a.scale, a.shift))
                here = [x + s * length * a.x_step for x in starts]
                factor = inverse * scale
                each(k, streams, here, length, lanes, (0,), (1,), normalise(mean, factor, shift))
        else:
            all_starts = [*starts, a.scale, a.shift]
            reads = {"element": (0, 2, 3), "root": (0, 2), "none": (0,)}[scales]
            body = normalise(mean, inverse, None, reads[1:])
            each(k, streams, all_starts, segments * length, lanes, reads, (1,), body)


def normalise(mean: Val | None, factor: Val, shift: Val | None, by_element: tuple[int, ...] = ()) -> Callable:
    """Compute ``out = (x - mean) * factor``, then scale and shift by the elements of the streams `by_element`."""

    def body(load, store, _) -> None:
        y = (load(0) if mean is None else load(0) - mean) * factor
        for number, i in enumerate(by_element):
            y = y + load(i) if number else y * load(i)
        store(1, y if shift is None else y + shift)

    return body


class Moments:
    """Emits mean and variance of a row. Mutable: its slots."""

    def __init__(self, k: Builder, streams: list[RowStream], count: Val, lanes: int) -> None:
        self.k, self.streams, self.count, self.lanes = k, streams, count, lanes
        self.sum = Accumulator(k, "sum", streams[0].dtype)
        self.state = [k.slot(x) for x in self.sum.start(lanes)]
        self.total = [k.slot(x) for x in self.sum.total_start(lanes)]

    def of(self, starts: list[Val], epsilon: Val) -> tuple[Val, Val]:
        """Return the mean, and ``1 / sqrt(variance + epsilon)``."""
        mean = self.summed(starts, lambda x: x) / self.k.cast(self.count, self.streams[0].dtype)
        return mean, self.inverse(starts, mean, epsilon)

    def inverse(self, starts: list[Val], mean: Val | None, epsilon: Val) -> Val:
        """Return ``1 / sqrt(variance + epsilon)`` about a mean; None is a mean of 0."""
        squares = self.summed(starts, lambda x: x * x if mean is None else (x - mean) * (x - mean))
        variance = squares / self.k.cast(self.count, self.streams[0].dtype)
        return 1.0 / self.k.intrinsic("sqrt", variance + epsilon)

    def summed(self, starts: list[Val], f: Callable[[Val], Val]) -> Val:
        put(self.total, self.sum.total_start(self.lanes))
        put(self.state, self.sum.start(self.lanes))

        def flush() -> None:
            put(self.total, self.sum.flush(get(self.total), get(self.state)))
            put(self.state, self.sum.start(self.lanes))

        def body(load, store, outside) -> None:
            term = f(load(0))
            if outside is not None:
                term = self.k.select(outside, self.k.const(0.0, term.dtype, term.lanes), term)
            put(self.state, self.sum.add(get(self.state), term, None))

        each(self.k, self.streams, starts, self.count, self.lanes, (0,), (), body, chain=(CHAIN, flush))
        return self.sum.finish(self.sum.join_lanes(get(self.total)))[0]


def channels(k: Builder, dtype: str, root: bool) -> None:
    """Compute ``out = x * (bias + alpha * sum of squares of the channels c - before .. c + after) ** -beta``

    `root` says that beta is 3/4. `out` is not `x`. Task: one block of positions of one image.
    """
    lanes = k.target.lanes_of(dtype)
    a = k.args()
    alpha, beta, bias = (k.cast(x, dtype) for x in (a.alpha, a.beta, a.bias))
    response = Response(k, dtype, alpha, beta, bias, root)
    with k.task_loop() as task:
        image, start = task // a.blocks, (task % a.blocks) * a.block
        width = k.smaller(start + a.block, a.positions) - start
        x = (k.pointer(a.x, dtype) + start).plus_bytes(image * a.x_image)
        out = (k.pointer(a.out, dtype) + start).plus_bytes(image * a.out_image)
        with k.loop(0, a.channels) as c:
            window = k.larger(c - a.before, 0), k.smaller(c + a.after + 1, a.channels)
            here, there = x.plus_bytes(c * a.x_channel), out.plus_bytes(c * a.out_channel)
            k.tail_loop(
                width,
                lanes,
                lambda at, n, x=x, here=here, there=there, window=window: there.store(
                    response.of(here.load(at, n), x + at, a.x_channel, window), at
                ),
            )


class Response(Record):
    """Emits the response of a vector of positions of one channel."""

    k: Builder
    dtype: str
    alpha: Val
    beta: Val
    bias: Val
    root: bool

    def of(self, value: Val, image: Ptr, step: Val, window: tuple[Val, Val]) -> Val:
        """`image` is the same positions of channel 0, `window` the first channel and the one past the last."""
        k = self.k
        squares = k.slot(k.const(0.0, self.dtype, value.lanes))
        with k.loop(*window) as c:
            near = image.plus_bytes(c * step).load(0, value.lanes)
            squares.value = squares.value + near * near
        base = squares.value * self.alpha + self.bias
        if self.root:
            half = k.intrinsic("sqrt", base)
            return value / (half * k.intrinsic("sqrt", half))
        return value * pow_(k, base, k.val(-self.beta, self.dtype, value.lanes))
