"""Weight files, from which a run reads weights into a ring while kernels compute.

A page with magic, version, the number of arrays and a checksum of the table; the table, with the offset, the bytes and
a digest of each array; then the arrays, each beginning at a page, so that reads can bypass the system's cache.
"""

import io
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO
from weakref import WeakSet

import numpy as np

from cgraph.errors import ArgumentError, GraphError, WeightsError
from cgraph.kernels.mapped import in_c_order, mapping_of, release
from cgraph.record import Record, replace, set_field
from cgraph.system.alignment import round_up
from cgraph.system.byte_counts import byte_count
from cgraph.system.fair_lock import FairLock
from cgraph.system.file_ownership import Stamp, is_regular, stamp_of
from cgraph.system.files import replace_file, unnamed_file
from cgraph.system.machine import check_pread
from cgraph.system.mapping import forget_cached

PAGE = 4096
MAGIC, VERSION = b"cgweight", 1
DIGEST = 16  # bytes
PORTION = 1 << 20  # bytes that a check reads at once
ENTRY = 2 * 8 + DIGEST
SPOOL = 1 << 28  # bytes that a spool maps at once, more for a larger array; unwritten bytes take no disk


class StreamedWeights(Record):
    """Options for constants that each run reads from a file instead of keeping them in memory.

    Parameters
        path: the file; `compile` writes it unless it contains exactly these weights already. Graphs that share these
            options, such as those of several sizes, share files: one whose weights are packed in another way gets
            ``path-2``, and so on, because the others still read theirs
        ring: bytes of memory for the weights, at least those that one kernel call reads; by default the part
            of the budget that the arena leaves, and without a budget 12 MiB
        slice: maximum bytes of a slice of large filters and matrices, or one panel of them; by default a third of the
            ring, and no more than 4 MiB
            Both are numbers, or text such as ``"12MiB"``
        progress: called with the bytes written so far and the total, while the file is written
        verify: compare the checksum of each piece whenever a run reads it, before a kernel does
    Raises
        GraphError: `ring` or `slice` is less than one byte
        WeightsError: this system cannot stream weights

    `files` are those of all graphs with these options.
    """

    path: str
    ring: int | str | None = None
    slice: int | str | None = None
    progress: Callable[[int, int], None] | None = None
    verify: bool = False
    files: "WeightFiles" = field(init=False)

    def __reduce__(self) -> tuple[type, tuple]:
        """Pickle the fields: files that this process reads are not those of another."""
        return type(self), tuple(getattr(self, name) for name in self._fields)

    def __post_init__(self) -> None:
        check_pread()
        set_field(self, "files", WeightFiles())
        for name in ("ring", "slice"):
            size = getattr(self, name)
            if size is not None:
                set_field(self, name, at_least_a_byte(name, size))

    @property
    def ring_nbytes(self) -> int | None:
        """The ring in bytes; None for the default."""
        return None if self.ring is None else byte_count(self.ring)

    def with_ring(self, nbytes: int) -> "StreamedWeights":
        """Return the same options and files with a ring of this size."""
        other = replace(self, ring=nbytes)
        set_field(other, "files", self.files)
        return other

    @property
    def slice_nbytes(self) -> int | None:
        """The size of a slice in bytes; None for the default."""
        return None if self.slice is None else byte_count(self.slice)


def at_least_a_byte(name: str, size: Any) -> int:
    """Return a number of bytes. GraphError if it is not one, or 0."""
    try:
        nbytes = byte_count(size)
    except ArgumentError as error:
        raise GraphError(f"{name}: {error}") from None
    if nbytes < 1:
        raise GraphError(f"a {name} of {nbytes} bytes holds no weights. Use {name}=None for the default")
    return nbytes


class Checksum(Record):
    """The checksum of an array in a file.

    Fields
        nbytes: bytes of the array
        digest: their BLAKE2b
    """

    nbytes: int
    digest: bytes

    def fits(self, content: memoryview) -> bool:
        """Return True if `content` begins with these bytes."""
        return digest_of(content[: self.nbytes]) == self.digest


Checksums = dict[int, Checksum]  # by the offset in the file at which an array begins


class WeightMap(mmap.mmap):
    """A mapped weight file; `place_of` finds arrays in it.

    Fields
        weights: the options
        path: the file
        stamp: identity and last change of the file
        sums: checksums of its arrays
    """

    weights: StreamedWeights
    path: str
    stamp: Stamp
    sums: Checksums


class WeightFiles:
    """The files that Functions with the same options read. Mutable: one compile at a time adds a file."""

    def __init__(self) -> None:
        self._maps: WeakSet[WeightMap] = WeakSet()
        self._turns = FairLock()

    def map(
        self, weights: StreamedWeights, head: bytes, places: Sequence[int], parts: Iterator[bytes | memoryview]
    ) -> WeightMap:
        """Map the first file that begins with `head`, or write `parts` to the first path at which no Function reads.

        WeightsError if another process replaces the file while it is written.
        """
        return self._turns.run(lambda: self._map(weights, head, places, parts))

    def _map(
        self, weights: StreamedWeights, head: bytes, places: Sequence[int], parts: Iterator[bytes | memoryview]
    ) -> WeightMap:
        path, number = weights.path, 1
        while (mapping := open_map(weights, path, head, places)) is None and self._is_read(path):
            number += 1
            path = f"{weights.path}-{number}"
        if mapping is None:
            replace_file(path, parts)
            mapping = open_map(weights, path, head, places)
        if mapping is None:
            raise WeightsError(
                f"{path}: another process replaced the file while it was written. Give each graph a separate file"
            )
        self._maps.add(mapping)
        return mapping

    def _is_read(self, path: str) -> bool:
        """Return True if a Function reads the file at a path, which has not changed since."""
        stamps = [x.stamp for x in self._maps if x.path == path]
        with suppress(OSError):
            return bool(stamps) and stamp_of(os.stat(path)) in stamps
        return False


def place_of(array: np.ndarray) -> tuple[WeightMap, int] | None:
    """Return the file of an array, and its offset in it; None for any other array."""
    mapping = mapping_of(array)
    if not isinstance(mapping, WeightMap):
        return None
    return mapping, array.ctypes.data - np.frombuffer(mapping, np.uint8, 1).ctypes.data


class Spool:
    """Temporary unnamed files for arrays that are created one after another and needed later. Mutable: it grows.

    Parameters
        folder: a folder with enough free space
        small: arrays of at most this number of bytes stay in memory
    """

    def __init__(self, folder: str | Path, small: int) -> None:
        self.folder, self.small, self.at = folder, small, 0
        self.mapping: mmap.mmap | None = None

    def keep(self, x: np.ndarray) -> np.ndarray:
        """Return the array mapped from a file, or unchanged if it is small or mapped already."""
        if x.nbytes <= self.small or (mapping_of(x) is not None and x.flags.c_contiguous):
            return x
        if self.mapping is None or self.at + x.nbytes > len(self.mapping):
            self.file = unnamed_file(self.folder)
            self.file.truncate(max(SPOOL, pages(x.nbytes)))
            self.mapping, self.at = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ), 0
        self.file.seek(self.at)
        self.file.write(in_c_order(x).data.cast("B"))
        self.file.flush()
        copy = np.frombuffer(self.mapping, x.dtype, x.size, self.at).reshape(x.shape)
        self.at += pages(x.nbytes)
        return copy


def arrays_on_disk(weights: StreamedWeights, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the arrays mapped from a file. Write it first unless its table says that it has these very arrays.

    Raises
        WeightsError: another process keeps replacing the file
    """
    arrays = [in_c_order(x) for x in arrays]
    head, places = header(arrays)
    parts = with_progress(contents(head, places, arrays), places[-1], weights.progress)
    mapping = weights.files.map(weights, head, places, parts)
    return [
        np.frombuffer(mapping, x.dtype, x.size, place).reshape(x.shape)
        for x, place in zip(arrays, places, strict=False)
    ]


def header(arrays: Sequence[np.ndarray]) -> tuple[bytes, list[int]]:
    """Return the file's beginning, the offset of each array, and the end of the file."""
    start = pages(PAGE + ENTRY * len(arrays))
    places = [start]
    for x in arrays:
        places.append(places[-1] + pages(x.nbytes))
    table = b"".join(entry_of(place, x) for place, x in zip(places, arrays))
    first = MAGIC + number(VERSION) + number(len(arrays)) + digest_of(table)
    return first.ljust(PAGE, b"\0") + table, places


def entry_of(place: int, x: np.ndarray) -> bytes:
    """Return an array's offset, its bytes and their digest."""
    entry = number(place) + number(x.nbytes) + digest_of(x.data)
    release(x)
    return entry


def sums_in(table: bytes) -> Checksums:
    """Return the checksums that a table lists; an empty array begins where the next one does, which has the place."""
    return dict(entries_in(table))


def entries_in(table: bytes) -> Iterator[tuple[int, Checksum]]:
    """Yield the offset and the checksum of each array that a table lists."""
    for at in range(0, len(table), ENTRY):
        entry = table[at : at + ENTRY]
        yield int.from_bytes(entry[:8], "little"), Checksum(int.from_bytes(entry[8:16], "little"), entry[16:])


def sums_of(arrays: Mapping[int, np.ndarray]) -> Checksums:
    """Return the checksums of arrays by their offsets in a file."""
    sums = {}
    for place, x in arrays.items():
        sums[place] = Checksum(x.nbytes, digest_of(x.data))
        release(x)
    return sums


def digest_of(content: bytes | memoryview) -> bytes:
    return blake2b(content, digest_size=DIGEST).digest()


def number(value: int) -> bytes:
    return value.to_bytes(8, "little")


def pages(nbytes: int) -> int:
    """Return bytes rounded up to a multiple of the page size."""
    return round_up(nbytes, PAGE)


def contents(head: bytes, places: Sequence[int], arrays: Sequence[np.ndarray]) -> Iterator[bytes | memoryview]:
    yield head.ljust(places[0], b"\0")
    for x in arrays:
        yield x.reshape(-1).view(np.uint8).data
        yield bytes(pages(x.nbytes) - x.nbytes)
        release(x)


def with_progress(
    parts: Iterator[bytes | memoryview], size: int, progress: Callable[[int, int], None] | None
) -> Iterator[bytes | memoryview]:
    """Yield the parts, and report the bytes yielded so far, and `size`, to `progress`."""
    done = 0
    for part in parts:
        yield part
        done += len(part)
        if progress is not None:
            progress(done, size)


def open_map(weights: StreamedWeights, path: str, head: bytes, places: Sequence[int]) -> WeightMap | None:
    """Map the file, and let the system drop its cached pages.

    None if it does not begin with `head` or does not have the length that it declares: the file that is mapped is the
    one that was compared.
    """
    try:
        file = io.FileIO(path)
    except OSError:
        return None
    with file:
        status = os.fstat(file.fileno())
        if status.st_size != places[-1] or not is_regular(status) or file.read(len(head)) != head:
            return None
        forget_cached(file.fileno())
        mapping = WeightMap(file.fileno(), 0, access=mmap.ACCESS_READ)
    mapping.weights, mapping.path = weights, path
    mapping.stamp, mapping.sums = stamp_of(status), sums_in(head[PAGE:])
    return mapping


def check_weights(path: str | Path) -> None:
    """Check the checksums of a whole file of weights, piece by piece. WeightsError if it is damaged."""
    with open(os.fspath(path), "rb") as file:  # open(3) would take the number of an open file
        head = file.read(PAGE)
        count = min(int.from_bytes(head[16:24], "little"), os.fstat(file.fileno()).st_size // ENTRY)
        table = file.read(ENTRY * count)
        if head[:16] != MAGIC + number(VERSION) or digest_of(table) != head[24 : 24 + DIGEST]:
            raise WeightsError(
                f"{path}: it is not a weight file of this version, or its table is damaged. Compile again to write it"
            )
        for i, (place, entry) in enumerate(entries_in(table)):
            if digest_in(file, place, entry.nbytes) != entry.digest:
                raise WeightsError(
                    f"{path}: array {i}, {entry.nbytes} bytes at {place}, is damaged. Remove the file and compile again"
                )


def digest_in(file: BinaryIO, place: int, nbytes: int) -> bytes:
    """Return the digest of some bytes of a file, up to its end."""
    digest = blake2b(digest_size=DIGEST)
    file.seek(place)
    while nbytes > 0 and (portion := file.read(min(nbytes, PORTION))):
        digest.update(portion)
        nbytes -= len(portion)
    return digest.digest()
