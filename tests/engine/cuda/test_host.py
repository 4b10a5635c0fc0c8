"""Steps on the host: what lies between the elements of a view travels, results go back, others do not."""

import ctypes

import numpy as np
import pytest

from cgraph.engine.cuda.host import extent, moved_nbytes, run_on_host
from cgraph.engine.cuda.simulated import SimulatedDevice
from cgraph.kernels.kernel import Callback, Pointer, View


def view(shape, strides, dtype="f4") -> View:
    return View(Pointer("x", 0), shape, strides, dtype)


@pytest.mark.parametrize(("one", "want"), [
    (view((2, 3), (12, 4)), (0, 24)), (view((2, 3), (100, 4)), (0, 112)), (view((3,), (-4,)), (-8, 12)),
    (view((2, 3), (-20, 8)), (-20, 40)), (view((), ()), (0, 4)), (view((0, 3), (12, 4)), (0, 0)),
    (view((5,), (0,)), (0, 4)), (view((2,), (8,), "f8"), (0, 16)),
])  # fmt: skip
def test_a_view_reaches_from_its_first_byte_to_its_last(one, want):
    assert extent(one) == want


def callback(function, *views: View, results: int = 1) -> Callback:
    made = object.__new__(Callback)
    for name, value in (("function", function), ("views", views), ("results", results)):
        object.__setattr__(made, name, value)
    return made


def test_bytes_are_counted_down_for_all_and_up_for_results():
    assert moved_nbytes(callback(None, view((2,), (4,)), view((3,), (8,)))) == 8 + 20 + 8
    assert moved_nbytes(callback(None, view((2,), (4,)), view((3,), (4,)), results=2)) == 2 * 20


def test_the_function_reads_operands_in_place_and_only_results_return():
    """The operand is read backwards; its bytes on the device stay, whatever the function writes there."""
    device = SimulatedDevice()
    queue, out, x = device.queue(), device.take(16), device.take(16)
    queue.upload(out, np.zeros(4, "f4"))
    queue.upload(x, np.arange(4, dtype="f4"))

    def function(args: int) -> None:
        to, source = (ctypes.c_int64 * 2).from_address(args)
        elements = [ctypes.c_float.from_address(source - 4 * i) for i in range(4)]
        for i, element in enumerate(elements):
            ctypes.c_float.from_address(to + 4 * i).value = element.value * 10
            element.value = -1

    run_on_host(queue, callback(function, view((4,), (4,)), view((4,), (-4,))), [out, x + 12])
    got, left = np.zeros(4, "f4"), np.zeros(4, "f4")
    queue.download(out, got)
    queue.download(x, left)
    assert got.tolist() == [30, 20, 10, 0] and left.tolist() == [0, 1, 2, 3]


def test_a_function_that_fails_changes_nothing_on_the_device():
    device = SimulatedDevice()
    queue, out = device.queue(), device.take(16)
    queue.upload(out, np.ones(4, "f4"))

    def function(args: int) -> None:
        (to,) = (ctypes.c_int64 * 1).from_address(args)
        ctypes.c_float.from_address(to).value = 7
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_on_host(queue, callback(function, view((4,), (4,))), [out])
    got = np.zeros(4, "f4")
    queue.download(out, got)
    assert got.tolist() == [1] * 4


def test_each_result_goes_back_to_its_own_place():
    device = SimulatedDevice()
    queue, places = device.queue(), [device.take(16) for _ in range(3)]
    for i, at in enumerate(places):
        queue.upload(at, np.full(4, i, "f4"))

    def function(args: int) -> None:
        for i, at in enumerate((ctypes.c_int64 * 3).from_address(args), 1):
            elements = (ctypes.c_float * 4).from_address(at)
            elements[:] = [x + 10 * i for x in elements]

    run_on_host(queue, callback(function, *[view((4,), (4,))] * 3, results=2), places)
    got = np.zeros((3, 4), "f4")
    for row, at in zip(got, places):
        queue.download(at, row)
    assert got.tolist() == [[10] * 4, [21] * 4, [2] * 4]


def test_a_result_that_runs_backwards_goes_back_from_its_first_byte():
    """Its address is that of the last element in memory; bytes between its elements go back as they came."""
    device = SimulatedDevice()
    queue, out = device.queue(), device.take(32)
    queue.upload(out, np.arange(8, dtype="f4"))

    def function(args: int) -> None:
        (to,) = (ctypes.c_int64 * 1).from_address(args)
        for i in range(3):
            ctypes.c_float.from_address(to - 8 * i).value = 10 + i

    run_on_host(queue, callback(function, view((3,), (-8,))), [out + 20])
    got = np.zeros(8, "f4")
    queue.download(out, got)
    assert got.tolist() == [0, 12, 2, 11, 4, 10, 6, 7]
