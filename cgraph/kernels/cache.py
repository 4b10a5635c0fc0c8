"""Cache folders of machine code: small files with checksums, written by rename and removed when long unused.

Machine code is executed, so a process reads only files that no other user can have written. Only the user may use the
folder (mode 0700), each parent folder belongs to the user or to root and does not let others rename its entries, and
each file is a regular file of the user with one name, which others cannot write. The folder is opened once, from the
root down, and each part is checked after opening (`cgraph.system.file_ownership.open_folder`). Files are opened
relative to its descriptor, so a symbolic link that changes later has no effect. A folder that fails the checks is not
used: with another user's HOME there is no cache. On Windows the folder must lie in the user's profile.

A checksum covers the file's name and content, so a renamed, truncated, changed or foreign file counts as absent. Any
number of processes may read, write and remove files at once: each sees a whole file or none.
"""

import errno
import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path
from weakref import finalize

from cgraph.system.file_ownership import is_alone, is_own, is_users, open_folder
from cgraph.system.folders import (
    CREATE,
    READ,
    Folder,
    close_folder,
    names_in,
    open_in,
    remove_in,
    replace_in,
    set_mode,
    status_in,
    status_of,
    touch_in,
)

MAGIC = b"cgraph-kernel-2\n"
HOUR, DAY = 3600, 86400  # seconds
UNUSED = 90 * DAY  # a file that was not read for longer is removed
LARGEST = 128 << 20  # bytes of all files; beyond it the least recently used are removed
PRUNED = ".pruned"  # its modification time is that of the last removal
SUFFIX = ".part"  # suffix of a file that is still being written
ALONE = 0o700  # permissions of the folder

Identity = tuple[int, int]


class CacheFolder:
    """A folder that belongs only to the user, opened once. Changes: files come and go.

    Parameters
        path: its name in messages
        handle: the open folder; it is closed when this object is collected
    """

    def __init__(self, path: Path, handle: Folder) -> None:
        self.path, self._handle = path, handle
        self._identity = identity_of(handle)
        finalize(self, close_own, handle, self._identity)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def handle(self) -> Folder:
        """The open folder.

        Raises
            OSError: the process has closed its descriptors, so the number is free or belongs to another folder; or the
                folder's owner has changed
        """
        status = status_of(self._handle)
        if (status.st_dev, status.st_ino) != self._identity or not is_alone(status):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._handle

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None when it is absent, not the user's alone, truncated or changed.

        The modification time records the day of its last use.
        """
        try:
            folder = self.handle
            handle = open_in(folder, name, READ)
            with os.fdopen(handle, "rb") as file:
                status = os.fstat(handle)
                raw = file.read() if is_own(status) else b""
                with suppress(OSError):  # a read-only folder works as well
                    if raw and time.time() - status.st_mtime > DAY:
                        touch_in(folder, name, handle)
        except OSError:
            return None
        start = len(MAGIC) + hashlib.sha256().digest_size
        body = raw[start:]
        return body if raw[:start] == MAGIC + checksum(name, body) else None

    def write(self, name: str, body: bytes) -> None:
        """Write a file by rename. On a full or read-only disk nothing is written and nothing is raised."""
        temporary = f".{os.urandom(8).hex()}{SUFFIX}"
        try:
            folder = self.handle
            handle = open_in(folder, temporary, CREATE)
        except OSError:
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + checksum(name, body) + body)
            replace_in(folder, temporary, name)
        except BaseException as error:
            with suppress(OSError):
                remove_in(folder, temporary)
            if not isinstance(error, OSError):
                raise

    def prune(self, largest: int = LARGEST, unused: float = UNUSED) -> None:
        """Remove files that were not used for `unused` seconds, then the least recently used beyond `largest` bytes.

        Partial files of killed writers are removed after a day. A process that has read a file keeps its content; a
        process that needs a removed file compiles the kernel again.
        """
        total = 0
        for used, nbytes, name in sorted(self.entries(), reverse=True):
            total += nbytes
            if total > largest or time.time() - used > (DAY if name.endswith(SUFFIX) else unused):
                with suppress(OSError):
                    remove_in(self.handle, name)

    def prune_hourly(self) -> None:
        """Call `prune` unless a process did so in the last hour: listing 30,000 files takes a third of a second."""
        with suppress(OSError):
            if abs(time.time() - status_in(self.handle, PRUNED).st_mtime) < HOUR:
                return
        self.write(PRUNED, b"")
        self.prune()

    def entries(self) -> list[tuple[float, int, str]]:
        """Return (time of last use, bytes, name) of each file, without files that others remove meanwhile."""
        entries = []
        with suppress(OSError):
            folder = self.handle
            for name in names_in(folder):
                with suppress(OSError):
                    status = status_in(folder, name)
                    entries.append((status.st_mtime, status.st_size, name))
        return entries


def identity_of(handle: Folder) -> Identity:
    status = status_of(handle)
    return status.st_dev, status.st_ino


def close_own(handle: Folder, identity: Identity) -> None:
    """Close a folder if its descriptor still refers to it."""
    with suppress(OSError):
        if identity_of(handle) == identity:
            close_folder(handle)


def cache_folder(kind: str = "kernels") -> CacheFolder | None:
    """Open the user's cache folder, creating it when missing. None if no folder can belong only to the user."""
    base = cache_base()
    if base is None:
        return None
    try:
        handle = open_folder(os.path.join(os.path.realpath(base / "cgraph"), kind), make=True)
        if handle is None:
            return None
        folder, status = CacheFolder(base / "cgraph" / kind, handle), status_of(handle)
        if is_users(status) and not is_alone(status):
            set_mode(handle, ALONE)
        return folder if is_alone(status_of(handle)) else None
    except OSError:
        return None


def cache_base() -> Path | None:
    """Return the folder of this user's caches: by the XDG specification, or Windows's own. A relative path is
    ignored.
    """
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        base = Path(os.environ.get(name) or "")
        if base.is_absolute():
            return base
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # no HOME, and the system has no entry for the user
        return None


def checksum(name: str, body: bytes) -> bytes:
    """Return the checksum of a file's name and content."""
    return hashlib.sha256(os.fsencode(name) + b"\0" + body).digest()
