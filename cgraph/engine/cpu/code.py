"""A program without addresses: kernels by name, memory by symbols. It can be shown, and bound as often as one likes.

It knows no graph: what is saved of a function is this.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from cgraph.kernels.families import text_of
from cgraph.kernels.kernel import ARENA, STOP, Callback, Kernel, View
from cgraph.record import Record
from cgraph.storage.cell import Variable
from cgraph.system.file_ownership import Stamp
from cgraph.terminal import visible

if TYPE_CHECKING:
    from cgraph.storage.weight_file import Checksum  # a process that streams nothing loads no such module

DONE = "done"  # the base of the pointer to the word that says that all Vars are written
SINGLE = {ARENA: "arena", STOP: "stop", DONE: "done"}


class Symbol(Record):
    """Memory whose address is known when a program is bound.

    Fields
        kind: ``arena``, ``stop`` (the word that ends a run), ``done`` (the word that says that all Vars are written),
            ``variable``, ``target`` (what takes a Var's new value) or ``constant``
        number: which variable, target or constant of the code
    """

    kind: str
    number: int = 0

    def __str__(self) -> str:
        return self.kind if self.kind in SINGLE.values() else f"{self.kind}{self.number}"


class Piece(Record):
    """A constant that is read from a file during the run.

    Fields
        constant: which of the code's
        offset, nbytes: in the file; whole pages
        first, last: the rows that read it
        at: where in the ring
    """

    constant: int
    offset: int
    nbytes: int
    first: int
    last: int
    at: int = 0

    def meets(self, other: "Piece") -> bool:
        """They lie over one another in the ring."""
        return self.at < other.at + other.nbytes and other.at < self.at + self.nbytes


class Ring(Record, eq=False):
    """The pieces of a program, in the order in which they are read.

    Fields
        path: of the file that they are in
        stamp: identity and last change of that file
        nbytes: of the ring
        sums: checksums that are compared whenever a piece is read, by where in the file it begins; empty: none is
    """

    path: str
    stamp: Stamp
    nbytes: int
    pieces: tuple[Piece, ...]
    sums: "Mapping[int, Checksum]" = field(default_factory=dict)


class RowLoop(Record):
    """Rows ``first..last`` of a table, the last one excluded, that run ``times`` times."""

    first: int
    last: int
    times: int


class Relocation(Record, eq=False):
    """Where the addresses into one piece of memory stand in the arguments.

    Fields
        symbol: the memory
        positions: of the words that hold its addresses, int64
        offsets: in bytes from its beginning, int64, one for each
    """

    symbol: Symbol
    positions: np.ndarray
    offsets: np.ndarray


class Code(Record, eq=False):
    """What all instances of a function share.

    Fields
        kernels: each once
        table: int64 ``[calls, 4]``: the number of the kernel, where its arguments begin, tasks, chunk
        args: int64, the arguments of all calls; addresses are 0
        relocations: what to fill in
        variables, targets, constants: the memory that symbols name
        updated: the Vars with an update edge; those of them that no kernel writes into are `targets`
        views: where each output lies: in the arena, in a variable or in a constant's array
        nbytes: of the arena
        first_row: per step, its first row; one more at the end. The last step of all writes update edges
        first_write: the first step that writes into a Var
        labels, label_of: what there is to say of rows, and for each row which, int64 ``[calls]``
        ring: the constants that each run reads from a file; None where it reads none
        again: the rows that run more than once; None where all run once
    """

    kernels: tuple[Kernel | Callback, ...]
    table: np.ndarray
    args: np.ndarray
    relocations: tuple[Relocation, ...]
    variables: tuple[Variable, ...]
    targets: tuple[Variable, ...]
    constants: tuple[np.ndarray, ...]
    updated: tuple[Variable, ...]
    views: Mapping[Any, View]
    nbytes: int
    first_row: np.ndarray
    first_write: int
    labels: tuple[str, ...]
    label_of: np.ndarray
    ring: Ring | None = None
    again: RowLoop | None = None

    @property
    def compiled_kernels(self) -> list[Kernel]:
        """Those that are machine code of ours; the others are Python functions."""
        return [k for k in self.kernels if isinstance(k, Kernel)]

    @property
    def callbacks(self) -> list[Callback]:
        """The Python functions among the kernels."""
        return [k for k in self.kernels if isinstance(k, Callback)]

    @property
    def written(self) -> frozenset[Variable]:
        """The Vars that kernels write their new values into."""
        return frozenset(self.updated) - frozenset(self.targets)

    def text(self) -> str:
        """Every call on a line of its own: the step, the kernel, its arguments by name, with memory by symbols."""
        return visible("\n".join(self.lines()))

    def lines(self) -> Iterator[str]:
        symbol_at = {
            int(position): f"{r.symbol}+{offset}"
            for r in self.relocations
            for position, offset in zip(r.positions, r.offsets)
        }
        ends = [*self.table[1:, 1], len(self.args)]
        for row, (number, first, tasks, _) in enumerate(self.table):
            words = [symbol_at.get(i, int(self.args[i])) for i in range(first, ends[row])]
            kernel = self.kernels[number]
            call = text_of(kernel, words) if isinstance(kernel, Kernel) else f"{kernel} {words}"
            yield f"{self.labels[self.label_of[row]]}: {call} in {tasks} tasks"
