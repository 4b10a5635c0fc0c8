"""A loop over all elements of a row, a vector at a time.

The last elements are a vector that overlaps its neighbour; those of a row shorter than a vector go through buffers on
the stack.
"""

from collections.abc import Callable, Collection

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.pointwise.emit import RowStream, load_vector
from cgraph.kernels.walk.emit import store_strided

# load stream i; store to stream i; lanes that lie outside the row or in the vector before (None: none do)
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
    chain: tuple[int, Callable[[], None]] | None = None,
) -> None:
    """Emit `body` for `count` columns from the addresses `starts`; it is emitted twice.

    The last vector is read before the first result is written, since an output may be an operand.

    Parameters
        chain: a number of vectors, and what to emit after so many of them and after the last
    """
    whole = count // lanes * lanes
    rest = count - whole
    is_long = count >= lanes
    last = count - lanes
    with k.if_(rest > 0), k.if_else(is_long) as (then, otherwise):
        with then:
            for i in reads:
                streams[i].buffer.store(load_vector(k, streams[i], starts[i], last, lanes))
        with otherwise:
            move(k, streams, starts, rest, reads, inwards=True)

    def vector(column: Val) -> None:
        body(
            lambda i: load_vector(k, streams[i], starts[i], column, lanes),
            lambda i, value: store_vector(k, streams[i], starts[i], column, value),
            None,
        )

    if chain is None:
        with k.loop(0, whole, lanes) as column:
            vector(column)
    else:
        step = chain[0] * lanes
        with k.loop(0, whole, step) as first:
            with k.loop(first, k.smaller(first + step, whole), lanes) as column:
                vector(column)
            chain[1]()
    with k.if_(rest > 0):
        body(
            lambda i: streams[i].buffer.load(0, lanes),
            lambda i, value: streams[i].buffer.store(value),
            lanes_outside(k, rest, is_long, lanes),
        )
        if chain is not None:
            chain[1]()
        with k.if_else(is_long) as (then, otherwise):
            with then:
                for i in writes:
                    store_vector(k, streams[i], starts[i], last, streams[i].buffer.load(0, lanes))
            with otherwise:
                move(k, streams, starts, rest, writes, inwards=False)


def lanes_outside(k: Builder, rest: Val, is_long: Val, lanes: int) -> Val:
    """Return True in the lanes that are not among the `rest` last columns: the first ones of a vector that overlaps
    its neighbour, the last ones of a short row.
    """
    low, high = k.select(is_long, lanes - rest, 0), k.select(is_long, k.val(lanes, "i8"), rest)
    lane = k.iota("i8", lanes)
    return (lane < low) | (lane >= high)


def store_vector(k: Builder, s: RowStream, at: Val, column: Val, value: Val) -> None:
    """Store a vector from `column` on; `at` is the address of column 0."""
    if s.access == "v":
        (k.pointer(at, s.dtype) + column).store(value)
    else:
        store_strided(k, k.pointer(at + column * s.stride, s.dtype), s.stride, value)


def move(
    k: Builder, streams: list[RowStream], starts: list[Val], count: Val, indices: Collection[int], inwards: bool
) -> None:
    """Copy the columns of a short row into the buffers, or out of them."""
    for i in indices:
        s = streams[i]
        with k.loop(0, count) as j:
            outside, inside = k.pointer(starts[i] + j * s.stride, s.dtype), s.buffer + j
            if inwards:
                inside.store(outside.load())
            else:
                outside.store(inside.load())
