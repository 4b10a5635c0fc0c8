"""The global heaps of an HDF5 file, looked at before the library reads one: on some damaged ones it never ends.

A heap is a head, ``GCOL`` and its length, and a row of objects: each has a head of its own, with its number and its
size, and contents that are padded to whole words; number 0 is what is free, and its size counts its head. The library
adds sizes up without a look at what they are: in an object of no bytes, or after sizes that wrap round, it stays.

Where heaps lie only the library knows, so the whole file is searched for them, once and in pieces: seconds for the
gigabytes of a large network on a slow disk.

Source: HDF5 File Format Specification 3.0, III.E; H5HG__cache_heap_deserialize of HDF5 2.0.
"""

import os
from collections.abc import Iterator

from cgraph.errors import FormatError

SIGNATURE = b"GCOL\x01"
HEAD = 16  # bytes, of a heap and of an object, where lengths have 8 bytes
LEAST = 4096  # bytes of a heap; the library refuses a shorter one
PIECE = 1 << 20  # bytes read at once


def check_heaps(fd: int, nbytes: int) -> None:
    """FormatError unless the objects of every heap follow one another up to its end; time in proportion to the file.

    Parameters
        fd: the file, whose lengths have 8 bytes
        nbytes: of the file
    """
    left = nbytes // HEAD  # objects, of all heaps together: those of a file that the library wrote do not overlap
    for start in places(fd, SIGNATURE):
        length = int.from_bytes(os.pread(fd, 8, start + 8), "little")
        if LEAST <= length <= nbytes - start:  # otherwise the library refuses it, or numbers look like a signature
            left -= objects(fd, start + HEAD, start + length, left)


def objects(fd: int, at: int, end: int, most: int) -> int:
    """How many objects lie between two places. FormatError when they do not fill it, or are more than `most`."""
    count = 0
    while end - at >= HEAD:  # less is too little for another object, and free
        if count == most:
            raise FormatError("heaps share bytes")
        head = os.pread(fd, HEAD, at)
        size = int.from_bytes(head[8:], "little")
        step = HEAD + -(-size // 8) * 8 if any(head[:2]) else size
        if not HEAD <= step <= end - at:
            raise FormatError(f"an object at byte {at} has {size} bytes, {end - at} are left of its heap")
        at, count = at + step, count + 1
    return count


def places(fd: int, pattern: bytes) -> Iterator[int]:
    """Where these bytes begin in a file."""
    offset, tail = 0, b""
    while piece := os.pread(fd, PIECE, offset):
        text = tail + piece
        at = text.find(pattern)
        while at >= 0:
            yield offset - len(tail) + at
            at = text.find(pattern, at + 1)
        offset += len(piece)
        tail = text[1 - len(pattern) :]
