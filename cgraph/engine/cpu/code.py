"""Programs without addresses: kernels by name, memory by symbols. They can be printed, and bound any number of times.

A saved function stores this code; it has no reference to a graph.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from cgraph.kernels.control import REPEAT
from cgraph.kernels.families import text_of
from cgraph.kernels.kernel import ARENA, ARGS, STOP, Callback, Jump, Kernel, View
from cgraph.record import Record
from cgraph.storage.cell import Variable
from cgraph.system.file_ownership import Stamp
from cgraph.terminal import visible

if TYPE_CHECKING:
    from cgraph.storage.weight_file import Checksum  # processes that stream nothing do not load it

DONE = "done"  # the base of the pointer to the word that says that all Vars are written
SINGLE = {ARENA: "arena", STOP: "stop", DONE: "done", ARGS: "args"}


class Symbol(Record):
    """Memory whose address is known when a program is bound.

    Fields
        kind: ``arena``, ``stop`` (the word that ends a run), ``done`` (the word that is set when all Vars are written),
            ``args`` (the arguments themselves, which loops change), ``variable``, ``target`` (receives a Var's new
            value), ``constant`` or ``result`` (an output outside of the arena)
        number: index among the code's variables, targets or constants
    """

    kind: str
    number: int = 0

    def __str__(self) -> str:
        return self.kind if self.kind in SINGLE.values() else f"{self.kind}{self.number}"


class Piece(Record):
    """A constant that is read from a file during the run.

    Fields
        constant: its number in the code
        offset, nbytes: in the file; whole pages
        first, last: the first and the last row that reads it
        at: offset in the ring
    """

    constant: int
    offset: int
    nbytes: int
    first: int
    last: int
    at: int = 0

    def meets(self, other: "Piece") -> bool:
        """Return True if the two overlap in the ring."""
        return self.at < other.at + other.nbytes and other.at < self.at + self.nbytes


class Ring(Record, eq=False):
    """The pieces of a program, in the order of reading.

    Fields
        path: of their file
        stamp: identity and modification time of that file
        nbytes: of the ring
        sums: checksums by offset in the file, compared whenever a piece is read; empty if none is compared
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
    """The positions of addresses into one piece of memory among the arguments.

    Fields
        symbol: the memory
        positions: of the words that contain its addresses, int64
        offsets: in bytes from its start, int64, one for each position
    """

    symbol: Symbol
    positions: np.ndarray
    offsets: np.ndarray


class Code(Record, eq=False):
    """The code that all instances of a function share.

    Fields
        kernels: each once, jumps among them
        table: int64 ``[calls, 4]``: kernel number, start of the arguments, tasks, chunk; of a jump its distance in rows
            in place of the chunk
        args: int64, the arguments of all calls; addresses are 0
        relocations: the addresses to fill in
        variables, targets, constants: the memory that symbols name
        updated: the Vars with an update edge; those that no kernel writes are `targets`
        views: the view of each output, in the arena, in a variable or in a constant's array
        nbytes: of the arena
        first_row: the first row of each step, then the end. The last step writes update edges
        first_write: the first step that writes a Var
        labels, label_of: descriptions of rows, and the number of each row's label, int64 ``[calls]``
        ring: the constants that each run reads from a file; None if it reads none
        again: the rows that run more than once; None if all run once
        results: the addresses into each output that may be computed outside of the arena, relative to its first byte;
            `relocations` has the same positions with addresses in the arena
        complete: for each output, the number of rows after which its value is complete; whole steps
    """

    kernels: tuple[Kernel | Callback | Jump, ...]
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
    results: Mapping[Any, Relocation] = field(default_factory=dict)
    complete: Mapping[Any, int] = field(default_factory=dict)

    @property
    def compiled_kernels(self) -> list[Kernel]:
        """The kernels that are machine code; the others are Python functions."""
        return [k for k in self.kernels if isinstance(k, Kernel)]

    @property
    def callbacks(self) -> list[Callback]:
        """The Python functions among the kernels."""
        return [k for k in self.kernels if isinstance(k, Callback)]

    @property
    def calls_blas(self) -> bool:
        """True if a kernel or a Python function among them calls BLAS or LAPACK."""
        return any(k.calls_lapack for k in self.compiled_kernels) or any(c.blas for c in self.callbacks)

    def addresses(self, compiled: Iterable[int]) -> np.ndarray:
        """Return the entry of each kernel in a table: its address, 0 for a Python function, or a jump's number.

        `compiled`: the addresses of `compiled_kernels`.
        """
        rest = iter(compiled)
        numbers = (
            k.number if isinstance(k, Jump) else next(rest) if isinstance(k, Kernel) else 0 for k in self.kernels
        )
        return np.fromiter(numbers, np.int64, len(self.kernels))

    def jumps(self) -> list[tuple[int, int, int]]:
        """Return the rows that jump: number of the jump, the row, the row to which it goes."""
        numbers = {i: k.number for i, k in enumerate(self.kernels) if isinstance(k, Jump)}
        rows = np.flatnonzero(np.isin(self.table[:, 0], list(numbers))).tolist() if numbers else []
        entries = [(numbers[int(self.table[r, 0])], r, int(self.table[r, 3])) for r in rows]
        return [(n, r, r + 1 - far if n == REPEAT else r + far) for n, r, far in entries]

    @property
    def written(self) -> frozenset[Variable]:
        """The Vars whose new values kernels write in place."""
        return frozenset(self.updated) - frozenset(self.targets)

    def text(self) -> str:
        """Return one line per call: the step, the kernel, and its arguments by name, with memory by symbols."""
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
