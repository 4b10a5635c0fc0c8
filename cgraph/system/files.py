"""Atomic writing of files and folders: at any moment the old or the new one is complete."""

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from cgraph.system.folders import BYTES, FOLDER, has_descriptors

SUFFIX = ".part"
REMOVED_WHEN_CLOSED = getattr(os, "O_TEMPORARY", 0)  # Windows cannot remove an open file


def replace_file(path: str | Path, parts: Iterable[Any]) -> None:
    """Write `parts` to a new file, flush it to disk, and rename it over the old one.

    A process that is killed leaves at worst a ``.part`` file. A link stays a link: its target is replaced. Pipes and
    devices are written directly.

    Raises
        OSError: the path is a folder, or its folder does not exist; no permission to write; the disk is full
    """
    path = Path(os.path.realpath(path))
    if path.is_dir() or not path.parent.is_dir():
        number, where = (errno.EISDIR, path) if path.is_dir() else (errno.ENOENT, path.parent)
        raise OSError(number, os.strerror(number), str(where))
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            device.writelines(parts)
        return
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}{SUFFIX}")
    try:
        with part.open("xb") as file:
            for content in parts:
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    flush_folder(path.parent)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder next to `path`, which is renamed to `path` once its files are written.

    It is removed if an exception is raised. A process that is killed leaves at worst a ``.part`` folder.
    """
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}{SUFFIX}")
    try:
        part.mkdir(mode=0o755)
        yield part
        flush_folder(part)
        os.rename(part, path)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    flush_folder(path.parent)


def unnamed_file(folder: str | Path) -> BinaryIO:
    """Return a new file to read and write that disappears once it is closed and unmapped."""
    part = Path(folder) / f".{os.urandom(8).hex()}{SUFFIX}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | BYTES | REMOVED_WHEN_CLOSED
    file = os.fdopen(os.open(part, flags, 0o600), "w+b")
    if not REMOVED_WHEN_CLOSED:
        part.unlink()
    return file


def flush_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a loss of power, where the system has descriptors of folders."""
    if not has_descriptors():
        return
    handle = os.open(folder, FOLDER)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
