"""A kernel called from Python, over arrays: for what runs in no program."""

import ctypes
import struct

import numpy as np

from cgraph.kernels.kernel import Call, Kernel, Pointer
from cgraph.kernels.store import store
from cgraph.kernels.target import Target

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Bound:
    """A call as a function that runs tasks ``first .. last - 1``; it keeps the arrays that are its memory."""

    def __init__(self, call: Call, target: Target) -> None:
        assert isinstance(call.kernel, Kernel)
        self.call = call
        self.words = np.array([word_of(x) for x in call.args], np.int64)
        self._at = self.words.ctypes.data
        self._kernel = KERNEL(store().load([call.kernel], target)[call.kernel])

    def __call__(self, first: int, last: int) -> None:
        self._kernel(self._at, first, last)


def word_of(value: int | float | Pointer) -> int:
    """An argument as a kernel reads it: 64 bits."""
    if isinstance(value, Pointer):
        return value.base.ctypes.data + value.offset  # type: ignore[attr-defined]
    if isinstance(value, float):
        return struct.unpack("q", struct.pack("d", value))[0]
    return int(value)
