"""Normalisation: rows by their own mean and variance, and across channels.

``rows``: a row is `segments` times `length` consecutive elements; mean and variance are taken over all of it (rounding
errors kept, the variance in a second pass about the mean). Scale and shift are one value per element of the row
(layer normalisation), per segment (instance and group normalisation: a segment is a channel), or absent.
``channels``: local response normalisation, vectors holding neighbouring positions of one channel.
"""

from collections.abc import Callable

from cgraph.kernels.llvm.accumulate import Reduction, get, put
from cgraph.kernels.llvm.build import Builder, Ptr, Val
from cgraph.kernels.llvm.pointwise import Stream, streams_of
from cgraph.kernels.llvm.rowwise import each
from cgraph.kernels.llvm.vpow import pow_
from cgraph.record import Record


def rows(k: Builder, dtype: str, scales: str) -> None:
    """Arguments: rows, rows per task, groups, segments, length, bytes from one row to the next (x, out), addresses of
    x, out, scale and shift, epsilon.

    Row r has the segments ``(r % groups) * segments + s`` of the scale; with ``element``, scale and shift are as long
    as a row. `out` may be `x`.
    """
    lanes = 2 * k.target.lanes_of(dtype)
    table = Ptr(k, k.function.args[0], "i8")
    count, step, groups, segments, length, x_step, out_step = (table.load(i) for i in range(7))
    epsilon = k.cast((table + 15).as_dtype("f8").load(), dtype)
    streams = streams_of(k, table + 7, [dtype] * 4, "vvvv", lanes)
    moments = Moments(k, streams, segments * length, lanes)
    first, last = k.tasks()
    with k.loop(first * step, k.smaller(last * step, count)) as row:
        starts = [streams[0].base + row * x_step, streams[1].base + row * out_step]
        mean, inverse = moments.of(starts, epsilon)
        if scales == "segment":
            with k.loop(0, segments) as s:
                at = (row % groups) * segments + s
                scale, shift = (k.pointer(streams[i].base, dtype).load(at) for i in (2, 3))
                here = [a + s * length * streams[0].stride for a in starts]
                factor = inverse * scale
                each(k, streams, here, length, lanes, (0,), (1,), normalised(mean, factor, shift))
        else:
            all_starts = [*starts, streams[2].base, streams[3].base]
            reads = (0, 2, 3) if scales == "element" else (0,)
            body = normalised(mean, inverse, None, scales == "element")
            each(k, streams, all_starts, segments * length, lanes, reads, (1,), body)


def normalised(mean: Val, factor: Val, shift: Val | None, by_element: bool = False) -> Callable:
    """``out = (x - mean) * factor``, then scale and shift."""

    def body(load, store, _) -> None:
        y = (load(0) - mean) * factor
        if by_element:
            y = y * load(2) + load(3)
        store(1, y if shift is None else y + shift)

    return body


class Moments:
    """Emits mean and variance of a row. Changes: its slots."""

    def __init__(self, k: Builder, streams: list[Stream], count: Val, lanes: int) -> None:
        self.k, self.streams, self.count, self.lanes = k, streams, count, lanes
        self.sum = Reduction(k, "sum", streams[0].dtype)
        self.total = [k.slot(x) for x in self.sum.total_start(lanes)]

    def of(self, starts: list[Val], epsilon: Val) -> tuple[Val, Val]:
        """The mean, and ``1 / sqrt(variance + epsilon)``."""
        n = self.k.cast(self.count, self.streams[0].dtype)
        mean = self.summed(starts, lambda x: x) / n
        variance = self.summed(starts, lambda x: (x - mean) * (x - mean)) / n
        return mean, 1.0 / self.k.intrinsic("sqrt", variance + epsilon)

    def summed(self, starts: list[Val], f: Callable[[Val], Val]) -> Val:
        put(self.total, self.sum.total_start(self.lanes))

        def body(load, store, outside) -> None:
            term = f(load(0))
            if outside is not None:
                term = self.k.select(outside, self.k.const(0.0, term.dtype, term.lanes), term)
            put(self.total, self.sum.flush(get(self.total), [term]))

        each(self.k, self.streams, starts, self.count, self.lanes, (0,), (), body)
        return self.sum.finish(self.sum.join_lanes(get(self.total)))[0]


def channels(k: Builder, dtype: str, root: bool) -> None:
    """``out = x * (bias + alpha * sum of squares of the channels c - before .. c + after) ** -beta``

    Arguments: blocks of positions, positions per block, positions, channels, before, after, bytes from one image and
    one channel to the next (x, then out), addresses of x and out, alpha, beta, bias. `root` says that beta is 3/4. A
    task is one block of one image. `out` is not `x`.
    """
    lanes = k.target.lanes_of(dtype)
    table = Ptr(k, k.function.args[0], "i8")
    blocks, block, positions, count, before, after, *steps = (table.load(i) for i in range(10))
    x_base, out_base = table.load(10), table.load(11)
    alpha, beta, bias = (k.cast((table + 12 + i).as_dtype("f8").load(), dtype) for i in range(3))
    response = Response(k, dtype, alpha, beta, bias, root)
    first, last = k.tasks()
    with k.loop(first, last) as task:
        image, start = task // blocks, (task % blocks) * block
        width = k.smaller(start + block, positions) - start
        x = (k.pointer(x_base, dtype) + start).plus_bytes(image * steps[0])
        out = (k.pointer(out_base, dtype) + start).plus_bytes(image * steps[2])
        with k.loop(0, count) as c:
            window = k.larger(c - before, 0), k.smaller(c + after + 1, count)
            here, there = x.plus_bytes(c * steps[1]), out.plus_bytes(c * steps[3])
            k.tail_loop(
                width,
                lanes,
                lambda at, n, x=x, here=here, there=there, window=window: there.store(
                    response.of(here.load(at, n), x + at, steps[1], window), at
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
