"""Instances of loaded code: an arena, addresses, and runs.

The table of an instance is int64 ``[calls, 4]``. A row is the kernel's address, the address of its arguments, its
number of tasks, and its chunk. Binding memory costs one vector addition for each relocation.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from cgraph.dtypes.convert import dtype_of_code
from cgraph.engine.cpu.code import Code, Relocation, Symbol
from cgraph.engine.cpu.direct import InputView, NewResult, NewResults, direct_run, entry_words, results_reader
from cgraph.engine.cpu.rows import TableRows
from cgraph.engine.cpu.threads import run_rows
from cgraph.engine.instance import DirectRun, Share, failure
from cgraph.kernels.control import CONTROLS, OTHER_ARRAYS, STOPPED
from cgraph.kernels.kernel import ARENA, Callback, View
from cgraph.record import Record
from cgraph.storage.cell import CellValue
from cgraph.system.addresses import address_of
from cgraph.system.alignment import aligned_memory
from cgraph.system.array_fields import has_array_fields
from cgraph.system.bounded_cache import Bounded, most_of

FEW = 4  # addresses that are written one by one in less time than as a vector
NUMBER = np.zeros(())  # stands where a view of an input comes


class LoadedCode(Record, eq=False):
    """Code with kernel addresses, shared by all instances of a function.

    Fields
        code: without addresses
        addresses: of the code's kernels, int64; see `Code.addresses`
        threads: most threads of a run
        poison: byte that fills a new arena; None leaves it unfilled. With it, every run is a full one: a value that a
            later partial run would read may be dead in this run, so it has been filled too
        target: the target of its kernels
        memory: the owner of the kernels' machine code, if no store keeps it
    """

    code: Code
    addresses: np.ndarray
    threads: int
    poison: int | None = None
    target: Any = None
    memory: Any = None

    def table(self) -> np.ndarray:
        """Return the table with kernel addresses and positions of arguments; see `ThreadPool.run`."""
        table, numbers = self.code.table.copy(), self.code.table[:, 0]
        table[:, 0] = self.addresses[numbers]
        for i, number in enumerate(n for n, k in enumerate(self.code.kernels) if isinstance(k, Callback)):
            table[numbers == number, 2] = i
        return table


class CpuInstance:
    """Loaded code with an arena. Mutable: addresses change when memory is bound, and so does the arena. It runs once at
    a time.
    """

    waited = 0.0

    def __init__(self, program: LoadedCode, memory: np.ndarray | None = None) -> None:
        code = self.code = program.code
        self.arena = aligned_memory(code.nbytes) if memory is None else memory[: code.nbytes]
        self._is_poisoned, self._target = program.poison is not None, program.target
        if program.poison is not None:
            self.arena[...] = program.poison
        start = address_of(self.arena)
        self._own = range(start, start + code.nbytes)
        self.args = code.args.copy()
        self._words = self.args.data
        self.table = program.table()
        kernels = self.table[self.table[:, 0] > CONTROLS]
        shared = (kernels[:, 2] > kernels[:, 3]).any()  # some call has more than one share of tasks to hand out
        self.threads = program.threads if shared else 1
        self.table[:, 1] = self.args.ctypes.data + 8 * self.table[:, 1]
        self.stop = np.zeros(1, np.int64)
        self._stop_address = self.stop.ctypes.data
        self.functions = [c.function for c in code.callbacks]
        self._calls_blas = code.calls_blas
        self._arrays: dict[Any, np.ndarray] = {}
        self._vars: dict[Any, np.ndarray] = {}
        self._copied: dict[Any, np.ndarray] = {}
        self._targets: dict[Any, np.ndarray] = {}
        self._stamps: list[int | None] = []
        self._word: np.ndarray | None = None
        self._complete: Callable[[Any], None] | None = None
        self._shows_vars = any(not isinstance(view.at.base, str | np.ndarray) for view in code.views.values())
        self._written = code.written
        self.results = {} if self._is_poisoned else code.results
        self._whole = self._rows_among(None, int(code.first_row[code.first_write]))
        self._rows: Bounded[tuple[tuple[int, ...] | None, bool], TableRows] = Bounded(most_of(len(self.table)))
        self._bound: dict[Relocation, int] = {}
        relocations = {r.symbol: r for r in code.relocations}
        self._variables = {x: relocations[Symbol("variable", i)] for i, x in enumerate(code.variables)}
        self._places = [(x, relocations[Symbol("target", i)]) for i, x in enumerate(code.targets)]
        self._done = relocations.get(Symbol("done"))
        for symbol, relocation in relocations.items():
            if symbol.kind == "constant":
                self._move(relocation, self._address_of_constant(symbol.number))
        own_memory = (("arena", self.arena), ("stop", self.stop), ("args", self.args))
        for symbol, own in ((Symbol(kind), memory) for kind, memory in own_memory):
            if symbol in relocations:
                self._move(relocations[symbol], address_of(own))

    def _address_of_constant(self, number: int) -> int:
        return address_of(self.code.constants[number])

    def bind(self, inputs: Mapping[Any, np.ndarray], cells: Mapping[Any, CellValue], done: np.ndarray) -> None:
        """Set the memory of Vars for the runs that follow; see `cgraph.engine.instance.Instance`."""
        stamps = [value.stamp for value in cells.values()]
        if None in stamps or stamps != self._stamps or done is not self._word:
            self._bind_cells(inputs, cells, done)
        self._vars = {x: value.array for x, value in cells.items() if self._shows_vars}  # type: ignore[misc]
        self._vars.update(inputs)
        self._copied = {}
        for x, relocation in self.results.items():
            self._move(relocation, self._own.start + self.code.views[x].at.offset)
        for x in inputs:
            if x in self._variables:
                self._move(self._variables[x], self._input(x))

    def write_to(self, arrays: Mapping[Any, np.ndarray]) -> None:
        """Set the memory of outputs for the next run; see `cgraph.engine.instance.Instance`."""
        for x, array in arrays.items():
            self._move(self.results[x], address_of(array))

    def _bind_cells(self, inputs: Mapping[Any, np.ndarray], cells: Mapping[Any, CellValue], done: np.ndarray) -> None:
        """Set the memory of the Vars that are not inputs; some may have moved since the last call."""
        self._stamps = []  # unknown until all is bound
        self._targets = {x: cells[x].writable(x.spec, done) for x in self.code.updated}  # first: they may move
        for x, relocation in self._variables.items():
            if x not in inputs:
                self._move(relocation, cells[x].address)
        for x, relocation in self._places:
            self._move(relocation, cells[x].address)
        if self._done:
            self._move(self._done, address_of(done))
        self._word = done
        self._stamps = [value.settle() for value in cells.values()]

    def _input(self, x: Any) -> int:
        """Return an input's address. An input inside this arena (a view returned by an earlier call) is copied first,
        because the run overwrites it.
        """
        address = address_of(self._vars[x])
        if address not in self._own:
            return address
        self._vars[x] = self._copied[x] = self._vars[x].copy()
        return address_of(self._vars[x])

    def _move(self, relocation: Relocation, address: int) -> None:
        """Write the addresses into the memory that begins at `address`."""
        if self._bound.get(relocation) != address:
            self._bound[relocation] = -1  # unknown until all are written
            if len(relocation.positions) > FEW:
                self.args[relocation.positions] = address + relocation.offsets
            else:
                for position, offset in zip(relocation.positions.tolist(), relocation.offsets.tolist()):
                    self._words[position] = address + offset
            self._bound[relocation] = address

    # -- values -----------------------------------------------------------------------------------------------------
    def makes(self, output: Any) -> bool:
        """Return True if the output's bytes are in the arena or in a Var that a kernel writes."""
        return self.owns(output) or any(self.code.views[output].at.base is x for x in self._written)

    def owns(self, output: Any) -> bool:
        """Return True if the output's bytes are in the arena."""
        return self.code.views[output].at.base is ARENA

    def read(self, output: Any) -> np.ndarray:
        """Return an output's value in place."""
        array = self._arrays.get(output)
        if array is not None:
            return array
        view = self.code.views[output]
        base = view.at.base
        if base is ARENA:
            array = self._arrays[output] = array_at(self.arena, view)
            return array
        memory = base if isinstance(base, np.ndarray) else self._vars[base]
        return array_at(np.ascontiguousarray(memory).reshape(-1).view(np.uint8), view)

    def direct_run(
        self, inputs: Sequence[Any], outputs: Sequence[Any], steps: tuple[int, ...] | None
    ) -> DirectRun | None:
        """Return the fast path of a run, or None; see `cgraph.engine.instance.Instance`."""
        is_plain = not (self._is_poisoned or self._calls_blas or self.functions or self._targets or self._whole.rest)
        if not is_plain or self._done or not has_array_fields():
            return None
        if self._variables.keys() - set(inputs):
            return None
        numbers = {x: i for i, x in enumerate(inputs)}
        new = self._new_results(outputs if steps is None else ())
        views, shown = [], []
        for i, x in enumerate(outputs):
            view = self.code.views[x]
            if i in new.numbers:
                views.append(NUMBER)
            elif isinstance(view.at.base, str | np.ndarray) or view.at.base not in numbers or not view.size:
                views.append(self.read(x) if view.size else np.empty(view.shape, dtype_of_code(view.dtype)))
            else:
                views.append(NUMBER)
                shown.append(InputView(i, numbers[view.at.base], view))
        rows = self._whole if steps is None else self._rows_of(steps, True)
        count = rows.count if self.threads == 1 else 0  # a team runs the others
        memory = {"stop": self._stop_address, "args": self.args.ctypes.data}
        memory |= {"first": self._own.start, "last": self._own.stop}
        words = entry_words(inputs, [self._variables.get(x) for x in inputs], rows, count, memory)
        before = new.bind if new.places else self._bound.clear
        finish = partial(self._finish_directly, rows)
        return direct_run(words, rows.count, before, finish, results_reader(views, shown, new))

    def _new_results(self, outputs: Sequence[Any]) -> NewResults:
        """Return the arrays outside of the arena in which direct runs compute some of these outputs."""
        places = [
            NewResult(i, (x.spec.shape, x.spec.dtype, x.spec.nbytes), partial(self._move, self.results[x]))
            for i, x in enumerate(outputs)
            if x in self.results
        ]
        return NewResults(places, self._bound.clear)

    def _finish_directly(self, rows: TableRows, ran: int) -> bool:
        """Run the rows that are left after a direct run; return False if its arrays do not fit."""
        if ran == OTHER_ARRAYS:
            return False
        if ran > OTHER_ARRAYS:
            ran += run_rows(
                rows.first + ran * rows.table.strides[0], rows.count - ran, self.threads, self._stop_address
            )
            is_stopped = bool(self.stop[0])
        else:
            ran, is_stopped = STOPPED - ran, True
        if is_stopped:
            raise self._stopped(ran, rows)
        return True

    # -- runs -------------------------------------------------------------------------------------------------------
    def run(
        self, steps: tuple[int, ...] | None = None, write: bool = True, complete: Callable[[Any], None] | None = None
    ) -> None:
        """Run steps and update edges; see `cgraph.engine.instance.Instance`.

        Raises
            PositionError: an index read from data lies outside its axis
            LinAlgError: a matrix is singular or not positive definite
            any exception of a Python function among the kernels
        """
        if self._is_poisoned:
            steps = None
        try:
            self._complete = complete
            self._run_all(self._whole if steps is None and write else self._rows_of(steps, write))
        finally:
            self._complete = None

    def recorded(self) -> tuple[Share, ...]:
        """Run all steps and return each thread's times; see `cgraph.engine.instance.Instance`.

        Only this method loads the recorder and, with it, LLVM (75 ms).
        """
        recorder = import_module("cgraph.engine.cpu.recorder").Recorder(
            self._rows_of(None, False), self.functions, self._target
        )
        self._run_all(recorder.rows)
        return recorder.shares(self.code.first_row)

    def _run_all(self, rows: TableRows) -> None:
        self._vars = self._targets  # kernels know the addresses of the others, which are the caller's
        if self._calls_blas:
            import_module("cgraph.engine.cpu.blas").with_one_thread(lambda: self._run(rows))
        else:
            self._run(rows)

    def _run(self, rows: TableRows) -> None:
        self._run_first(rows)
        if rows.rest:
            run_rows(rows.second, rows.rest, self.threads, whole=True)

    def _run_first(self, rows: TableRows) -> None:
        """Run the rows of the first part."""
        first, complete = 0, self._complete
        if complete is not None:
            for x, row in self._completed_by(rows):
                self._run_some(rows, first, row)
                complete(x)
                first = row
        self._run_some(rows, first, rows.count)

    def _completed_by(self, rows: TableRows) -> Iterator[tuple[Any, int]]:
        """Yield the outputs that are complete before the last of these rows, and the number of rows until then."""
        for x, row in sorted(self.code.complete.items(), key=lambda pair: pair[1]):
            row = row if rows.numbers is None else int(np.searchsorted(rows.numbers[: rows.count], row))
            if row < rows.count and self.makes(x):
                yield x, row

    def _run_some(self, rows: TableRows, first: int, last: int) -> None:
        """Run rows ``first .. last``, the last one excluded."""
        self.stop[0] = 0
        address = rows.first + first * rows.table.strides[0]
        functions = self.functions if rows.functions is None else rows.functions
        ran = run_rows(address, last - first, self.threads, self._stop_address, functions)
        if self.stop[0]:
            raise self._stopped(first + ran, rows)

    def _stopped(self, ran: int, rows: TableRows) -> Exception:
        """Return the exception that explains why a row ended the run."""
        row = ran - 1 if rows.numbers is None else rows.numbers[ran - 1]
        return failure(int(self.stop[0]), self.code.labels[self.code.label_of[row]])

    def _rows_of(self, steps: tuple[int, ...] | None, write: bool) -> TableRows:
        """Return the rows of these steps and, if `write`, those of update edges."""
        rows = self._rows.get((steps, write))
        if rows is None:
            last, first = len(self.code.first_row) - 2, self.code.first_write
            order = (*(range(last) if steps is None else steps), *((last,) if write else ()))
            numbers = self._numbers(order)
            split = len(self._numbers(s for s in order if s < first))
            rows = self._rows.keep((steps, write), self._rows_among(numbers, split))
        return rows

    def _rows_among(self, numbers: np.ndarray | None, split: int) -> TableRows:
        """Return some rows of the table, or all; rows from `split` on write update edges."""
        return TableRows(self.table if numbers is None else np.ascontiguousarray(self.table[numbers]), split, numbers)

    def _numbers(self, steps: Iterable[int]) -> np.ndarray:
        """Return the rows of some steps in the whole table."""
        edges = self.code.first_row
        return np.array([r for s in steps for r in range(edges[s], edges[s + 1])], np.int64)


def array_at(memory: np.ndarray, view: View) -> np.ndarray:
    """Return a view over bytes as a NumPy array that cannot be made writable."""
    dtype = dtype_of_code(view.dtype)
    if view.size == 0:
        return np.empty(view.shape, dtype)
    fixed = np.frombuffer(memory.data.toreadonly(), np.uint8)
    return np.ndarray(view.shape, dtype, fixed, view.at.offset, view.strides)
