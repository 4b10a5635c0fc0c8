"""The user's folder of machine code: small files with checksums, written by rename, removed when long unused.

Machine code is run, so only what nobody else can have written is read: the folder is the user's alone (mode 0700), each
folder above belongs to the user or to root and lets nobody else rename what is in it, and a file is a regular one of
the user's, with one name, which others cannot write. Its checksum is over its name, too, so that a file put in the
place of another is taken for absent, as is one that is cut off, changed or foreign. Any number of processes may read,
write and remove at once: each finds a file whole or not at all.
"""

import hashlib
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from cgraph.owned import is_own, is_safe

MAGIC = b"cgraph-kernel-2\n"
DAY = 86400  # seconds
UNUSED = 90 * DAY  # after which a file is removed
LARGEST = 128 << 20  # bytes of all files; beyond it those go that have been unused for longest
PART = ".part"  # what a file is called until it is whole


def cache_folder() -> Path | None:
    """The user's own cache folder, made when missing; None when there can be none that is theirs alone."""
    base = cache_base()
    if base is None:
        return None
    folder = base / "cgraph" / "kernels"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        seen = folder.lstat()
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
            return None
        if not all(is_safe(above) for above in folder.resolve().parents):
            return None
        if seen.st_mode & 0o077:
            folder.chmod(0o700)
    except (OSError, RuntimeError):  # RuntimeError: links that lead to one another
        return None
    return folder


def cache_base() -> Path | None:
    """Where this user's caches are: as the XDG specification says, a relative path does not count."""
    given = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if given.is_absolute():
        return given
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # no HOME, and a user whom the system does not know
        return None


def read_entry(path: Path) -> bytes | None:
    """What a file holds, or None when it is absent, not the user's alone, cut off or changed.

    Its time says on which day it was last used.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            seen = os.fstat(handle)
            raw = file.read() if is_own(seen) else b""
    except OSError:
        return None
    with suppress(OSError):  # a read-only folder serves as well
        if time.time() - seen.st_mtime > DAY:
            os.utime(path)
    start = len(MAGIC) + hashlib.sha256().digest_size
    body = raw[start:]
    return body if raw[:start] == MAGIC + checksum(path, body) else None


def checksum(path: Path, body: bytes) -> bytes:
    """Of a file's name and what it holds."""
    return hashlib.sha256(os.fsencode(path.name) + b"\0" + body).digest()


def write_entry(path: Path, body: bytes) -> None:
    """Write by rename; a full or read-only disk costs the cache, not the run."""
    import tempfile  # a process that compiles nothing does without it and the modules that it needs

    try:
        handle, temporary = tempfile.mkstemp(PART, dir=path.parent)
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + checksum(path, body) + body)
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if not isinstance(error, OSError):
            raise


def prune(folder: Path, largest: int = LARGEST, unused: float = UNUSED) -> None:
    """Remove what was not used for `unused` seconds, then what was unused for longest, down to `largest` bytes.

    So goes, after a day, what a writer that was killed has left. A process that has read a file keeps what it read; one
    that wants it later makes it anew.
    """
    kept = 0
    for used, nbytes, path in sorted(entries_of(folder), reverse=True):
        kept += nbytes
        if kept > largest or time.time() - used > (DAY if path.suffix == PART else unused):
            with suppress(OSError):
                path.unlink()


def entries_of(folder: Path) -> list[tuple[float, int, Path]]:
    """When each file was last used, its bytes and its path; without files that others remove meanwhile."""
    found = []
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):
                seen = path.lstat()
                found.append((seen.st_mtime, seen.st_size, path))
    return found
