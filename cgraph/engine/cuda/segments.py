"""Runs divided into segments: launches without the host, single calls on the host, and jumps."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from cgraph.engine.cpu.code import Code
from cgraph.kernels.kernel import Callback, Jump
from cgraph.record import Record, replace


class Segment(Record, eq=False):
    """Rows that the device runs without the host, one call on the host, or a jump.

    Fields
        table: of the launches, int64 ``[rows, 5]``
        host: the function to call; None for launches
        words: the positions of its arguments
        rows: for each launch its row in the code's table
        jump: the number of a jump, 0 for anything else
        target: the number of the segment to which it jumps
        repeats: the segment lies in a loop, which changes the arguments of launches
    """

    table: np.ndarray
    host: Callback | None = None
    words: slice = slice(0)
    rows: tuple[int, ...] = ()
    jump: int = 0
    target: int = 0
    repeats: bool = False


def segments(code: Code, rows: np.ndarray, steps: Iterable[int], most: int) -> list[Segment]:
    """Return the segments of these steps in order, each of at most `most` launches."""
    targets = {row: to for _, row, to in code.jumps()}
    result: list[Segment] = []
    waiting: list[int] = []
    for step in steps:
        own = range(int(code.first_row[step]), int(code.first_row[step + 1]))
        if targets.keys().isdisjoint(own):
            waiting += own
            continue
        result += straight_segments(code, rows, waiting, most)
        result += jumping_segments(code, rows, own, targets, len(result), most)
        waiting = []
    return result + straight_segments(code, rows, waiting, most)


def jumping_segments(
    code: Code, rows: np.ndarray, own: range, targets: Mapping[int, int], before: int, most: int
) -> list[Segment]:
    """Return the segments of a step with jumps, which stay inside it; `before` is the number of its first segment."""
    jumps = [row for row in own if row in targets]
    edges = sorted({own.start, own.stop, *(targets[row] for row in jumps), *jumps, *(row + 1 for row in jumps)})
    result: list[Segment] = []
    number_of = {}
    for low, high in pairwise(edges):
        number_of[low] = before + len(result)
        if low in targets:
            number, first, _, _ = code.table[low].tolist()
            jump = code.kernels[number]
            assert isinstance(jump, Jump)
            result.append(Segment(rows[:0], words=slice(first, first + 2), rows=(low,), jump=jump.number))
        else:
            result += [replace(x, repeats=True) for x in straight_segments(code, rows, range(low, high), most)]
    number_of[own.stop] = before + len(result)
    return [replace(x, target=number_of[targets[x.rows[0]]]) if x.jump else x for x in result]


def straight_segments(code: Code, rows: np.ndarray, order: Iterable[int], most: int) -> list[Segment]:
    """Return the segments of rows without jumps."""
    result: list[Segment] = []
    waiting: list[int] = []
    for row in order:
        number, first, tasks, _ = code.table[row].tolist()
        kernel = code.kernels[number]
        if isinstance(kernel, Callback) or len(waiting) >= most:
            result += launch_segments(rows, waiting)
            waiting = []
        if isinstance(kernel, Callback):
            result.append(Segment(rows[:0], kernel, slice(first, first + len(kernel.views))))
        elif tasks:
            waiting.append(row)
    return result + launch_segments(rows, waiting)


def launch_segments(rows: np.ndarray, waiting: Sequence[int]) -> list[Segment]:
    return [Segment(np.ascontiguousarray(rows[waiting]), rows=tuple(waiting))] if waiting else []


def label_of(code: Code, row: int) -> str:
    """Return the label of a row of the code's table."""
    return code.labels[code.label_of[row]]
