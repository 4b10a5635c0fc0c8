"""Where an exported function's arena and state are: static, or in memory of the caller."""

from collections.abc import Mapping

from cgraph.record import Record
from cgraph.standalone.interface import Interface
from cgraph.system.alignment import round_up

ALIGNMENT = 64  # bytes
WORDS = ("stop", "done")


class MemoryLayout(Record, eq=False):
    """Starts of all parts in the caller's memory.

    Fields
        starts: of ``arena``, ``state:NAME``, ``stop`` and ``done``, in bytes; empty for static memory
        nbytes: of all of it
    """

    starts: Mapping[str, int]
    nbytes: int = 0

    @property
    def is_caller(self) -> bool:
        """True if each run is given its memory."""
        return bool(self.starts)

    def holds(self, symbol: str) -> bool:
        return symbol in self.starts

    def start_of(self, symbol: str) -> int:
        return self.starts[symbol]


def static_layout() -> MemoryLayout:
    return MemoryLayout({})


def caller_layout(interface: Interface, arena_nbytes: int) -> MemoryLayout:
    """Return the layout of one piece of memory: the arena first, then the state and two words."""
    starts, end = {"arena": 0}, round_up(arena_nbytes, ALIGNMENT)
    for x in interface.state:
        starts[f"state:{x.name}"] = end
        end = round_up(end + x.nbytes, ALIGNMENT)
    for name in WORDS:
        starts[name] = end
        end += 8
    return MemoryLayout(starts, round_up(end, ALIGNMENT))
