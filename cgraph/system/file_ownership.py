"""File ownership and identity: machine code is loaded only from files that no other user can write.

Windows has lists of permissions instead of owners and permission bits, and gives only that user, administrators and the
system access to the folder of a user's profile. So there a file counts as the user's where it lies in that folder.
"""

import os
import stat

from cgraph.system.folders import INNER_FOLDER, PASSED, Folder, close_folder, enter, make_in, open_path, status_of

OTHERS = 0o077  # permission bits of other users
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


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
    return is_users(status) and not (has_owners() and status.st_mode & OTHERS_WRITE)


def is_alone(status: os.stat_result) -> bool:
    """Return True if the user owns it and others can neither read nor write it."""
    return is_users(status) and not (has_owners() and status.st_mode & OTHERS)


def is_users(status: os.stat_result) -> bool:
    """Return True if the user owns it; where files have no owner's number, `open_folder` has checked its place."""
    return status.st_uid == os.geteuid() if hasattr(os, "geteuid") else True


def has_owners() -> bool:
    """Return True if files have an owner's number and permission bits."""
    return hasattr(os, "geteuid")


def is_safe(status: os.stat_result) -> bool:
    """Return True if only the user and root can rename entries of a folder: it belongs to them, and is closed or sticky
    like /tmp.

    The owner of ``/`` counts as root: in a container its number may differ.
    """
    others = status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX
    return (is_users(status) or status.st_uid in (0, os.stat("/").st_uid)) and not others


def open_folder(path: str, make: bool = False) -> Folder | None:
    """Open a folder part by part from the root, each inside the one before, which was checked when it was opened.

    So nothing can be exchanged between a check and its use, and nothing is created where another user could rename it.

    Parameters
        path: absolute and without links (`os.path.realpath`); a link created there since then is an OSError
        make: create missing parts, accessible to the user only
    Returns
        the folder, None where others can rename a part
    Raises
        OSError: a part is missing, is not a folder, or cannot be opened
    """
    root = "/" if has_owners() else os.path.realpath(os.path.expanduser("~"))
    if not is_below(path, root):
        return None
    folder = os.open(root, PASSED) if has_owners() else open_path(root)
    try:
        parts = [part for part in os.path.relpath(path, root).split(os.sep) if part != os.curdir]
        for i, part in enumerate(parts):
            if has_owners() and not is_safe(status_of(folder)):
                close_folder(folder)
                return None
            inner = open_part(part, PASSED if i < len(parts) - 1 else INNER_FOLDER, folder, make)
            folder, outer = inner, folder
            close_folder(outer)
    except BaseException:
        close_folder(folder)
        raise
    return folder


def is_below(path: str, root: str) -> bool:
    """Return True if an absolute path is a folder's or lies in it."""
    try:
        return os.path.commonpath([path, root]) == os.path.normpath(root)
    except ValueError:  # they are on different drives
        return False


def open_part(name: str, flags: int, folder: Folder, make: bool) -> Folder:
    """Open a folder in another one. If `make`, create it when it is missing."""
    try:
        return enter(folder, name, flags)
    except FileNotFoundError:
        if not make:
            raise
    make_in(folder, name)
    return enter(folder, name, flags)
