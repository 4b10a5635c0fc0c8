"""Kernels called from Python on NumPy arrays, outside of any program."""

import ctypes
import struct

import numpy as np

from cgraph.kernels.kernel import Call, Kernel, Pointer
from cgraph.kernels.store import store
from cgraph.kernels.target import Target

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Bound:
    """A kernel call as a Python function of ``first`` and ``last``: run tasks ``first .. last - 1``.

    It keeps the arrays alive that the kernel reads and writes.
    """

    def __init__(self, call: Call, target: Target) -> None:
        assert isinstance(call.kernel, Kernel)
        self.call = call
        self.words = np.array([word_of(x) for x in call.args], np.int64)
        self._at = self.words.ctypes.data
        self._kernel = KERNEL(store().load([call.kernel], target)[call.kernel])

    def __call__(self, first: int, last: int) -> None:
        self._kernel(self._at, first, last)


def word_of(value: int | float | Pointer) -> int:
    """Return an argument as the 64-bit integer that a kernel reads."""
    if isinstance(value, Pointer):
        return value.base.ctypes.data + value.offset  # type: ignore[attr-defined]
    if isinstance(value, float):
        return struct.unpack("q", struct.pack("d", value))[0]
    return int(value)
