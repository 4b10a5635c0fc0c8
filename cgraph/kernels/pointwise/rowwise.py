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
    *,
    chain: tuple[int, Callable[[], None]] | None = None,
) -> None:
    """Emit `body` for `count` columns from the addresses `starts`; it is emitted twice.

    The last vector is read before the first result is written, since an output may be an operand.

    Parameters
        chain: a number of vectors, and what to emit after so many of them and after the last
    """
    whole = count // lanes * lanes
    rest, is_long = count - whole, count >= lanes
    with k.if_(rest > 0):
        move_last(k, streams, starts, (count, rest), lanes, reads, inwards=True)
    step, flush = (chain[0] * lanes, chain[1]) if chain else (1 << 40, None)
    with k.loop(0, whole, step) as first:
        with k.loop(first, k.smaller(first + step, whole), lanes) as column:
            body(
                lambda i: load_vector(k, streams[i], starts[i], column, lanes),
                lambda i, value: store_vector(k, streams[i], starts[i], column, value),
                None,
            )
        if flush:
            flush()
    with k.if_(rest > 0):
        body(
            lambda i: streams[i].buffer.load(0, lanes),
            lambda i, value: streams[i].buffer.store(value),
            lanes_outside(k, rest, is_long, lanes),
        )
        if flush:
            flush()
        move_last(k, streams, starts, (count, rest), lanes, writes, inwards=False)


def move_last(
    k: Builder,
    streams: list[RowStream],
    starts: list[Val],
    counts: tuple[Val, Val],
    lanes: int,
    indices: Collection[int],
    inwards: bool,
) -> None:
    """Copy the last vector of a row of ``counts[0]`` columns into the buffers, or out of them; of a row shorter than a
    vector, its ``counts[1]`` columns.
    """
    count, rest = counts
    with k.if_else(count >= lanes) as (then, otherwise):
        with then:
            for i in indices:
                s, at = streams[i], starts[i]
                if inwards:
                    s.buffer.store(load_vector(k, s, at, count - lanes, lanes))
                else:
                    store_vector(k, s, at, count - lanes, s.buffer.load(0, lanes))
        with otherwise:
            move(k, streams, starts, rest, indices, inwards)


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
