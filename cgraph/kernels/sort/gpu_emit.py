"""Sorting of rows in shared memory, one block of threads per row; longer rows in pieces, which are merged.

Bitonic sort (Batcher 1968) of items with their indices; the index breaks ties, so the sort is stable. Padding up to a
power of two comes last. O(n log² n) comparisons. NaN comes last in either direction. Two pieces are merged by looking
up, for each item, how many of the other piece come before it: O(log n) for a thread.
"""

from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.sort.emit import before as ascends
from cgraph.kernels.sort.emit import insertion_point
from cgraph.kernels.sort.gpu_signature import THREADS
from cgraph.kernels.team.gpu_emit import compact, offsets, own_element
from cgraph.kernels.team.gpu_signature import ELEMENTS


@block(THREADS)
def rows(k: GpuBuilder, dtype: str, index: str, descending: bool, wants_values: bool, size: int, rank: int) -> None:
    a, lane = k.args(), k.thread()
    row, piece = k.block_digits(a.pieces)
    first = piece * size
    count, most = (k.smaller(n - first, size) for n in (a.n, a.most))
    steps, there = (a.values_n, a.places_n, a.x_n), offsets(k, a.axes, rank, 3, row)
    values, places, x = (at + o + first * step for at, o, step in zip((a.values, a.places, a.x), there, steps))
    rooms = k.shared(dtype, size), k.shared("i4", size)
    with k.loop(lane, size, THREADS) as i:
        key = k.slot(k.const(0, dtype))
        with k.if_(i < count):
            key.value = k.pointer(x + i * a.x_n, dtype).load()
        for room, item in zip(rooms, (key.value, k.cast(i, "i4"))):
            room.store(item, i)
    k.barrier()
    run = k.slot(2, "i8")
    with k.loop_while() as runs:
        runs.until(run.value > size)
        gap = k.slot(run.value >> 1)
        with k.loop_while() as gaps:
            gaps.until(gap.value == 0)
            with k.loop(lane, size // 2, THREADS) as pair:
                low = pair * 2 - (pair & (gap.value - 1))
                both = [[room.load(i) for room in rooms] for i in (low, low + gap.value)]
                rises, n = (low & run.value) == 0, k.cast(count, "i4")
                turned, right = (before(k, x, y, n, descending) for x, y in (both[::-1], both))
                with k.if_(k.select(rises, turned, right)):
                    for room, one, other in zip(rooms, *both):
                        room.store(other, low)
                        room.store(one, low + gap.value)
            k.barrier()
            gap.value = gap.value >> 1
        run.value = run.value << 1
    with k.loop(lane, most, THREADS) as i:
        if wants_values:
            k.pointer(values + i * a.values_n, dtype).store(rooms[0].load(i))
        if index:
            k.pointer(places + i * a.places_n, index).store(k.cast(rooms[1].load(i) + k.cast(first, "i4"), index))


@block(ELEMENTS)
def merge(k: GpuBuilder, dtype: str, index: str, descending: bool, wants_values: bool, rank: int) -> None:
    """Merge two pieces; of equal items, those of the first piece come first."""
    a = k.args()
    with own_element(k, a, rank, "values", "places") as (at, (values, places)):
        row, i = k.digits(at, a.n)
        keys = a.keys + row * a.n
        low = i - i % (a.width * 2)
        middle, high = k.smaller(low + a.width, a.n), k.smaller(low + a.width * 2, a.n)
        key, is_left = keys.load(i), i < middle
        start = k.select(is_left, middle, low)

        def is_before(j: Val) -> Val:
            other = keys.load(j)
            return wins(k, other, key, descending) | (~is_left & ~wins(k, key, other, descending))

        others = insertion_point(k, start, k.select(is_left, high, middle), is_before) - start
        to = i + others - k.select(is_left, k.const(0, "i8"), middle - low)
        with k.if_(to < a.most):
            if wants_values:
                k.pointer(values + to * a.values_n, dtype).store(key)
            if index:
                number = a.numbers.load(row * a.n + i)
                k.pointer(places + to * a.places_n, index).store(k.cast(number, index))


@block(ELEMENTS)
def search(k: GpuBuilder, dtype: str, right: bool, rank: int) -> None:
    """As `cgraph.kernels.sort.emit.search`."""
    a = k.args()
    with own_element(k, a, rank, "out", "v") as (_, (out, at)):
        v = k.pointer(at, dtype).load()

        def is_before(j: Val) -> Val:
            item = k.pointer(a.row + j * a.row_step, dtype).load()
            return ~ascends(k, v, item) if right else ascends(k, item, v)

        k.pointer(out, "i8").store(insertion_point(k, k.const(0, "i8"), a.n, is_before))


@block(THREADS)
def distinct(k: GpuBuilder, dtype: str) -> None:
    """As `cgraph.kernels.sort.emit.distinct`."""
    a = k.args()

    def is_new(i: Val) -> Val:
        return (i == 0) | ascends(k, a.x.load(k.larger(i - 1, 0)), a.x.load(i))

    def put(i: Val, number: Val) -> None:
        with k.if_(number < a.most):
            a.out.store(a.x.load(i), number)

    count = compact(k, a.n, is_new, put)
    with k.if_(k.thread() == 0):
        a.count.store(count)


def before(k: GpuBuilder, x: list[Val], y: list[Val], n: Val, descending: bool) -> Val:
    """Return True if key and index `x` come before `y`; no two indices are equal, and those from `n` on are padding."""
    (key, place), (other, its) = x, y
    real, other_is_real = place < n, its < n
    return (real & ~other_is_real) | (
        (real == other_is_real) & (wins(k, key, other, descending) | (~wins(k, other, key, descending) & (place < its)))
    )


def wins(k: GpuBuilder, x: Val, y: Val, descending: bool) -> Val:
    """Return True if the key `x` comes strictly before `y`."""
    less = x > y if descending else x < y
    return less | (k.is_nan(y) & ~k.is_nan(x)) if x.is_float else less
