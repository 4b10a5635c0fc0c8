"""Bounded caches: mappings that drop their oldest entries rather than grow with use."""

from collections import OrderedDict
from contextlib import suppress
from typing import TypeVar

Key = TypeVar("Key")
Entry = TypeVar("Entry")

MOST_ENTRIES = 256
LEAST_ENTRIES = 4
MOST_ITEMS = 1 << 17


class Bounded(OrderedDict[Key, Entry]):
    """A mapping of at most `most` entries that drops its oldest ones.

    Threads may share it, and an exception at any line leaves it usable: each change is one call of C code.
    """

    def __init__(self, most: int = MOST_ENTRIES) -> None:
        super().__init__()
        self.most = most

    def keep(self, key: Key, entry: Entry) -> Entry:
        """Add an entry and return it."""
        while len(self) >= self.most:
            with suppress(KeyError):  # other threads have removed all
                self.popitem(last=False)
        self[key] = entry
        return entry


def most_of(items: int) -> int:
    """Return the maximum number of entries of a cache: the larger its entries, the fewer."""
    return max(LEAST_ENTRIES, min(MOST_ENTRIES, MOST_ITEMS // max(items, 1)))
