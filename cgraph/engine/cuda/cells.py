"""Vars on a device: a copy of each value, uploaded when it is older than the host's, registered when it is newer."""

from weakref import WeakKeyDictionary

import numpy as np

from cgraph.engine.cuda.device import Allocation, Device
from cgraph.ir.spec import Spec
from cgraph.storage.cell import CellValue, aligned_empty


class Copy:
    """A Var's bytes on a device. Mutable: uploads and kernels write them."""

    def __init__(self, device: Device, spec: Spec) -> None:
        self.spec, self.memory, self.queue = spec, Allocation(device, spec.nbytes), device.queue()
        self.version: int | None = None

    def fetched(self) -> np.ndarray:
        """Return the value in new memory of the host."""
        array = aligned_empty(self.spec)
        self.queue.download(self.memory.address, array)
        self.queue.wait()
        return array

    def update(self, value: CellValue) -> None:
        """Upload a value that is newer than this copy."""
        if value.elsewhere is self or (self.version is not None and self.version == value.version):
            return
        array = value.array
        assert array is not None
        self.queue.upload(self.memory.address, np.ascontiguousarray(array))
        self.queue.wait()
        self.version = value.version


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
