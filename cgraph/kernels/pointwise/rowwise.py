"""A loop over all elements of a row, a vector at a time; the last elements go through buffers on the stack."""

from collections.abc import Callable, Collection

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.pointwise.emit import RowStream, load_vector
from cgraph.kernels.walk.emit import store_strided

# load stream i; store to stream i; lanes that lie past the end of the row (None: none do)
Body = Callable[[Callable[[int], Val], Callable[[int, Val], None], Val | None], None]


def each(
    k: Builder,
    streams: list[RowStream],
    starts: list[Val],
    count: Val,
    lanes: int,
    reads: Collection[int],
    writes: Collection[int],
    body: Body,
) -> None:
    """Emit `body` for `count` columns from the addresses `starts`; it is emitted twice."""
    whole = count // lanes * lanes
    with k.loop(0, whole, lanes) as column:

        def load(i: int) -> Val:
            return load_vector(k, streams[i], starts[i], column, lanes)

        def store(i: int, value: Val) -> None:
            s = streams[i]
            if s.access == "v":
                (k.pointer(starts[i], s.dtype) + column).store(value)
            else:
                store_strided(k, k.pointer(starts[i] + column * s.stride, s.dtype), s.stride, value)

        body(load, store, None)
    rest = count - whole
    with k.if_(rest > 0):
        move(k, streams, starts, whole, rest, reads, inwards=True)
        outside = k.iota("i8", lanes) >= rest
        body(lambda i: streams[i].buffer.load(0, lanes), lambda i, v: streams[i].buffer.store(v), outside)
        move(k, streams, starts, whole, rest, writes, inwards=False)


def move(
    k: Builder,
    streams: list[RowStream],
    starts: list[Val],
    whole: Val,
    rest: Val,
    indices: Collection[int],
    inwards: bool,
) -> None:
    """Copy the last columns into the buffers, or out of them."""
    for i in indices:
        s = streams[i]
        with k.loop(0, rest) as j:
            outside, inside = k.pointer(starts[i] + (whole + j) * s.stride, s.dtype), s.buffer + j
            if inwards:
                inside.store(outside.load())
            else:
                outside.store(inside.load())
