"""Memory layout of an exported function: arena and state are static or in the caller's memory."""

from collections.abc import Mapping

from cgraph.record import Record
from cgraph.standalone.interface import Interface
from cgraph.system.alignment import round_up

ALIGNMENT = 64  # bytes; of an arena, of constants and of the caller's memory
WORDS = ("stop", "done")


class MemoryLayout(Record, eq=False):
    """Offsets of all parts in the caller's memory.

    Fields
        starts: of ``arena``, ``state:NAME``, ``stop`` and ``done``, in bytes; empty for static memory
        nbytes: bytes of the caller's memory
    """

    starts: Mapping[str, int]
    nbytes: int = 0

    @property
    def is_caller(self) -> bool:
        """True if the caller passes memory to each run."""
        return bool(self.starts)

    def holds(self, symbol: str) -> bool:
        return symbol in self.starts

    def start_of(self, symbol: str) -> int:
        return self.starts[symbol]


def static_layout() -> MemoryLayout:
    return MemoryLayout({})


def caller_layout(interface: Interface, arena_nbytes: int) -> MemoryLayout:
    """Return the layout of the caller's memory: the arena, the state and two words."""
    starts, end = {"arena": 0}, round_up(arena_nbytes, ALIGNMENT)
    for x in interface.state:
        starts[f"state:{x.name}"] = end
        end = round_up(end + x.nbytes, ALIGNMENT)
    for name in WORDS:
        starts[name] = end
        end += 8
    return MemoryLayout(starts, round_up(end, ALIGNMENT))
