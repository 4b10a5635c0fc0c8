"""The table of existing nodes, keyed by integers only, which the garbage collector does not have to traverse."""

from itertools import count
from typing import Any, Generic, TypeVar
from weakref import ref

from cgraph.record import set_field

LEAST_SWEPT = 1 << 12
_FIRST: dict[ref[Any], ref[Any]] = {}  # ops, compared by value
_NUMBERS = count(1)
Value = TypeVar("Value")


class NodeTable(Generic[Value]):
    """Weakly referenced values, keyed by the number of the op and the ids of the operands. Changes: grows.

    Dead entries are removed when the table has twice as many as were left the last time. A callback for each dead value
    would swallow an interrupt.
    """

    def __init__(self) -> None:
        self.entries: dict[tuple[int, ...], ref[Value]] = {}
        self.most = LEAST_SWEPT

    def put(self, key: tuple[int, ...], value: Value) -> None:
        """Add a value, and remove dead entries if there are many."""
        self.entries[key] = ref(value)
        if len(self.entries) > self.most:
            for gone in [k for k, x in self.entries.copy().items() if x() is None]:
                self.entries.pop(gone, None)
            self.most = max(2 * len(self.entries), LEAST_SWEPT)


def number_of(op: Any) -> int:
    """Return a number, equal for equal ops while one of them exists: each keeps the first one alive."""
    if not op._number:
        mine = ref(op, _FIRST.pop)
        first = _FIRST.setdefault(mine, mine)()
        if first is None or first is op:
            set_field(op, "_number", next(_NUMBERS))
        else:
            set_field(op, "_first", first)
            set_field(op, "_number", number_of(first))
    return op._number
