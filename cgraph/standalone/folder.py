"""The folder of an export: written completely or not at all."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from cgraph.errors import FormatError
from cgraph.system.files import new_folder


def check_folder(folder: str | os.PathLike) -> Path:
    """Return the path. FormatError where something is already, or where no folder can be made."""
    path = Path(folder)
    if os.path.lexists(path):
        raise FormatError(
            f"{path} exists already. An export is written where there is nothing: choose another folder, or remove it"
        )
    if not path.absolute().parent.is_dir():
        raise FormatError(f"{path.parent} is not a folder, so {path.name} cannot be made in it. Make it first")
    return path


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their names, which may have a folder before them."""
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
