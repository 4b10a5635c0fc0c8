"""What a caller gives is of the kind that is taken: said where it is given, by its name."""

from typing import Any

import numpy as np

from cgraph import InputError


def check_kind(name: str, given: Any, kind: Any, words: str) -> None:
    """InputError unless what was given is of a kind, which `words` say."""
    if not isinstance(given, kind):
        raise InputError(f"{name} is {given!r:.60}; it takes {words}")


def check_whole(name: str, given: Any, least: int) -> None:
    """InputError unless it is a whole number of at least so much."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
        raise InputError(f"{name} is {given!r:.60}; it takes a whole number >= {least}")
