"""The simulated device: copies in order, memory that is given back, kernels that are loaded once."""

import numpy as np
import pytest

from cgraph.engine.cuda.device import LaunchError
from cgraph.engine.cuda.simulated import NBYTES, SimulatedDevice
from cgraph.engine.cuda.simulator.text import Fault
from tests.engine.cuda.test_simulator import HEAD

BODY = "\tst.global.b32 \t[%rd6], %r1;\n\tret;\n\n}\n"


def device_with(values: np.ndarray) -> tuple[SimulatedDevice, int]:
    device = SimulatedDevice()
    address = device.take(values.nbytes)
    device.queue().upload(address, values)
    return device, address


def down(device: SimulatedDevice, address: int, count: int) -> list[float]:
    room = np.zeros(count, "f4")
    device.queue().download(address, room)
    return room.tolist()


def test_arrays_go_up_and_come_down_and_are_copied_and_filled_within():
    device, address = device_with(np.arange(6, dtype="f4").reshape(2, 3))
    assert down(device, address, 6) == [0, 1, 2, 3, 4, 5] and down(device, address + 8, 2) == [2, 3]
    other, queue = device.take(24), device.queue()
    queue.copy(other + 4, address, 8)
    queue.fill(other, 4, 0)
    assert down(device, other, 3) == [0, 0, 1]
    queue.fill(address, 8, 255)
    got = np.zeros(3, "u4")
    queue.download(address, got)
    assert got.tolist() == [2**32 - 1, 2**32 - 1, int(np.float32(2).view("u4"))]
    assert queue.captured(np.zeros((0, 5), np.int64)) is None


def test_memory_that_was_given_back_cannot_be_read():
    device, address = device_with(np.ones(4, "f4"))
    device.free(address)
    with pytest.raises(Fault):
        down(device, address, 4)


def test_a_kernel_is_loaded_once_and_knows_its_threads():
    device = SimulatedDevice()
    text = (HEAD + BODY).encode()
    first = device.load("k", text)
    assert first.threads == 64 and device.load("k", text) == first and len(device.kernels) == 1
    assert device.side_queue is device.side_queue and device.queue() is not device.queue()
    assert (device.nbytes, device.number) == (NBYTES, None)


def test_rows_of_a_table_run_with_their_arguments_in_order():
    device, out = device_with(np.zeros(128, "f4"))
    kernel = device.load("k", (HEAD + BODY).encode())
    arguments = [np.array([out, out + 256 * i], np.int64) for i in range(2)]
    table = np.array([[kernel.function, 1, 64, words.ctypes.data, 0] for words in arguments], np.int64)
    device.queue().run(table)
    got = np.zeros(128, "u4")
    device.queue().download(out, got)
    assert got.tolist() == [*range(64), *range(64)]


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_fault_names_the_row_of_its_launch(bad):
    device, out = device_with(np.zeros(64, "f4"))
    kernel = device.load("k", (HEAD + BODY).encode())
    arguments = [np.array([out, out + 4096 * (i == bad)], np.int64) for i in range(3)]
    table = np.array([[kernel.function, 1, 64, words.ctypes.data, 0] for words in arguments], np.int64)
    with pytest.raises(LaunchError, match="outside every allocation") as refusal:
        device.queue().run(table)
    assert refusal.value.row == bad


def test_each_row_runs_its_own_kernel_with_its_own_number_of_tasks():
    device, out = device_with(np.zeros(4, "f4"))
    store = "\tld.param.b64 \t%rd9, [k_param_1];\n\tst.global.b64 \t[%rd2+{at}], %rd9;\n\tret;\n\n}}\n"
    one = HEAD.replace(".reqntid 64", ".reqntid 1")
    first, second, again = (
        device.load(name, (one + store.format(at=at)).replace(".entry k(", f".entry {name}(").encode())
        for name, at in (("first", 0), ("second", 8), ("first", 0))
    )
    assert first == again and first.function != second.function and first.threads == second.threads == 1
    words = np.array([out, out], np.int64)
    rows = [[second.function, 1, 1, words.ctypes.data, 77], [first.function, 1, 1, words.ctypes.data, 5]]
    device.queue().run(np.array(rows, np.int64))
    got = np.zeros(2, np.int64)
    device.queue().download(out, got)
    assert got.tolist() == [5, 77]
