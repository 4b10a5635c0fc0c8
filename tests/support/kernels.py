"""Run kernel calls over NumPy arrays, without an engine: for the tests of kernels.

A Pointer's base is the array itself. Tasks are handed out in one of several orders, so that a kernel whose result
depends on the order of its tasks is found out.
"""

import ctypes
import struct
from collections.abc import Iterable, Iterator

import numpy as np

from cgraph.ir.graph import Node
from cgraph.kernels.kernel import STOP, Call, Callback, Kernel, Pointer, View
from cgraph.kernels.store import store
from cgraph.kernels.target import Target, host_target, runnable_targets
from tests.support.markers import written_out

ORDERS = ("all", "single", "reverse")
TARGETS = ("host", *tuple(runnable_targets())[2:])  # each width that this machine runs
STOP_WORD = np.zeros(1, np.int64)
KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def run_calls(calls: Iterable[Call], target: Target | None = None, order: str = "all") -> None:
    """Run `calls` one after the other, the tasks of each in `order`."""
    calls = tuple(calls)
    kernels = [c.kernel for c in calls if isinstance(c.kernel, Kernel)]
    addresses = store().load(kernels, target or host_target())
    for call in written_out(calls, lambda at: ctypes.c_uint8.from_address(argument(at)).value):
        table = np.array([argument(a) for a in call.args], np.int64)
        if isinstance(call.kernel, Callback):
            call.kernel.function(table.ctypes.data)
            continue
        kernel = KERNEL(addresses[call.kernel])
        for first, last in shares(call.tasks, call.chunk, order):
            kernel(table.ctypes.data, first, last)


def argument(value: int | float | Pointer) -> int:
    """One argument as the 64 bits that a kernel reads."""
    if isinstance(value, Pointer):
        if value.base is STOP:
            return STOP_WORD.ctypes.data
        memory = value.base.op.array if isinstance(value.base, Node) else value.base  # a constant inside a loop
        return memory.ctypes.data + value.offset
    if isinstance(value, float):
        return struct.unpack("q", struct.pack("d", value))[0]
    return int(value)


def shares(tasks: int, chunk: int, order: str) -> Iterator[tuple[int, int]]:
    """Ranges of tasks: all at once, one by one, or chunk by chunk from the end."""
    if order == "all":
        return iter([(0, tasks)] if tasks else [])
    step = 1 if order == "single" else chunk
    ranges = [(i, min(i + step, tasks)) for i in range(0, tasks, step)]
    return iter(ranges if order == "single" else ranges[::-1])


def view_of(array: np.ndarray) -> View:
    """The view of an array, strides included; its base is the array that owns the bytes."""
    dtype = f"{array.dtype.kind}{array.dtype.itemsize}"
    return View(Pointer(array), array.shape, array.strides, dtype)
