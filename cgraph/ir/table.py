"""The table in which equal nodes are found, by numbers alone: keys that Python's collector need not look at."""

from itertools import count
from typing import Any, Generic, TypeVar
from weakref import ref

from cgraph.record import set_field

LEAST_SWEPT = 1 << 12
_FIRST: dict[ref[Any], ref[Any]] = {}  # ops, hashed and compared as themselves
_NUMBERS = count(1)
Value = TypeVar("Value")


class NodeTable(Generic[Value]):
    """Values that it does not keep alive, each by the number of its op and the ids of its operands. Changes: grows.

    What is gone is dropped when there is twice as much as was left the last time: that takes no function that is called
    when each value goes, which would swallow an interrupt.
    """

    def __init__(self) -> None:
        self.entries: dict[tuple[int, ...], ref[Value]] = {}
        self.most = LEAST_SWEPT

    def put(self, key: tuple[int, ...], value: Value) -> None:
        self.entries[key] = ref(value)
        if len(self.entries) > self.most:
            for gone in [k for k, x in self.entries.copy().items() if x() is None]:
                self.entries.pop(gone, None)
            self.most = max(2 * len(self.entries), LEAST_SWEPT)


def number_of(op: Any) -> int:
    """The same for equal ops, as long as one of them is there: each keeps the first, which the number came with."""
    if not op._number:
        mine = ref(op, _FIRST.pop)
        first = _FIRST.setdefault(mine, mine)()
        if first is None or first is op:
            set_field(op, "_number", next(_NUMBERS))
        else:
            set_field(op, "_first", first)
            set_field(op, "_number", number_of(first))
    return op._number
