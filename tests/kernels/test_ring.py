"""The reader of a ring: pieces of a file to their places when they are free; what ends it and how it says so."""

import os
import threading
import time

import numpy as np
import pytest

from cgraph.engine.cpu.threads import aligned_words, native
from cgraph.kernels.control import FAILED, FREED, HALT, READ, STALLED
from cgraph.kernels.ring.emit import ENDED
from tests.support.patience import PATIENCE

BYTES = np.random.default_rng(0).integers(0, 256, 5000).astype("u1")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(BYTES.tobytes())
    number = os.open(path, os.O_RDONLY)
    yield number
    os.close(number)


class Ring:
    """Orders of pieces, and a ring that is larger than all of them. Changes: what is read."""

    def __init__(self, file: int, orders: list[tuple[int, int, int, int, int]]) -> None:
        self.words, self.file = aligned_words(STALLED), file
        self.room = np.full(8000, 7, "u1")
        self.orders = np.array(orders, np.int64).reshape(-1, 5)
        self.orders[:, 2] += self.room.ctypes.data
        self.count = -1

    def read(self) -> int:
        self.count = native().read(self.words.ctypes.data, self.orders.ctypes.data, len(self.orders), self.file)
        return self.count

    def started(self) -> threading.Thread:
        thread = threading.Thread(target=self.read, daemon=True)
        thread.start()
        return thread

    def await_read(self, count: int) -> None:
        end = time.monotonic() + PATIENCE
        while self.words[READ] < count and time.monotonic() < end:
            time.sleep(0.001)
        assert self.words[READ] == count


def test_each_piece_goes_from_its_offset_to_its_place(file):
    ring = Ring(file, [(100, 50, 0, 0, 1), (4000, 1000, 200, 0, 2), (0, 1, 60, 0, 5)])
    assert ring.read() == 3 and ring.words[READ] == 5 and ring.words[FAILED] == 0
    want = np.full(8000, 7, "u1")
    want[:50], want[200:1200], want[60] = BYTES[100:150], BYTES[4000:], BYTES[0]
    np.testing.assert_array_equal(ring.room, want)


def test_no_pieces_and_pieces_of_no_bytes(file):
    assert Ring(file, []).read() == 0
    ring = Ring(file, [(9999, 0, 0, 0, 1)])
    assert ring.read() == 1 and ring.words[READ] == 1 and (ring.room == 7).all()


@pytest.mark.parametrize("offset, nbytes, there", [(4990, 20, 10), (5000, 1, 0), (6000, 5, 0)])
def test_a_file_that_ends_before_a_piece_ends_the_reading(file, offset, nbytes, there):
    ring = Ring(file, [(0, 5, 100, 0, 1), (offset, nbytes, 0, 0, 2), (0, 5, 300, 0, 3)])
    assert ring.read() == 1 and ring.words[READ] == 1 and ring.words[FAILED] == ENDED
    np.testing.assert_array_equal(ring.room[:there], BYTES[offset:][:nbytes])
    assert (ring.room[300:] == 7).all()


def test_the_number_of_an_error_is_that_of_the_system():
    ring = Ring(-1, [(0, 5, 0, 0, 1)])
    assert ring.read() == 0 and ring.words[FAILED] == 9  # EBADF
    assert ring.words[READ] == 0


def test_a_piece_waits_until_as_many_are_freed_as_it_needs(file):
    ring = Ring(file, [(0, 5, 0, 0, 1), (5, 5, 5, 2, 2), (10, 5, 10, 2, 3)])
    thread = ring.started()
    ring.await_read(1)
    ring.words[FREED] = 2
    thread.join(PATIENCE)
    assert ring.count == 3
    np.testing.assert_array_equal(ring.room[:15], BYTES[:15])


@pytest.mark.parametrize("freed", [0, 1])
def test_halt_ends_a_reader_that_waits_for_more_than_are_freed(file, freed):
    ring = Ring(file, [(0, 5, 0, 0, 1), (5, 5, 5, 2, 2)])
    ring.words[FREED] = freed
    thread = ring.started()
    ring.await_read(1)
    native().halt(ring.words.ctypes.data)
    thread.join(PATIENCE)
    assert ring.count == 1 and ring.words[HALT] == 1 and ring.words[READ] == 1 and (ring.room[5:] == 7).all()


def test_halt_before_the_first_piece(file):
    ring = Ring(file, [(0, 5, 0, 0, 1)])
    native().halt(ring.words.ctypes.data)
    assert ring.read() == 0 and (ring.room == 7).all() and ring.words[FAILED] == 0
