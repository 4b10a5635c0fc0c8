"""Caches of compiled Functions, bounded in number and in bytes."""

from collections.abc import Hashable, Iterable
from itertools import count
from typing import Any

from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order

FUNCTION_NBYTES, STEP_NBYTES = 24 << 10, 3 << 10  # measured: bytes of a Function besides its arrays


class CacheEntry:
    """A Function in a cache, its bytes, and the number of its last use. Mutable: it is used."""

    __slots__ = ("function", "nbytes", "used")

    def __init__(self, function: Any, nbytes: int, used: int) -> None:
        self.function, self.nbytes, self.used = function, nbytes, used


class FunctionCache:
    """Functions by key. Mutable: the least recently used ones are dropped when all are too many or too large.

    The latest one stays whatever its size. Threads may share a cache, and an exception at any line leaves it usable.
    The entries are a plain dict: a list of its values calls no method of a key, so no other thread runs meanwhile.

    Fields
        most: maximum number of Functions
        most_nbytes: maximum bytes of all Functions, see `nbytes_of`
    """

    def __init__(self, most: int, most_nbytes: int) -> None:
        self.most, self.most_nbytes = most, most_nbytes
        self._entries: dict[Hashable, CacheEntry] = {}
        self._uses = count()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def nbytes(self) -> int:
        """Bytes of all Functions."""
        return sum(entry.nbytes for entry in list(self._entries.values()))

    def get(self, key: Hashable) -> Any:
        """Return the Function of this key, which becomes the latest; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.used = next(self._uses)
        return entry.function

    def keep(self, key: Hashable, function: Any, nbytes: int) -> None:
        """Add a Function that keeps `nbytes` bytes alive."""
        self._entries[key] = CacheEntry(function, nbytes, next(self._uses))
        while len(self) > 1 and (len(self) > self.most or self.nbytes > self.most_nbytes):
            oldest, _ = min(list(self._entries.items()), key=lambda x: x[1].used, default=(key, None))
            self._entries.pop(oldest, None)  # unless another thread has removed it


def nbytes_of(function: Any, key: Iterable[Node] = ()) -> int:
    """Return the bytes that a Function keeps alive: its arena, its steps, and all constants and Vars of its graph and
    of `key`.

    Arrays passed as inputs do not count: the Function holds them only while it runs.
    """
    inputs = set(function.inputs)
    leaves = (x for x in post_order((*key, *function.outputs)) if not x.operands and x not in inputs)
    steps = len(function.compiled.layout.steps)
    return FUNCTION_NBYTES + STEP_NBYTES * steps + function.nbytes + sum(x.nbytes for x in leaves)
