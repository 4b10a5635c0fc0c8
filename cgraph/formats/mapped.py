"""Files mapped into memory for reading, opened so that no link leads outside.

The four layers of ONNX's rules for external data: the path stays inside the folder, no component is a symbolic link
(each is opened with O_NOFOLLOW from the one before, so nothing can be exchanged in between), the file is a regular one,
and it has one hard link. Source: docs/ExternalDataSecurity.md of onnx. A file that is truncated while it is mapped
kills the process on Linux, as any mapped file does.
"""

import mmap
import os
import stat
from pathlib import Path, PurePosixPath

import numpy as np

from cgraph.errors import FormatError

PAGE = mmap.PAGESIZE
PIECE = 256 * PAGE


class MappedFile:
    """Bytes of a file, or given ones. `map` is None for given ones."""

    def __init__(self, data: memoryview, mapping: mmap.mmap | None = None) -> None:
        self.bytes, self.map = data, mapping

    def settled(self, array: np.ndarray, span: range) -> np.ndarray:
        """The array at `span` if its elements lie aligned; else a copy, whose source is forgotten piece by piece."""
        if array.flags.aligned:
            return array
        found = np.empty(array.shape, array.dtype)
        into = found.reshape(-1).view(np.uint8)
        source = np.frombuffer(self.bytes, np.uint8)
        for start in range(span.start, span.stop, PIECE):
            stop = min(start + PIECE, span.stop)
            into[start - span.start : stop - span.start] = source[start:stop]
            self.forget(range(start, stop))
        return found

    def forget(self, span: range) -> None:
        """Give whole pages back to the system; they are read again when they are needed again."""
        first, last = -(-span.start // PAGE) * PAGE, span.stop // PAGE * PAGE
        if self.map is not None and last > first:
            self.map.madvise(mmap.MADV_DONTNEED, first, last - first)


def map_file(path: Path) -> MappedFile:
    """A file that the user named himself: links are followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    return map_descriptor(fd, str(path))


def beside(folder: Path, location: str) -> MappedFile:
    """A file that another file names, in `folder` or below. FormatError unless every rule above holds."""
    parts = [part for part in location.split("/") if part != "."]
    if not location or "\\" in location or "\0" in location or PurePosixPath(location).is_absolute():
        raise FormatError(f"external data at {location!r:.80} is no relative path")
    if not parts or any(part in ("", "..") for part in parts):
        raise FormatError(f"external data at {location!r:.80} may leave its folder")
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for i, part in enumerate(parts):
            kind = os.O_DIRECTORY if i < len(parts) - 1 else os.O_NONBLOCK
            inner = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=fd)
            os.close(fd)
            fd = inner
    except (OSError, ValueError) as error:
        os.close(fd)
        raise FormatError(f"external data at {location!r:.80}: {error}") from None
    if os.fstat(fd).st_nlink != 1:
        os.close(fd)
        raise FormatError(f"external data at {location!r:.80} has several hard links")
    return map_descriptor(fd, location)


def map_descriptor(fd: int, name: str) -> MappedFile:
    """A regular file as read-only bytes; the descriptor is closed."""
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{name} is no regular file")
        if status.st_size == 0:
            return MappedFile(memoryview(b""))
        mapping = mmap.mmap(fd, status.st_size, access=mmap.ACCESS_READ)
        return MappedFile(memoryview(mapping), mapping)
    finally:
        os.close(fd)
