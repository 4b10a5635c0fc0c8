"""The user's folders of machine code: small files with checksums, written by rename, removed when long unused.

Machine code is run, so only what nobody else can have written is read: the folder is the user's alone (mode 0700),
each folder above belongs to the user or to root and lets nobody else rename what is in it, and a file is a regular
one of the user's, with one name, which others cannot write. The folder is opened once, from the root on, each part
checked as it was opened (`cgraph.system.file_ownership.open_folder`); files are reached from its descriptor, so a
link that is turned meanwhile leads nowhere. Nothing is made in a folder that fails: with another user's HOME there is
no cache.

A file's checksum is over its name, too, so that a file put in the place of another is taken for absent, as is one that
is cut off, changed or foreign. Any number of processes may read, write and remove at once: each finds a file whole or
not at all.
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
UNUSED = 90 * DAY  # after which a file is removed
LARGEST = 128 << 20  # bytes of all files; beyond it those go that have been unused for longest
SUFFIX = ".part"  # what a file is called until it is whole
ALONE, OTHERS = 0o700, 0o077  # permissions of the folder; those that nobody else has
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Identity = tuple[int, int]


class CacheFolder:
    """A folder of the user's alone, by its descriptor. Changes: files come and go.

    Parameters
        path: how messages call it
        handle: the descriptor, which is closed when this is lost
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
            OSError: the process has closed all descriptors, and this number is another folder's, or nobody's; or the
                folder was given away
        """
        status = os.fstat(self._handle)
        if (status.st_dev, status.st_ino) != self._identity or not is_alone(status):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._handle

    def read(self, name: str) -> bytes | None:
        """Return what a file holds, or None when it is absent, not the user's alone, cut off or changed.

        Its time says on which day it was last used.
        """
        try:
            handle = os.open(name, READ, dir_fd=self.handle)
            with os.fdopen(handle, "rb") as file:
                status = os.fstat(handle)
                raw = file.read() if is_own(status) else b""
                with suppress(OSError):  # a read-only folder serves as well
                    if raw and time.time() - status.st_mtime > DAY:
                        os.utime(handle)
        except OSError:
            return None
        start = len(MAGIC) + hashlib.sha256().digest_size
        body = raw[start:]
        return body if raw[:start] == MAGIC + checksum(name, body) else None

    def write(self, name: str, body: bytes) -> None:
        """Write by rename; a full or read-only disk costs the cache, not the run."""
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
        """Remove what was not used for `unused` seconds, then what was unused for longest, down to `largest` bytes.

        So goes, after a day, what a writer that was killed has left. A process that has read a file keeps what it
        read; one that wants it later makes it anew.
        """
        total = 0
        for used, nbytes, name in sorted(self.entries(), reverse=True):
            total += nbytes
            if total > largest or time.time() - used > (DAY if name.endswith(SUFFIX) else unused):
                with suppress(OSError):
                    os.unlink(name, dir_fd=self.handle)

    def entries(self) -> list[tuple[float, int, str]]:
        """When each file was last used, its bytes and its name; without files that others remove meanwhile."""
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
    """Close a descriptor that is still the folder's."""
    with suppress(OSError):
        if identity_of(handle) == identity:
            os.close(handle)


def is_alone(status: os.stat_result) -> bool:
    """Return True if it is the user's, and nobody else can read or write there."""
    return status.st_uid == os.geteuid() and not status.st_mode & OTHERS


def cache_folder(kind: str = "kernels") -> CacheFolder | None:
    """Open the user's own cache folder, made when missing; None when there can be none that is theirs alone."""
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
    """Where this user's caches are: as the XDG specification says, a relative path does not count."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if base.is_absolute():
        return base
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # no HOME, and a user whom the system does not know
        return None


def checksum(name: str, body: bytes) -> bytes:
    """Of a file's name and what it holds."""
    return hashlib.sha256(os.fsencode(name) + b"\0" + body).digest()
