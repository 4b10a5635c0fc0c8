"""The native entry of a call: which arrays fit, which addresses are bound, how many rows run."""

import ctypes
from itertools import chain

import numpy as np
import pytest

from cgraph.engine.cpu.threads import native, new_cores
from cgraph.kernels.control import ARRAYS, OTHER_ARRAYS, STOPPED
from cgraph.kernels.interpret.emit import FREE, WAITING
from cgraph.system.array_fields import HEAD, ITEMS, word_of
from tests.support.kernels import KERNEL

PLACES = (((0, 0), (2, 8)), (), ((5, 4),))  # for each array: number among the arguments, offset
USUAL = (np.zeros((2, 3), "f4"), np.zeros((), "i8"), np.zeros((4,), "u1"))


class Entry:
    """Words of a call with arrays like `USUAL`. Changes: the arguments, the stop word, the rows that ran."""

    def __init__(self, rows: int = 3, stop_at: int = -1, arena: np.ndarray | None = None) -> None:
        self.ran: list[int] = []
        self.stop, self.cores, self.args = np.zeros(1, np.int64), new_cores(2), np.full(6, -1)
        self.kernels = [KERNEL(lambda *_, i=i: self.run(i, stop_at)) for i in range(rows)]
        addresses = [ctypes.cast(kernel, ctypes.c_void_p).value for kernel in self.kernels]
        self.table = np.array([[x, 0, 1, 1] for x in addresses], np.int64).reshape(-1, 4)
        start = arena.ctypes.data if arena is not None else 0
        fields = {
            "alone": native().address("alone"),
            "cores": self.cores.ctypes.data,
            "table": self.table.ctypes.data,
            "rows": rows,
            "stop": self.stop.ctypes.data,
            "slice": 1 << 60,
            "args": self.args.ctypes.data,
            "first": start,
            "last": start + (arena.nbytes if arena is not None else 0),
            "count": len(USUAL),
            "kind": id(np.ndarray),
            "head": HEAD,
            "items": ITEMS,
        }
        entries = [[word_of(x.dtype), x.ndim, len(pairs), *x.shape, *chain(*pairs)] for x, pairs in zip(USUAL, PLACES)]
        self.words = np.array([*(fields[name] for name in ARRAYS), *chain(*entries)], np.int64)

    def run(self, i: int, stop_at: int) -> None:
        self.ran.append(i)
        if i == stop_at:
            self.stop[0] = 1

    def __call__(self, arrays: tuple) -> int:
        return native().enter(self.words.ctypes.data, id(arrays))


def test_arrays_that_fit_are_bound_and_all_rows_run():
    entry, arrays = Entry(), tuple(map(np.copy, USUAL))
    entry.stop[0] = 9  # of an earlier run
    assert entry(arrays) == 3 and entry.ran == [0, 1, 2] and entry.stop[0] == 0
    first, _, last = (x.ctypes.data for x in arrays)
    assert entry.args.tolist() == [first, -1, first + 8, -1, -1, last + 4]
    assert entry.cores[FREE] == 2


def test_a_view_is_bound_where_it_begins():
    entry, whole = Entry(), np.zeros((5, 3), "f4")
    assert entry((whole[2:4], USUAL[1], USUAL[2])) == 3
    assert entry.args[0] == whole.ctypes.data + 24


OTHERS = {
    "fewer axes": np.zeros(6, "f4"),
    "more axes": np.zeros((2, 3, 1), "f4"),
    "another size": np.zeros((2, 4), "f4"),
    "another first size": np.zeros((3, 3), "f4"),
    "another dtype": np.zeros((2, 3), "i4"),
    "other bytes": np.zeros((2, 3), ">f4"),
    "columns": np.asfortranarray(np.zeros((2, 3), "f4")),
    "every second": np.zeros((2, 6), "f4")[:, ::2],
    "unaligned": np.zeros(25, "u1")[1:].view("f4").reshape(2, 3),
    "a subclass": np.zeros((2, 3), "f4").view(np.matrix),
    "a list": [[0.0] * 3] * 2,
    "nothing": None,
    "a number": 1,
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_arrays_do_not_fit(name):
    entry = Entry()
    assert entry((OTHERS[name], *USUAL[1:])) == OTHER_ARRAYS and not entry.ran


@pytest.mark.parametrize("arrays", [(), USUAL[:2], (*USUAL, USUAL[0]), USUAL[::-1]])
def test_another_number_of_arrays_does_not_fit(arrays):
    entry = Entry()
    assert entry(arrays) == OTHER_ARRAYS and not entry.ran


@pytest.mark.parametrize(("at", "fits"), [(0, False), (6, False), (30, False), (36, True)])
def test_an_array_in_the_arena_is_refused(at, fits):
    """The arena has 36 elements of the memory; an array behind its last byte is outside."""
    memory = np.zeros(48, "f4")
    entry = Entry(arena=memory[:36])
    assert entry((memory[at : at + 6].reshape(2, 3), *USUAL[1:])) == (3 if fits else OTHER_ARRAYS)


def test_a_run_that_stops_says_after_how_many_rows():
    entry = Entry(stop_at=1)
    assert entry(USUAL) == STOPPED - 2 and entry.ran == [0, 1]


def test_no_row_runs_where_there_are_none_or_a_run_waits_for_a_core():
    entry = Entry(rows=0)
    assert entry(USUAL) == 0 and entry.args[0] == USUAL[0].ctypes.data
    entry = Entry()
    entry.cores[WAITING] = 1
    assert entry(USUAL) == 0 and not entry.ran and entry.args[0] == USUAL[0].ctypes.data
