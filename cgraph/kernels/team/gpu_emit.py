"""Threads of a block that compute one result together, and offsets of elements.

The threads of a team are neighbours, at neighbouring elements of the reduced axes. If those lie far apart in memory,
neighbours belong to different teams instead, at neighbouring results. Their parts are combined pairwise in shared
memory, always in the same order.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from cgraph.kernels.llvm.accumulate import Accumulator, State, get, put
from cgraph.kernels.llvm.gpu_build import GpuBuilder
from cgraph.kernels.llvm.values import MutableValue, Ptr, Val
from cgraph.kernels.team.gpu_signature import THREADS
from cgraph.kernels.views.layout import CHAIN


class BlockTeam:
    """The position of a thread in its team.

    Fields
        size: threads of a team
        lane: of the thread in its team; number: of the team in the block
    """

    def __init__(self, k: GpuBuilder, size: int, across: bool = False) -> None:
        self.k, self.size, self.teams = k, size, THREADS // size
        thread = k.thread()
        self.lane, self.number = (
            (thread // self.teams, thread % self.teams) if across else (thread % size, thread // size)
        )
        self.first, self.step = (self.number, self.teams) if across else (self.number * size, 1)

    def joined(self, state: State, join: Callable[[State, State], State]) -> State:
        """Combine the states of all threads of a team, for each of them; all threads of the block call this."""
        k = self.k
        rooms = [k.shared("u1" if x.dtype == "b1" else x.dtype, THREADS).as_dtype(x.dtype) for x in state]
        own = self.first + self.lane * self.step
        for room, x in zip(rooms, state):
            room.store(x, own)
        half = self.size // 2
        while half:
            k.barrier()
            with k.if_(self.lane < half):
                pair = [[room.load(own + other * self.step) for room in rooms] for other in (0, half)]
                for room, x in zip(rooms, join(*pair)):
                    room.store(x, own)
            half //= 2
        k.barrier()
        return [room.load(self.first) for room in rooms]

    def reduced(
        self, reduction: Accumulator, low: Val | int, high: Val, value: Callable[[Val], tuple[Val, Val | None]]
    ) -> State:
        """Return the reduction of ``value(position)``, an element and its index, over ``low .. high``."""
        k = self.k
        state, total = ([k.slot(x) for x in start(0)] for start in (reduction.start, reduction.total_start))
        with k.loop(self.lane + low, high, self.size * CHAIN) as first:
            with k.loop(first, k.smaller(first + self.size * CHAIN, high), self.size) as at:
                put(state, reduction.add(get(state), *value(at)))
            put(total, reduction.flush(get(total), get(state)))
            put(state, reduction.start(0))
        return reduction.finish(self.joined(get(total), reduction.join))


def offsets(k: GpuBuilder, axes: Ptr, rank: int, arrays: int, position: Val) -> list[Val]:
    """Return the byte offset of a flat position (below 2**31) in each array; `axes`: see `cgraph.kernels.walk.emit`."""
    rest, sums = k.cast(position, "u4"), [k.const(0, "i8")] * arrays
    for axis in range(rank):
        entry = axes + axis * (arrays + 1)
        extent = k.cast(entry.load(), "u4")
        digit = k.cast(rest if axis == rank - 1 else rest % extent, "i8")
        rest = rest // extent
        sums = [x + digit * entry.load(1 + i) for i, x in enumerate(sums)]
    return sums


@contextmanager
def own_element(k: GpuBuilder, a: SimpleNamespace, rank: int, *arrays: str) -> Iterator[tuple[Val, list[Val]]]:
    """Yield this thread's position, and its address in each array; skip threads beyond the last position."""
    at = k.task()
    with k.if_(at < a.count):
        yield at, [getattr(a, name) + o for name, o in zip(arrays, offsets(k, a.axes, rank, len(arrays), at))]


def scan_block(k: GpuBuilder, rooms: list[Ptr], prefix: MutableValue, join: Callable[[Val, Val], Val]) -> Val:
    """Replace each thread's `prefix` by the combination of all threads up to it; return that of all.

    A barrier must follow before the next call.
    """
    lane, (now, next_), step = k.thread(), rooms, 1
    while step < THREADS:
        now.store(prefix.value, lane)
        k.barrier()
        with k.if_(lane >= step):
            prefix.value = join(now.load(lane - step), prefix.value)
        now, next_, step = next_, now, 2 * step
    now.store(prefix.value, lane)
    k.barrier()
    return now.load(THREADS - 1)


def compact(k: GpuBuilder, n: Val, is_member: Callable[[Val], Val], put: Callable[[Val, Val], None]) -> Val:
    """Call ``put(i, number)`` for each `i` below `n` that `is_member`, in order; return their number. By one block."""
    lane, rooms, total = k.thread(), [k.shared("i4", THREADS) for _ in range(2)], k.slot(0, "i8")
    with k.loop(0, n, THREADS) as first:
        at = first + lane
        mine = k.slot(0, "i4")
        with k.if_(at < n):
            mine.value = k.cast(is_member(at), "i4")
        prefix = k.slot(mine.value)
        last = scan_block(k, rooms, prefix, lambda x, y: x + y)
        with k.if_(mine.value != 0):
            put(at, total.value + k.cast(prefix.value, "i8") - 1)
        total.value = total.value + k.cast(last, "i8")
        k.barrier()
    return total.value
