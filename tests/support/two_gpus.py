"""A stand-in for NVIDIA's driver with two unequal GPUs, which refuses what is used in the other one's context."""

import ctypes
from typing import Any

from tests.support.libcuda import StandIn

INVALID_CONTEXT = 201
CONTEXT, HANDLES = 1 << 50, 1 << 51  # the first context, and the first handle of anything else
NAMES, CAPABILITIES, NBYTES = ("small", "large"), ((8, 0), (9, 0)), (1 << 30, 3 << 30)
NEW = ("cuMemAlloc_v2", "cuStreamCreate", "cuEventCreate", "cuModuleLoadData", "cuMemHostAlloc")


class TwoGpus(StandIn):
    """The driver's functions. Changes: as `StandIn`, and the context that is current.

    Fields
        current: the number of the GPU whose context is current; None before the first
        owners: the GPU of each address and handle
        strays: calls that named something of the GPU whose context was not current
    """

    def __init__(self) -> None:
        self.current: int | None = None
        self.owners: dict[int, int] = {}
        self.strays: list[str] = []
        super().__init__()
        self.count, self.handles = 2, HANDLES

    def _entry(self, name: str) -> Any:
        entry = super()._entry(name)

        def checked(*args: Any) -> int:
            owners = {self.owners[x] for x in args if isinstance(x, int) and x in self.owners}
            if (name in NEW and self.current is None) or owners - {self.current}:
                self.strays.append(name)
                return INVALID_CONTEXT
            result = entry(*args)
            if name in NEW and not result:
                self.owners[args[0][0]] = self.current
            return result

        return checked

    def _cuDeviceGet(self, found: Any, index: int) -> None:
        found[0] = index

    def _cuDeviceGetAttribute(self, found: Any, attribute: int, device: int) -> None:
        found[0] = CAPABILITIES[device][attribute - 75]

    def _cuDeviceGetName(self, text: int, room: int, device: int) -> None:
        name = NAMES[device].encode() + b"\0"
        ctypes.memmove(text, name, len(name))

    def _cuDeviceTotalMem_v2(self, found: Any, device: int) -> None:
        found[0] = NBYTES[device]

    def _cuDevicePrimaryCtxRetain(self, found: Any, device: int) -> None:
        found[0] = CONTEXT + device

    def _cuCtxSetCurrent(self, context: int) -> None:
        self.current = context - CONTEXT

    def _cuMemGetInfo_v2(self, free: Any, total: Any) -> None:
        free[0], total[0] = NBYTES[self.current] - 4096, NBYTES[self.current]

    def _cuStreamCreate(self, found: Any, flags: int) -> None:
        self.handles += 1
        found[0] = self.handles

    def _cuModuleLoadData(self, found: Any, text: bytes) -> None:
        self.modules.append(text)
        found[0] = HANDLES * 2 + len(self.modules)

    def _cuModuleGetFunction(self, found: Any, module: int, symbol: bytes) -> None:
        super()._cuModuleGetFunction(found, module - HANDLES * 2, symbol)
