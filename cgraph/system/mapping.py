"""Memory-mapped files, memory without a file, and the system's cache of files.

Where a system lacks an advice about pages or its cache, nothing is advised: results stay the same, and memory or time
may grow.
"""

import mmap
import os
import sys
from contextlib import suppress
from typing import IO

if sys.platform != "win32":
    import fcntl


def map_descriptor(handle: int, nbytes: int) -> mmap.mmap:
    """Map a file for reading; the descriptor may be closed afterwards."""
    return mmap.mmap(handle, nbytes, access=mmap.ACCESS_READ)


def new_pages(nbytes: int) -> mmap.mmap:
    """Return zeroed whole pages of this process."""
    if sys.platform == "win32":
        return mmap.mmap(-1, nbytes)
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def has_huge_pages() -> bool:
    """Return True if the system may use huge pages for memory that asks for them."""
    return sys.platform == "linux"


def use_huge_pages(memory: mmap.mmap) -> None:
    """Advise the system to use huge pages, where it has them."""
    if sys.platform == "linux":
        with suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)


def release_range(mapping: mmap.mmap, first: int, nbytes: int) -> None:
    """Release resident pages of a mapped file, which the system reads again on the next access. Windows keeps them."""
    if sys.platform != "win32":
        mapping.madvise(mmap.MADV_DONTNEED, first, nbytes)


def forget_cached(handle: int) -> None:
    """Drop a file's pages from the system's cache, where that can be advised."""
    if sys.platform == "linux":
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


def bypass_cache(file: IO[bytes]) -> None:
    """Read an open file past the system's cache from now on, where system and file system support that."""
    with suppress(OSError):
        if sys.platform == "darwin":
            fcntl.fcntl(file, fcntl.F_NOCACHE, 1)
        elif sys.platform != "win32":
            fcntl.fcntl(file, fcntl.F_SETFL, os.O_RDONLY | getattr(os, "O_DIRECT", 0))


def read_at(handle: int, nbytes: int, offset: int) -> bytes:
    """Read up to `nbytes` of an open file from an offset; its own position does not change."""
    if hasattr(os, "pread"):
        return os.pread(handle, nbytes, offset)
    position = os.lseek(handle, 0, os.SEEK_CUR)
    try:
        os.lseek(handle, offset, os.SEEK_SET)
        return os.read(handle, nbytes)
    finally:
        os.lseek(handle, position, os.SEEK_SET)


def read_into(handle: int, memory: memoryview, offset: int) -> int:
    """Read an open file from an offset into memory; return the number of bytes."""
    if sys.platform == "win32":
        piece = read_at(handle, len(memory), offset)
        memory[: len(piece)] = piece
        return len(piece)
    return os.preadv(handle, [memory], offset)
