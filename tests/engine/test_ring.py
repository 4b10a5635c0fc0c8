"""Weights in a ring: places by hand, what may lie over what, and the rows that wait and release."""

from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.engine.cpu import ring as ring_module
from cgraph.engine.cpu.code import Piece, Symbol
from cgraph.engine.cpu.ring import (
    around,
    jump_spans,
    large_pieces,
    least_ring,
    pieces_of,
    place_pieces,
    placement_in,
    resident_constants,
    ring_of,
    sequential_pieces,
    with_control_rows,
)
from cgraph.errors import BudgetError
from cgraph.kernels.control import PASSED, WAIT
from cgraph.storage.weight_file import PAGE, StreamedWeights


def pieces(*rows: tuple[int, int, int]) -> list[Piece]:
    """Pieces of so many pages, each with the first and the last row that reads it."""
    return [Piece(i, i * 100 * PAGE, n * PAGE, first, last) for i, (n, first, last) in enumerate(rows)]


CHAIN = pieces((2, 0, 0), (1, 1, 1), (2, 2, 2), (1, 3, 3))


def test_pieces_follow_one_another_and_begin_anew_where_one_does_not_fit():
    assert [p.at // PAGE for p in placement_in(CHAIN, 4 * PAGE)] == [0, 2, 0, 2]
    assert [p.at // PAGE for p in placement_in(CHAIN, 6 * PAGE)] == [0, 2, 3, 5]
    assert [p.at // PAGE for p in placement_in(CHAIN, 2 * PAGE)] == [0, 0, 0, 0]
    assert placement_in(CHAIN, PAGE) is None and placement_in([], 0) == ()


def test_pieces_that_are_read_together_do_not_lie_over_one_another():
    together = pieces((2, 0, 1), (2, 1, 2), (2, 2, 3))
    assert placement_in(together, 3 * PAGE) is None and least_ring(together) == 4 * PAGE
    assert [p.at // PAGE for p in placement_in(together, 4 * PAGE)] == [0, 2, 0]
    assert least_ring(CHAIN) == 2 * PAGE and least_ring([]) == 0
    turned = pieces((1, 0, 0), (2, 1, 2), (3, 2, 2))
    assert least_ring(turned) >= 5 * PAGE and placement_in(turned, least_ring(turned)) is not None


def test_a_ring_that_is_too_small_names_the_least():
    assert place_pieces(CHAIN, 2 * PAGE) == placement_in(CHAIN, 2 * PAGE)
    for some in (CHAIN, pieces((2, 0, 1), (2, 1, 2), (2, 2, 3)), pieces((1, 0, 0), (2, 1, 2), (3, 2, 2))):
        least = least_ring(some)
        assert len(place_pieces(some, least)) == len(some)
        with pytest.raises(BudgetError, match=f"it needs {least // 1024} KiB"):
            place_pieces(some, least - PAGE)


def test_a_piece_whose_rows_reach_beyond_the_next_one_stays_in_memory():
    rows = pieces((1, 0, 5), (1, 1, 2), (1, 2, 2), (1, 3, 9))
    assert [p.constant for p in sequential_pieces(rows)] == [1, 2, 3]
    assert sequential_pieces([]) == []


def test_rows_inside_a_loop_count_as_the_whole_loop():
    spans = [(2, 5), (8, 9)]
    assert around(spans, 0, 1) == (0, 1) and around(spans, 3, 4) == (2, 5) and around(spans, 1, 2) == (1, 5)
    assert around(spans, 5, 8) == (2, 9) and around([], 3, 4) == (3, 4)


TABLE = np.array([[10 + i, 0, 1, 1] for i in range(4)], np.int64)


def controlled(numbers: list[int], size: int):
    return with_control_rows(TABLE, np.array(numbers, np.int64), placement_in(CHAIN, size * PAGE), 1000, 5000)


def test_a_row_waits_for_its_piece_and_releases_it_behind_its_last_reader():
    rows = controlled([0, 1, 2, 3], 4)
    assert rows.table[:, 0].tolist() == [
        WAIT, 10, PASSED, WAIT, 11, PASSED, WAIT, 12, PASSED, WAIT, 13, PASSED,
    ]  # fmt: skip
    assert rows.table[rows.table[:, 0] == WAIT].tolist() == [[WAIT, 1000, i, 1] for i in (1, 2, 3, 4)]
    assert rows.table[rows.table[:, 0] == PASSED].tolist() == [[PASSED, 1000, i, 1] for i in (1, 2, 3, 4)]
    assert rows.numbers.tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    assert rows.orders.tolist() == [
        [0, 2 * PAGE, 5000, 0, 1], [100 * PAGE, PAGE, 5000 + 2 * PAGE, 0, 2],
        [200 * PAGE, 2 * PAGE, 5000, 1, 3], [300 * PAGE, PAGE, 5000 + 2 * PAGE, 2, 4],
    ]  # fmt: skip


def test_pieces_whose_rows_do_not_run_are_not_read():
    rows = controlled([1, 3], 2)
    assert rows.table[:, 0].tolist() == [WAIT, 11, PASSED, WAIT, 13, PASSED]
    assert rows.orders[:, [0, 3, 4]].tolist() == [[100 * PAGE, 0, 1], [300 * PAGE, 1, 2]]
    empty = controlled([], 2)
    assert empty.table.shape == (0, 4) and empty.orders.shape == (0, 5) and empty.numbers.size == 0


def test_a_piece_over_several_earlier_ones_waits_for_the_last_of_them():
    some = placement_in(pieces((1, 0, 0), (1, 1, 1), (1, 2, 2), (3, 3, 3)), 4 * PAGE)
    assert [p.at // PAGE for p in some] == [0, 1, 2, 0]
    rows = with_control_rows(TABLE, np.arange(4), some, 1000, 5000)
    assert rows.orders[:, 3].tolist() == [0, 0, 0, 3]


def test_a_piece_that_several_rows_read_is_released_behind_the_last_of_them():
    some = placement_in(pieces((1, 0, 1), (1, 1, 3)), 2 * PAGE)
    rows = with_control_rows(TABLE, np.arange(4), some, 1000, 5000)
    assert rows.table[:, 0].tolist() == [WAIT, 10, WAIT, 11, PASSED, 12, 13, PASSED]
    assert rows.table[[0, 2, 4, 7], 2].tolist() == [1, 2, 1, 2]
    some_rows = with_control_rows(TABLE, np.array([1, 2]), some, 1000, 5000)
    assert some_rows.table[:, 0].tolist() == [WAIT, WAIT, 11, PASSED, 12, PASSED]


@pytest.mark.parametrize(
    ("jumps", "spans"),
    [
        ([], []),
        ([(5, 2)], [(2, 5)]),  # a loop jumps back to its first row
        ([(2, 6)], [(2, 5)]),  # a skip jumps behind its last row
        ([(2, 9), (8, 3)], [(2, 8)]),
        ([(3, 7), (6, 10)], [(3, 9)]),
        ([(3, 7), (7, 10)], [(3, 6), (7, 9)]),
        ([(3, 8), (7, 10)], [(3, 9)]),
        ([(20, 12), (4, 1), (3, 5)], [(1, 4), (12, 20)]),
        ([(1, 20), (3, 5), (9, 6)], [(1, 19)]),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_rows_between_which_rows_jump_are_spans_that_do_not_meet(jumps, spans, turned):
    code = SimpleNamespace(jumps=lambda: [(0, row, to) for row, to in (jumps[::-1] if turned else jumps)])
    assert jump_spans(code) == spans


ARRAYS = [np.zeros(n, "u1") for n in (PAGE, PAGE + 1, 10, 3 * PAGE)]


def code_reading(*rows: list[int], writes: int = 9):
    """Code of ten steps of one row, of which these read the constants."""
    return SimpleNamespace(
        first_row=np.arange(11), first_write=writes, table=np.array([[0, 4 * i, 1, 1] for i in range(10)]),
        constants=(*ARRAYS, "no array"), ring=None, jumps=list,
        relocations=[
            SimpleNamespace(symbol=Symbol("variable", 0), positions=np.array([0])),
            *(SimpleNamespace(symbol=Symbol("constant", i), positions=4 * np.array(x) + i % 4)
              for i, x in enumerate(rows)),
        ],
    )  # fmt: skip


def places(array):
    """Offsets in a file, of all but the third array."""
    return next((100 * i for i, x in enumerate(ARRAYS) if x is array and i != 2), None)


def test_pieces_have_whole_pages_and_the_rows_that_read_their_constant():
    code = code_reading([3, 1, 2], [4, 5], [4], [9], [5])
    expected = [Piece(0, 0, PAGE, 1, 3), Piece(1, 100, 2 * PAGE, 4, 5)]
    assert list(large_pieces(code, places)) == expected == pieces_of(code, places)  # an update edge reads the fourth
    assert list(large_pieces(code_reading([0], [9], writes=10), places))[1].first == 9
    assert not list(large_pieces(code_reading([3, 9]), places)), "a step reads it, and an update edge"
    assert pieces_of(code_reading([1, 8], [2, 3]), places) == [Piece(1, 100, 2 * PAGE, 2, 3)]
    assert pieces_of(code_reading([4, 5], [1, 4]), places) == [Piece(1, 100, 2 * PAGE, 1, 4), Piece(0, 0, PAGE, 4, 5)]


def test_constants_stay_in_memory_unless_a_piece_has_them():
    code = code_reading()
    assert resident_constants(code) == ARRAYS
    assert resident_constants(code, []) == ARRAYS
    assert resident_constants(code, [Piece(1, 0, 0, 0, 0), Piece(3, 0, 0, 0, 0)]) == [ARRAYS[0], ARRAYS[2]]
    code.ring = SimpleNamespace(pieces=(Piece(0, 0, 0, 0, 0),))
    assert resident_constants(code) == ARRAYS[1:]
    assert resident_constants(code, []) == ARRAYS


@pytest.mark.parametrize("verify", [False, True])
def test_a_ring_has_the_file_of_its_weights_and_whole_pages(monkeypatch, verify):
    weights = StreamedWeights("w", ring=5 * PAGE + 1, verify=verify)
    file = SimpleNamespace(weights=weights, path="w-2", stamp=(1, 2), sums={0: "a checksum"})

    def in_file(array):
        return None if places(array) is None else (file, places(array))

    monkeypatch.setattr(ring_module, "place_of", in_file)
    ring = ring_of(code_reading([3], [4], [5]))
    assert (ring.path, ring.stamp, ring.nbytes) == ("w-2", (1, 2), 6 * PAGE)
    assert ring.sums == ({0: "a checksum"} if verify else {})
    assert [(p.constant, p.offset, p.at) for p in ring.pieces] == [(0, 0, 0), (1, 100, PAGE)]
    monkeypatch.setattr(ring_module, "place_of", lambda array: (file, 300) if array is ARRAYS[3] else None)
    assert ring_of(code_reading([3])).pieces == (), "what lies in the file stays in memory"
    monkeypatch.setattr(ring_module, "place_of", lambda array: None)
    assert ring_of(code_reading([3], [4])) is None
