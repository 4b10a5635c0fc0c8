"""Vars on a device: a copy of each value, uploaded when it is older than the host's, registered when it is newer."""

from weakref import WeakKeyDictionary

import numpy as np

from cgraph.engine.cuda.device import Allocation, Device, Queue
from cgraph.ir.spec import Spec
from cgraph.storage.cell import CellValue, aligned_empty


class Copy:
    """A Var's bytes on a device. Mutable: uploads and kernels write them.

    Fields
        version: of the value that was uploaded last
        writer: the queue of a run that may still be writing; None when it is done
    """

    def __init__(self, device: Device, spec: Spec) -> None:
        self.spec, self.memory, self.queue = spec, Allocation(device, spec.nbytes), device.queue()
        self.version: int | None = None
        self.writer: Queue | None = None

    def settle(self) -> None:
        """Wait for a run that an exception left while it was writing."""
        if self.writer is not None:
            self.writer.wait()
            self.writer = None

    def fetched(self) -> np.ndarray:
        """Return the value in new memory of the host."""
        self.settle()
        array = aligned_empty(self.spec)
        self.queue.download(self.memory.address, array)
        self.queue.wait()
        return array

    def update(self, value: CellValue) -> None:
        """Upload a value that is newer than this copy."""
        self.settle()
        is_latest = value.newer is self or (value.newer is None and value.equal is self)
        if is_latest or (value.newer is None and self.version is not None and self.version == value.version):
            return
        array = value.array
        assert array is not None
        self.queue.upload(self.memory.address, np.ascontiguousarray(array))
        self.queue.wait()
        self.version = value.version


class DeviceWord:
    """A word in the device's memory that a run sets to 1 when it has written its update edges."""

    def __init__(self, device: Device) -> None:
        self.memory, self.queue = Allocation(device, np.dtype(np.int64).itemsize, watched=False), device.side_queue
        self.queue.fill(self.memory.address, self.memory.nbytes, 0)
        self.queue.wait()

    def __getitem__(self, index: int) -> int:
        word = np.zeros(1, np.int64)
        self.queue.download(self.memory.address, word)
        self.queue.wait()
        return int(word[index])


class DeviceCells:
    """The Vars' values on one device. Mutable: grows; a copy lives as long as its value."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._copies: WeakKeyDictionary[CellValue, Copy] = WeakKeyDictionary()

    def copy_of(self, value: CellValue, spec: Spec) -> Copy:
        """Return the copy of a value; it may be out of date."""
        copy = self._copies.get(value)
        if copy is None:
            copy = self._copies[value] = Copy(self.device, spec)
        return copy
