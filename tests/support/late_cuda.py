"""A stand-in for NVIDIA's driver that works as late as it may: only when somebody waits, and for no more than that.

Whatever reads a result, fills a buffer or gives memory back without waiting for what must come before gets wrong bytes.
"""

import ctypes
from collections import deque
from collections.abc import Callable
from typing import Any

from tests.support.libcuda import NOT_READY, StandIn, host_bytes

Token = tuple[int, int]  # a stream, and how many entries of it must be done


class LateStandIn(StandIn):
    """The driver's functions; streams hold what is not done yet. Changes: as `StandIn`, and what waits.

    Fields
        waiting: entries of each stream, in order; done: how many of it are done
        recorded: what each event stands behind
    """

    def __init__(self) -> None:
        self.waiting: dict[int, deque[Callable[[], Any]]] = {}
        self.done: dict[int, int] = {}
        self.recorded: dict[int, Token] = {}
        self.asked: set[int] = set()
        self.failed = 0
        super().__init__()

    # -- what waits ---------------------------------------------------------------------------------------------------
    def later(self, stream: int | None, work: Callable[[], Any]) -> None:
        """Something that a stream does when it must."""
        stream = stream or 0
        self.waiting.setdefault(stream, deque()).append(work)
        self.asked.discard(stream)

    def end(self, stream: int | None) -> Token:
        stream = stream or 0
        return stream, self.done.get(stream, 0) + len(self.waiting.get(stream, ()))

    def reach(self, token: Token) -> int:
        """Do what a stream holds, up to a token; the first error of a launch since the last question."""
        stream, count = token
        while self.done.get(stream, 0) < count:
            work = self.waiting[stream].popleft()
            self.done[stream] = self.done.get(stream, 0) + 1
            self.failed = work() or self.failed
        found, self.failed = self.failed, 0
        return found

    def reach_all(self) -> None:
        for stream in list(self.waiting):
            self.reach(self.end(stream))

    # -- the driver's functions ---------------------------------------------------------------------------------------
    def _cuStreamCreate(self, found: Any, flags: int) -> None:
        self.handles += 1
        found[0] = 1000 + self.handles

    def _cuStreamQuery(self, stream: int) -> int:
        if self.waiting.get(stream) and stream not in self.asked:
            self.asked.add(stream)
            return NOT_READY
        return self.reach(self.end(stream))

    def _cuStreamSynchronize(self, stream: int) -> int:
        return self.reach(self.end(stream))

    def _cuEventRecord(self, event: int, stream: int) -> None:
        self.recorded[event] = self.end(stream)

    def _cuEventSynchronize(self, event: int) -> int:
        return self.reach(self.recorded[event]) if event in self.recorded else 0

    def _cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        super()._cuStreamWaitEvent(stream, event, flags)
        if event in self.recorded:
            token = self.recorded[event]
            self.later(stream, lambda: self.reach(token))

    def _cuMemFree_v2(self, address: int) -> None:
        self.reach_all()  # as the driver does
        super()._cuMemFree_v2(address)

    def _cuMemcpyHtoDAsync_v2(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.moved["up"] += nbytes
        self.later(stream, lambda: self.write(to, host_bytes(source, nbytes)))

    def write(self, to: int, what: Any) -> None:
        self.simulator.memory.bytes_at(to, what.size)[:] = what

    def _cuMemcpyDtoHAsync_v2(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.moved["down"] += nbytes

        def copy() -> None:
            host_bytes(to, nbytes)[:] = self.simulator.memory.bytes_at(source, nbytes)

        self.later(stream, copy)

    def _cuMemcpyDtoDAsync_v2(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.later(stream, lambda: self.write(to, self.simulator.memory.bytes_at(source, nbytes)))

    def _cuMemsetD8Async(self, address: int, byte: int, nbytes: int, stream: int) -> None:
        def fill() -> None:
            self.simulator.memory.bytes_at(address, nbytes)[:] = byte

        self.later(stream, fill)

    def _cuLaunchKernel(self, function: int, blocks: int, *more: int) -> int:
        if self.capturing is not None:
            return super()._cuLaunchKernel(function, blocks, *more)
        self.capturing = captured = []
        super()._cuLaunchKernel(function, blocks, *more)
        self.capturing = None
        self.later(more[6], lambda: self._launched(captured[0]))
        return 0

    def _cuGraphLaunch(self, graph: int, stream: int) -> None:
        for launch in self.ready[graph]:
            self.later(stream, lambda launch=launch: self._launched(launch))


def fill_later(library: LateStandIn, stream: int, address: int, value: Any) -> None:
    """Another library's work in a stream of its own: it writes an array."""
    given = value.tobytes()

    def write() -> None:
        room = library.simulator.memory.bytes_at(address, len(given))
        ctypes.memmove(room.ctypes.data, given, len(given))

    library.later(stream, write)
