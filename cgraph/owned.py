"""File ownership and identity: machine code is loaded only from files that no other user can write."""

import os
import stat

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


Stamp = tuple[int, ...]


def stamp_of(status: os.stat_result) -> Stamp:
    """Return what differs once a file is replaced or changed: device, inode, size, times of the last changes.

    The second time is that of the inode, which no user can set back.
    """
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def is_regular(seen: os.stat_result) -> bool:
    return stat.S_ISREG(seen.st_mode)


def is_own(seen: os.stat_result) -> bool:
    """A regular file of the user's that others cannot write, under one name."""
    return is_regular(seen) and is_closed(seen) and seen.st_nlink == 1


def is_closed(seen: os.stat_result) -> bool:
    """The user's, and others cannot write there."""
    return seen.st_uid == os.geteuid() and not seen.st_mode & OTHERS_WRITE


def is_safe(folder: str | os.PathLike) -> bool:
    """Only the user and root can rename what is in a folder: it is theirs, and closed or sticky as /tmp is.

    Whoever owns ``/`` counts as root: in a container it may go by another number.
    """
    seen = os.lstat(folder)
    others = seen.st_mode & OTHERS_WRITE and not seen.st_mode & stat.S_ISVTX
    return seen.st_uid in (0, os.stat("/").st_uid, os.geteuid()) and not others
