"""FlatBuffers read in place: tables, vectors and texts at places that are looked at before anything is read there.

A table begins with how far behind it its vtable lies; that says for each field where in the table it is, 0 where it is
absent. Vectors, texts and inner tables are fields that say how far behind them their contents begin. Nothing is copied,
and nothing is followed that nobody asks for, so tables that lie in one another cost nothing.

Source: the FlatBuffers internals, flatbuffers.dev/internals.
"""

import struct

import numpy as np

from cgraph.errors import FormatError

WORD = 4  # bytes of an offset
LONGEST = 1000  # bytes of a text that are read


class Table:
    """One table, of which nothing but the vtable's place and size is known.

    Parameters
        data: the whole file
        at: the table's first byte
    """

    def __init__(self, data: memoryview, at: int) -> None:
        self.data, self.at = data, at
        self.vtable = at - unpack(data, at, "i")
        self.nbytes = unpack(data, self.vtable, "H")
        if self.nbytes < WORD or self.nbytes % 2 or self.vtable + self.nbytes > len(data):
            raise FormatError(f"the table at byte {at} has a vtable of {self.nbytes} bytes at {self.vtable}")

    def place(self, field: int) -> int | None:
        """Where a field lies; None where it is absent."""
        entry = WORD + 2 * field
        offset = unpack(self.data, self.vtable + entry, "H") if entry + 2 <= self.nbytes else 0
        return self.at + offset if offset else None

    def number(self, field: int, kind: str, default: float = 0) -> int | float:
        """A number, of a kind of the module `struct`."""
        at = self.place(field)
        return default if at is None else unpack(self.data, at, kind)

    def pointed(self, field: int) -> int | None:
        """Where the contents of a field begin that lie elsewhere."""
        at = self.place(field)
        return None if at is None else at + unpack(self.data, at, "I")

    def table(self, field: int) -> "Table | None":
        """An inner table."""
        at = self.pointed(field)
        return None if at is None else Table(self.data, at)

    def vector(self, field: int, dtype: str) -> np.ndarray | None:
        """Numbers one after another, as an array that shares the file's bytes; None where the field is absent."""
        at = self.pointed(field)
        if at is None:
            return None
        count = unpack(self.data, at, "I")
        return numbers(self.data, at + WORD, count, dtype)

    def places(self, field: int) -> np.ndarray:
        """Where the tables of a vector of tables begin; none where the field is absent."""
        at = self.pointed(field)
        if at is None:
            return np.zeros(0, "int64")
        offsets = numbers(self.data, at + WORD, unpack(self.data, at, "I"), "uint32")
        positions = np.arange(at + WORD, at + WORD + WORD * len(offsets), WORD, dtype=np.int64)
        positions += offsets
        return positions

    def count(self, field: int) -> int:
        """Elements of a vector, as the file has their number; 0 where the field is absent."""
        at = self.pointed(field)
        return 0 if at is None else unpack(self.data, at, "I")

    def text(self, field: int) -> str:
        """A text, the beginning of a long one; empty where the field is absent."""
        raw = self.vector(field, "uint8")
        return "" if raw is None else bytes(raw[:LONGEST]).decode("utf-8", "replace")


def unpack(data: memoryview, at: int, kind: str) -> int:
    """One number. FormatError when it does not lie in the file."""
    if not 0 <= at <= len(data) - struct.calcsize("<" + kind):
        raise FormatError(f"something is said to lie at byte {at} of {len(data)}")
    return struct.unpack_from("<" + kind, data, at)[0]


def numbers(data: memoryview, at: int, count: int, dtype: str) -> np.ndarray:
    """Numbers in the file. FormatError when it does not hold them."""
    nbytes = count * np.dtype(dtype).itemsize
    if not 0 <= at <= len(data) - nbytes:
        raise FormatError(f"{count} numbers are said to lie at byte {at} of {len(data)}")
    return np.frombuffer(data[at : at + nbytes], np.dtype(dtype).newbyteorder("<")).astype(dtype, copy=False)
