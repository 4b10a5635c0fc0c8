"""Builder for files that contain arrays one after another."""

from hashlib import sha256
from typing import Any
from zlib import crc32

import numpy as np

from cgraph.kernels.mapped import release
from cgraph.system.alignment import ALIGNMENT


class Pieces:
    """A file under construction: arrays one after another, each aligned. Mutable: it grows."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.nbytes, self.crc = 0, 0
        self.index: dict[str, list[Any]] = {}
        self._starts: dict[tuple[int, bytes], int] = {}

    def add(self, x: np.ndarray, alignment: int = ALIGNMENT) -> int:
        """Append an array at an aligned start, and return the start."""
        self.fill(alignment)
        start = self.nbytes
        self._append(bytes_in(x))
        return start

    def fill(self, alignment: int) -> None:
        """Append zeros up to a multiple of `alignment` bytes."""
        self._append(bytes(-self.nbytes % alignment))

    def _append(self, part: Any) -> None:
        self.parts.append(part)
        self.nbytes += len(part)
        self.crc = crc32(part, self.crc)

    def add_once(self, x: np.ndarray) -> int:
        """Append an array unless its content is stored already, and return its start."""
        key = x.nbytes, sha256(bytes_in(x)).digest()
        if key not in self._starts:
            self._starts[key] = self.add(x)
            release(x)
        return self._starts[key]

    def name(self, name: str, x: Any, dtype: str = "<i8") -> None:
        """Append an array that readers find by name."""
        array = np.asarray(x, dtype)
        self.index[name] = [dtype, list(array.shape), self.add(array)]


def bytes_in(x: np.ndarray) -> memoryview:
    """Return the bytes of an array in C order, without a copy."""
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8).data
