"""What killed writers and earlier checkpoints have left in a folder is removed."""

import re
from pathlib import Path

from cgraph.system.files import SUFFIX


def remove_others(folder: Path, names: str, keep: str = "") -> None:
    """Remove the files in `folder` whose names match a pattern, and what killed writers left of such files.

    Parameters
        names: a regular expression for whole names
        kept: the one that stays
    """
    leftover = rf"\.({names})\.[0-9a-f]+{re.escape(SUFFIX)}"
    for path in folder.iterdir():
        if path.name != keep and re.fullmatch(f"{names}|{leftover}", path.name):
            path.unlink(missing_ok=True)
