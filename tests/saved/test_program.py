"""Code read from arrays: rows, jumps and relocations that do not fit are refused, each by itself."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cgraph.engine.cpu import ring
from cgraph.engine.cpu.code import Code, Relocation, Symbol
from cgraph.errors import FormatError
from cgraph.ir.spec import Spec
from cgraph.kernels.control import BEGIN, BETWEEN, FIRST_MOVE, MOVE_WORDS, MOVES, REPEAT, SKIP
from cgraph.kernels.kernel import ARENA, Jump, Kernel
from cgraph.memory.tables import Lists, Tables
from cgraph.saved import program
from cgraph.saved.entry import add_tables
from cgraph.saved.layout import JUMP, KINDS, PAGE
from cgraph.saved.manifest import FileArrays, SavedOutput, SavedVar
from cgraph.saved.pieces import Pieces
from cgraph.saved.program import as_tuple, check_jumps, check_rows, kernel_of, relocations_of, tables_of, views_of

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
    jumps = (BEGIN, REPEAT, SKIP, BETWEEN)
    assert [kernel_of(JUMP, [x]) for x in jumps] == [Jump(x) for x in jumps]
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
    [[4, 0, 5], [4, 1, -1], [5, 0, 0]], [*SYMBOLS[:2], SYMBOLS[3]], [SYMBOLS[0], [5, 0, 2], SYMBOLS[3]],
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


def test_tables_that_were_written_are_read_with_every_number_in_its_place():
    tables = Tables(
        np.array([[0, 1], [1, 2], [0, 2]]), Lists.of([[], [0]]), Lists.of([[], [1], []]), np.array([2, -1]),
        np.array([1]), np.array([[1], [3]], np.uint8),
    )  # fmt: skip
    pieces = Pieces()
    add_tables(tables, pieces)
    again = tables_of(FileArrays(np.frombuffer(b"".join(map(bytes, pieces.parts)), np.uint8), pieces.index))
    for name in ("segments", "workspace", "lasting", "depends", "reads", "parts"):
        assert getattr(again, name).tolist() == getattr(tables, name).tolist(), name


def jumping(number: int, words: int, row: int = 2, far: int = 1, moves: int = 0, offsets: tuple[int, ...] = ()) -> Code:
    """Two steps of three rows, one of which jumps: so far, with so many words as arguments."""
    table, args = np.zeros((6, 4), np.int64), np.zeros(words, np.int64)
    table[:, 3], table[row], table[row + 1 :, 1] = 1, [1, 0, 0, far], words
    args[MOVES : MOVES + 1] = moves
    own = Relocation(Symbol("args"), np.zeros(len(offsets), np.int64), np.array(offsets, np.int64))
    kernels, steps = (Kernel("add"), Jump(number)), (np.array([0, 3, 6]), 0, ("",), np.zeros(6, np.int64))
    return Code(kernels, table, args, (own,), (), (), (), (), {}, 0, *steps)


@pytest.mark.parametrize("row", [2, 5])
@pytest.mark.parametrize(("number", "least"), [(BEGIN, 1), (SKIP, 2), (BETWEEN, 3), (REPEAT, FIRST_MOVE)])
def test_a_jump_has_its_words_in_any_row(number, least, row):
    check_jumps(jumping(number, least, row))
    with pytest.raises(FormatError, match="malformed: loops"):
        check_jumps(jumping(number, least - 1, row))


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_loop_has_the_words_of_each_address_that_moves(moves):
    words = FIRST_MOVE + MOVE_WORDS * moves
    check_jumps(jumping(REPEAT, words, moves=moves))
    for other in (words - 1, words + 1):
        with pytest.raises(FormatError, match="malformed: loops"):
            check_jumps(jumping(REPEAT, other, moves=moves))


@pytest.mark.parametrize(("number", "row", "farthest"), [(SKIP, 2, 1), (SKIP, 3, 3), (REPEAT, 2, 3), (REPEAT, 3, 1)])
def test_a_jump_stays_in_its_step(number, row, farthest):
    """Forward up to the end of the step, back to its first row."""
    check_jumps(jumping(number, FIRST_MOVE, row, farthest))
    with pytest.raises(FormatError, match="malformed: jumps"):
        check_jumps(jumping(number, FIRST_MOVE, row, farthest + 1))


def test_words_of_a_loop_lie_among_the_arguments():
    check_jumps(jumping(SKIP, 2, offsets=(0, 15)))
    for wrong in (-1, 16):
        with pytest.raises(FormatError, match="malformed: loops"):
            check_jumps(jumping(SKIP, 2, offsets=(0, wrong)))


FLOAT = np.dtype("float32")
VARS = tuple(SavedVar(name, Spec(shape, FLOAT), "") for name, shape in (("x", (2, 3)), ("y", (4, 3))))
CONSTANTS = np.zeros(48, np.uint8)


def located(*entries: Any, outputs: int = 1) -> list:
    """The views of outputs ``float32[2, 3]``, beside an arena of 100 bytes."""
    manifest = SimpleNamespace(outputs=[SavedOutput(Spec((2, 3), FLOAT))] * outputs, variables=VARS)
    return views_of(SimpleNamespace(manifest=manifest, entry={"views": [*entries]}, constants=CONSTANTS), 100)


@pytest.mark.parametrize(
    ("kind", "number", "last", "base"),
    [
        ("arena", 0, 76, ARENA),
        ("constant", 0, 24, CONSTANTS),
        ("variable", 0, 0, VARS[0]),
        ("variable", 1, 24, VARS[1]),
    ],
)
def test_an_output_lies_inside_its_memory_to_the_last_byte(kind, number, last, base):
    (view,) = located([kind, number, last, [12, 4]])
    assert view.at.base is base and view.at.offset == last
    assert (view.shape, view.strides, view.dtype) == ((2, 3), (12, 4), "f4")
    with pytest.raises(FormatError, match="outside of its memory"):
        located([kind, number, last + 4, [12, 4]])


@pytest.mark.parametrize("entry", [
    ["arena", 1, 0, [12, 4]], ["constant", 1, 0, [12, 4]], ["variable", 2, 0, [12, 4]], ["variable", -1, 0, [12, 4]],
    ["other", 0, 0, [12, 4]], [["arena"], 0, 0, [12, 4]], ["arena", 0, 0.0, [12, 4]], ["arena", 0, 0, [4]],
    ["arena", 0, 0],
], ids=str)  # fmt: skip
def test_an_output_anywhere_else_is_refused(entry):
    with pytest.raises(FormatError, match="malformed"):
        located(entry)


def test_each_output_has_one_place():
    places = ["arena", 0, 0, [12, 4]], ["variable", 1, 24, [12, 4]]
    assert [view.at.offset for view in located(*places, outputs=2)] == [0, 24]
    for outputs in (1, 3):
        with pytest.raises(FormatError, match="malformed: views"):
            located(*places, outputs=outputs)


@pytest.mark.parametrize("is_verified", [False, True])
def test_a_ring_has_the_pieces_of_its_file_and_sums_of_them_if_constants_were_checked(monkeypatch, is_verified):
    whole = np.arange(3 * PAGE).astype(np.uint8)
    places = [(0, PAGE), (PAGE, 2 * PAGE)]
    arrays = [whole[start : start + nbytes] for start, nbytes in places]
    code = SimpleNamespace(constants=(np.zeros(3), *arrays))
    parts = SimpleNamespace(ring=("w", (1, 2), 4 * PAGE), weights=whole, is_verified=is_verified)
    parts.places = places
    monkeypatch.setattr(ring, "pieces_of", lambda code, place: [place(x) for x in code.constants])
    monkeypatch.setattr(ring, "place_pieces", lambda pieces, nbytes: (*pieces, nbytes))
    monkeypatch.setattr(program, "replace", lambda code, ring: ring)
    read = program.with_ring(code, parts)
    assert (read.path, read.stamp, read.nbytes, read.pieces) == ("w", (1, 2), 4 * PAGE, (None, 0, PAGE, 4 * PAGE))
    assert set(read.sums) == ({0, PAGE} if is_verified else set())
    for (start, _), array in zip(places, arrays):
        assert not is_verified or read.sums[start].fits(array.data)
    parts.ring = None
    assert program.with_ring(code, parts) is code
