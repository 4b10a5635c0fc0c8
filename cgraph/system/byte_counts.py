"""Numbers of bytes that users write: integers, or text such as ``"200 MiB"``."""

import re
from typing import Any

import numpy as np

from cgraph.errors import ArgumentError

UNITS = {"": 1, "b": 1} | {
    letter + end: base**power for power, letter in enumerate("kmgt", 1) for end, base in (("ib", 1024), ("b", 1000))
}
TEXT = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)\s*", re.ASCII)
SIZE = "a number of bytes, such as 4096, '200 kB' or '1.5MiB'"
"""What `byte_count` takes, in words."""


def byte_count(size: Any) -> int:
    """Return a number of bytes: an integer itself, or text with a unit.

    Units are B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (powers of 1024), in any case:
    ``byte_count("1.5MiB") == 1572864``. A fraction of a byte is rounded down.

    Raises
        ArgumentError: it is neither, below 0, or 2⁶² or more
    """
    match = TEXT.fullmatch(size) if isinstance(size, str) else None
    if match is not None and match[2].lower() in UNITS:
        whole, _, fraction = match[1].partition(".")
        unit = UNITS[match[2].lower()]
        count = int(whole) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
    elif isinstance(size, int | np.integer) and not isinstance(size, bool):
        count = int(size)
    else:
        count = -1
    if not 0 <= count < 2**62:
        raise ArgumentError(f"{size!r:.60} is not {SIZE}")
    return count


def is_byte_count(size: Any) -> bool:
    """Return True for what `byte_count` takes."""
    try:
        byte_count(size)
    except ArgumentError:
        return False
    return True
