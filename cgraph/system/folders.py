"""Open folders: files by name inside a folder, so that nothing can be exchanged between a check and its use.

A folder is a descriptor where the system opens files relative to one. Elsewhere, on Windows, it is a path: names are
then resolved at each call, which is safe in a folder that only the user can change.
"""

import errno
import os
import stat
from contextlib import suppress

Folder = int | str
"""A descriptor, or a path where the system has no operations relative to a descriptor."""

NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # a link is an error; `open_in` checks it where the system has no such flag
BYTES = getattr(os, "O_BINARY", 0)  # Windows would change ends of lines
READ = os.O_RDONLY | NO_LINK | getattr(os, "O_NONBLOCK", 0) | BYTES  # a pipe is opened without waiting for its writer
READ_LINKED = READ & ~NO_LINK  # follows links
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | BYTES
FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
INNER_FOLDER = FOLDER | NO_LINK
PASSED = INNER_FOLDER | getattr(os, "O_PATH", 0)  # a folder that the user may not be allowed to list


def has_descriptors() -> bool:
    """Return True if the system opens files relative to a folder's descriptor."""
    return os.open in os.supports_dir_fd


def open_path(path: str | os.PathLike[str]) -> Folder:
    """Open a folder by its path; links are followed. OSError if there is none."""
    if has_descriptors():
        return os.open(path, FOLDER)
    if not stat.S_ISDIR(os.stat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(path))
    return os.path.realpath(path)


def open_in(folder: Folder, name: str, flags: int, mode: int = 0o600) -> int:
    """Open a file in a folder. OSError if it is a link and `flags` are READ or CREATE."""
    if isinstance(folder, int):
        return os.open(name, flags, mode, dir_fd=folder)
    path = os.path.join(folder, name)
    handle = os.open(path, flags, mode)
    if not os.path.samestat(os.fstat(handle), os.lstat(path)):
        os.close(handle)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return handle


def enter(folder: Folder, name: str, flags: int = INNER_FOLDER) -> Folder:
    """Open a folder in a folder. OSError if it is a link."""
    if isinstance(folder, int):
        return os.open(name, flags, dir_fd=folder)
    path = os.path.join(folder, name)
    if os.path.realpath(path) != os.path.join(os.path.realpath(folder), name):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return open_path(path)


def make_in(folder: Folder, name: str) -> None:
    """Create a folder in a folder, accessible to the user only, unless it exists."""
    with suppress(FileExistsError):  # another process may create it at the same time
        if isinstance(folder, int):
            os.mkdir(name, 0o700, dir_fd=folder)
        else:
            os.mkdir(os.path.join(folder, name), 0o700)


def replace_in(folder: Folder, old: str, new: str) -> None:
    """Rename a file in a folder over another."""
    if isinstance(folder, int):
        os.replace(old, new, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        os.replace(os.path.join(folder, old), os.path.join(folder, new))


def remove_in(folder: Folder, name: str) -> None:
    """Remove a file in a folder."""
    if isinstance(folder, int):
        os.unlink(name, dir_fd=folder)
    else:
        os.unlink(os.path.join(folder, name))


def touch_in(folder: Folder, name: str, handle: int) -> None:
    """Set the modification time of an open file to now."""
    os.utime(handle if os.utime in os.supports_fd else os.path.join(str(folder), name))


def status_in(folder: Folder, name: str) -> os.stat_result:
    """Return the status of an entry of a folder, or of the link itself if it is one."""
    if isinstance(folder, int):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    return os.lstat(os.path.join(folder, name))


def status_of(folder: Folder) -> os.stat_result:
    return os.fstat(folder) if isinstance(folder, int) else os.stat(folder)


def names_in(folder: Folder) -> list[str]:
    return os.listdir(folder)


def close_folder(folder: Folder) -> None:
    if isinstance(folder, int):
        os.close(folder)


def set_mode(place: Folder, mode: int) -> None:
    """Set the permissions of an open file or folder, where the system sets those of a descriptor."""
    if isinstance(place, int) and hasattr(os, "fchmod"):
        os.fchmod(place, mode)
