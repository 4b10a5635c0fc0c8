"""Reader of protocol buffers: positions of fields, and varints.

Source: protobuf.dev/programming-guides/encoding.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cgraph.errors import damaged_file

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
CHUNK = 1 << 16  # bytes of numbers that are decoded at once
LONGEST = 10  # bytes of one number


class Field(NamedTuple):
    """One field: its number and wire type, the position of its tag, and the range of its contents."""

    number: int
    kind: int
    begin: int
    start: int
    stop: int


def fields(data: memoryview, start: int, stop: int) -> Iterator[Field]:
    """Yield the fields of the message in a range of bytes."""
    at, new = start, tuple.__new__  # a NamedTuple's own constructor is slower
    while at < stop:
        begin = at
        tag, at = (data[at], at + 1) if data[at] < 128 else varint(data, at, stop)
        kind = tag & 7
        if kind == BYTES:
            length, at = (data[at], at + 1) if at < stop and data[at] < 128 else varint(data, at, stop)
            end = at + length
        elif kind == VARINT:
            _, end = varint(data, at, stop)
        elif kind in (FIXED64, FIXED32):
            end = at + (8 if kind == FIXED64 else 4)
        else:
            raise damaged_file(f"byte {begin} begins a field of the unknown wire type {kind}")
        if end > stop:
            raise damaged_file(f"the field at byte {begin} ends at {end}, but its message ends at {stop}")
        yield new(Field, (tag >> 3, kind, begin, at, end))
        at = end


def varint(data: memoryview, at: int, stop: int) -> tuple[int, int]:
    """Decode a varint of at most 64 bits; return it and its end."""
    if at < stop and data[at] < 128:
        return data[at], at + 1
    value = 0
    for shift in range(0, 7 * LONGEST, 7):
        if at >= stop:
            raise damaged_file(f"a number is truncated at byte {at}")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise damaged_file(f"a number before byte {at} has more than 64 bits")


def encode_varint(value: int) -> bytes:
    """Encode a number as a varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def count_of_numbers(raw: memoryview) -> int:
    """Count the varints in packed bytes."""
    if len(raw) < 64:
        return sum(byte < 128 for byte in raw)
    packed = np.frombuffer(raw, np.uint8)
    return sum(int(np.count_nonzero(packed[i : i + CHUNK] < 128)) for i in range(0, len(packed), CHUNK))


def chunks_of_numbers(raw: memoryview) -> Iterator[np.ndarray]:
    """Decode packed varints as uint64 arrays, chunk by chunk. FormatError if one is truncated or too long."""
    packed, at = np.frombuffer(raw, np.uint8), 0
    while at < len(packed):
        chunk = packed[at : at + CHUNK]
        ends = np.flatnonzero(chunk < 128) + 1
        if not len(ends):
            raise damaged_file(f"a number in {len(chunk)} bytes is truncated or has more than 64 bits")
        yield numbers_between(chunk, np.concatenate([[0], ends[:-1]]), ends)
        at += int(ends[-1])


def numbers_between(chunk: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Decode the varints between positions of a chunk of bytes as uint64. FormatError if one has too many bytes.

    Bits beyond the 64th are dropped, as by protobuf.
    """
    lengths = ends - starts
    longest = int(lengths.max(initial=1))
    if longest > LONGEST:
        raise damaged_file(f"a number has {longest} bytes, at most {LONGEST} hold 64 bits")
    values = (chunk[starts] & 127).astype(np.uint64)
    for i in range(1, longest):
        longer = np.flatnonzero(lengths > i)
        values[longer] |= (chunk[starts[longer] + i] & 127).astype(np.uint64) << np.uint64(7 * i)
    return values
