"""Cache folders of machine code: small files with checksums, written by rename and removed when long unused.

Machine code is executed, so a process reads only files that no other user can have written. The folder belongs to the
user alone (mode 0700), each parent folder belongs to the user or to root and does not let others rename its entries,
and each file is a regular file of the user with one name, which others cannot write. The folder is opened once, from
the root down, and each part is checked after opening (`cgraph.system.file_ownership.open_folder`). Files are opened
relative to its descriptor, so a symbolic link that changes later has no effect. A folder that fails the checks is not
used: with another user's HOME there is no cache.

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

from cgraph.system.file_ownership import is_own, open_folder

MAGIC = b"cgraph-kernel-2\n"
DAY = 86400  # seconds
UNUSED = 90 * DAY  # a file that was not read for longer is removed
LARGEST = 128 << 20  # bytes of all files; beyond it the least recently used are removed
SUFFIX = ".part"  # suffix of a file that is still being written
ALONE, OTHERS = 0o700, 0o077  # permissions of the folder; permission bits of other users
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Identity = tuple[int, int]


class CacheFolder:
    """A folder that belongs to the user alone, accessed by its descriptor. Changes: files come and go.

    Parameters
        path: its name in messages
        handle: the descriptor; it is closed when this object is collected
    """

    def __init__(self, path: Path, handle: int) -> None:
        self.path, self._handle = path, handle
        self._identity = identity_of(handle)
        finalize(self, close_folder, handle, self._identity)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def handle(self) -> int:
        """The descriptor.

        Raises
            OSError: the process has closed its descriptors, so the number is free or belongs to another folder; or the
                folder's owner has changed
        """
        status = os.fstat(self._handle)
        if (status.st_dev, status.st_ino) != self._identity or not is_alone(status):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._handle

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None when it is absent, not the user's alone, truncated or changed.

        The modification time records the day of its last use.
        """
        try:
            handle = os.open(name, READ, dir_fd=self.handle)
            with os.fdopen(handle, "rb") as file:
                status = os.fstat(handle)
                raw = file.read() if is_own(status) else b""
                with suppress(OSError):  # a read-only folder works as well
                    if raw and time.time() - status.st_mtime > DAY:
                        os.utime(handle)
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
            handle = os.open(temporary, WRITE, 0o600, dir_fd=folder)
        except OSError:
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + checksum(name, body) + body)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException as error:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
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
                    os.unlink(name, dir_fd=self.handle)

    def entries(self) -> list[tuple[float, int, str]]:
        """Return (time of last use, bytes, name) of each file, without files that others remove meanwhile."""
        entries = []
        with suppress(OSError):
            for name in os.listdir(self.handle):
                with suppress(OSError):
                    status = os.stat(name, dir_fd=self.handle, follow_symlinks=False)
                    entries.append((status.st_mtime, status.st_size, name))
        return entries


def identity_of(handle: int) -> Identity:
    status = os.fstat(handle)
    return status.st_dev, status.st_ino


def close_folder(handle: int, identity: Identity) -> None:
    """Close a descriptor if it still refers to the folder."""
    with suppress(OSError):
        if identity_of(handle) == identity:
            os.close(handle)


def is_alone(status: os.stat_result) -> bool:
    """Return True if it belongs to the user and no other user can read or write it."""
    return status.st_uid == os.geteuid() and not status.st_mode & OTHERS


def cache_folder(kind: str = "kernels") -> CacheFolder | None:
    """Open the user's cache folder, creating it when missing. None when no folder can belong to the user alone."""
    base = cache_base()
    if base is None:
        return None
    try:
        handle = open_folder(f"{os.path.realpath(base / 'cgraph')}/{kind}", make=True)
        if handle is None:
            return None
        folder, status = CacheFolder(base / "cgraph" / kind, handle), os.fstat(handle)
        if status.st_uid == os.geteuid() and not is_alone(status):
            os.fchmod(handle, ALONE)
        return folder if is_alone(os.fstat(handle)) else None
    except OSError:
        return None


def cache_base() -> Path | None:
    """Return the folder of this user's caches. As the XDG specification says, a relative path is ignored."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if base.is_absolute():
        return base
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # no HOME, and the system has no entry for the user
        return None


def checksum(name: str, body: bytes) -> bytes:
    """Return the checksum of a file's name and content."""
    return hashlib.sha256(os.fsencode(name) + b"\0" + body).digest()
