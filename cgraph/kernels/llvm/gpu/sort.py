"""Sorting of rows in shared memory, a block of threads for each.

Bitonic sort (Batcher 1968) of items with their places: equal items are told apart by where they came from, so it is
stable. What fills a row up to a power of two comes last. O(n log² n) comparisons. NaN comes last in either direction.
"""

from cgraph.kernels.llvm.gpu.team import offsets
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.signatures.gpu.sort import THREADS


@block(THREADS)
def rows(k: GpuBuilder, dtype: str, index: str, descending: bool, wants_values: bool, size: int, rank: int) -> None:
    a, lane = k.args(), k.thread()
    there = offsets(k, a.axes, rank, 3, k.block())
    values, places, x = (at + o for at, o in zip((a.values, a.places, a.x), there))
    rooms = k.shared(dtype, size), k.shared("i4", size)
    with k.loop(lane, size, THREADS) as i:
        key = k.slot(k.const(0, dtype))
        with k.if_(i < a.n):
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
                rises, n = (low & run.value) == 0, k.cast(a.n, "i4")
                turned, right = (before(k, x, y, n, descending) for x, y in (both[::-1], both))
                with k.if_(k.select(rises, turned, right)):
                    for room, one, other in zip(rooms, *both):
                        room.store(other, low)
                        room.store(one, low + gap.value)
            k.barrier()
            gap.value = gap.value >> 1
        run.value = run.value << 1
    with k.loop(lane, a.most, THREADS) as i:
        if wants_values:
            k.pointer(values + i * a.values_n, dtype).store(rooms[0].load(i))
        if index:
            k.pointer(places + i * a.places_n, index).store(k.cast(rooms[1].load(i), index))


def before(k: GpuBuilder, x: list[Val], y: list[Val], n: Val, descending: bool) -> Val:
    """Key and place `x` come before `y`; no two places are equal, and those from `n` on are nobody's."""
    (key, place), (other, its) = x, y
    real, other_is_real = place < n, its < n
    return (real & ~other_is_real) | (
        (real == other_is_real) & (wins(k, key, other, descending) | (~wins(k, other, key, descending) & (place < its)))
    )


def wins(k: GpuBuilder, x: Val, y: Val, descending: bool) -> Val:
    """The key `x` comes strictly before `y`."""
    less = x > y if descending else x < y
    return less | (k.is_nan(y) & ~k.is_nan(x)) if x.is_float else less
