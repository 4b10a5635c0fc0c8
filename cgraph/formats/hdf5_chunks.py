"""Chunked arrays of HDF5 files, decompressed within bounds.

The HDF5 library decompresses a chunk to any size: 5 KB can become gigabytes, whatever the array declares. This module
reads chunks as stored and decompresses none to more bytes than its array declares for a chunk. It supports the
filters gzip, shuffle and fletcher32, each once.

Source: HDF5 File Format Specification 3.0, IV.A.2.l (filter pipeline) and H5_checksum_fletcher32 of HDF5 2.0.
"""

import math
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from cgraph.errors import FormatError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.record import Record

DEFLATE, SHUFFLE, FLETCHER32 = 1, 2, 3  # numbers of filters
SUM = 4  # bytes of a checksum
CHUNK = 400  # bytes in memory of a chunk's record
COPIES = 3  # of a chunk while it is decompressed
WORK = 4  # elements computed for each decompressed byte
HALF = 65_535  # modulus of both halves of a checksum
WORDS = 1 << 15  # words that are summed at once without an overflow of 64 bits


class Chunk(Record):
    """A chunk as stored in the file.

    Fields
        offset: position of its first element along each axis
        mask: bit i is set if filter i was skipped
    """

    offset: tuple[int, ...]
    mask: int
    nbytes: int


def read_chunks(path: str, dataset: Any, most_ratio: int, allowance: Allowance) -> np.ndarray:
    """Read a chunked dataset, in the byte order of the file.

    Parameters
        path: path of the dataset, for messages
        most_ratio: the largest ratio of declared to stored bytes
    Raises
        FormatError: a chunk does not decompress to its size, a filter is not supported, or the array costs too much
    """
    filters = filters_of(path, dataset)
    chunks = list(stored_chunks(dataset, allowance))
    itemsize, stored = dataset.dtype.itemsize, sum(x.nbytes for x in chunks)
    nbytes, each = dataset.size * itemsize, math.prod(dataset.chunks) * itemsize
    if nbytes > most_ratio * max(stored, 1):
        raise FormatError(
            f"{path:.80} declares {nbytes:,} bytes and stores {stored:,}, less than 1/{most_ratio}: save it anew"
        )
    allowance.spend(f"{path:.80}", nbytes=nbytes + COPIES * each)
    out = np.full(dataset.shape, dataset.fillvalue, dataset.dtype)
    for chunk in chunks:
        allowance.spend(f"a chunk of {path:.80}", work=WORK * each)
        check_place(path, dataset, chunk, each + each // 16 + 64)
        _, raw = dataset.id.read_direct_chunk(chunk.offset)
        body = undo_filters(path, raw, filters, chunk.mask, each)
        place = tuple(slice(a, a + n) for a, n in zip(chunk.offset, dataset.chunks))
        inside = tuple(slice(n) for n in out[place].shape)
        out[place] = np.frombuffer(body, dataset.dtype).reshape(dataset.chunks)[inside]
    return out


def filters_of(path: str, dataset: Any) -> list[tuple[int, tuple[int, ...]]]:
    """Return the numbers and parameters of a dataset's filters, in the order in which they were applied."""
    properties = dataset.id.get_create_plist()
    rows = [properties.get_filter(i) for i in range(properties.get_nfilters())]
    filters = [(number, values) for number, _, values, _ in rows]
    numbers = [number for number, _ in filters]
    if len(set(numbers)) != len(numbers) or not {DEFLATE, SHUFFLE, FLETCHER32}.issuperset(numbers):
        names = ", ".join(f"{number} {name!r:.40}" for number, _, _, name in rows[:8])
        raise FormatError(f"{path:.80} has the filters {names}: use gzip, shuffle and fletcher32, each once")
    return filters


def stored_chunks(dataset: Any, allowance: Allowance) -> Iterator[Chunk]:
    """Yield the stored chunks of a dataset; charge each."""
    chunks: list[Chunk] = []

    def note(info: Any) -> None:
        allowance.spend("its chunks", nbytes=CHUNK)
        chunks.append(Chunk(tuple(info.chunk_offset), info.filter_mask, info.size))

    dataset.id.chunk_iter(note)
    return iter(chunks)


def check_place(path: str, dataset: Any, chunk: Chunk, most: int) -> None:
    """Raise FormatError unless a chunk lies in its array and has no more stored bytes than it can need."""
    if not all(0 <= a < n for a, n in zip(chunk.offset, dataset.shape)):
        raise damaged_file(f"{path:.80} has a chunk at {chunk.offset}, outside the shape {dataset.shape}")
    if chunk.nbytes > most:
        raise damaged_file(f"{path:.80} stores {chunk.nbytes:,} bytes for a chunk at {chunk.offset}, which has fewer")


def undo_filters(path: str, raw: bytes, filters: list[tuple[int, tuple[int, ...]]], mask: int, nbytes: int) -> bytes:
    """Undo the filters of a chunk, which must give `nbytes` bytes."""
    for i, (number, values) in reversed(list(enumerate(filters))):
        if mask >> i & 1:
            continue
        if number == DEFLATE:
            raw = inflate(path, raw, nbytes + SUM)
        elif number == SHUFFLE:
            raw = unshuffle(raw, values[0] if values else 1)
        else:
            raw = strip_checksum(path, raw)
    if len(raw) != nbytes:
        raise damaged_file(f"{path:.80} has a chunk that unpacks to {len(raw)} bytes, not {nbytes}")
    return raw


def inflate(path: str, raw: bytes, most: int) -> bytes:
    """Decompress bytes. FormatError if they are damaged or decompress to more than `most` bytes."""
    machine = zlib.decompressobj()
    try:
        body = machine.decompress(raw, most + 1)
    except zlib.error as error:
        raise damaged_file(f"{path:.80} has a chunk that is damaged: {error}") from None
    if len(body) > most or not machine.eof:
        raise damaged_file(f"{path:.80} has a chunk that is truncated or unpacks to more than its {most} bytes")
    return body


def unshuffle(raw: bytes, size: int) -> bytes:
    """Undo the shuffle filter, which stores all first bytes of the elements, then all second bytes, and so on."""
    count = len(raw) // size if size > 0 else 0
    words = np.frombuffer(raw, np.uint8, count * size).reshape(size if count else 0, count)
    return words.T.tobytes() + raw[count * max(size, 0) :]


def strip_checksum(path: str, raw: bytes) -> bytes:
    """Verify and remove the checksum of a chunk. FormatError if it differs."""
    body, expected = raw[:-SUM], int.from_bytes(raw[-SUM:], "little")
    if len(raw) < SUM or fletcher32(body) != ((expected >> 16) % HALF, (expected & 0xFFFF) % HALF):
        raise damaged_file(f"{path:.80} has a chunk that is damaged: its checksum differs")
    return body


def fletcher32(body: bytes) -> tuple[int, int]:
    """Return the Fletcher-32 sums of 16-bit words modulo HALF: the sum of the running sums, and the sum."""
    sums = total = 0
    words = np.frombuffer(body + bytes(len(body) % 2), ">u2")
    for start in range(0, len(words), WORDS):
        part = words[start : start + WORDS].astype(np.int64)
        sums = (sums + total * len(part) + int((part * np.arange(len(part), 0, -1)).sum())) % HALF
        total = (total + int(part.sum())) % HALF
    return sums, total
