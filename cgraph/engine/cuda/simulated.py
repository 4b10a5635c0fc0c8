"""The simulated device: `cgraph.engine.cuda.simulator` behind the interface of a GPU."""

import ctypes
from functools import cached_property

import numpy as np

from cgraph.engine.cuda.device import LaunchError, LoadedKernel
from cgraph.engine.cuda.simulator import launch
from cgraph.engine.cuda.simulator.text import Fault
from cgraph.kernels.isa.ptx import gpu_target

NBYTES = 1 << 34  # more than most hosts provide


class SimulatedDevice:
    """A GPU of capability 9.0 without a clock. Mutable: its memory; kernels are added."""

    name, target, nbytes, number = "a simulated GPU", gpu_target(9, 0), NBYTES, None

    def __init__(self) -> None:
        self.simulator = launch.Simulator()
        self.kernels: list[launch.SimulatedKernel] = []
        self._numbers: dict[str, int] = {}

    def take(self, nbytes: int, watched: bool = True) -> int:
        return self.simulator.memory.take(nbytes, watched)

    def free(self, address: int) -> None:
        self.simulator.memory.free(address)

    def load(self, symbol: str, text: bytes) -> LoadedKernel:
        if symbol not in self._numbers:
            self._numbers[symbol] = len(self.kernels)
            self.kernels.append(self.simulator.load(text.decode(), symbol))
        number = self._numbers[symbol]
        return LoadedKernel(number, self.kernels[number].kernel.threads)

    @cached_property
    def side_queue(self) -> "SimulatedQueue":
        return self.queue()

    def queue(self) -> "SimulatedQueue":
        return SimulatedQueue(self)


class SimulatedQueue:
    """A queue that executes everything immediately, in Python, which an exception can interrupt anywhere."""

    runs_whole = False

    def __init__(self, device: SimulatedDevice) -> None:
        self.device, self.memory = device, device.simulator.memory

    def upload(self, address: int, array: np.ndarray) -> None:
        self.memory.bytes_at(address, array.nbytes)[:] = array.reshape(-1).view(np.uint8)

    def download(self, address: int, array: np.ndarray) -> None:
        array.reshape(-1).view(np.uint8)[:] = self.memory.bytes_at(address, array.nbytes)

    def copy(self, to: int, source: int, nbytes: int) -> None:
        self.memory.bytes_at(to, nbytes)[:] = self.memory.bytes_at(source, nbytes)

    def fill(self, address: int, nbytes: int, byte: int) -> None:
        self.memory.bytes_at(address, nbytes)[:] = byte

    def run(self, table: np.ndarray) -> None:
        for row, (function, blocks, _, words, tasks) in enumerate(table.tolist()):
            kernel = self.device.kernels[function]
            count = (kernel.kernel.param_nbytes - 8) // 8
            arguments = np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(words))
            try:
                self.device.simulator.launch(kernel, blocks, arguments, tasks)
            except Fault as fault:
                raise LaunchError(row, str(fault)) from None

    def captured(self, table: np.ndarray) -> None:
        """Return None: graphs save no time on the simulator."""

    def follow(self, stream: int) -> None:
        """Do nothing: no work is in progress."""

    def wait(self) -> None:
        """Do nothing: no work is left."""
