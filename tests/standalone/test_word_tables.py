"""Tables of arguments: equal words of all calls are constants, other ones are narrow where all fit."""

import numpy as np

import cgraph as cg
from cgraph.kernels.kernel import Kernel
from cgraph.standalone.program import Address, ExportRow, Moving
from cgraph.standalone.word_tables import is_short, stored_words, word_table, word_tables
from tests.support.exports import counter, exported

COPY = Kernel("blocked_copy.fill_halo", ("u1", 4))
LIST = Kernel("pointwise.pointwise", ((("load", "f4", 0),), (0,), "v", "v", 1, False))


def rows_of(*tables) -> list[ExportRow]:
    return [ExportRow(0, tuple(words), 1, 1, 0, False) for words in tables]


def words(count: int, **changes) -> list:
    """Return words that count from 0, changed by number: ``w3=...``."""
    values: list = list(range(count))
    for name, word in changes.items():
        values[int(name[1:])] = word
    return values


def test_equal_integers_are_constants_and_addresses_are_not():
    n = 13
    arena = Address("arena", 64)
    rows = rows_of(words(n, w2=arena, w4=7), words(n, w2=arena, w4=8))
    table = word_table(COPY, rows, 32)
    assert table.constants == {i: i for i in range(n) if i not in (2, 4)}
    assert table.places == {2: 0, 4: 4} and table.width == 4
    assert stored_words(rows[1], table) == [(0, arena), (4, 8)]
    wide = word_table(COPY, rows, 64)
    assert wide.places == {2: 0, 4: 8} and wide.width == 8


def test_words_are_wide_where_an_integer_needs_it():
    for word, width in ((2**31 - 1, 4), (2**31, 8), (-(2**31), 4), (-(2**31) - 1, 8)):
        assert word_table(COPY, rows_of(words(13), words(13, w3=word)), 32).width == width
        assert is_short(word) == (width == 4)
    assert is_short(Moving(Address("arena", 0), 1, 1 << 40))


def test_a_kernel_without_calls_has_no_form_and_words_of_64_bits():
    assert word_table(COPY, [], 32) is None
    (row,) = rows_of([5, Address("in:x", 0)])
    assert stored_words(row, None) == [(0, 5), (8, Address("in:x", 0))]


def test_words_of_lists_that_a_kernel_indexes_are_all_stored():
    """A pointwise kernel has six numbers, two words for each array, and axes, whose number differs between calls."""
    arena, count = Address("arena", 64), 6 + 2 * 2
    first, second = words(count, w6=arena), words(count, w6=arena, w1=50)
    rows = rows_of([*first, 1, 2, 3], [*second, 1, 2, 3, 4, 5, 6])
    table = word_table(LIST, rows, 32)
    assert set(table.places) == {1, 6} and table.width == 4
    assert stored_words(rows[0], table) == [(0, 1), (4, arena), (8, 1), (12, 2), (16, 3)]
    assert [place for place, _ in stored_words(rows[1], table)] == list(range(0, 32, 4))
    assert word_table(LIST, rows_of([*first, 1, 2, 1 << 31]), 32).width == 8


def test_programs_of_several_sizes_share_constants_that_are_equal_in_all():
    rng = np.random.default_rng(0)
    filters = cg.Const(rng.random((4, 4, 3, 3), np.float32))

    def program(rows):
        x = cg.Var((1, 4, rows, 6), "float32", "x")
        return exported([cg.conv2d(x, filters, pad=1)], [x], machine="cortex-m55", names=["y"])

    small, large = program(5), program(9)
    assert small.kernels == large.kernels
    for alone, both in zip(word_tables([small], 32), word_tables([small, large], 32), strict=True):
        assert (alone is None) == (both is None)
        assert both is None or set(both.constants.items()) <= set(alone.constants.items())
    assert any(x is not None and x.constants for x in word_tables([small], 32))


def test_every_kernel_has_a_form():
    program = counter()
    assert len(word_tables([program], 32)) == len(program.kernels)
