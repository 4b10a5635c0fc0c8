"""Removal of files that killed writers and earlier checkpoints left in a folder."""

import re
from pathlib import Path

from cgraph.system.files import SUFFIX


def remove_others(folder: Path, names: str, keep: str) -> None:
    """Remove the files in `folder` whose names match a pattern, and temporary files of killed writers.

    Parameters
        names: a regular expression that matches full names
        keep: name of the file that stays
    """
    leftover = rf"\.({names})\.[0-9a-f]+{re.escape(SUFFIX)}"
    for path in folder.iterdir():
        if path.name != keep and re.fullmatch(f"{names}|{leftover}", path.name):
            path.unlink(missing_ok=True)
