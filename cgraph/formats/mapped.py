"""Memory-mapped files, opened so that no link leads outside their folder.

ONNX has four rules for external data: the path stays inside the folder; no component is a symbolic link (each is
opened with O_NOFOLLOW relative to its parent, so none can be exchanged in between); the file is regular; it has one
hard link. Source: docs/ExternalDataSecurity.md of onnx. On Linux, truncating a mapped file kills the process.
"""

import mmap
import os
import stat
from pathlib import Path, PurePosixPath

from cgraph.errors import FormatError


def map_file(path: str | Path) -> memoryview:
    """Map a file that the user named; links are followed. FormatError if it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # a zero byte in the path
        raise FormatError(f"{str(path)!r}: {error}") from None
    return map_descriptor(fd, str(path))


def map_external(folder: Path, location: str) -> memoryview:
    """Map a file that another file names, in `folder` or below. FormatError unless every rule above holds."""
    parts = [part for part in location.split("/") if part != "."]
    if not location or "\\" in location or "\0" in location or PurePosixPath(location).is_absolute():
        raise FormatError(f"external data at {location!r:.80} is not a relative path. Name a file beside the model")
    if not parts or any(part in ("", "..") for part in parts):
        raise FormatError(f"external data at {location!r:.80} may leave its folder. Name a file beside the model")
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
        raise FormatError(f"external data at {location!r:.80} has several hard links. Copy the file")
    return map_descriptor(fd, location)


def map_descriptor(fd: int, name: str) -> memoryview:
    """Map a regular file as read-only bytes and close the descriptor."""
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{name} is not a regular file")
        if status.st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(fd, status.st_size, access=mmap.ACCESS_READ))
    finally:
        os.close(fd)
