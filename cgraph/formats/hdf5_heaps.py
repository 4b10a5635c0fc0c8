"""Checks of the global heaps of an HDF5 file: the HDF5 library never returns on some damaged heaps.

A heap is a header (``GCOL`` and a length) followed by objects. Each object has a header with its number and size, and
contents padded to a multiple of a word. Number 0 marks free space, whose size includes its header. The library adds
sizes without checking them, so an object of 0 bytes or a size that wraps around loops forever. Only the library knows
the positions of heaps, so the whole file is searched once, piece by piece: seconds for gigabytes on a slow disk.

Source: HDF5 File Format Specification 3.0, III.E; H5HG__cache_heap_deserialize of HDF5 2.0.
"""

from collections.abc import Iterator

from cgraph.errors import damaged_file
from cgraph.system.mapping import read_at

SIGNATURE = b"GCOL\x01"
HEAD = 16  # bytes of the header of a heap or an object, where lengths have 8 bytes
LEAST = 4096  # bytes of a heap; the library refuses a shorter heap
PIECE = 1 << 20  # bytes read at once


def check_heaps(fd: int, nbytes: int) -> None:
    """Raise FormatError unless the objects of each heap fill it; the time is in proportion to the file.

    Parameters
        fd: descriptor of the file, whose lengths have 8 bytes
        nbytes: size of the file
    """
    left = nbytes // HEAD  # objects, of all heaps together: those of a file that the library wrote do not overlap
    for start in places(fd, SIGNATURE):
        length = int.from_bytes(read_at(fd, 8, start + 8), "little")
        if LEAST <= length <= nbytes - start:  # otherwise the library refuses it, or numbers look like a signature
            left -= objects(fd, start + HEAD, start + length, left)


def objects(fd: int, at: int, end: int, most: int) -> int:
    """Count the objects between two positions. FormatError if they do not fill it, or are more than `most`."""
    count = 0
    while end - at >= HEAD:  # less is too little for another object, and free
        if count == most:
            raise damaged_file(f"heaps overlap: more than {most} objects from byte {at} on")
        head = read_at(fd, HEAD, at)
        size = int.from_bytes(head[8:], "little")
        step = HEAD + -(-size // 8) * 8 if any(head[:2]) else size
        if not HEAD <= step <= end - at:
            raise damaged_file(f"an object at byte {at} has {size} bytes, {end - at} are left of its heap")
        at, count = at + step, count + 1
    return count


def places(fd: int, pattern: bytes) -> Iterator[int]:
    """Yield the positions of a byte pattern in a file."""
    offset, tail = 0, b""
    while piece := read_at(fd, PIECE, offset):
        text = tail + piece
        at = text.find(pattern)
        while at >= 0:
            yield offset - len(tail) + at
            at = text.find(pattern, at + 1)
        offset += len(piece)
        tail = text[1 - len(pattern) :]
