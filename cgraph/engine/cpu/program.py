"""Code with its kernels, and instances of it: an arena, addresses, and runs.

The table of an instance: int64 ``[calls, 4]``, each row the kernel's address, the address of its arguments, its tasks,
its chunk. Binding memory is one vector addition per piece of it.
"""

from collections.abc import Mapping

import numpy as np

from cgraph.alignment import aligned_memory
from cgraph.engine.cpu.code import Code, Symbol
from cgraph.engine.cpu.threads import run_table
from cgraph.errors import PositionError
from cgraph.ir.graph import Node
from cgraph.kernels.callback import taken_failure
from cgraph.kernels.kernel import ARENA, Callback, Kernel, View
from cgraph.ops.leaf import ConstOp, Var
from cgraph.record import Record

ARENA_SYMBOL, STOP_SYMBOL = Symbol("arena"), Symbol("stop")


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

    def instance(self) -> "CpuInstance":
        """A program with an arena of its own."""
        return CpuInstance(self)

    def table(self) -> np.ndarray:
        """The table with the addresses of the kernels, and the positions of their arguments."""
        found = self.code.table.copy()
        kernels = [k.address if isinstance(k, Callback) else self.addresses[k] for k in self.code.kernels]
        found[:, 0] = np.array(kernels, np.int64)[found[:, 0]]
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
        shared = (self.table[:, 2] > self.table[:, 3]).any()  # some call has more than one share of tasks to hand out
        self.threads = program.threads if shared else 1
        self.table[:, 1] = self.args.ctypes.data + 8 * self.table[:, 1]
        self.stop = np.zeros(1, np.int64)
        self.wrote = False
        self._arrays: dict[Node, np.ndarray] = {}
        self._vars: Mapping[Node, np.ndarray] = {}
        self._tables: dict[tuple[int, ...], np.ndarray] = {}
        self._bound: dict[Symbol, int] = {}
        self._relocations = {r.symbol: r for r in code.relocations}
        self._move(ARENA_SYMBOL, self.arena)
        self._move(STOP_SYMBOL, self.stop)
        for i, array in enumerate(code.constants):
            self._move(Symbol("constant", i), array)

    def bind(self, arrays: Mapping[Node, np.ndarray]) -> None:
        """The memory of Vars for the runs that follow; arrays in C order."""
        self._vars = arrays
        for i, x in enumerate(self.code.variables):
            self._move(Symbol("variable", i), arrays[x])

    def _move(self, symbol: Symbol, memory: np.ndarray) -> None:
        """Write the addresses that begin at a symbol."""
        relocation, address = self._relocations.get(symbol), memory.ctypes.data
        if relocation is not None and self._bound.get(symbol) != address:
            self.args[relocation.positions] = address + relocation.offsets
            self._bound[symbol] = address

    # -- values -----------------------------------------------------------------------------------------------------
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

    def write(self, x: Var, source: Node) -> None:
        """The value of an update edge's source into its Var; only counted where a kernel wrote it there."""
        if source.op.writes and self.views[source].at.base is x:
            x.cell.version += 1
        else:
            value = self.read(source)
            np.copyto(x.cell.change(x.spec), value)

    # -- runs -------------------------------------------------------------------------------------------------------
    def run(self, steps: tuple[int, ...] | None = None) -> None:
        """Run every step, or those named. What a Python function among them raises is raised here.

        Raises
            PositionError: a position that is data lies outside its axis
        """
        table = self.table if steps is None else self._table_of(steps)
        if not len(table):
            return
        if STOP_SYMBOL not in self._relocations:
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
        rows = np.arange(len(self.table)) if steps is None else self._rows_of(steps)
        return self.code.labels[self.code.label_of[rows[row]]]

    def _table_of(self, steps: tuple[int, ...]) -> np.ndarray:
        if steps not in self._tables:
            self._tables[steps] = np.ascontiguousarray(self.table[self._rows_of(steps)])
        return self._tables[steps]

    def _rows_of(self, steps: tuple[int, ...]) -> np.ndarray:
        """The rows of some steps in the whole table."""
        edges = self.code.first_row
        return np.array([r for s in steps for r in range(edges[s], edges[s + 1])], np.int64)


def array_at(memory: np.ndarray, view: View) -> np.ndarray:
    """A view as a NumPy array over bytes."""
    dtype = np.dtype("?" if view.dtype == "b1" else view.dtype)
    if view.size == 0:
        return np.empty(view.shape, dtype)
    return np.ndarray(view.shape, dtype, memory.data, view.at.offset, view.strides)
