"""Writing a file so that at any moment the old one or the new one is whole."""

import os
import secrets
from pathlib import Path

SUFFIX = ".part"


def write_whole(path: str | Path, contents: bytes) -> None:
    """Replace `path`: temporary file beside it, flushed to the disk, renamed, and the folder flushed.

    A process that is killed leaves at worst a ``.part`` file, which `remove_parts` clears away.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{SUFFIX}")
    try:
        with part.open("wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_parts(path: str | Path) -> None:
    """Clear away what killed writers of `path` left."""
    path = Path(path)
    for part in path.parent.glob(f".{path.name}*{SUFFIX}"):
        part.unlink(missing_ok=True)
