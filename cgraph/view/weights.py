"""Waits for streamed weights: predicted from times of rows and reads, and measured piece by piece.

Each piece is read separately and each step is run separately; these times predict the waits of a reader and kernels
that overlap (`cgraph.engine.cpu.ring_timing`). Then whole runs are made one after the other, and the shortest counts.
No update edge is written. Weights that were read are not in the system's cache, so every run reads the disk.
"""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from cgraph.engine.cpu.code import Code, Piece
from cgraph.engine.cpu.ring_timing import waits_of
from cgraph.engine.cpu.streamed_weights import StreamedInstance
from cgraph.function import Function
from cgraph.view.figures import PieceRow, WeightFigures


def weights_of(function: Function) -> WeightFigures | None:
    """Return the ring of a Function and the pieces that go through it, without times; None if nothing is read."""
    ring = getattr(function.program.code, "ring", None)
    if ring is None or not ring.pieces:
        return None
    rows = tuple(piece_row(function.program.code, piece) for piece in ring.pieces)
    return WeightFigures(ring.path, ring.nbytes, rows)


def time_weights(
    function: Function, args: tuple, named: Mapping[str, Any], steps: Sequence[float], repeats: int
) -> WeightFigures | None:
    """Return the same with times, for these inputs.

    Parameters
        steps: seconds of each step
        repeats: whole runs, after an uncounted one
    """
    weights, code = weights_of(function), function.program.code
    if weights is None:
        return None
    with function.instance_for(args, named) as instance:
        assert isinstance(instance, StreamedInstance)
        reads = [read_seconds(instance, piece) for piece in code.ring.pieces]
        runs = [time_run(instance) for _ in range(repeats + 1)]
    seconds, measured = min(runs[1:], key=lambda run: run[0])
    predicted, whole = waits_of(instance.whole, row_seconds(code, steps), reads)
    rows = [
        PieceRow(row.name, row.nbytes, read, float(wait), float(waited))
        for row, read, wait, waited in zip(weights.pieces, reads, predicted, measured, strict=True)
    ]
    return WeightFigures(weights.path, weights.ring, tuple(rows), sum(steps), whole, seconds)


def piece_row(code: Code, piece: Piece) -> PieceRow:
    """Return a piece and the step that reads it first."""
    return PieceRow(code.labels[code.label_of[piece.first]], piece.nbytes)


def row_seconds(code: Code, steps: Sequence[float]) -> np.ndarray:
    """Return seconds of each row: those of its step, in proportion to its tasks; none if update edges are written."""
    tasks, per_row = code.table[:, 2], np.zeros(len(code.table))
    for t, seconds in enumerate(steps):
        rows = slice(int(code.first_row[t]), int(code.first_row[t + 1]))
        per_row[rows] = seconds * tasks[rows] / max(int(tasks[rows].sum()), 1)
    return per_row


def read_seconds(instance: StreamedInstance, piece: Piece) -> float:
    """Return seconds of reading a piece while nothing else runs."""
    start = perf_counter()
    instance.reader.read_alone(piece.offset, piece.nbytes)
    return perf_counter() - start


def time_run(instance: StreamedInstance) -> tuple[float, np.ndarray]:
    """Return seconds of a whole run, and its wait for each piece."""
    before, start = instance.reader.waits, perf_counter()
    instance.run(write=False)
    return perf_counter() - start, instance.reader.waits - before
