"""Totals of several rows at once: the lanes of each row's vector are combined to one, in the order of one row alone."""

from collections.abc import Callable, Sequence

from cgraph.kernels.llvm.accumulate import State
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.flow import shuffle, total
from cgraph.kernels.llvm.values import Val


def totals(k: Builder, rows: Sequence[Val]) -> list[Val]:
    """Return the bits of `total` of each vector, for a power of two of them."""
    if len(rows) > rows[0].lanes:
        return [total(k, x) for x in rows]
    (sums,), places = join_rows(k, [[x] for x in rows], lambda x, y: [x[0] + y[0]])
    return [k.lane(sums, i) for i in places]


def join_rows(k: Builder, rows: Sequence[State], join: Callable[[State, State], State]) -> tuple[State, list[int]]:
    """Combine the lanes of each row pairwise, upper half with lower half, as `Accumulator.join_lanes` does.

    A step serves all rows: halves of two rows make one vector. The number of rows is a power of two, at most that of
    lanes.

    Returns
        a state with one lane per row, and the lane of each row
    """
    parts = [(list(state), [i]) for i, state in enumerate(rows)]
    while len(parts) > 1:
        parts = [join_parts(k, x, y, join) for x, y in zip(parts[::2], parts[1::2])]
    state, order = parts[0]
    while state[0].lanes > len(order):
        state = join_halves(k, state, state, range(len(order)), state[0].lanes // len(order), join)
    return state, [order.index(i) for i in range(len(rows))]


def join_parts(
    k: Builder, x: tuple[State, list[int]], y: tuple[State, list[int]], join: Callable[[State, State], State]
) -> tuple[State, list[int]]:
    """Return two vectors of some rows each as one of all rows, with half as many lanes for each row."""
    count, lanes = len(x[1]), x[0][0].lanes
    rows = [i for pair in zip(range(count), range(count, 2 * count)) for i in pair]
    state = join_halves(k, x[0], y[0], rows, lanes // count, join)
    return state, [(x[1] + y[1])[i] for i in rows]


def join_halves(
    k: Builder, x: State, y: State, rows: Sequence[int], width: int, join: Callable[[State, State], State]
) -> State:
    """Return the lower halves of rows of `width` lanes, which are `x` followed by `y`, combined with the upper ones."""
    low = [i * width + j for i in rows for j in range(width // 2)]
    high = [i + width // 2 for i in low]
    return join(*([shuffle(k, a, b, places) for a, b in zip(x, y)] for places in (low, high)))
