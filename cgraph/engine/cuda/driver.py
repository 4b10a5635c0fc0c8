"""The CUDA driver through ctypes, without a toolkit or another package. Every result is checked.

Some errors lose the context (an illegal address, a trap, a hardware fault): the driver then refuses every call until
the process ends. This module stores the first such error and repeats its text.
"""

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_void_p
from functools import cache
from typing import Any

from cgraph.errors import EngineError

NAMES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")
Handle = POINTER(c_void_p)
CALLS: dict[str, list[Any]] = {
    "cuInit": [c_uint],
    "cuDriverGetVersion": [POINTER(c_int)],
    "cuDeviceGetCount": [POINTER(c_int)],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDeviceGetAttribute": [POINTER(c_int), c_int, c_int],
    "cuDeviceGetName": [c_char_p, c_int, c_int],
    "cuDeviceTotalMem_v2": [POINTER(c_size_t), c_int],
    "cuDevicePrimaryCtxRetain": [Handle, c_int],
    "cuCtxSetCurrent": [c_void_p],
    "cuMemGetInfo_v2": [POINTER(c_size_t), POINTER(c_size_t)],
    "cuMemAlloc_v2": [Handle, c_size_t],
    "cuMemFree_v2": [c_void_p],
    "cuMemcpyHtoDAsync_v2": [c_void_p, c_void_p, c_size_t, c_void_p],
    "cuMemcpyDtoHAsync_v2": [c_void_p, c_void_p, c_size_t, c_void_p],
    "cuMemcpyDtoDAsync_v2": [c_void_p, c_void_p, c_size_t, c_void_p],
    "cuMemsetD8Async": [c_void_p, c_ubyte, c_size_t, c_void_p],
    "cuStreamCreate": [Handle, c_uint],
    "cuStreamSynchronize": [c_void_p],
    "cuStreamQuery": [c_void_p],
    "cuStreamWaitEvent": [c_void_p, c_void_p, c_uint],
    "cuMemHostAlloc": [Handle, c_size_t, c_uint],
    "cuEventCreate": [Handle, c_uint],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventSynchronize": [c_void_p],
    "cuEventElapsedTime": [POINTER(c_float), c_void_p, c_void_p],
    "cuModuleLoadData": [Handle, c_char_p],
    "cuModuleGetFunction": [Handle, c_void_p, c_char_p],
    "cuLaunchKernel": [c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p],
    "cuStreamBeginCapture_v2": [c_void_p, c_int],
    "cuStreamEndCapture": [c_void_p, Handle],
    "cuGraphInstantiateWithFlags": [Handle, c_void_p, ctypes.c_ulonglong],
    "cuGraphLaunch": [c_void_p, c_void_p],
    "cuGraphDestroy": [c_void_p],
    "cuGraphExecDestroy": [c_void_p],
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
}
NO_DEVICE, NOT_READY = 100, 600
LOSES_CONTEXT = frozenset((700, 702, 714, 715, 716, 717, 718, 719))


class Driver:
    """The functions of libcuda. Mutable: remembers the error that lost the context."""

    def __init__(self, library: Any) -> None:
        self.library, self.lost, self.process = library, "", os.getpid()
        for name, types in CALLS.items():
            function = getattr(library, name)
            function.argtypes, function.restype = types, c_int

    def do(self, name: str, *args: Any) -> None:
        """Make one call. EngineError has the driver's own name of the error."""
        if self.process != os.getpid():
            raise EngineError(
                f"CUDA was used in process {self.process} before it forked this one. Use it there or in a new process"
            )
        if self.lost:
            raise EngineError(f"the CUDA context of this process is lost since {self.lost}. Start a new process")
        code = getattr(self.library, name)(*args)
        if code:
            raise EngineError(self.failure(name, code))

    @property
    def is_usable(self) -> bool:
        """True if calls may succeed: the context exists, in this process."""
        return not self.lost and self.process == os.getpid()

    def failure(self, name: str, code: int) -> str:
        """Return the message of a call that failed."""
        text = c_char_p()
        self.library.cuGetErrorName(code, byref(text))
        message = f"{name}: {(text.value or b'unknown error').decode()} ({code})"
        if code not in LOSES_CONTEXT:
            return message
        self.lost = message
        return f"{message}; the context is lost. Start a new process"

    def is_done(self, stream: int) -> bool:
        """Return True if a stream has no work left."""
        code = self.library.cuStreamQuery(stream)
        if code == NOT_READY:
            return False
        if code:
            raise EngineError(self.failure("cuStreamQuery", code))
        return True

    def number(self, name: str, *args: Any) -> int:
        """Return the int that a call writes to its first argument."""
        value = c_int()
        self.do(name, byref(value), *args)
        return value.value

    def handle(self, name: str, *args: Any) -> int:
        """Return the handle or address that a call writes to its first argument."""
        value = c_void_p()
        self.do(name, byref(value), *args)
        return value.value or 0


@cache
def driver() -> Driver:
    """Return libcuda. EngineError if there is no library or no device."""
    return open_driver(library())


def open_driver(library: Any) -> Driver:
    """Return a driver that has a device. EngineError if there is none."""
    cuda, count = Driver(library), c_int()
    for name, argument in (("cuInit", 0), ("cuDeviceGetCount", byref(count))):
        code = getattr(library, name)(argument)
        if code == NO_DEVICE:
            break
        if code:
            raise EngineError(cuda.failure(name, code))
    if not count.value:
        raise EngineError("the NVIDIA driver finds no device on this machine. Check that nvidia-smi lists one")
    return cuda


def library() -> ctypes.CDLL:
    for name in NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise EngineError("there is no NVIDIA driver on this machine (no libcuda.so.1). Install it")
