"""Memory-mapped files, opened so that no link leads outside their folder.

ONNX has four rules for external data: the path stays inside the folder; no component is a symbolic link (each is
opened with O_NOFOLLOW relative to its parent, so none can be exchanged in between); the file is regular; it has one
hard link. Source: docs/ExternalDataSecurity.md of onnx. On Linux, truncating a mapped file kills the process.
"""

import os
import stat
from pathlib import Path, PurePosixPath

from cgraph.errors import FormatError
from cgraph.system.folders import READ, READ_LINKED, close_folder, enter, has_descriptors, open_in, open_path
from cgraph.system.mapping import map_descriptor


def map_file(path: str | Path) -> memoryview:
    """Map a file that the user named; links are followed. FormatError if it cannot be read."""
    try:
        fd = os.open(path, READ_LINKED)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # a zero byte in the path
        raise FormatError(f"{str(path)!r}: {error}") from None
    return map_regular(fd, str(path))


def map_external(folder: Path, location: str) -> memoryview:
    """Map a file that another file names, in `folder` or below. FormatError unless every rule above holds."""
    parts = [part for part in location.split("/") if part != "."]
    foreign = "\\\0" if has_descriptors() else "\\\0:"  # a colon names a drive or a stream
    if not location or set(foreign) & set(location) or PurePosixPath(location).is_absolute():
        raise FormatError(f"external data at {location!r:.80} is not a relative path. Name a file next to the model")
    if not parts or any(part in ("", "..") for part in parts):
        raise FormatError(f"external data at {location!r:.80} may leave its folder. Name a file next to the model")
    opened = open_path(folder)
    try:
        for part in parts[:-1]:
            outer, opened = opened, enter(opened, part)
            close_folder(outer)
        fd = open_in(opened, parts[-1], READ)
    except (OSError, ValueError) as error:
        raise FormatError(f"external data at {location!r:.80}: {error}") from None
    finally:
        close_folder(opened)
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and status.st_nlink != 1:
        os.close(fd)
        raise FormatError(f"external data at {location!r:.80} has several hard links. Copy the file")
    return map_regular(fd, f"external data at {location!r:.80}")


def map_regular(fd: int, name: str) -> memoryview:
    """Map a regular file as read-only bytes and close the descriptor."""
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{name} is not a regular file")
        if status.st_size == 0:
            return memoryview(b"")
        return memoryview(map_descriptor(fd, status.st_size))
    finally:
        os.close(fd)
