"""Access to the folder of a saved function: checks of its owner, and of its files against the manifest.

The folder contains machine code. So the folder and its files must belong to the user, and nobody else may be able to
write or rename them, as in the kernel cache; or the caller trusts them. The folder is opened part by part from the
root, and each part is checked as it is opened. No link is followed inside the folder, and the file that is mapped is
the one that was checked. Checksums detect damage, not malice.
"""

import os
from collections.abc import Iterator
from mmap import mmap

import numpy as np

from cgraph.errors import FormatError
from cgraph.system.file_ownership import Stamp, is_closed, is_own, is_regular, open_folder, stamp_of
from cgraph.system.folders import READ, close_folder, names_in, open_in, open_path, status_of
from cgraph.system.mapping import map_descriptor


class Folder:
    """The files of a folder by name, mapped. Each file is checked when it is opened."""

    def __init__(self, path: str | os.PathLike, trust: bool) -> None:
        self.path, self.trust = os.path.realpath(path), trust
        self._stamps: dict[str, Stamp] = {}
        try:
            handle = open_path(self.path) if trust else open_folder(self.path)
        except OSError as error:
            raise FormatError(f"{os.fspath(path)}: {error.strerror}") from None
        if handle is None:
            raise foreign(self.path)
        self._handle = handle
        try:
            if not trust and not is_closed(status_of(handle)):
                raise foreign(self.path)
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[str]:
        """Return the names of its files."""
        return iter(names_in(self._handle))

    def __contains__(self, name: str) -> bool:
        return name in names_in(self._handle)

    def __getitem__(self, name: str) -> np.ndarray:
        path = os.path.join(self.path, name)
        try:
            handle = open_in(self._handle, name, READ)
        except OSError as error:
            raise FormatError(f"{path}: {error.strerror}") from None
        try:
            status = os.fstat(handle)
            self._stamps[name] = stamp_of(status)
            if not is_regular(status):
                raise FormatError(f"{path} is not a regular file. Save the function again")
            if not self.trust and not is_own(status):
                raise foreign(path)
            if not status.st_size:  # an empty file cannot be mapped
                return np.zeros(0, np.uint8)
            return np.frombuffer(mapped(handle, path, status.st_size), np.uint8)
        finally:
            os.close(handle)

    def stamp(self, name: str) -> Stamp:
        """Return identity and last change of a file at the time it was mapped."""
        return self._stamps[name]

    def close(self) -> None:
        close_folder(self._handle)


def foreign(name: str) -> FormatError:
    return FormatError(
        f"{name} may have been written by others. A saved function is machine code, which would run as you: it is "
        "loaded from where only you can write, or with trust=True"
    )


def mapped(handle: int, path: str, nbytes: int) -> mmap:
    """Return a mapped file. FormatError if this process has no addresses for it."""
    try:
        return map_descriptor(handle, nbytes)
    except OSError as error:
        raise FormatError(f"{path} has {nbytes} bytes, which cannot be mapped: {error.strerror}") from None
