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

Chain = tuple[int, Callable[[], None]]  # a number of vectors, and what to emit after so many of them and after the last


def each(
    k: Builder,
    streams: list[RowStream],
    starts: list[Val],
    count: Val,
    lanes: int,
    reads: Collection[int],
    writes: Collection[int],
    body: Body,
    chain: Chain | None = None,
) -> None:
    """Emit `body` for `count` columns from the addresses `starts`; it is emitted twice.

    The last vector is read before the first result is written, since an output may be an operand.
    """
    whole = count // lanes * lanes
    rest = count - whole
    with k.if_(rest > 0):
        copy_rest(k, streams, starts, count, lanes, reads, inwards=True)

    def vector(column: Val) -> None:
        body(
            lambda i: load_vector(k, streams[i], starts[i], column, lanes),
            lambda i, value: store_vector(k, streams[i], starts[i], column, value),
            None,
        )

    each_whole(k, whole, lanes, vector, chain)
    with k.if_(rest > 0):
        body(
            lambda i: streams[i].buffer.load(0, lanes),
            lambda i, value: streams[i].buffer.store(value),
            lanes_outside(k, rest, count >= lanes, lanes),
        )
        if chain is not None:
            chain[1]()
        copy_rest(k, streams, starts, count, lanes, writes, inwards=False)


def each_whole(k: Builder, whole: Val, lanes: int, vector: Callable[[Val], None], chain: Chain | None) -> None:
    """Emit `vector` for the whole vectors of a row, in chains if there is one."""
    if chain is None:
        with k.loop(0, whole, lanes) as column:
            vector(column)
        return
    step = chain[0] * lanes
    with k.loop(0, whole, step) as first:
        with k.loop(first, k.smaller(first + step, whole), lanes) as column:
            vector(column)
        chain[1]()


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


def copy_rest(
    k: Builder,
    streams: list[RowStream],
    starts: list[Val],
    count: Val,
    lanes: int,
    indices: Collection[int],
    inwards: bool,
) -> None:
    """Copy the last vector of a row, or all columns of a short one, into the buffers, or out of them."""
    with k.if_else(count >= lanes) as (then, otherwise):
        with then:
            last = count - lanes
            for i in indices:
                s = streams[i]
                if inwards:
                    s.buffer.store(load_vector(k, s, starts[i], last, lanes))
                else:
                    store_vector(k, s, starts[i], last, s.buffer.load(0, lanes))
        with otherwise:
            move(k, streams, starts, count, indices, inwards)


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
