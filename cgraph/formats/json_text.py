"""JSON from files: small text can become large objects, so those are counted before they are made."""

import json
from collections import Counter
from typing import Any

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance

VALUE, OBJECT = 100, 232  # bytes that Python takes for a number or a short text, and for a small dictionary


def parse_json(raw: bytes, allowance: Allowance, what: str) -> dict[str, Any]:
    """The object that a JSON text is.

    Raises
        FormatError: the text is malformed, no object, has a name twice in one object, or would take too much memory
    """
    values = sum(raw.count(mark) for mark in (b",", b":", b"[", b"{"))
    text = len(raw) * (2 if raw.isascii() else 8)  # as one text, and cut into pieces
    allowance.spend(what, nbytes=text + VALUE * values + OBJECT * raw.count(b"{"))
    try:
        value = json.loads(raw, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{what} is no JSON: {error}") from None
    except RepeatedName as error:
        raise FormatError(f"{what} has the name {str(error)!r:.80} twice") from None
    if not isinstance(value, dict):
        raise FormatError(f"{what} is no object")
    return value


class RepeatedName(Exception):
    """Two entries of one object have one name."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these entries. RepeatedName when two have one name; time in proportion to their number."""
    entries = dict(pairs)
    if len(entries) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise RepeatedName(next(name for name, count in counts.items() if count > 1))
    return entries
