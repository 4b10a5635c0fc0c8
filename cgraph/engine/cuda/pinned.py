"""Copies between NumPy arrays and a device through two pinned buffers: one fills while the other is copied.

The driver itself copies pageable memory through one small buffer and waits for each piece.
"""

import ctypes
from threading import Lock

import numpy as np

from cgraph.engine.cuda.driver import Driver

LEAST_PINNED = 64 << 10  # bytes; smaller arrays the driver copies at once
PIECE = 4 << 20  # bytes of a buffer
NO_TIMING = 2  # an event that keeps no time


class Pinned:
    """Two buffers of a device, allocated when first used, permanently. Mutable: one copy at a time uses them."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.lock = driver, Lock()
        self._buffers: list[tuple[np.ndarray, int]] = []  # each with the event after its last copy

    def upload(self, stream: int, address: int, source: np.ndarray) -> None:
        """Queue a copy of bytes; they have been read when this returns."""
        with self.lock:
            for i, first in enumerate(range(0, source.size, PIECE)):
                buffer, event = self.buffers[i % 2]
                piece = source[first : first + PIECE]
                self.driver.do("cuEventSynchronize", event)
                buffer[: piece.size] = piece
                self.driver.do("cuMemcpyHtoDAsync_v2", address + first, buffer.ctypes.data, piece.size, stream)
                self.driver.do("cuEventRecord", event, stream)

    def download(self, stream: int, address: int, to: np.ndarray) -> None:
        """Copy into bytes; they are complete when this returns."""
        with self.lock:
            starts = range(0, to.size, PIECE)
            for i in range(len(starts) + 1):
                if i < len(starts):
                    buffer, event = self.buffers[i % 2]
                    size = min(PIECE, to.size - starts[i])
                    self.driver.do("cuEventSynchronize", event)
                    self.driver.do("cuMemcpyDtoHAsync_v2", buffer.ctypes.data, address + starts[i], size, stream)
                    self.driver.do("cuEventRecord", event, stream)
                if i:
                    buffer, event = self.buffers[(i - 1) % 2]
                    piece = to[starts[i - 1] : starts[i - 1] + PIECE]
                    self.driver.do("cuEventSynchronize", event)
                    piece[:] = buffer[: piece.size]

    @property
    def buffers(self) -> list[tuple[np.ndarray, int]]:
        """Both buffers with their events."""
        while len(self._buffers) < 2:
            at = self.driver.handle("cuMemHostAlloc", PIECE, 0)
            buffer = np.ctypeslib.as_array((ctypes.c_uint8 * PIECE).from_address(at))
            self._buffers.append((buffer, self.driver.handle("cuEventCreate", NO_TIMING)))
        return self._buffers
