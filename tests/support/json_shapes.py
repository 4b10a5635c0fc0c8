"""JSON documents that are nearly right: one place of a good one holds something else, or is not there."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

ELSE: list[Any] = [
    None, True, -1, 0, 1.5, 10**400, float("inf"), float("nan"), "", "\0", "..", "\ud800", "x" * 5000,
    [], [[]], [None], [1, 2, 3, 4, 5, 6], {}, {"counts": 1}, {"counts": [1.5]},
]  # fmt: skip
TEXTS = [b"", b"\xff", b"{", b"[]", b"7", b'"a"', b"null", b"9" * 5000, b"[" * 100_000, b'{"a":' * 100_000, b"\0" * 9]
"""What is no document at all; a number of 5,000 digits is none either, since Python reads 4,300."""
WHOLE = len(TEXTS) + len(ELSE)  # of what `nearly` gives first, that is no document or another one


def nearly(document: Any) -> Iterator[bytes]:
    """The document with each of its places changed in every way, as text."""
    yield from TEXTS
    for value in ELSE:
        yield json.dumps(value).encode()
    for path in places(document):
        for change in range(len(ELSE) + 1):
            changed = deepcopy(document)
            *above, last = path
            holder = changed
            for step in above:
                holder = holder[step]
            if change < len(ELSE):
                holder[last] = ELSE[change]
            else:
                del holder[last]
            yield json.dumps(changed).encode()


def places(document: Any, path: tuple = ()) -> Iterator[tuple]:
    """The paths to everything inside a document."""
    steps = document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for step in steps:
        yield (*path, step)
        yield from places(document[step], (*path, step))
