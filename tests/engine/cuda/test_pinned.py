"""Copies by two pinned buffers, over a driver that works as late as it may: every byte arrives, at any size."""

import numpy as np
import pytest

from cgraph.engine.cuda import pinned as pinned_module
from cgraph.engine.cuda.driver import open_driver
from cgraph.engine.cuda.pinned import Pinned
from tests.support.late_cuda import LateStandIn

PIECE, STREAM = 64, 5
SIZES = [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 7, 8 * PIECE]
every_size = pytest.mark.parametrize("nbytes", SIZES)


@pytest.fixture
def late(monkeypatch):
    monkeypatch.setattr(pinned_module, "PIECE", PIECE)
    return LateStandIn()


def numbers(nbytes):
    return np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)


def room(library, nbytes):
    """The address of new device memory, with bytes behind it that nobody may change."""
    address = library.simulator.memory.take(nbytes + PIECE)
    library.simulator.memory.bytes_at(address, nbytes + PIECE)[:] = 77
    return address


@every_size
def test_an_upload_has_read_its_source_when_it_returns(late, nbytes):
    copies, source, address = Pinned(open_driver(late)), numbers(nbytes), room(late, nbytes)
    copies.upload(STREAM, address, source)
    source[:] = 0
    late.reach_all()
    got = late.simulator.memory.bytes_at(address, nbytes + PIECE)
    assert np.array_equal(got[:nbytes], numbers(nbytes)) and (got[nbytes:] == 77).all()
    assert late.moved["up"] == nbytes


@every_size
def test_a_download_is_complete_when_it_returns(late, nbytes):
    copies, address, to = Pinned(open_driver(late)), room(late, nbytes), np.full(nbytes + 3, 9, np.uint8)
    late.simulator.memory.bytes_at(address, nbytes)[:] = numbers(nbytes)
    copies.download(STREAM, address, to[:nbytes])
    assert np.array_equal(to[:nbytes], numbers(nbytes)) and to[nbytes:].tolist() == [9] * 3
    assert late.moved["down"] == nbytes


def test_copies_one_after_another_share_two_buffers(late):
    copies = Pinned(open_driver(late))
    assert late.pinned == []  # before the first copy
    address, to = room(late, 500), np.zeros(500, np.uint8)
    for seed in range(3):
        values = np.random.default_rng(seed).integers(0, 256, 500, np.uint8)
        copies.upload(STREAM, address, values)
        copies.download(STREAM, address, to)
        assert np.array_equal(to, values)
    assert [len(x) for x in late.pinned] == [PIECE, PIECE]
    assert len({event for _, event in copies.buffers}) == 2


@pytest.mark.parametrize("way", ["upload", "download"])
def test_one_copy_at_a_time_uses_the_buffers(late, way):
    """Each call of the driver happens while the lock is held, and the lock is free afterwards, also after an error."""
    driver = open_driver(late)
    copies, address, array, held = Pinned(driver), room(late, 300), np.zeros(300, np.uint8), []
    do = driver.do

    def watched(name, *args):
        held.append(copies.lock.locked())
        if len(held) == 4:
            raise ValueError("stopped")
        do(name, *args)

    driver.do = watched
    with pytest.raises(ValueError, match="stopped"):
        getattr(copies, way)(STREAM, address, array)
    assert held == [True] * 4 and not copies.lock.locked()
    getattr(copies, way)(STREAM, address, array)
    assert len(held) > 8 and all(held) and not copies.lock.locked()
