"""Strategies once more, as plainly as their sources tell them: lists, loops and comparisons, nothing that saves time.

What the real ones do with sorted tables, heaps and neighbour lists must give the same offsets, to the byte.
"""

from collections.abc import Callable, Iterable
from typing import Any

from cgraph.memory.problem import Problem

Rows = list[tuple[int, int, int]]  # (nbytes, first, last)


def rows_of(problem: Problem) -> Rows:
    """Operands with their sizes rounded up."""
    return [(int(n), int(a), int(b)) for n, a, b in zip(problem.nbytes, problem.first, problem.last)]


def meet(x: tuple[int, int, int], y: tuple[int, int, int]) -> bool:
    return x[1] <= y[2] and y[1] <= x[2]


# -- offsets ----------------------------------------------------------------------------------------------------------


def by_size(rows: Rows) -> list[int]:
    return placed(rows, sorted(range(len(rows)), key=lambda i: (-rows[i][0], rows[i][1], i)))


def in_order(rows: Rows) -> list[int]:
    return placed(rows, sorted(range(len(rows)), key=lambda i: (rows[i][1], i)))


def placed(rows: Rows, order: Iterable[int]) -> list[int]:
    """Each operand in the smallest gap that holds it, the lowest of equals; else on top of all that it meets."""
    offsets, done = [0] * len(rows), []
    for i in order:
        if not rows[i][0]:
            continue
        taken = [(offsets[j], offsets[j] + rows[j][0]) for j in done if meet(rows[i], rows[j])]
        top = max((end for _, end in taken), default=0)
        gaps = []
        for low in {0, *(end for _, end in taken)}:
            high = min((begin for begin, end in taken if end > low), default=None)
            if high is not None and high - low >= rows[i][0]:
                gaps.append((high - low, low))
        offsets[i] = min(gaps)[1] if gaps else top
        done.append(i)
    return offsets


def strip(rows: Rows) -> list[int]:
    """The lowest line of the skyline, the leftmost of equals, takes the longest operand that fits between its walls.

    A line in which nothing fits rises to its lower neighbour and joins it, or both.
    """
    offsets = [0] * len(rows)
    steps = sorted({a for _, a, _ in rows})  # what starts, starts at one of these
    waiting = [i for i in sorted(range(len(rows)), key=lambda i: rows[i][1]) if rows[i][0]]
    lines = [(0, len(steps), 0)]  # columns begin..end and height, from left to right
    while waiting:
        at = min(range(len(lines)), key=lambda k: lines[k][2])
        begin, end, height = lines[at]
        columns = {i: [c for c, s in enumerate(steps) if rows[i][1] <= s <= rows[i][2]] for i in waiting}
        fitting = [i for i in waiting if begin <= columns[i][0] and columns[i][-1] < end]
        if fitting:
            i = max(fitting, key=lambda i: rows[i][2] - rows[i][1])  # the first of equals
            first, last = columns[i][0], columns[i][-1] + 1
            made = [(begin, first, height), (first, last, height + rows[i][0]), (last, end, height)]
            lines[at : at + 1] = [(a, b, h) for a, b, h in made if a < b]
            offsets[i] = height
            waiting.remove(i)
            continue
        beside = [k for k in (at - 1, at + 1) if 0 <= k < len(lines)]
        wall = min(lines[k][2] for k in beside)
        joined = [at, *(k for k in beside if lines[k][2] == wall)]
        lines[min(joined) : max(joined) + 1] = [(lines[min(joined)][0], lines[max(joined)][1], wall)]
    return offsets


# -- blocks -----------------------------------------------------------------------------------------------------------


class Block:
    """Operands one after the other. Changes: operands are added."""

    def __init__(self, number: int) -> None:
        self.number, self.nbytes, self.rows = number, 0, list[tuple[int, int, int]]()

    def add(self, row: tuple[int, int, int]) -> None:
        self.nbytes = max(self.nbytes, row[0])
        self.rows.append(row)

    def is_free(self, row: tuple[int, int, int]) -> bool:
        return not any(meet(row, x) for x in self.rows)

    def idle(self, row: tuple[int, int, int]) -> int:
        """Steps to the nearest operand in it."""
        return min(max(row[1] - x[2], x[1] - row[2]) for x in self.rows)


Choose = Callable[[list[Block], int], Block]


def smallest_that_holds(free: list[Block], nbytes: int) -> Block:
    large = [b for b in free if b.nbytes >= nbytes]
    if large:
        return min(large, key=lambda b: (b.nbytes, b.number))
    return max(free, key=lambda b: (b.nbytes, b.number))


def nearest_in_size(free: list[Block], nbytes: int) -> Block:
    """Of two equally near the larger; of equal ones the first that is large enough, the last that is not."""

    def key(b: Block) -> Any:
        short = b.nbytes < nbytes
        return abs(b.nbytes - nbytes), short, -b.number if short else b.number

    return min(free, key=key)


def blocks_in_order(rows: Rows, choose: Choose) -> list[int]:
    """Operands in running order; a block is opened when none is free."""
    blocks: list[Block] = []
    block_of: dict[int, Block] = {}
    for i in sorted(range(len(rows)), key=lambda i: (rows[i][1], i)):
        if rows[i][0]:
            free = [b for b in blocks if b.is_free(rows[i])]
            block_of[i] = choose(free, rows[i][0]) if free else opened(blocks)
            block_of[i].add(rows[i])
    return offsets_of(rows, blocks, block_of)


def blocks_by_size(rows: Rows) -> list[int]:
    """Largest size first. Of one size, whatever fits a block goes into the closest in time before one is opened."""
    blocks: list[Block] = []
    block_of: dict[int, Block] = {}
    waiting = [i for i in sorted(range(len(rows)), key=lambda i: (-rows[i][0], rows[i][1], i)) if rows[i][0]]
    while waiting:
        alike = [i for i in waiting if rows[i][0] == rows[waiting[0]][0]]
        fitting = [i for i in alike if any(b.is_free(rows[i]) for b in blocks)]
        i = (fitting or alike)[0]
        free = [b for b in blocks if b.is_free(rows[i])]
        block_of[i] = min(free, key=lambda b: (b.idle(rows[i]), b.number)) if free else opened(blocks)
        block_of[i].add(rows[i])
        waiting.remove(i)
    return offsets_of(rows, blocks, block_of)


def opened(blocks: list[Block]) -> Block:
    blocks.append(Block(len(blocks)))
    return blocks[-1]


def offsets_of(rows: Rows, blocks: list[Block], block_of: dict[int, Block]) -> list[int]:
    """Blocks side by side in the order of their opening."""
    begin = [sum(b.nbytes for b in blocks[:k]) for k in range(len(blocks))]
    return [begin[block_of[i].number] if i in block_of else 0 for i in range(len(rows))]
