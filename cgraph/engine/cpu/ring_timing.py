"""A model of how long a run waits for each piece of its weights, from the times of its rows and reads."""

from collections.abc import Sequence

import numpy as np

from cgraph.engine.cpu.ring import ControlledTable
from cgraph.kernels.control import PASSED, WAIT
from cgraph.memory.pipeline_model import Act, Busy, Tell, Wait, ends_of

READ, FREED = "read", "freed"


def waits_of(rows: ControlledTable, kernels: np.ndarray, reads: Sequence[float]) -> tuple[np.ndarray, float]:
    """Return the seconds that a run waits for each piece, in the order of reading, and its total seconds.

    The model assumes that nothing has been read ahead, as when runs follow one another without a pause.

    Parameters
        rows: with the control rows
        kernels: seconds of each row of the code
        reads: seconds of reading each piece
    """
    script = row_acts(rows, kernels.tolist())
    ends = ends_of([read_acts(rows, reads), script])[1]
    waits = np.zeros(len(rows.orders))
    for act, before, end in zip(script, [0.0, *ends], ends):
        if isinstance(act, Wait):
            waits[act.count - 1] += end - before
    return waits, ends[-1] if ends else 0.0


def read_acts(rows: ControlledTable, seconds: Sequence[float]) -> list[Act]:
    """Return the reader's acts: wait until the ring has space, read, signal."""
    acts: list[Act] = []
    for (_, _, _, freed, number), time in zip(rows.orders.tolist(), seconds, strict=True):
        acts += [Wait(FREED, freed), Busy(time), Tell(READ, number)]
    return acts


def row_acts(rows: ControlledTable, seconds: Sequence[float]) -> list[Act]:
    """Return the interpreter's acts for the rows."""
    acts: list[Act] = []
    for kind, number, count in zip(rows.table[:, 0].tolist(), rows.numbers.tolist(), rows.table[:, 2].tolist()):
        if kind == WAIT:
            acts.append(Wait(READ, count))
        elif kind == PASSED:
            acts.append(Tell(FREED, count))
        else:
            acts.append(Busy(seconds[number]))
    return acts
