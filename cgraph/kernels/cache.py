"""The user's folder of machine code: small files with checksums, written by rename, removed when long unused.

The folder belongs to the user alone (mode 0700). A file that is cut off, changed or foreign is taken for absent. Any
number of processes may read, write and remove at once: each finds a file whole or not at all.
"""

import hashlib
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

MAGIC = b"cgraph-kernel-1\n"
DAY = 86400  # seconds
UNUSED = 90 * DAY  # after which a file is removed
LARGEST = 128 << 20  # bytes of all files; beyond it those go that have been unused for longest


def cache_folder() -> Path | None:
    """The user's own cache folder, made when missing; None when it is not theirs alone."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "cgraph" / "kernels"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        seen = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid():
        return None
    if seen.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def read_entry(path: Path) -> bytes | None:
    """What a file holds, or None when it is absent, cut off or changed. Its time says on which day it was last used."""
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):  # a read-only folder serves as well
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)
    body = raw[len(MAGIC) + 32 :]
    if not raw.startswith(MAGIC) or hashlib.sha256(body).digest() != raw[len(MAGIC) : len(MAGIC) + 32]:
        return None
    return body


def write_entry(path: Path, body: bytes) -> None:
    """Write by rename; a full or read-only disk costs the cache, not the run."""
    import tempfile  # a process that compiles nothing does without it and the modules that it needs

    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + hashlib.sha256(body).digest() + body)
        os.replace(temporary, path)
    except OSError:
        return


def prune(folder: Path, largest: int = LARGEST, unused: float = UNUSED) -> None:
    """Remove what was not used for `unused` seconds, then what was unused for longest, down to `largest` bytes.

    A process that has read such a file keeps what it read; one that wants it later makes it anew.
    """
    kept = 0
    for used, nbytes, path in sorted(entries_of(folder), reverse=True):
        kept += nbytes
        if kept > largest or time.time() - used > unused:
            with suppress(OSError):
                path.unlink()


def entries_of(folder: Path) -> list[tuple[float, int, Path]]:
    """When each file was last used, its bytes and its path; without files that others remove meanwhile."""
    found = []
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):
                seen = path.stat()
                found.append((seen.st_mtime, seen.st_size, path))
    return found
