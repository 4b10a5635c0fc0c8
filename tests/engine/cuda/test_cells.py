"""Vars on a device: what is uploaded and when, what a fetch waits for, and which copy belongs to which value."""

import gc
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cuda.cells import Copy, DeviceCells, DeviceWord
from cgraph.engine.cuda.simulated import SimulatedDevice
from cgraph.storage.cell import CellValue

SPEC = cg.Var((2, 3)).spec
VALUE = np.arange(6, dtype="f4").reshape(2, 3)


class Watched(SimulatedDevice):
    """A device that notes what is uploaded to copies. Changes: the list."""

    def __init__(self):
        super().__init__()
        self.uploads = []

    def queue(self):
        queue = super().queue()
        upload = queue.upload

        def noted(address, array):
            assert array.flags.c_contiguous
            self.uploads.append(array.tolist())
            upload(address, array)

        queue.upload = noted
        return queue


def copy_with(device, value):
    """A copy whose bytes are there without an upload."""
    copy = Copy(device, SPEC)
    SimulatedDevice.queue(device).upload(copy.memory.address, value)
    return copy


def test_a_value_is_uploaded_once_for_each_version_and_always_while_a_run_may_be_writing():
    device, value = Watched(), CellValue(VALUE.copy())
    copy = Copy(device, SPEC)
    for change, count in ((None, 1), (None, 1), ("renew", 2), (None, 2), ("no version", 3), (None, 4), ("renew", 5)):
        if change == "renew":
            value.renew()
        elif change == "no version":
            value.version = None
        copy.update(value)
        assert len(device.uploads) == count
    value.array[0, 0] = 9
    value.renew()
    copy.update(value)
    assert device.uploads[-1] == [[9, 1, 2], [3, 4, 5]] == copy.fetched().tolist()


@pytest.mark.parametrize("order", ["F", "reversed", "strided"])
def test_a_value_in_any_order_of_memory_is_uploaded_in_c_order(order):
    arrays = {
        "F": np.asfortranarray(VALUE), "reversed": VALUE[::-1, ::-1].copy()[::-1, ::-1],
        "strided": np.repeat(VALUE, 2, 1)[:, ::2],
    }  # fmt: skip
    copy = Copy(Watched(), SPEC)
    copy.update(CellValue(arrays[order]))
    np.testing.assert_array_equal(copy.fetched(), VALUE)


def test_what_the_copy_has_itself_is_not_uploaded_before_or_behind_a_fetch():
    device, value = Watched(), CellValue(np.zeros((2, 3), "f4"))
    copy = copy_with(device, VALUE)
    value.newer = copy
    copy.update(value)
    np.testing.assert_array_equal(value.array, VALUE)
    value.renew()
    copy.update(value)
    assert device.uploads == [] and value.equal is copy and value.newer is None
    value.writable(SPEC, np.zeros(1, np.int64))[...] = 7
    copy.update(value)
    assert device.uploads == [[[7] * 3] * 2]


def test_what_another_copy_has_is_fetched_and_uploaded():
    device, value = Watched(), CellValue(np.zeros((2, 3), "f4"))
    copy, other = Copy(device, SPEC), copy_with(device, VALUE)
    for _ in range(2):
        value.equal, value.newer = copy, other
        value.renew()
        copy.update(value)
        np.testing.assert_array_equal(copy.fetched(), VALUE)
    assert device.uploads == [VALUE.tolist()] * 2 and value.equal is other


@pytest.mark.parametrize("act", [lambda copy: copy.fetched(), lambda copy: copy.update(CellValue(VALUE)), Copy.settle])
def test_a_run_that_may_still_be_writing_is_waited_for_once(act):
    waits, copy = [], Copy(Watched(), SPEC)
    copy.writer = SimpleNamespace(wait=lambda: waits.append(copy.writer))
    act(copy)
    assert len(waits) == 1 and waits[0] is not None and copy.writer is None
    act(copy)
    assert len(waits) == 1


def test_each_fetch_has_new_memory_of_the_spec():
    copy = copy_with(Watched(), VALUE)
    first, second = copy.fetched(), copy.fetched()
    assert (first.shape, first.dtype, first.flags.writeable) == ((2, 3), np.float32, True)
    first[...] = 8
    np.testing.assert_array_equal(second, VALUE)
    np.testing.assert_array_equal(copy.fetched(), VALUE)


def test_a_word_is_0_until_it_is_set():
    device = Watched()
    words = [DeviceWord(device) for _ in range(2)]
    assert [word[0] for word in words] == [0, 0]
    SimulatedDevice.queue(device).upload(words[1].memory.address, np.ones(1, np.int64))
    assert [word[0] for word in words] == [0, 1]


def test_each_value_has_its_copy_which_lives_as_long():
    device, other_spec = Watched(), cg.Var((5,), "float64").spec
    cells, first, second = DeviceCells(device), CellValue(VALUE), CellValue(np.zeros(5))
    copies = [cells.copy_of(first, SPEC), cells.copy_of(second, other_spec)]
    assert [cells.copy_of(first, SPEC), cells.copy_of(second, other_spec)] == copies and copies[0] is not copies[1]
    assert [copy.memory.nbytes for copy in copies] == [24, 40]
    addresses = [copy.memory.address for copy in copies]
    del copies, first
    gc.collect()
    assert [address in device.simulator.memory._sizes for address in addresses] == [False, True]
