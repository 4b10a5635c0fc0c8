"""Code read from arrays: rows, jumps and relocations that do not fit are refused, each by itself."""

import numpy as np
import pytest

from cgraph.engine.cpu.code import Symbol
from cgraph.errors import FormatError
from cgraph.kernels.control import BEGIN, REPEAT, SKIP
from cgraph.kernels.kernel import Jump, Kernel
from cgraph.saved.layout import JUMP, KINDS
from cgraph.saved.manifest import FileArrays
from cgraph.saved.pieces import Pieces
from cgraph.saved.program import as_tuple, check_rows, kernel_of, relocations_of, tables_of

COUNTS = dict(zip(KINDS, (1, 1, 1, 1, 2, 1, 3)))
SYMBOLS = [[4, 0, 1], [4, 1, 2], [5, 0, 0], [6, 2, 1]]  # two variables, a target and a constant
POSITIONS, OFFSETS = [3, 0, 1, 2], [10, 20, 30, 40]


def arrays(**named: object) -> FileArrays:
    """Named arrays in a file; dots are underscores."""
    pieces = Pieces()
    for name, x in named.items():
        pieces.name(name.replace("_", "."), x, "|u1" if name.endswith("depends") else "<i8")
    return FileArrays(np.frombuffer(b"".join(map(bytes, pieces.parts)), np.uint8), pieces.index)


def test_kernels_have_family_and_nested_params_and_jumps_a_number():
    assert kernel_of("add", [1, ["f4", [2]], "x"]) == Kernel("add", (1, ("f4", (2,)), "x"))
    assert [kernel_of(JUMP, [x]) for x in (BEGIN, REPEAT, SKIP)] == [Jump(BEGIN), Jump(REPEAT), Jump(SKIP)]
    assert as_tuple([]) == ()
    for family, params in ((JUMP, [99]), (JUMP, []), (1, []), ("add", {}), (JUMP, [BEGIN, BEGIN])):
        with pytest.raises(FormatError, match="malformed"):
            kernel_of(family, params)


TABLE = np.array([[0, 0, 0, 1], [1, 4, 0, 2], [1, 5, 3, 1]])


@pytest.mark.parametrize(("table", "first_row", "below", "what"), [
    (TABLE, [0, 2, 3], (1, 6), "rows"), (TABLE, [0, 2, 3], (2, 5), "rows"), (-TABLE, [0, 3], (2, 6), "rows"),
    (TABLE * [1, 1, 1, 0], [0, 3], (2, 6), "rows"), (TABLE, [0, 2], (2, 6), "steps"), (TABLE, [1, 3], (2, 6), "steps"),
    (TABLE, [0, 3, 2, 3], (2, 6), "steps"), (TABLE, [3], (2, 6), "steps"),
])  # fmt: skip
def test_every_row_calls_a_kernel_there_is_and_steps_follow_one_another(table, first_row, below, what):
    check_rows(TABLE, np.array([0, 2, 2, 3]), (2, 6))
    check_rows(TABLE[:0], np.array([0, 0]), (0, 1))
    with pytest.raises(FormatError, match=f"malformed: {what}"):
        check_rows(table, np.array(first_row), below)


def test_relocations_take_their_own_positions_and_offsets():
    found = relocations_of(arrays(symbols=SYMBOLS, positions=POSITIONS, offsets=OFFSETS), COUNTS, 4)
    assert [r.symbol for r in found] == [Symbol(KINDS[kind], number) for kind, number, _ in SYMBOLS]
    assert [r.positions.tolist() for r in found] == [[3], [0, 1], [], [2]]
    assert [r.offsets.tolist() for r in found] == [[10], [20, 30], [], [40]]


@pytest.mark.parametrize("symbols", [
    SYMBOLS[1:], SYMBOLS[:-1], [*SYMBOLS[:3], [6, 3, 1]], [*SYMBOLS[:3], [7, 0, 1]], [*SYMBOLS[:3], [6, -1, 1]],
    [*SYMBOLS[:3], [6, 2, 2]], [*SYMBOLS[:3], [5, 0, 1]], [[4, 0, 4], [4, 0, 0], [5, 0, 0]],
    [[4, 0, 5], [4, 1, -1], [5, 0, 0]],
], ids=str)  # fmt: skip
def test_symbols_that_are_missing_outside_or_repeated_are_refused(symbols):
    with pytest.raises(FormatError, match="malformed: symbols"):
        relocations_of(arrays(symbols=symbols, positions=POSITIONS, offsets=OFFSETS), COUNTS, 4)


def test_positions_lie_below_the_number_of_words():
    with pytest.raises(FormatError, match="malformed: positions"):
        relocations_of(arrays(symbols=SYMBOLS, positions=POSITIONS, offsets=OFFSETS), COUNTS, 3)


AGAIN = {
    "again_segments": [[0, 1], [1, 2], [0, 2]], "again_workspace": [2, -1], "again_kept": [1],
    "again_depends": [[1], [3]], "again_reads_starts": [0, 0, 1], "again_reads_items": [0],
    "again_parts_starts": [0, 0, 0, 0], "again_parts_items": [],
}  # fmt: skip


def test_tables_of_incremental_runs_are_read_by_name():
    tables = tables_of(arrays(**AGAIN))
    assert tables.segments.tolist() == AGAIN["again_segments"] and tables.workspace.tolist() == [2, -1]
    assert tables.lasting.tolist() == [1] and tables.depends.tolist() == [[1], [3]]
    assert tables.reads.tolist() == [[], [0]] and tables.parts.tolist() == [[], [], []]


@pytest.mark.parametrize(("name", "value"), [
    ("again_workspace", [3, -1]), ("again_workspace", [-2, 0]), ("again_kept", [2]), ("again_depends", [[1]]),
    ("again_reads_items", [2]), ("again_reads_starts", [0, 0, 2]), ("again_parts_starts", [0, 0, 0]),
    ("again_segments", [[0, 6], [1, 2], [0, 2]]), ("again_segments", [[0, 1]]),
])  # fmt: skip
def test_tables_that_do_not_fit_one_another_are_refused(name, value):
    with pytest.raises(FormatError, match="malformed"):
        tables_of(arrays(**AGAIN | {name: value}))
