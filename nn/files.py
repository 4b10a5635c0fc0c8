"""Writing a file so that at any moment the old one or the new one is whole."""

import os
import re
import secrets
from pathlib import Path

SUFFIX = ".part"


def write_whole(path: str | Path, contents: bytes) -> None:
    """Replace `path`: temporary file beside it, flushed to the disk, renamed, and the folder flushed.

    A process that is killed leaves at worst a ``.part`` file, which `remove_others` clears away.
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


def remove_others(folder: Path, names: str, kept: str = "") -> None:
    """Remove the files in `folder` whose names match a pattern, and what killed writers left of such files.

    Parameters
        names: a regular expression for whole names
        kept: the one that stays
    """
    leftover = rf"\.({names})\.[0-9a-f]+{re.escape(SUFFIX)}"
    for path in folder.iterdir():
        if path.name != kept and re.fullmatch(f"{names}|{leftover}", path.name):
            path.unlink(missing_ok=True)
