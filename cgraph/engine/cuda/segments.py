"""Runs divided into segments: launches without the host, and single calls on the host."""

from collections.abc import Iterator, Sequence

import numpy as np

from cgraph.engine.cpu.code import Code
from cgraph.kernels.kernel import Callback
from cgraph.record import Record


class Segment(Record, eq=False):
    """Rows that the device runs without the host, or one call on the host.

    Fields
        table: of the launches, int64 ``[rows, 5]``
        host: the function to call; None for launches
        words: the positions of its arguments
        rows: for each launch its row in the code's table
    """

    table: np.ndarray
    host: Callback | None = None
    words: slice = slice(0)
    rows: tuple[int, ...] = ()


def segments(code: Code, rows: np.ndarray, steps: Sequence[int], most: int) -> Iterator[Segment]:
    """Yield the segments of these steps in order, each of at most `most` launches."""
    waiting: list[int] = []  # rows
    for row in (r for s in steps for r in range(code.first_row[s], code.first_row[s + 1])):
        number, first, tasks, _ = code.table[row].tolist()
        kernel = code.kernels[number]
        if isinstance(kernel, Callback) or len(waiting) >= most:
            yield from launch_segments(rows, waiting)
            waiting = []
        if isinstance(kernel, Callback):
            yield Segment(rows[:0], kernel, slice(first, first + len(kernel.views)))
        elif tasks:
            waiting.append(row)
    yield from launch_segments(rows, waiting)


def launch_segments(rows: np.ndarray, waiting: Sequence[int]) -> Iterator[Segment]:
    if waiting:
        yield Segment(np.ascontiguousarray(rows[waiting]), rows=tuple(waiting))


def label_of(code: Code, row: int) -> str:
    """Return the label of a row of the code's table."""
    return code.labels[code.label_of[row]]
