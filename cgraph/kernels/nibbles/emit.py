"""Products of floats with a matrix of 4-bit numbers, which are widened in registers.

A byte has two neighbours along k. Even and odd elements of the left side are stored apart, so that one vector of bytes
meets one vector of each. A sum runs over k in order, whatever the task.
"""

from types import SimpleNamespace

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import fold, total
from cgraph.kernels.llvm.values import Ptr, Val


@final
def tile(k: Builder, rows: int, columns: int, block: int, lanes: int) -> None:
    """``out[i, j] = sum over k of x[i, k] * (y[j, k] - zeros[j, b]) * scales[j, b]``, where block b contains k.

    Task: `columns` columns; the last ones end with the matrix and are computed twice.
    """
    a = k.args()
    with k.task_loop() as task, k.loop(0, a.m, rows) as row:
        inside = [k.smaller(row + i, a.m - 1) for i in range(rows)]
        column_indices = [k.smaller(task * columns + j, a.n - 1) for j in range(columns)]
        sums = column_sums(k, a, inside, column_indices, block, lanes)
        for n, place in enumerate((i, j) for j in column_indices for i in inside):
            (a.out + (place[0] * a.n + place[1])).store(total(k, sums[n]))


def column_sums(
    k: Builder, a: SimpleNamespace, rows: list[Val], columns: list[Val], block: int, lanes: int
) -> list[Val]:
    """Return vectors whose sum is each row's product with each column, column by column."""
    half = block // 2
    lefts = [a.x + row * a.x_row for row in rows]
    rights = [a.y + column * (a.blocks * half) for column in columns]
    nothing = k.const(0, "f4", lanes)
    with fold(k, 0, a.blocks, [nothing] * (len(rows) * len(columns))) as s:
        sums = iter(s.values)
        s.next = []
        for column, y in zip(columns, rights):
            at = column * a.blocks + s.i
            zero, scale = (k.splat(k.cast(x.load(at), "f4"), lanes) for x in (a.zeros, a.scales))
            parts = block_sums(k, [x + s.i * half for x in lefts], y + s.i * half, zero, a.half, half // lanes)
            s.next += [k.fma(part, scale, next(sums)) for part in parts]
    return s.values


def block_sums(k: Builder, lefts: list[Ptr], y: Ptr, zero: Val, half: Val, vectors: int) -> list[Val]:
    """Return each row's products with one block of a column, before scaling."""
    lanes = zero.lanes
    parts = [k.const(0, "f4", lanes)] * len(lefts)
    for u in range(vectors):
        for offset, numbers in zip((0, half), widen(k, y + u * lanes, zero)):
            at = [(x + offset + u * lanes).load(lanes=lanes) for x in lefts]
            parts = [k.fma(x, numbers, part) for x, part in zip(at, parts)]
    return parts


def widen(k: Builder, y: Ptr, zero: Val) -> tuple[Val, Val]:
    """Return the even and the odd numbers of a vector of bytes, minus their zero point."""
    pairs = k.cast(y.load(lanes=zero.lanes), "i4")
    return k.cast(pairs & 15, "f4") - zero, k.cast(pairs >> 4, "f4") - zero


@final
def floats(k: Builder, block: int, lanes: int) -> None:
    """``(y - zero) * scale``. Task: one column."""
    a = k.args()
    half = block // 2
    with k.task_loop() as column, k.loop(0, a.blocks) as i:
        at = column * a.blocks + i
        zero, scale = (k.splat(k.cast(x.load(at), "f4"), lanes) for x in (a.zeros, a.scales))
        even = a.out + (column * a.blocks * block + i * half)
        for u in range(0, half, lanes):
            for side, numbers in zip((even, even + a.blocks * half), widen(k, a.y + (at * half + u), zero)):
                (side + u).store(numbers * scale)
