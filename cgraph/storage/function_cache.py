"""Caches of compiled Functions, bounded in number and in bytes."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from contextlib import suppress
from typing import Any

from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order

FUNCTION_NBYTES, STEP_NBYTES = 24 << 10, 3 << 10  # measured: bytes of a Function besides its arrays


class FunctionCache:
    """Functions by key. Mutable: the least recently used ones are dropped when all are too many or too large.

    The latest one stays whatever its size. Threads may share a cache, and an exception at any line leaves it usable.

    Fields
        most: maximum number of Functions
        most_nbytes: maximum bytes of all Functions, see `nbytes_of`
    """

    def __init__(self, most: int, most_nbytes: int) -> None:
        self.most, self.most_nbytes = most, most_nbytes
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def nbytes(self) -> int:
        """Bytes of all Functions."""
        return sum(nbytes for _, nbytes in list(self._entries.values()))

    def get(self, key: Hashable) -> Any:
        """Return the Function of this key, which becomes the latest; None if there is none."""
        function, _ = self._entries.get(key, (None, 0))
        if function is not None:
            with suppress(KeyError):  # another thread has removed it
                self._entries.move_to_end(key)
        return function

    def keep(self, key: Hashable, function: Any, nbytes: int) -> None:
        """Add a Function that keeps `nbytes` bytes alive."""
        self._entries[key] = function, nbytes
        while len(self) > 1 and (len(self) > self.most or self.nbytes > self.most_nbytes):
            with suppress(KeyError):  # other threads have removed all
                self._entries.popitem(last=False)


def nbytes_of(function: Any, key: Iterable[Node] = ()) -> int:
    """Return the bytes that a Function keeps alive: its arena, its steps, and all constants and Vars of its graph and
    of `key`.

    Arrays passed as inputs do not count: the Function holds them only while it runs.
    """
    inputs = set(function.inputs)
    leaves = (x for x in post_order((*key, *function.outputs)) if not x.operands and x not in inputs)
    steps = len(function.compiled.layout.steps)
    return FUNCTION_NBYTES + STEP_NBYTES * steps + function.nbytes + sum(x.nbytes for x in leaves)
