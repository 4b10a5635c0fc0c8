"""Reader of FlatBuffers: tables, vectors and texts in place, with each position checked before it is read.

A table starts with the offset of its vtable, which lists the offset of each field in the table, 0 if absent. Vectors,
texts and inner tables are fields that contain the offset of their contents. Nothing is copied, and no offset is
followed without need, so nested tables cost nothing.

Source: the FlatBuffers internals, flatbuffers.dev/internals.
"""

import struct

import numpy as np

from cgraph.errors import damaged_file

WORD = 4  # bytes of an offset
LONGEST = 1000  # bytes of a text that are read at most


class Table:
    """One table; only the position and size of its vtable have been read.

    Parameters
        data: the whole file
        at: position of the table
    """

    def __init__(self, data: memoryview, at: int) -> None:
        self.data, self.at = data, at
        self.vtable = at - unpack(data, at, "i")
        self.nbytes = unpack(data, self.vtable, "H")
        if self.nbytes < WORD or self.nbytes % 2 or self.vtable + self.nbytes > len(data):
            raise damaged_file(f"the table at byte {at} has a vtable of {self.nbytes} bytes at {self.vtable}")

    def place(self, field: int) -> int | None:
        """Return the position of a field, or None if absent."""
        entry = WORD + 2 * field
        offset = unpack(self.data, self.vtable + entry, "H") if entry + 2 <= self.nbytes else 0
        return self.at + offset if offset else None

    def number(self, field: int, kind: str, default: float = 0) -> int | float:
        """Return a number, by its format of the module `struct`."""
        at = self.place(field)
        return default if at is None else unpack(self.data, at, kind)

    def pointed(self, field: int) -> int | None:
        """Return the position of the contents to which a field points."""
        at = self.place(field)
        return None if at is None else at + unpack(self.data, at, "I")

    def table(self, field: int) -> "Table | None":
        """Return an inner table."""
        at = self.pointed(field)
        return None if at is None else Table(self.data, at)

    def vector(self, field: int, dtype: str) -> np.ndarray | None:
        """Return a vector of numbers as an array that shares the file's bytes; None if absent."""
        at = self.pointed(field)
        if at is None:
            return None
        count = unpack(self.data, at, "I")
        return numbers(self.data, at + WORD, count, dtype)

    def places(self, field: int) -> np.ndarray:
        """Return the positions of the tables of a vector; empty if absent."""
        at = self.pointed(field)
        if at is None:
            return np.zeros(0, "int64")
        offsets = numbers(self.data, at + WORD, unpack(self.data, at, "I"), "uint32")
        positions = np.arange(at + WORD, at + WORD + WORD * len(offsets), WORD, dtype=np.int64)
        positions += offsets
        return positions

    def count(self, field: int) -> int:
        """Return the declared length of a vector; 0 if absent."""
        at = self.pointed(field)
        return 0 if at is None else unpack(self.data, at, "I")

    def text(self, field: int) -> str:
        """Return a text, truncated if long; empty if absent."""
        raw = self.vector(field, "uint8")
        return "" if raw is None else bytes(raw[:LONGEST]).decode("utf-8", "replace")


class PackedNumbers:
    """The options of a custom operator that are a struct of int32.

    Parameters
        raw: its bytes; None if the operator has none
    """

    def __init__(self, raw: np.ndarray | None) -> None:
        self.data = memoryview(b"" if raw is None else raw.tobytes())

    def number(self, field: int, kind: str, default: float = 0) -> int | float:
        """Return a number, by its index and its format of the module `struct`."""
        return unpack(self.data, WORD * field, kind)


def unpack(data: memoryview, at: int, kind: str) -> int:
    """Read one number. FormatError if it lies outside the file."""
    if not 0 <= at <= len(data) - struct.calcsize("<" + kind):
        raise damaged_file(f"an offset points to byte {at} of {len(data)}")
    return struct.unpack_from("<" + kind, data, at)[0]


def numbers(data: memoryview, at: int, count: int, dtype: str) -> np.ndarray:
    """Return an array of numbers in the file. FormatError if it lies outside the file."""
    nbytes = count * np.dtype(dtype).itemsize
    if not 0 <= at <= len(data) - nbytes:
        raise damaged_file(f"{count} numbers at byte {at} exceed the {len(data)} bytes of the file")
    return np.frombuffer(data[at : at + nbytes], np.dtype(dtype).newbyteorder("<")).astype(dtype, copy=False)
