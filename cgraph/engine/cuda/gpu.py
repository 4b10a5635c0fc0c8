"""An NVIDIA GPU through its driver, in the primary context, which other libraries of this process share."""

import ctypes
import re
import time
from functools import cache, cached_property

import numpy as np

from cgraph.engine.cuda.device import LaunchError, LoadedKernel
from cgraph.engine.cuda.dlpack import CUDA
from cgraph.engine.cuda.driver import Driver, driver
from cgraph.engine.cuda.pinned import LEAST_PINNED, NO_TIMING, Pinned
from cgraph.errors import EngineError, bytes_text
from cgraph.kernels.isa.ptx import gpu_target
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.store import store
from cgraph.kernels.target import host_target

LEAST_CAPABILITY, LEAST_DRIVER = (7, 5), 12000
MAJOR, MINOR = 75, 76  # attributes
NON_BLOCKING = 1  # a stream that does not wait for the default one
THREAD_LOCAL = 1  # a capture that other threads' calls do not disturb
SPIN, NAP = 100e-6, 50e-6  # seconds: of polling without sleep, then of sleep between two polls
LAUNCHER = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)


class Gpu:
    """One device. Mutable: memory and kernels are added.

    Raises
        EngineError: there is no such device, or the device or its driver is too old
    """

    def __init__(self, index: int = 0) -> None:
        self.driver = driver()
        count = self.driver.number("cuDeviceGetCount")
        if not 0 <= index < count:
            raise EngineError(
                f"there is no device {index}; this machine has {count}. Choose a number from 0 to {count - 1}"
            )
        self.handle = self.driver.number("cuDeviceGet", index)
        self.context = self.driver.handle("cuDevicePrimaryCtxRetain", self.handle)
        self.use()
        self.name, self.capability = name_of(self.driver, self.handle), capability_of(self.driver, self.handle)
        version = self.driver.number("cuDriverGetVersion")
        if self.capability < LEAST_CAPABILITY:
            capability, least = (".".join(map(str, x)) for x in (self.capability, LEAST_CAPABILITY))
            raise EngineError(
                f"{self.name} has compute capability {capability}; at least {least} is needed. Use engine='cpu' instead"
            )
        if version < LEAST_DRIVER:
            raise EngineError(
                f"the driver supports CUDA {cuda_text(version)}; at least {cuda_text(LEAST_DRIVER)} is needed. "
                "Upgrade the NVIDIA driver"
            )
        self.target, self.number = gpu_target(*self.capability), (CUDA, index)
        self.pinned = Pinned(self.driver)
        self.nbytes = self.free_nbytes()
        self._loaded: dict[str, LoadedKernel] = {}

    def use(self) -> None:
        """Make the context current for the calling thread."""
        self.driver.do("cuCtxSetCurrent", self.context)

    def take(self, nbytes: int, watched: bool = True) -> int:
        self.use()
        return self.driver.handle("cuMemAlloc_v2", max(nbytes, 1))

    def free(self, address: int) -> None:
        if self.driver.is_usable:
            self.use()
            self.driver.do("cuMemFree_v2", address)

    def load(self, symbol: str, text: bytes) -> LoadedKernel:
        if symbol not in self._loaded:
            self.use()
            module = self.driver.handle("cuModuleLoadData", text + b"\0")
            function = self.driver.handle("cuModuleGetFunction", module, symbol.encode())
            threads = int(re.search(rb"\.reqntid (\d+)", text)[1])  # type: ignore[index]
            self._loaded[symbol] = LoadedKernel(function, threads)
        return self._loaded[symbol]

    @cached_property
    def side_queue(self) -> "GpuQueue":
        return self.queue()

    def queue(self) -> "GpuQueue":
        self.use()
        return GpuQueue(self, self.driver.handle("cuStreamCreate", NON_BLOCKING))

    def free_nbytes(self) -> int:
        """Return the bytes of memory that no process has allocated."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.driver.do("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value


def describe_gpus() -> list[str]:
    """Return a line for each GPU: name, capability, memory and driver. EngineError if there is none."""
    cuda = driver()
    version = cuda.number("cuDriverGetVersion")
    return [
        f"{name_of(cuda, i)}, capability {'.'.join(map(str, capability_of(cuda, i)))}, "
        f"{bytes_text(total_nbytes(cuda, i))}, driver of CUDA {cuda_text(version)}"
        for i in range(cuda.number("cuDeviceGetCount"))
    ]


def name_of(driver: Driver, handle: int) -> str:
    text = ctypes.create_string_buffer(128)
    driver.do("cuDeviceGetName", text, len(text), handle)
    return text.value.decode()


def capability_of(driver: Driver, handle: int) -> tuple[int, int]:
    """Return the compute capability: major, minor."""
    return driver.number("cuDeviceGetAttribute", MAJOR, handle), driver.number("cuDeviceGetAttribute", MINOR, handle)


def total_nbytes(driver: Driver, handle: int) -> int:
    total = ctypes.c_size_t()
    driver.do("cuDeviceTotalMem_v2", ctypes.byref(total), handle)
    return total.value


def cuda_text(version: int) -> str:
    """Return a CUDA version as text: ``12080`` is 12.8."""
    return f"{version // 1000}.{version % 1000 // 10}"


class GpuQueue:
    """A stream. Mutable: it keeps the arrays of its copies until they are done, so that an exception frees none of them
    while the driver still reads or writes it.
    """

    runs_whole = True

    def __init__(self, device: Gpu, stream: int) -> None:
        self.device, self.driver, self.stream = device, device.driver, stream
        self.code, self.event = np.zeros(1, np.int64), 0
        self._arrays: dict[int, np.ndarray] = {}

    def upload(self, address: int, array: np.ndarray) -> None:
        self._keep(array)
        if array.nbytes < LEAST_PINNED:
            self._copy("cuMemcpyHtoDAsync_v2", address, array.ctypes.data, array.nbytes)
            return
        self.device.use()
        self.device.pinned.upload(self.stream, address, array.reshape(-1).view(np.uint8))

    def download(self, address: int, array: np.ndarray) -> None:
        self._keep(array)
        if array.nbytes < LEAST_PINNED:
            self._copy("cuMemcpyDtoHAsync_v2", array.ctypes.data, address, array.nbytes)
            return
        self.device.use()
        self.device.pinned.download(self.stream, address, array.reshape(-1).view(np.uint8))

    def _keep(self, array: np.ndarray) -> None:
        """Keep an array until `wait` has seen the end of its copy. A lost context copies nothing."""
        if self.driver.is_usable:
            self._arrays[id(array)] = array

    def copy(self, to: int, source: int, nbytes: int) -> None:
        self._copy("cuMemcpyDtoDAsync_v2", to, source, nbytes)

    def _copy(self, name: str, to: int, source: int, nbytes: int) -> None:
        if nbytes:
            self.device.use()
            self.driver.do(name, to, source, nbytes, self.stream)

    def fill(self, address: int, nbytes: int, byte: int) -> None:
        if nbytes:
            self.device.use()
            self.driver.do("cuMemsetD8Async", address, byte, nbytes, self.stream)

    def run(self, table: np.ndarray) -> None:
        self.device.use()
        at = ctypes.cast(self.driver.library.cuLaunchKernel, ctypes.c_void_p).value or 0
        done = launcher()(table.ctypes.data, len(table), self.stream, at, self.code.ctypes.data)
        if done < len(table):
            raise LaunchError(done, self.driver.failure("cuLaunchKernel", int(self.code[0])))

    def captured(self, table: np.ndarray) -> "GpuGraph":
        self.device.use()
        self.driver.do("cuStreamBeginCapture_v2", self.stream, THREAD_LOCAL)
        graph = ctypes.c_void_p()
        try:
            self.run(table)
        except EngineError:  # the first error is the one to report; a stream left in capture takes no other work
            self.driver.library.cuStreamEndCapture(self.stream, ctypes.byref(graph))
            raise
        self.driver.do("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        executable = self.driver.handle("cuGraphInstantiateWithFlags", graph, 0)
        self.driver.do("cuGraphDestroy", graph)
        return GpuGraph(self, executable)

    def follow(self, stream: int) -> None:
        self.device.use()
        self.event = self.event or self.driver.handle("cuEventCreate", NO_TIMING)
        self.driver.do("cuEventRecord", self.event, stream)
        self.driver.do("cuStreamWaitEvent", self.stream, self.event, 0)

    def wait(self) -> None:
        arrays = tuple(self._arrays)  # those of copies that other threads add meanwhile stay
        self.device.use()
        start = time.monotonic()
        try:
            while not self.driver.is_done(self.stream):
                if time.monotonic() - start > SPIN:
                    time.sleep(NAP)
        except KeyboardInterrupt:  # queued work reads and writes this run's memory
            self.driver.do("cuStreamSynchronize", self.stream)
            raise
        for key in arrays:
            self._arrays.pop(key, None)


class GpuGraph:
    """An executable graph of the driver; destroyed with its last reference."""

    def __init__(self, queue: GpuQueue, handle: int) -> None:
        self.queue, self.handle = queue, handle

    def launch(self) -> None:
        self.queue.device.use()
        self.queue.driver.do("cuGraphLaunch", self.handle, self.queue.stream)

    def __del__(self) -> None:
        if self.queue.driver.is_usable:
            self.queue.device.use()
            self.queue.driver.do("cuGraphExecDestroy", self.handle)


@cache
def launcher() -> "ctypes._FuncPointer":
    """Return native code that launches the rows of a table: see `cgraph.kernels.launch.emit`."""
    return LAUNCHER(store().address(Kernel("launch.launch_rows"), host_target()))
