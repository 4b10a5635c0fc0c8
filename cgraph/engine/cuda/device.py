"""The device interface: memory, kernels from PTX, and queues that copy and launch in order."""

from typing import Protocol

import numpy as np

from cgraph.errors import EngineError
from cgraph.kernels.target import Target
from cgraph.record import Record

COLUMNS = 5  # of a launch table: function, blocks, threads of a block, address of the arguments, tasks


class LaunchError(EngineError):
    """A row of a launch table failed; `row` is its number."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row = row


class LoadedKernel(Record):
    """A kernel on a device.

    Fields
        function: its handle in a launch table
        threads: of a block
    """

    function: int
    threads: int


class Graph(Protocol):
    """Launches, with their arguments, that the driver can repeat."""

    def launch(self) -> None:
        """Queue all launches. EngineError if the driver refuses them."""


class Queue(Protocol):
    """Work for a device, done in order. Host memory passed to it must not change until `wait` returns.

    Fields
        runs_whole: `run` and graphs queue all launches in one native call, which no Python exception interrupts
    """

    runs_whole: bool

    def upload(self, address: int, array: np.ndarray) -> None:
        """Copy a contiguous array to the device."""

    def download(self, address: int, array: np.ndarray) -> None:
        """Copy from the device into a contiguous array."""

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Copy within the device."""

    def fill(self, address: int, nbytes: int, byte: int) -> None:
        """Set bytes."""

    def run(self, table: np.ndarray) -> None:
        """Launch the rows of a table in order. LaunchError if the driver refuses one."""

    def captured(self, table: np.ndarray) -> Graph | None:
        """Return the rows of a table as a graph, not yet launched; None if the device gains nothing from graphs."""

    def follow(self, stream: int) -> None:
        """Run later work after the work that another library has queued in its stream."""

    def wait(self) -> None:
        """Wait until all work is done. EngineError if something failed."""


class Device(Protocol):
    """A GPU, or a simulated one.

    Fields
        name: for messages
        target: the target of its kernels
        nbytes: of memory, free when the device was opened
        number: DLPack's name of the device; None if other libraries cannot read its memory
    """

    name: str
    target: Target
    nbytes: int

    @property
    def number(self) -> tuple[int, int] | None: ...

    def take(self, nbytes: int, watched: bool = True) -> int:
        """Return the address of new memory. `watched` is False if many threads may write one word of it."""

    def free(self, address: int) -> None:
        """Release memory."""

    def load(self, symbol: str, text: bytes) -> LoadedKernel:
        """Load a kernel of a PTX module."""

    @property
    def side_queue(self) -> Queue:
        """A queue for work that belongs to no instance; always the same one."""

    def queue(self) -> Queue:
        """Return a new queue."""


class Allocation:
    """Device memory, released with the last reference."""

    def __init__(self, device: Device, nbytes: int, watched: bool = True) -> None:
        self.device, self.nbytes, self.address = device, nbytes, device.take(nbytes, watched)

    def __del__(self) -> None:
        address = getattr(self, "address", None)
        if address is not None:
            self.device.free(address)
