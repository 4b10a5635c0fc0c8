"""JSON from files. A small text can become large objects, so these are charged before they are created."""

import json
from collections import Counter
from typing import Any

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance

VALUE, OBJECT = 100, 232  # bytes of a number or a short text in Python, and of a small dictionary


def parse_json(raw: bytes, allowance: Allowance, what: str) -> dict[str, Any]:
    """Parse a JSON text that is an object.

    Raises
        FormatError: the text is malformed, is not an object, repeats a name, or would take too much memory
    """
    values = sum(raw.count(mark) for mark in (b",", b":", b"[", b"{"))
    text = len(raw) * (2 if raw.isascii() else 8)  # as one text, and cut into pieces
    allowance.spend(what, nbytes=text + VALUE * values + OBJECT * raw.count(b"{"))
    try:
        value = json.loads(raw, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{what} is not JSON: {error}") from None
    except RepeatedName as error:
        raise FormatError(f"{what} has the name {str(error)!r:.80} twice: remove one") from None
    if not isinstance(value, dict):
        raise FormatError(f"{what} is not an object")
    return value


class RepeatedName(Exception):
    """An object has two entries of one name."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the dictionary of these entries in linear time. RepeatedName if two have one name."""
    entries = dict(pairs)
    if len(entries) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise RepeatedName(next(name for name, count in counts.items() if count > 1))
    return entries
