"""The folder of an export: written completely or not at all."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from cgraph.errors import FormatError
from cgraph.system.files import new_folder


def check_folder(folder: str | os.PathLike) -> Path:
    """Return the path. FormatError if it exists, or if its parent is not a folder."""
    path = Path(folder)
    if os.path.lexists(path):
        raise FormatError(f"{path} exists already. Export writes a new folder: choose another name, or remove it")
    if not path.absolute().parent.is_dir():
        raise FormatError(f"{path.parent} is not a folder, so {path.name} cannot be created in it. Create it first")
    return path


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their paths relative to the folder."""
    with new_folder(path) as folder:
        for name, raw in files.items():
            place = folder / name
            place.parent.mkdir(exist_ok=True)
            with place.open("xb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())


def json_bytes(entries: Mapping[str, object]) -> bytes:
    return (json.dumps(entries, indent=1) + "\n").encode()
