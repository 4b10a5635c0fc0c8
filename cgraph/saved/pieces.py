"""A file on its way: arrays one behind another."""

from hashlib import sha256
from typing import Any
from zlib import crc32

import numpy as np

from cgraph.kernels.mapped import release
from cgraph.system.alignment import ALIGNMENT


class Pieces:
    """A file on its way: pieces one behind another, each aligned. Changes: grows."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.nbytes, self.crc = 0, 0
        self.index: dict[str, list[Any]] = {}
        self._starts: dict[tuple[int, bytes], int] = {}

    def add(self, x: np.ndarray, alignment: int = ALIGNMENT) -> int:
        """Where the array begins: at a multiple of so many bytes."""
        self.fill(alignment)
        start = self.nbytes
        self._append(bytes_in(x))
        return start

    def fill(self, alignment: int) -> None:
        """Zeros up to a multiple of so many bytes."""
        self._append(bytes(-self.nbytes % alignment))

    def _append(self, part: Any) -> None:
        self.parts.append(part)
        self.nbytes += len(part)
        self.crc = crc32(part, self.crc)

    def add_once(self, x: np.ndarray) -> int:
        """Where the array's content begins, which lies there once however many arrays have it."""
        key = x.nbytes, sha256(bytes_in(x)).digest()
        if key not in self._starts:
            self._starts[key] = self.add(x)
            release(x)
        return self._starts[key]

    def name(self, name: str, x: Any, dtype: str = "<i8") -> None:
        """An array that is found again by name."""
        array = np.asarray(x, dtype)
        self.index[name] = [dtype, list(array.shape), self.add(array)]


def bytes_in(x: np.ndarray) -> memoryview:
    """The bytes of an array in C order, where they lie."""
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8).data
