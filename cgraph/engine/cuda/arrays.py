"""Arrays in a device's memory: results of runs with ``copy=False``, and other libraries' arrays read in place."""

from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of, dtype_of_code
from cgraph.engine.cuda.device import Device
from cgraph.engine.cuda.dlpack import SharedArray, capsule_of, read_capsule
from cgraph.engine.cuda.host import extent
from cgraph.errors import ArgumentError, InputError
from cgraph.ir.spec import Spec
from cgraph.kernels.kernel import Pointer, View, contiguous
from cgraph.record import replace

LEGACY = 1  # the number of the default stream in both protocols


class DeviceArray:
    """An array in a device's memory; `numpy.asarray` copies it to the host.

    A run's result lies in the arena: the next run of that Function overwrites it.

    Fields
        device, address: its memory; view: shape, strides in bytes, dtype
        owner: keeps the memory alive
        stream: the stream that writes it and must be waited for; None if the writing is done
    """

    def __init__(self, device: Device, address: int, view: View, owner: Any, stream: int | None = None) -> None:
        self.device, self.address, self.view, self.owner, self.stream = device, address, view, owner, stream

    @property
    def shape(self) -> tuple[int, ...]:
        return self.view.shape

    @property
    def dtype(self) -> np.dtype:
        return dtype_of_code(self.view.dtype)

    def __repr__(self) -> str:
        return f"<DeviceArray {Spec(self.shape, self.dtype)} on {self.device.name}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return a copy in the host's memory, which can be written. ArgumentError if `copy` is False."""
        if copy is False:
            raise ArgumentError(f"{self!r} is not in the host's memory, so its values must be copied. Use copy=None")
        if not self.view.size:
            return np.empty(self.shape, self.dtype if dtype is None else dtype)
        first, nbytes = extent(self.view)
        room, queue = np.empty(nbytes, np.uint8), self.device.side_queue
        if self.stream is not None:
            queue.follow(self.stream)
        queue.download(self.address + first, room)
        queue.wait()
        array: np.ndarray = np.ndarray(self.shape, self.dtype, room, -first, self.view.strides)  # type: ignore[arg-type]
        return array if dtype is None else array.astype(dtype, copy=False)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The interface for other libraries. AttributeError on a simulated device, whose addresses no other library can
        read.
        """
        if self.device.number is None:
            raise AttributeError(f"{self.device.name} shares no memory. Take a copy with numpy.asarray")
        interface = {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3}
        return {**interface, "strides": None if self.view.is_contiguous else self.view.strides, "stream": self.stream}

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.device.number is None:
            raise BufferError(f"{self.device.name} shares no memory. Take a copy with numpy.asarray")
        return self.device.number

    def __dlpack__(self, stream: int | None = None, **more: Any) -> Any:
        """Return a capsule for another library; the values are complete."""
        strides = tuple(s // self.view.itemsize for s in self.view.strides)
        return capsule_of(SharedArray(self.address, self.shape, strides, self.dtype, self.__dlpack_device__(), self))


def device_array(device: Device, value: Any) -> DeviceArray | None:
    """Return a value that lies in this device's memory as a DeviceArray; None if it lies elsewhere.

    Raises
        InputError: it lies there, but its elements are not contiguous
    """
    if isinstance(value, np.ndarray):
        return None
    if isinstance(value, DeviceArray):
        array = value if value.device is device else None
    elif hasattr(value, "__dlpack_device__") and value.__dlpack_device__() == device.number:
        x = read_capsule(value.__dlpack__(stream=LEGACY))
        strides = tuple(s * x.dtype.itemsize for s in x.strides)
        array = DeviceArray(device, x.address, View(Pointer(x), x.shape, strides, code_of(x.dtype)), x.owner, LEGACY)
    elif device.number is not None and hasattr(value, "__cuda_array_interface__"):
        array = interface_array(device, value)
    else:
        array = None
    if array is not None and not array.view.is_contiguous:
        raise InputError(f"{array!r} has strides {array.view.strides}, not those of C order; make it contiguous first")
    return array


def interface_array(device: Device, value: Any) -> DeviceArray:
    """Return an array from its CUDA Array Interface, version 2 or 3."""
    said = value.__cuda_array_interface__
    dtype, shape = np.dtype(said["typestr"]), tuple(said["shape"])
    view = contiguous(Pointer(value), shape, code_of(dtype))
    if said.get("strides") is not None:
        view = replace(view, strides=tuple(said["strides"]))
    stream = said.get("stream") if said["version"] >= 3 else LEGACY
    return DeviceArray(device, said["data"][0], view, value, stream)
