"""Words of calls that fail on a GPU: which row of the table is named."""

from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.engine.cuda import program
from cgraph.engine.cuda.program import STOP_SYMBOL, Stops

TABLE = np.array([[0, 0], [0, 4], [0, 9], [0, 12]])  # where the arguments of each row begin


@pytest.mark.parametrize("positions", [[0], [3], [4], [8], [9, 11], [12], [2, 4, 9, 20], [0, 1, 4, 12]])
def test_each_word_belongs_to_the_row_whose_arguments_hold_its_address(monkeypatch, positions):
    words = {}
    queue = SimpleNamespace(
        fill=lambda address, nbytes, value: words.clear(),
        wait=lambda: None,
        download=lambda address, into: into.__setitem__(slice(None), [words.get(8 * i, 0) for i in range(len(into))]),
    )
    monkeypatch.setattr(program, "Allocation", lambda *args, **options: SimpleNamespace(address=1 << 20))
    code = SimpleNamespace(
        relocations=[SimpleNamespace(symbol=STOP_SYMBOL, positions=np.array(positions))], table=TABLE
    )
    args = np.zeros(24, np.int64)
    stops = Stops(code, None, args, queue)
    rows = [max(r for r in range(len(TABLE)) if TABLE[r, 1] <= p) for p in positions]
    assert stops.rows.tolist() == sorted(set(rows)) and stops.first() is None
    for position, row in zip(positions, rows):
        words[args[position] - (1 << 20)] = 7
        assert stops.first() == (row, 7) and stops.first() is None
