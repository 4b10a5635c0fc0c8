"""What the engine needs of a device: memory, kernels from PTX, and queues that copy and launch in order."""

from typing import Protocol

import numpy as np

from cgraph.errors import EngineError
from cgraph.kernels.target import Target
from cgraph.record import Record

COLUMNS = 5  # of a launch table: function, blocks, threads of a block, address of the arguments, tasks


class LaunchError(EngineError):
    """A row of a launch table failed; `row` says which."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row = row


class LoadedKernel(Record):
    """A kernel on a device.

    Fields
        function: what a launch table calls it
        threads: of a block
    """

    function: int
    threads: int


class Graph(Protocol):
    """Launches that the driver knows already, with their arguments."""

    def launch(self) -> None:
        """Queue all of them. EngineError when they are refused."""


class Queue(Protocol):
    """Work for a device, done in order. Host memory that is given must stay as it is until `wait` returns."""

    def upload(self, address: int, array: np.ndarray) -> None:
        """Copy a contiguous array to the device."""

    def download(self, address: int, array: np.ndarray) -> None:
        """Copy from the device into a contiguous array."""

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Copy within the device."""

    def fill(self, address: int, nbytes: int, byte: int) -> None:
        """Set bytes."""

    def run(self, table: np.ndarray) -> None:
        """Launch the rows of a table, in order. LaunchError for one that is refused."""

    def captured(self, table: np.ndarray) -> Graph | None:
        """The rows of a table as a graph, not launched yet; None on a device that gains nothing by it."""

    def follow(self, stream: int) -> None:
        """What is queued from now on comes after what another library has queued in its stream."""

    def wait(self) -> None:
        """Until all is done. EngineError when something failed."""


class Device(Protocol):
    """A GPU, or a simulated one.

    Fields
        name: as people call it
        target: what kernels are made for
        nbytes: of memory, free when the device was opened
        number: how DLPack calls the device; None for one whose memory is nobody else's
    """

    name: str
    target: Target
    nbytes: int

    @property
    def number(self) -> tuple[int, int] | None: ...

    def take(self, nbytes: int, watched: bool = True) -> int:
        """The address of new memory; many threads may write one word of it where it is not `watched`."""

    def free(self, address: int) -> None:
        """Give memory back."""

    def load(self, symbol: str, text: bytes) -> LoadedKernel:
        """A kernel of a PTX module."""

    @property
    def side_queue(self) -> Queue:
        """For what belongs to no instance; the same one always."""

    def queue(self) -> Queue:
        """A new queue."""


class Allocation:
    """Device memory that is given back when nobody holds it any more."""

    def __init__(self, device: Device, nbytes: int, watched: bool = True) -> None:
        self.device, self.nbytes, self.address = device, nbytes, device.take(nbytes, watched)

    def __del__(self) -> None:
        address = getattr(self, "address", None)
        if address is not None:
            self.device.free(address)
