"""The reader of weights: the file that it opens, what it copies into the ring, errors and their texts, its end."""

import io
import os
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.engine.cpu import reader as reader_module
from cgraph.engine.cpu.code import Ring
from cgraph.engine.cpu.reader import Reader, ReaderThread, check_stamp, difference, unchanged_file
from cgraph.errors import WeightsError
from cgraph.kernels.control import DAMAGED, FAILED, FREED, HALT, READ, STALLED
from cgraph.record import replace
from cgraph.storage.weight_file import Checksum, digest_of
from cgraph.system.file_ownership import stamp_of
from cgraph.system.mapping import new_pages
from tests.support.patience import PATIENCE

PAGE = 4096
CONTENT = np.random.default_rng(0).integers(0, 256, 4 * PAGE, dtype=np.uint8)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "weights"
    CONTENT.tofile(file)
    return file


@pytest.fixture
def until():
    """Wait until a condition holds, however long the thread takes."""

    def wait(holds):
        pause = threading.Event()
        for _ in range(int(PATIENCE / 0.001)):
            if holds():
                return
            pause.wait(0.001)
        raise AssertionError("it never holds")

    return wait


def reader_of(path, poison=None, sums=()):
    """Return a reader of a ring of two pages."""
    ring = Ring(str(path), stamp_of(os.stat(path)), 2 * PAGE, (None, None), dict(sums))
    return Reader(ring, poison)


def orders_of(reader, *offsets):
    """Return orders of a page each, in turn into both pages of the ring, as soon as the page before is released."""
    rows = [(offset, PAGE, reader.address + i % 2 * PAGE, max(i - 1, 0), i + 1) for i, offset in enumerate(offsets)]
    return SimpleNamespace(orders=np.array(rows, np.int64))


def contents(reader):
    return np.frombuffer(reader.memory, np.uint8)


def test_pieces_are_read_in_order_and_wait_for_room(path, until):
    reader = reader_of(path, poison=0xAB)
    assert (contents(reader) == 0xAB).all() and len(contents(reader)) == 2 * PAGE and len(reader.waits) == 2
    reader.begin(orders_of(reader, 2 * PAGE, 0, 3 * PAGE))
    until(lambda: reader.words[READ] == 2)
    np.testing.assert_array_equal(contents(reader)[:PAGE], CONTENT[2 * PAGE : 3 * PAGE])
    np.testing.assert_array_equal(contents(reader)[PAGE:], CONTENT[:PAGE])
    reader.words[FREED] = 1
    until(lambda: reader.words[READ] == 3)
    np.testing.assert_array_equal(contents(reader)[:PAGE], CONTENT[3 * PAGE :])


def test_what_was_ordered_already_is_not_read_again(path, until):
    reader = reader_of(path)
    rows = orders_of(reader, 0)
    reader.order(rows)
    until(lambda: reader.words[READ] == 1)
    number = reader._work.number
    reader.begin(rows)
    assert reader._work.number == number
    reader.begin(rows)  # a second run of the same rows
    assert reader._work.number == number + 1
    until(lambda: reader.words[READ] == 1)


def test_a_piece_that_is_read_alone_lies_at_the_start_and_a_later_run_reads_its_own(path, until):
    reader = reader_of(path)
    rows = orders_of(reader, 0, 3 * PAGE)
    reader.order(rows)
    until(lambda: reader.words[READ] == 2)
    reader.read_alone(PAGE, PAGE)
    np.testing.assert_array_equal(contents(reader)[:PAGE], CONTENT[PAGE : 2 * PAGE])
    np.testing.assert_array_equal(contents(reader)[PAGE:], CONTENT[3 * PAGE :])
    reader.read_alone(2 * PAGE, 2 * PAGE)
    np.testing.assert_array_equal(contents(reader), CONTENT[2 * PAGE :])
    reader.begin(rows)  # not taken for rows whose pieces are there
    until(lambda: reader.words[READ] == 2)
    np.testing.assert_array_equal(contents(reader)[:PAGE], CONTENT[:PAGE])


def test_waits_are_seconds_of_each_piece(path):
    reader = reader_of(path)
    reader.words[STALLED : STALLED + 2] = 1_500_000_000, 2_000
    assert reader.waits.tolist() == [1.5, 2e-6]


def test_a_new_order_resets_the_words(path, until):
    reader = reader_of(path)
    reader.words[[FREED, FAILED, HALT]] = 7
    reader.order(orders_of(reader, PAGE))
    until(lambda: reader.words[READ] == 1)
    assert reader.words[[FREED, FAILED]].tolist() == [0, 0]


def test_a_thread_that_could_not_be_started_is_started_for_the_next_order(path, until, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    reader = reader_of(path)
    rows = orders_of(reader, PAGE)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            reader.begin(rows)
    reader.begin(rows)
    until(lambda: reader.words[READ] == 1)
    np.testing.assert_array_equal(contents(reader)[:PAGE], CONTENT[PAGE : 2 * PAGE])


@pytest.mark.parametrize("broken", [0, 1])
def test_a_damaged_piece_is_not_released(path, until, broken):
    sums = {i * PAGE: Checksum(PAGE, digest_of(memoryview(CONTENT[i * PAGE : (i + 1) * PAGE]))) for i in range(2)}
    sums[broken * PAGE] = Checksum(PAGE, digest_of(memoryview(CONTENT[:PAGE] + 1)))
    reader = reader_of(path, sums=sums)
    reader.begin(orders_of(reader, 0, PAGE))
    until(lambda: reader.words[FAILED] == DAMAGED)
    assert reader.words[READ] == broken
    assert f"piece {broken + 1} of the weights does not match the checksum" in str(reader.problem())


def test_copies_are_compared_only_where_there_is_a_checksum(path):
    reader = reader_of(path, sums={PAGE: Checksum(8, digest_of(memoryview(CONTENT[:8].copy())))})
    reader.check_sum(0, CONTENT[9:20].copy())
    reader.check_sum(PAGE, CONTENT[:8].copy())
    with pytest.raises(WeightsError, match=f"8 bytes at {PAGE} of the weights does not match"):
        reader.check_sum(PAGE, CONTENT[1:9].copy().view("f4"))


def test_problems_name_the_file_the_piece_and_the_reason(path):
    reader = reader_of(path)
    reader.words[READ] = 4
    for number, text in ((-1, "the file has been cut off"), (5, os.strerror(5))):
        reader.words[FAILED] = number
        assert str(reader.problem()).startswith(f"{path}: piece 5 of the weights cannot be read: {text}.")


def test_a_file_that_is_not_the_compiled_one_is_refused_by_what_differs(path):
    stamp = stamp_of(os.stat(path))
    assert difference(stamp, (stamp[0], stamp[1] + 1, *stamp[2:])) == "another file has this name"
    assert difference(stamp, (*stamp[:2], 5, 0, 0)) == f"it had {4 * PAGE} bytes and has 5"
    assert difference(stamp, (*stamp[:4], 0)) == "its modification time has changed"
    reader = reader_of(path)
    reader.check_file()
    os.truncate(path, 9)
    with pytest.raises(WeightsError, match="had 16384 bytes and has 9. Compile or load it again"):
        reader.check_file()
    path.unlink()
    with pytest.raises(WeightsError, match="cannot be read: No such file"):
        reader.check_file()
    with pytest.raises(WeightsError, match="cannot be read: No such file"):
        unchanged_file(reader.ring)


@pytest.mark.parametrize("change", [lambda path: os.truncate(path, 9), lambda path: os.utime(path, (1, 1))])
def test_a_file_that_is_refused_is_closed_at_once(path, monkeypatch, change):
    """While the error is still known."""
    ring, opened = reader_of(path).ring, []
    file_io = SimpleNamespace(FileIO=lambda name: opened.append(io.FileIO(name)) or opened[-1])
    monkeypatch.setattr(reader_module, "io", file_io)
    assert unchanged_file(ring) is opened[0] and not opened[0].closed
    change(path)
    with pytest.raises(WeightsError) as refusal:
        unchanged_file(ring)
    assert opened[1].closed and refusal.value
    opened[0].close()


def test_a_reader_that_nobody_has_closes_its_file_and_ends_its_thread(path, until):
    reader = reader_of(path)
    reader.begin(orders_of(reader, 0))
    thread, file, words = reader._work.thread, reader.file, reader.words
    until(lambda: words[READ] == 1)
    del reader
    thread.join(PATIENCE)
    assert not thread.is_alive() and file.closed
    idle = reader_of(path)
    file = idle.file
    del idle
    assert file.closed


def test_a_file_is_compared_by_its_name_and_by_what_is_open(path, tmp_path):
    other = tmp_path / "other"
    CONTENT.tofile(other)
    ring = reader_of(path).ring
    with open(path, "rb") as own, open(other, "rb") as foreign:
        check_stamp(ring, own)
        for name, file in ((path, foreign), (other, own), (other, foreign)):
            with pytest.raises(WeightsError, match="another file has this name"):
                check_stamp(replace(ring, path=str(name)), file)


def test_a_forked_child_reads_by_a_thread_that_it_starts(path, until, monkeypatch):
    """What the parent's thread has read is ordered again."""
    reader = reader_of(path, poison=0xAB)
    rows = orders_of(reader, PAGE)
    reader.order(rows)
    until(lambda: reader.words[READ] == 1)
    parent, end_of_parent, process = reader._work, reader._close, os.getpid()
    contents(reader)[...] = 0
    monkeypatch.setattr(os, "getpid", lambda: process + 1)
    reader.begin(rows)
    until(lambda: reader.words[READ] == 1)
    np.testing.assert_array_equal(contents(reader)[:PAGE], CONTENT[PAGE : 2 * PAGE])
    assert reader._work.thread not in (None, parent.thread) and reader._work.is_running
    assert not end_of_parent.alive and parent.is_running, "the parent's end is left to the parent"
    reader._close()
    parent.close()
    assert not parent.is_running


def test_an_order_that_was_cancelled_before_its_turn_reads_nothing(path):
    reader = reader_of(path, poison=0xAB)
    work, orders = reader._work, orders_of(reader, PAGE).orders
    work.stop()
    work._read(work.number - 1, orders)
    assert (contents(reader) == 0xAB).all() and reader.words[READ] == 0
    work._read(work.number, orders)
    np.testing.assert_array_equal(contents(reader)[:PAGE], CONTENT[PAGE : 2 * PAGE])


def test_a_thread_that_is_ended_by_itself_does_not_wait_for_its_own_end(path):
    """As the garbage collector may do, wherever it runs."""
    reader = reader_of(path)
    work = reader._work
    work.thread = threading.current_thread()
    work.close()
    assert work.orders.get_nowait() is None and not work.file.closed
    work.thread = None
    work.close()
    assert work.file.closed


@pytest.mark.parametrize("damaged", [None, 0, 1, 2])
def test_a_piece_is_released_only_after_its_checksum_was_compared_and_none_after_a_damaged_one(damaged):
    memory = new_pages(3 * PAGE)
    begin, sizes = np.frombuffer(memory, np.uint8, 1).ctypes.data, (10, 20, 30)
    for i, nbytes in enumerate(sizes):
        memory[i * PAGE : i * PAGE + nbytes] = bytes([i + 1]) * nbytes
    compared: list[bytes] = []

    def fits(i, content):
        compared.append(bytes(content))
        return i != damaged

    sums = {7 * i: SimpleNamespace(fits=partial(fits, i)) for i in range(3)}
    thread = ReaderThread(np.zeros(STALLED + 3, np.int64), None, memory, sums)
    carried: list[list[int]] = []
    thread._carry_out = lambda orders: carried.append(orders.tolist()[0]) or True
    orders = [[7 * i, nbytes, begin + i * PAGE, i // 2, i + 1] for i, nbytes in enumerate(sizes)]
    thread._read_checked(np.array(orders, np.int64))
    want = []
    for i, (offset, nbytes, address, freed, count) in enumerate(orders[: 3 if damaged is None else damaged + 1]):
        want += [[offset, nbytes, address, freed, count - 1], [0, 0, 0, 0, count - (i == damaged)]]
    assert carried == want and compared == [bytes([i + 1]) * n for i, n in enumerate(sizes)][: len(want) // 2]
    assert thread.words[FAILED] == (0 if damaged is None else DAMAGED)
