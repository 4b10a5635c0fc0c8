"""What a caller gives is of the kind that is taken: said where it is given, by its name."""

from typing import Any

import numpy as np

from cgraph import InputError


def check_kind(name: str, value: Any, kind: Any, words: str) -> None:
    """InputError unless what was given is of a kind, which `words` say."""
    if not isinstance(value, kind):
        raise InputError(f"{name} is {value!r:.60}; it takes {words}")


def check_whole(name: str, value: Any, least: int) -> None:
    """InputError unless it is a whole number of at least so much."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is {value!r:.60}; it takes a whole number >= {least}")
