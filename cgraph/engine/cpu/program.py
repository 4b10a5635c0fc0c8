"""Code with its kernels, and instances of it: an arena, addresses, and runs.

The table of an instance: int64 ``[calls, 4]``, each row the kernel's address, the address of its arguments, its tasks,
its chunk. Binding memory is one vector addition per piece of it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cgraph.alignment import aligned_memory
from cgraph.engine.cpu.blas import with_one_thread
from cgraph.engine.cpu.code import Code, Relocation, Symbol
from cgraph.engine.cpu.threads import run_table
from cgraph.errors import PositionError
from cgraph.ir.graph import Node
from cgraph.kernels.kernel import ARENA, Callback, Kernel, View
from cgraph.ops.leaf import ConstOp, Value, Var
from cgraph.record import Record


class CpuProgram(Record, eq=False):
    """What all instances of a function share.

    Fields
        code: without addresses
        addresses: of the kernels
        threads: that a run may use
        poison: what the arena is filled with at first; None leaves it as it is
    """

    code: Code
    addresses: Mapping[Kernel, int]
    threads: int
    poison: int | None = None
    on_host = ()

    def instance(self) -> "CpuInstance":
        """A program with an arena of its own."""
        return CpuInstance(self)

    def table(self) -> np.ndarray:
        """The table with the addresses of the kernels, and the positions of their arguments; see `ThreadPool.run`."""
        found, numbers = self.code.table.copy(), self.code.table[:, 0]
        kernels = [self.addresses[k] if isinstance(k, Kernel) else 0 for k in self.code.kernels]
        found[:, 0] = np.array(kernels, np.int64)[numbers]
        for i, number in enumerate(n for n, k in enumerate(self.code.kernels) if isinstance(k, Callback)):
            found[numbers == number, 2] = i
        return found


class CpuInstance:
    """A program with an arena. Changes: addresses when memory is bound, and the arena. One run at a time."""

    def __init__(self, program: CpuProgram) -> None:
        code = self.code = program.code
        self.views = code.compiled.views
        self.arena = aligned_memory(code.compiled.nbytes)
        if program.poison is not None:
            self.arena[...] = program.poison
        self.args = code.args.copy()
        self.table = program.table()
        kernels = self.table[self.table[:, 0] != 0]
        shared = (kernels[:, 2] > kernels[:, 3]).any()  # some call has more than one share of tasks to hand out
        self.threads = program.threads if shared else 1
        self.table[:, 1] = self.args.ctypes.data + 8 * self.table[:, 1]
        self.stop = np.zeros(1, np.int64)
        self.functions = [c.function for c in code.callbacks]
        self._calls_blas = any(c.blas for c in code.callbacks)
        self._arrays: dict[Node, np.ndarray] = {}
        self._vars: Mapping[Any, Any] = {}
        self._targets: Mapping[Var, np.ndarray] = {}
        self._written = {self.views[x].at.base for x in code.compiled.sources if x.op.writes}
        self._tables: dict[tuple[tuple[int, ...] | None, bool], np.ndarray] = {}
        self._bound: dict[Relocation, int] = {}
        found = {r.symbol: r for r in code.relocations}
        self._variables = [(x, found[Symbol("variable", i)]) for i, x in enumerate(code.variables)]
        self._places = [(x, found[Symbol("target", i)]) for i, x in enumerate(code.targets)]
        self._done = found.get(Symbol("done"))
        for i, array in enumerate(code.constants):
            self._move(found[Symbol("constant", i)], array)
        for symbol, memory in ((Symbol("arena"), self.arena), (Symbol("stop"), self.stop)):
            if symbol in found:
                self._move(found[symbol], memory)

    def bind(self, given: Mapping[Node, np.ndarray], cells: Mapping[Var, Value], done: np.ndarray) -> None:
        """The memory of Vars for the runs that follow; see `cgraph.engine.engine.Instance`."""
        self._targets = {x: cells[x].writable(x.spec, done) for x in self.code.compiled.updated}  # first: they may move
        self._vars = {**{x: value.array for x, value in cells.items()}, **given}
        for x, relocation in self._variables:
            self._move(relocation, self._vars[x])
        for x, relocation in self._places:
            self._move(relocation, self._targets[x])
        if self._done:
            self._move(self._done, done)

    def _move(self, relocation: Relocation, memory: np.ndarray) -> None:
        """Write the addresses into one piece of memory."""
        address = memory.__array_interface__["data"][0]
        if self._bound.get(relocation) != address:
            self._bound[relocation] = -1  # until the new ones stand there, nobody knows which do
            self.args[relocation.positions] = address + relocation.offsets
            self._bound[relocation] = address

    # -- values -----------------------------------------------------------------------------------------------------
    def makes(self, node: Node) -> bool:
        """The node's bytes are in the arena, or in a Var that a kernel writes into."""
        return self.owns(node) or self.views[node].at.base in self._written

    def owns(self, node: Node) -> bool:
        """The node's bytes are in the arena."""
        return self.views[node].at.base is ARENA

    def read(self, node: Node) -> np.ndarray:
        """A node's value where it lies."""
        view = self.views[node]
        if not self.owns(node):
            base = view.at.base
            memory = base.op.array if isinstance(base.op, ConstOp) else self._vars[base]
            return array_at(np.ascontiguousarray(memory).reshape(-1).view(np.uint8), view)
        if node not in self._arrays:
            self._arrays[node] = array_at(self.arena, view)
        return self._arrays[node]

    # -- runs -------------------------------------------------------------------------------------------------------
    def run(self, steps: tuple[int, ...] | None = None, write: bool = True) -> None:
        """Run steps, and write update edges; see `cgraph.engine.engine.Instance`.

        Raises
            PositionError: a position that is data lies outside its axis
            whatever a Python function among the kernels raises
        """
        self._vars = self._targets  # kernels know the addresses of the others, which are the caller's
        if self._calls_blas:
            with_one_thread(lambda: self._run(steps, write))
        else:
            self._run(steps, write)

    def _run(self, steps: tuple[int, ...] | None, write: bool) -> None:
        """Run a table in two parts: the second writes into Vars, and is one call that goes on to its end."""
        table, split = self._table_of(steps, write), self._rows_before_writes(steps)
        self.stop[0] = 0
        ran = run_table(table[:split], self.threads, self.stop, self.functions)
        if self.stop[0]:
            raise PositionError(f"{self._label(ran - 1, steps)}: a position is outside its axis")
        if split < len(table):
            run_table(table[split:], self.threads, whole=True)

    def _rows_before_writes(self, steps: tuple[int, ...] | None) -> int:
        first, edges = self.code.first_write, self.code.first_row
        if steps is None:
            return int(edges[first])
        return int(sum(edges[s + 1] - edges[s] for s in steps if s < first))

    def _label(self, row: int, steps: tuple[int, ...] | None) -> str:
        """What made a row of the table."""
        rows = np.arange(len(self.table)) if steps is None else self._rows_of(steps)
        return self.code.labels[self.code.label_of[rows[row]]]

    def _table_of(self, steps: tuple[int, ...] | None, write: bool) -> np.ndarray:
        """The rows of these steps, and of those that write update edges."""
        if steps is None and write:
            return self.table
        if (steps, write) not in self._tables:
            last = len(self.code.first_row) - 2
            order = (*(range(last) if steps is None else steps), *((last,) if write else ()))
            self._tables[steps, write] = np.ascontiguousarray(self.table[self._rows_of(order)])
        return self._tables[steps, write]

    def _rows_of(self, steps: tuple[int, ...]) -> np.ndarray:
        """The rows of some steps in the whole table."""
        edges = self.code.first_row
        return np.array([r for s in steps for r in range(edges[s], edges[s + 1])], np.int64)


def array_at(memory: np.ndarray, view: View) -> np.ndarray:
    """A view as a NumPy array over bytes, which nobody can make writable."""
    dtype = np.dtype("?" if view.dtype == "b1" else view.dtype)
    if view.size == 0:
        return np.empty(view.shape, dtype)
    fixed = np.frombuffer(memory.data.toreadonly(), np.uint8)
    return np.ndarray(view.shape, dtype, fixed, view.at.offset, view.strides)
