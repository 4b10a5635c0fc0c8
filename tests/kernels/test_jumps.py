"""Rows of a table that jump: rounds, addresses that move from round to round, rows for a byte's value."""

import ctypes

import numpy as np
import pytest

from cgraph.engine.cpu.threads import native, new_cores
from cgraph.kernels.control import BEGIN, FIRST_MOVE, MOVE_WORDS, MOVES, REPEAT, ROUND, ROUNDS, SKIP
from tests.support.kernels import KERNEL

FOREVER = 1 << 62


class Table:
    """A table of rows, run by the interpreter on this thread. Changes: calls of kernels are recorded."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.rows: list[list[int]] = []
        self.alive: list = []

    def call(self, args: np.ndarray) -> None:
        """Add a row that records the first of its arguments."""
        kernel = KERNEL(lambda at, first, last: self.seen.append(ctypes.c_int64.from_address(at).value))
        self.alive += [kernel, args]
        self.rows.append([ctypes.cast(kernel, ctypes.c_void_p).value, args.ctypes.data, 1, 1])

    def jump(self, kind: int, args: np.ndarray, far: int) -> None:
        self.alive.append(args)
        self.rows.append([kind, args.ctypes.data, 0, far])

    def run(self) -> list[int]:
        table, cores, stop = np.array(self.rows, np.int64), new_cores(1), np.zeros(1, np.int64)
        row = native().alone(cores.ctypes.data, table.ctypes.data, 0, len(table), stop.ctypes.data, FOREVER)
        assert row == len(table)
        return self.seen


def number(x):
    return np.array([x, -99], np.int64)


def loop(table, rounds, body, *moves):
    """Rows of a loop; `moves`: where each address lies, its first value, and the bytes of a round."""
    words = np.full(FIRST_MOVE + MOVE_WORDS * len(moves) + 1, -7, np.int64)
    words[ROUNDS], words[MOVES] = rounds, len(moves)
    for i, (at, first, stride) in enumerate(moves):
        words[FIRST_MOVE + i * MOVE_WORDS :][:MOVE_WORDS] = at.ctypes.data, first, stride
        table.alive.append(at)
    start = len(table.rows)
    table.jump(BEGIN, np.array([words.ctypes.data], np.int64), 0)
    body()
    table.jump(REPEAT, words, 0)
    length = len(table.rows) - 1 - start
    table.rows[start][3], table.rows[-1][3] = length + 1, length
    return words


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_a_loop_runs_its_rows_as_often_as_it_has_rounds(rounds):
    table = Table()
    table.call(number(1))
    words = loop(table, rounds, lambda: [table.call(number(i)) for i in (2, 3)])
    table.call(number(4))
    assert table.run() == [1, *[2, 3] * rounds, 4]
    assert words[ROUND] == rounds and words[-1] == -7
    assert table.run()[rounds * 2 + 2 :] == [1, *[2, 3] * rounds, 4]  # a second time from the first round


def test_addresses_move_by_their_own_strides():
    """Two arguments of one kernel and one of another, forwards and backwards; an argument that is not named stays."""
    table, one, other, fixed = Table(), number(0), number(0), number(50)

    def body():
        table.call(one)
        table.call(other)
        table.call(fixed)

    loop(table, 3, body, (one, 100, 8), (other[1:], 7, 7), (other, 300, -16))
    assert table.run() == [100, 300, 50, 108, 284, 50, 116, 268, 50]
    assert other.tolist() == [268, 21]


def test_a_loop_without_rounds_moves_nothing():
    table, one = Table(), number(5)
    loop(table, 0, lambda: table.call(one), (one, 100, 8))
    assert table.run() == [] and one[0] == 5


def test_loops_inside_loops_begin_again():
    """The address of the inner loop's word moves with the outer one: its first value is an argument that moves."""
    table, one = Table(), number(0)
    inner = []
    outer = np.zeros(1, np.int64)

    def rows():
        inner.append(loop(table, 2, lambda: table.call(one), (one, 0, 1)))

    words = loop(table, 3, rows, (outer, 0, 0))
    words[FIRST_MOVE : FIRST_MOVE + MOVE_WORDS] = inner[0][FIRST_MOVE + 1 :].ctypes.data, 10, 10
    assert table.run() == [10, 11, 20, 21, 30, 31]


@pytest.mark.parametrize(
    "byte, value, runs", [(1, 1, True), (0, 1, False), (0, 0, True), (255, 255, True), (255, -1, False)]
)
def test_rows_for_a_bytes_value(byte, value, runs):
    """The byte's neighbours are not read, and it has no sign."""
    table, bytes_ = Table(), np.array([9, byte, 9], "u1")
    table.alive.append(bytes_)
    table.jump(SKIP, np.array([bytes_[1:].ctypes.data, value], np.int64), 3)
    for i in (1, 2, 3):
        table.call(number(i))
    assert table.run() == ([1, 2, 3] if runs else [3])
