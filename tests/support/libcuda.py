"""A stand-in for NVIDIA's driver: its functions as C calls them, over the simulator; any can be made to fail."""

import ctypes
from collections import Counter
from ctypes import CFUNCTYPE, c_int, c_void_p
from typing import Any

import numpy as np

from cgraph.engine.cuda.driver import CALLS
from cgraph.engine.cuda.simulator.launch import SimulatedKernel, Simulator
from cgraph.engine.cuda.simulator.text import Fault

Launch = tuple[SimulatedKernel, int, np.ndarray, int]  # kernel, blocks, arguments, tasks
ILLEGAL_ADDRESS, NOT_READY = 700, 600
ATTRIBUTES = {75: "major", 76: "minor"}


class StandIn:
    """What `Driver` takes for a library. Changes: memory, counters.

    Fields
        count, major, minor, version: of the devices, their capability and the driver
        failures: results of functions that shall fail, by name
        calls: how often each function was called; moved: bytes copied up and down
        busy: how many questions a stream answers with "not ready"
        pinned: memory of the host; followed: how often a stream was told to wait for another one
        capturing: the launches of the graph that is being captured; graphs, ready: those that are whole, and made ready
    """

    def __init__(self) -> None:
        self.count, self.major, self.minor, self.version = 1, 9, 0, 12080
        self.failures: dict[str, int] = {}
        self.calls: Counter[str] = Counter()
        self.moved: Counter[str] = Counter()
        self.busy = self.handles = 0
        self.capturing: list[Launch] | None = None
        self.graphs: dict[int, list[Launch]] = {}
        self.ready: dict[int, list[Launch]] = {}
        self.simulator = Simulator()
        self.alive: set[int] = set()
        self.pinned: list[np.ndarray] = []
        self.followed = 0
        self.modules: list[bytes] = []
        self.functions: list[SimulatedKernel] = []
        for name, types in CALLS.items():
            given = [c_void_p if t is ctypes.c_char_p and name == "cuDeviceGetName" else t for t in types]
            setattr(self, name, CFUNCTYPE(c_int, *given)(self._entry(name)))

    def _entry(self, name: str) -> Any:
        body = getattr(self, f"_{name}", lambda *args: 0)

        def entry(*args: Any) -> int:
            self.calls[name] += 1
            return self.failures.get(name) or body(*args) or 0

        return entry

    def _cuDeviceGetCount(self, found: Any) -> None:
        found[0] = self.count

    def _cuDriverGetVersion(self, found: Any) -> None:
        found[0] = self.version

    def _cuDeviceGetAttribute(self, found: Any, attribute: int, device: int) -> None:
        found[0] = getattr(self, ATTRIBUTES[attribute])

    def _cuDeviceGetName(self, text: int, room: int, device: int) -> None:
        ctypes.memmove(text, b"stand-in\0", 9)

    def _cuDeviceTotalMem_v2(self, found: Any, device: int) -> None:
        found[0] = 1 << 30

    def _cuDevicePrimaryCtxRetain(self, found: Any, device: int) -> None:
        found[0] = 1

    def _cuMemGetInfo_v2(self, free: Any, total: Any) -> None:
        free[0] = total[0] = 1 << 30

    def _cuMemAlloc_v2(self, found: Any, nbytes: int) -> None:
        found[0] = self.simulator.memory.take(nbytes)
        self.alive.add(found[0])

    def _cuMemFree_v2(self, address: int) -> None:
        self.simulator.memory.free(address)
        self.alive.remove(address)

    def _cuMemcpyHtoDAsync_v2(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.simulator.memory.bytes_at(to, nbytes)[:] = host_bytes(source, nbytes)
        self.moved["up"] += nbytes

    def _cuMemcpyDtoHAsync_v2(self, to: int, source: int, nbytes: int, stream: int) -> None:
        host_bytes(to, nbytes)[:] = self.simulator.memory.bytes_at(source, nbytes)
        self.moved["down"] += nbytes

    def _cuMemcpyDtoDAsync_v2(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.simulator.memory.bytes_at(to, nbytes)[:] = self.simulator.memory.bytes_at(source, nbytes)

    def _cuMemsetD8Async(self, address: int, byte: int, nbytes: int, stream: int) -> None:
        self.simulator.memory.bytes_at(address, nbytes)[:] = byte

    def _cuStreamCreate(self, found: Any, flags: int) -> None:
        found[0] = 7

    def _cuStreamQuery(self, stream: int) -> int:
        self.busy -= self.busy > 0
        return NOT_READY if self.busy else 0

    def _cuModuleLoadData(self, found: Any, text: bytes) -> None:
        self.modules.append(text)
        found[0] = len(self.modules)

    def _cuModuleGetFunction(self, found: Any, module: int, symbol: bytes) -> None:
        self.functions.append(self.simulator.load(self.modules[module - 1].decode(), symbol.decode()))
        found[0] = len(self.functions)

    def _cuLaunchKernel(self, function: int, blocks: int, *more: int) -> int:
        kernel = self.functions[function - 1]
        words_at, tasks_at = host_words(more[7], 2).tolist()
        words = host_words(words_at, (kernel.kernel.param_nbytes - 8) // 8).copy()  # by value, as the driver does
        launch = (kernel, blocks, words, int(host_words(tasks_at, 1)[0]))
        if self.capturing is None:
            return self._launched(launch)
        self.capturing.append(launch)
        return 0

    def _launched(self, launch: Launch) -> int:
        try:
            self.simulator.launch(*launch)
        except Fault:
            return ILLEGAL_ADDRESS
        return 0

    def _cuMemHostAlloc(self, found: Any, nbytes: int, flags: int) -> None:
        self.pinned.append(np.zeros(nbytes, np.uint8))
        found[0] = self.pinned[-1].ctypes.data

    def _cuEventCreate(self, found: Any, flags: int) -> None:
        self.handles += 1
        found[0] = self.handles

    def _cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        self.followed += 1

    def _cuStreamBeginCapture_v2(self, stream: int, mode: int) -> None:
        self.capturing = []

    def _cuStreamEndCapture(self, stream: int, found: Any) -> None:
        found[0], self.capturing = self._kept(self.graphs, self.capturing), None

    def _cuGraphInstantiateWithFlags(self, found: Any, graph: int, flags: int) -> None:
        found[0] = self._kept(self.ready, self.graphs[graph])

    def _kept(self, handles: dict[int, Any], what: Any) -> int:
        self.handles += 1
        handles[self.handles] = what
        return self.handles

    def _cuGraphDestroy(self, graph: int) -> None:
        del self.graphs[graph]

    def _cuGraphExecDestroy(self, graph: int) -> None:
        del self.ready[graph]

    def _cuGraphLaunch(self, graph: int, stream: int) -> int:
        return next(filter(None, map(self._launched, self.ready[graph])), 0)


def host_bytes(address: int, nbytes: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))


def host_words(address: int, count: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(address))
