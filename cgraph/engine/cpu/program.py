"""The flat table of kernel calls of a function, and the addresses in it.

Table: int64 ``[calls, 4]``, each row the kernel's address, the address of its arguments, its tasks, its chunk.
Arguments of all calls lie in one int64 array. Addresses are written when memory is bound: per key (the arena, a Var, a
constant) the positions in that array and the offsets are known, so binding is one addition per key.
"""

import struct
from collections.abc import Mapping, Sequence

import numpy as np

from cgraph.alignment import aligned_memory
from cgraph.engine.cpu.threads import run_table
from cgraph.errors import PositionError
from cgraph.kernels.callback import STOP, taken_failure
from cgraph.kernels.kernel import ARENA, Call, Callback, Kernel, Pointer
from cgraph.kernels.store import store
from cgraph.kernels.target import Target
from cgraph.record import Record


class Relocation(Record):
    """Where the addresses into one piece of memory stand in the arguments."""

    key: object
    positions: np.ndarray
    offsets: np.ndarray


class Code(Record):
    """A program without addresses: what all instances of a function share.

    Fields
        table: rows with the position of their arguments in place of the address
        args: arguments, addresses left 0
        relocations: what to fill in
        first_row: per step, its first row; one more at the end
        first_write: the first step that writes into a Var; as many as there are steps when none does
        callbacks: Python functions whose addresses stand in the table
        labels: what each step is, for messages
    """

    table: np.ndarray
    args: np.ndarray
    relocations: tuple[Relocation, ...]
    first_row: np.ndarray
    first_write: int
    kernels: int
    callbacks: tuple[Callback, ...]
    labels: tuple[str, ...]


def code_of_calls(
    calls_by_step: Sequence[Sequence[Call]], labels: Sequence[str], target: Target, first_write: int
) -> Code:
    """Look up the kernels and lay out the arguments; `labels` say what each step is."""
    calls = [call for calls in calls_by_step for call in calls]
    wanted = [call.kernel for call in calls if isinstance(call.kernel, Kernel)]
    addresses = store().load(wanted, target)
    table = np.zeros((len(calls), 4), np.int64)
    args: list[int] = []
    places: dict[int, tuple[object, list[int], list[int]]] = {}
    for row, call in enumerate(calls):
        table[row] = (
            call.kernel.address if isinstance(call.kernel, Callback) else addresses[call.kernel],
            len(args),
            call.tasks,
            max(call.chunk, 1),
        )
        for arg in call.args:
            if isinstance(arg, Pointer):
                _, positions, offsets = places.setdefault(id(arg.base), (arg.base, [], []))
                positions.append(len(args))
                offsets.append(arg.offset)
            args.append(0 if isinstance(arg, Pointer) else word_of(arg))
    relocations = tuple(
        Relocation(key, np.array(positions, np.int64), np.array(offsets, np.int64))
        for key, positions, offsets in places.values()
    )
    first_row = np.cumsum([0, *map(len, calls_by_step)])
    callbacks = tuple(call.kernel for call in calls if isinstance(call.kernel, Callback))
    return Code(
        table, np.array(args, np.int64), relocations, first_row, first_write, len(set(wanted)), callbacks, tuple(labels)
    )


def word_of(arg: int | float) -> int:
    """An argument as an int64: floats by their bits."""
    if isinstance(arg, float):
        return struct.unpack("q", struct.pack("d", arg))[0]
    return int(arg)


class CpuProgram:
    """Code with an arena and addresses. Changes: addresses when memory is bound. One run at a time."""

    def __init__(self, code: Code, nbytes: int, threads: int) -> None:
        self.code = code
        shared = (code.table[:, 2] > code.table[:, 3]).any()  # some call has more than one share of tasks to hand out
        self.threads = threads if shared else 1
        self.arena = aligned_memory(nbytes)
        self.args = code.args.copy()
        self.table = code.table.copy()
        self.table[:, 1] = self.args.ctypes.data + 8 * code.table[:, 1]
        self.wrote = False
        self._tables: dict[tuple[int, ...], np.ndarray] = {}
        self._bound: dict[int, int] = {}
        self._keys = {id(r.key): r for r in code.relocations}
        for relocation in code.relocations:
            if isinstance(relocation.key, np.ndarray):
                self.bind({id(relocation.key): relocation.key.ctypes.data})
        self.stop = np.zeros(1, np.int64)
        self.bind({id(ARENA): self.arena.ctypes.data, id(STOP): self.stop.ctypes.data})

    def bind(self, addresses: Mapping[int, int]) -> None:
        """Write the addresses of the memory that these keys name."""
        for key, address in addresses.items():
            relocation = self._keys.get(key)
            if relocation is not None and self._bound.get(key) != address:
                self.args[relocation.positions] = address + relocation.offsets
                self._bound[key] = address

    def run(self, steps: tuple[int, ...] | None = None) -> None:
        """Run every step, or those named. What a Python function among them raises is raised here.

        Raises
            PositionError: a position that is data lies outside its axis
        """
        table = self.table if steps is None else self._table_of(steps)
        if not len(table):
            return
        if id(STOP) not in self._keys:
            self._run_all(table, self._rows_before_writes(steps))
            return
        ran = run_table(table, self.threads, self.stop, any(c.blas for c in self.code.callbacks))
        if self.stop[0]:
            self.stop[0] = 0
            where = self._label(ran - 1, steps)
            raise taken_failure(self.stop.ctypes.data) or PositionError(f"{where}: a position is outside its axis")

    def _run_all(self, table: np.ndarray, split: int) -> None:
        """Run a table; what is behind `split` writes into Vars and is not interrupted once it has begun."""
        self.wrote = False
        if split:
            run_table(table[:split], self.threads)
        if split < len(table):
            self.wrote = True
            run_table(table[split:], self.threads, whole=True)

    def _rows_before_writes(self, steps: tuple[int, ...] | None) -> int:
        first, edges = self.code.first_write, self.code.first_row
        if steps is None or first == len(edges) - 1:
            return int(edges[first])
        return int(sum(edges[s + 1] - edges[s] for s in steps if s < first))

    def _label(self, row: int, steps: tuple[int, ...] | None) -> str:
        """What made a row of the table."""
        rows = np.diff(self.code.first_row)
        order = np.arange(len(rows)) if steps is None else np.array(steps)
        return self.code.labels[order[np.searchsorted(np.cumsum(rows[order]), row, "right")]]

    def _table_of(self, steps: tuple[int, ...]) -> np.ndarray:
        if steps not in self._tables:
            edges = self.code.first_row
            rows = [r for s in steps for r in range(edges[s], edges[s + 1])]
            self._tables[steps] = np.ascontiguousarray(self.table[rows])
        return self._tables[steps]
