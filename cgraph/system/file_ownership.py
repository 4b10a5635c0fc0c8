"""File ownership and identity: machine code is loaded only from files that no other user can write."""

import os
import stat
from contextlib import suppress

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
LAST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC  # how the last part of a path is opened
PART = LAST | getattr(os, "O_PATH", 0)  # and the parts before it, which the user may not be allowed to list


Stamp = tuple[int, ...]


def stamp_of(status: os.stat_result) -> Stamp:
    """Return a value that changes when a file is replaced or changed: device, inode, size, times of the last
    changes.

    The second time is that of the inode, which no user can set back.
    """
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def is_regular(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode)


def is_own(status: os.stat_result) -> bool:
    """Return True for a regular file of the user with one name that others cannot write."""
    return is_regular(status) and is_closed(status) and status.st_nlink == 1


def is_closed(status: os.stat_result) -> bool:
    """Return True if the user owns it and others cannot write it."""
    return status.st_uid == os.geteuid() and not status.st_mode & OTHERS_WRITE


def is_safe(status: os.stat_result) -> bool:
    """Return True if only the user and root can rename entries of a folder: it belongs to them, and is closed or sticky
    like /tmp.

    The owner of ``/`` counts as root: in a container its number may differ.
    """
    others = status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX
    return status.st_uid in (0, os.stat("/").st_uid, os.geteuid()) and not others


def open_folder(path: str, make: bool = False) -> int | None:
    """Open a folder part by part from the root, each inside the one before, which was checked when it was opened.

    So nothing can be exchanged between a check and its use, and nothing is created where another user could rename it.

    Parameters
        path: absolute and without links (`os.path.realpath`); a link created there since then is an OSError
        make: create missing parts, accessible to the user only
    Returns
        a descriptor; None where others can rename a part
    Raises
        OSError: a part is missing, is not a folder, or cannot be opened
    """
    handle = os.open("/", PART)
    try:
        parts = [part for part in path.split("/") if part]
        for i, part in enumerate(parts):
            if not is_safe(os.fstat(handle)):
                os.close(handle)
                return None
            inner = open_part(part, PART if i < len(parts) - 1 else LAST, handle, make)
            handle, outer = inner, handle
            os.close(outer)
    except BaseException:
        os.close(handle)
        raise
    return handle


def open_part(name: str, flags: int, folder: int, make: bool) -> int:
    """Open a folder in another one. If `make`, create it when it is missing."""
    try:
        return os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # another process has created it meanwhile
        os.mkdir(name, 0o700, dir_fd=folder)
    return os.open(name, flags, dir_fd=folder)
