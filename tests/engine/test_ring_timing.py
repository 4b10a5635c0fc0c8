"""The model of waiting for weights: seconds by hand, and the acts of the reader and of the rows."""

import numpy as np
import pytest

from cgraph.engine.cpu.ring_timing import FREED, READ, read_acts, row_acts, waits_of
from cgraph.memory.pipeline_model import Busy, Tell, Wait
from cgraph.record import replace
from tests.engine.test_ring import controlled


def test_a_model_waits_for_a_slow_disk_and_for_space():
    """In a ring of one piece at a time, each is read when the one before is released; rows take a second."""
    rows = controlled([0, 1, 2, 3], 2)
    waits, total = waits_of(rows, np.ones(4), [2.0, 3.0, 4.0, 5.0])
    assert waits.tolist() == [2, 3, 4, 5] and total == 14 + 4
    wide = controlled([0, 1, 2, 3], 6)
    waits, total = waits_of(wide, np.ones(4), [2.0, 1.0, 0.5, 9.0])
    assert waits.tolist() == [2, 0, 0, 12.5 - 5] and total == 13.5
    waits, total = waits_of(controlled([], 2), np.ones(4), [])
    assert waits.size == 0 and total == 0


def test_acts_of_reader_and_rows_stand_in_order():
    rows = controlled([0, 1], 2)
    assert read_acts(rows, [0.5, 0.25]) == [
        Wait(FREED, 0), Busy(0.5), Tell(READ, 1), Wait(FREED, 1), Busy(0.25), Tell(READ, 2),
    ]  # fmt: skip
    assert row_acts(rows, [3.0, 4.0, 0, 0]) == [
        Wait(READ, 1), Busy(3.0), Tell(FREED, 1), Wait(READ, 2), Busy(4.0), Tell(FREED, 2),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="shorter|longer"):
        read_acts(rows, [0.5])


def test_a_piece_that_rows_wait_for_again_has_the_sum_of_the_waits():
    rows = controlled([0, 1], 4)
    twice = replace(rows, table=rows.table.repeat(2, axis=0), numbers=rows.numbers.repeat(2))
    for kernels in ([0.0, 0.0], [1.0, 2.0]):
        waits, _ = waits_of(twice, np.array(kernels), [2.0, 7.0])
        assert waits.tolist() == [2, 7 - 2 * kernels[0]]
