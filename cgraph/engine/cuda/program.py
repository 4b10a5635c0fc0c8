"""Code with its kernels on a device, and its instances: an arena there, addresses, a launch table, runs.

A launch table is int64 ``[rows, 5]``: function, blocks, threads of a block, address of the arguments, tasks. Steps on
the host divide a run into segments; everything else is queued without waiting.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cgraph.engine.cpu.code import Code, Symbol
from cgraph.engine.cpu.instance import array_at
from cgraph.engine.cuda.arrays import DeviceArray, device_array
from cgraph.engine.cuda.cells import Copy, DeviceCells, DeviceWord
from cgraph.engine.cuda.device import COLUMNS, Allocation, Device, LaunchError, LoadedKernel, Queue
from cgraph.engine.cuda.graphs import Graphs
from cgraph.engine.cuda.host import moved_nbytes, run_on_host
from cgraph.engine.cuda.segments import Segment, label_of, segments
from cgraph.engine.instance import failure
from cgraph.errors import EngineError
from cgraph.kernels.control import BEGIN, FIRST_MOVE, MOVE_WORDS, MOVES, ROUND, ROUNDS, SKIP
from cgraph.kernels.kernel import ARENA, Callback, Kernel
from cgraph.record import Record
from cgraph.storage.cell import CellValue, Variable, set_all
from cgraph.system.bounded_cache import Bounded, most_of

GROUP = 8  # kernels are made for whole groups of arguments
ARENA_SYMBOL, STOP_SYMBOL, DONE_SYMBOL, ARGS_SYMBOL = Symbol("arena"), Symbol("stop"), Symbol("done"), Symbol("args")


class CudaProgram(Record, eq=False):
    """Code with its kernels on a device, shared by all instances of a function.

    Fields
        code: without addresses
        device: that runs it
        cells: the Vars' values on the device
        loaded: per row of the code's table, its kernel on the device; None for a call on the host
        constants: the code's constants on the device
        poison: byte that fills a new arena; None leaves it unfilled. With it every run is a full one, as on the CPU
        check: wait for each launch, so that errors name the failing step
        graphs: run repeated segments as CUDA graphs
    """

    code: Code
    device: Device
    cells: DeviceCells
    loaded: tuple[LoadedKernel | None, ...]
    constants: tuple[Allocation, ...]
    poison: int | None = None
    check: bool = False
    graphs: bool = True

    @property
    def on_host(self) -> tuple[tuple[str, int], ...]:
        """Steps that run on the host: the label of each, and the bytes copied down and up."""
        code = self.code
        rows = [r for r, n in enumerate(code.table[:, 0].tolist()) if isinstance(code.kernels[n], Callback)]
        return tuple((label_of(code, r), moved_nbytes(code.kernels[code.table[r, 0]])) for r in rows)

    def own_array(self, value: Any) -> DeviceArray | None:
        """Return a value that lies in the device's memory as a DeviceArray; None for any other value."""
        return device_array(self.device, value)

    def instance(self, memory: np.ndarray | None = None) -> "CudaInstance":
        """Return an instance with an arena of its own."""
        return CudaInstance(self)


class CudaInstance:
    """A program with an arena. Mutable: addresses when memory is bound, and the device's memory. It runs once at a
    time.
    """

    waited = 0.0
    results = ()

    def __init__(self, program: CudaProgram) -> None:
        code, device = program.code, program.device
        self.program, self.code, self.views = program, code, code.views
        self.queue = device.queue()
        self.arena = Allocation(device, code.nbytes)
        if program.poison is not None:
            self.queue.fill(self.arena.address, self.arena.nbytes, program.poison)
        self.args = np.concatenate([code.args, np.zeros(GROUP, np.int64)])  # kernels are given whole groups
        self.rows = launch_rows(program, self.args)
        self.stops = Stops(code, device, self.args, self.queue)
        self._done = DeviceWord(device)
        self._input_values: Mapping[Variable, Any] = {}
        self._cells: Mapping[Variable, CellValue] = {}
        self._written = code.written
        self._inputs: dict[Variable, Allocation] = {}
        self._old: dict[Variable, Copy] = {}
        self._bound: dict[Symbol, int] = {}
        self._relocations = {r.symbol: r for r in code.relocations}
        self._parts: Bounded[Any, tuple[list[Segment], list[Segment]]] = Bounded(most_of(len(self.rows)))
        self.graphs = Graphs(self.queue)
        self._move(ARGS_SYMBOL, self.args.ctypes.data)
        self._move(ARENA_SYMBOL, self.arena.address)
        self._move(DONE_SYMBOL, self._done.memory.address)
        for i, memory in enumerate(program.constants):
            self._move(Symbol("constant", i), memory.address)

    # -- memory -----------------------------------------------------------------------------------------------------
    def bind(self, inputs: Mapping[Variable, Any], cells: Mapping[Variable, CellValue], done: np.ndarray) -> None:
        """Upload the inputs of the runs that follow; bind the other Vars to their memory on the device."""
        self._input_values, self._cells = inputs, cells
        for i, x in enumerate(self.code.variables):
            self._move(Symbol("variable", i), self._input(x) if x in inputs else self._cell(x))
        for i, x in enumerate(self.code.targets):
            self._move(Symbol("target", i), self._copy(x).memory.address)
        for x in self.code.updated:
            if cells[x].is_there:
                self._cell(x)  # until the run has written all Vars, the copy has the old value
        if not all(cells[x].is_there for x in self.code.updated):
            self._done = DeviceWord(self.program.device)  # an earlier word may be that of a value
            self._move(DONE_SYMBOL, self._done.memory.address)

    def write_to(self, arrays: Mapping[Any, np.ndarray]) -> None:
        """Do nothing, since there are no `results`."""

    def direct_run(self, *_: Any) -> None:
        """Return None: inputs are copied to the device."""

    def _input(self, x: Variable) -> int:
        """Return an input's address: its own, or that of an uploaded copy. An input inside this arena is copied,
        because the run overwrites it.
        """
        value = self._input_values[x]
        if isinstance(value, DeviceArray):
            if value.stream is not None:
                self.queue.follow(value.stream)
            if value.owner is not self.arena:
                return value.address
        if x not in self._inputs:
            self._inputs[x] = Allocation(self.program.device, x.spec.nbytes)
        if isinstance(value, DeviceArray):
            self.queue.copy(self._inputs[x].address, value.address, x.spec.nbytes)
        else:
            self.queue.upload(self._inputs[x].address, np.ascontiguousarray(value))
        return self._inputs[x].address

    def _cell(self, x: Variable) -> int:
        copy = self._copy(x)
        copy.update(self._cells[x])
        return copy.memory.address

    def _copy(self, x: Variable) -> Copy:
        return self.program.cells.copy_of(self._cells[x], x.spec)

    def _move(self, symbol: Symbol, address: int) -> None:
        """Write the addresses relative to a symbol."""
        relocation = self._relocations.get(symbol)
        if relocation is not None and self._bound.get(symbol) != address:
            self._bound.pop(symbol, None)  # unknown until all are written
            self.args[relocation.positions] = address + relocation.offsets
            self._bound[symbol] = address

    def recorded(self) -> tuple[()]:
        """Run all steps; the device's times are not recorded."""
        self.run(write=False)
        return ()

    # -- values -----------------------------------------------------------------------------------------------------
    def makes(self, output: Any) -> bool:
        """Return True if the output's bytes are in the arena or in a Var that a kernel writes."""
        base = self.views[output].at.base
        return base is ARENA or any(base is x for x in self._written)

    def owns(self, output: Any) -> bool:
        """Return True: `read` returns a copy or an array in this instance's arena."""
        return True

    def read(self, output: Any) -> Any:
        """Return an output's value: a device array in the arena, or a copy of a Var, an input or a constant."""
        view = self.views[output]
        base = view.at.base
        if base is ARENA:
            return DeviceArray(self.program.device, self.arena.address + view.at.offset, view, self.arena)
        memory = base if isinstance(base, np.ndarray) else self._array(base)
        return np.array(array_at(np.ascontiguousarray(memory).reshape(-1).view(np.uint8), view))

    def _array(self, x: Any) -> np.ndarray:
        """Return a Var's value on the host."""
        return np.asarray(self._input_values[x] if x in self._input_values else self._cells[x].array)

    # -- runs -------------------------------------------------------------------------------------------------------
    def run(
        self, steps: tuple[int, ...] | None = None, write: bool = True, complete: Callable[[Any], None] | None = None
    ) -> None:
        """Run steps, and update edges on the device; see `cgraph.engine.instance.Instance`.

        Raises
            PositionError: an index read from data lies outside its axis
            EngineError: the device failed
            any exception of a Python function among the kernels
        """
        before, after = self._parts_of(steps if self.program.poison is None else None, write)
        self._run_segments(before)
        self._check_stops()
        if write and self.code.updated:
            self._update(after)
        else:
            self._run_segments(after)
            self.queue.wait()

    def _update(self, parts: list[Segment]) -> None:
        """Run the segments that write Vars: all of them happen, or none, wherever an exception comes.

        The Vars' values are said to be the device's copies before these change. Copies of the old values take their
        place where the segments are more than one native call.
        """
        values = [self._cells[x] for x in self.code.updated]
        copies = [self._copy(x) for x in self.code.updated]
        there = [value.is_there for value in values]
        for value, is_there in zip(values, there):
            if not is_there:
                value.await_device(self._done)
        if len(parts) == 1 and parts[0].host is None and self.queue.runs_whole:
            for copy in copies:
                copy.writer = self.queue
            set_all(values, "newer", copies)
        else:
            old = [self._old_copy(x) for x, is_there in zip(self.code.updated, there) if is_there]
            set_all([value for value, is_there in zip(values, there) if is_there], "newer", old)
        self._run_segments(parts)
        self.queue.wait()
        set_all(values, "newer", copies)
        for value, copy in zip(values, copies):
            value.done = copy.writer = None  # both say what holds anyway

    def _old_copy(self, x: Variable) -> Copy:
        """Return a copy of a Var's value on the device that this run does not change."""
        if x not in self._old:
            self._old[x] = Copy(self.program.device, x.spec)
        self.queue.copy(self._old[x].memory.address, self._copy(x).memory.address, x.spec.nbytes)
        self.queue.wait()
        return self._old[x]

    def _check_stops(self) -> None:
        """Wait for the run; raise what a kernel found, such as PositionError for an index outside its axis."""
        stop = self.stops.first()
        if stop is not None:
            raise failure(stop[1], label_of(self.code, stop[0]))

    def _run_segments(self, parts: list[Segment]) -> None:
        number = 0
        while number < len(parts):
            jumps = parts[number].jump and self._jumps(parts[number])
            if not parts[number].jump:
                self._run_segment(parts[number])
            number = parts[number].target if jumps else number + 1

    def _jumps(self, segment: Segment) -> bool:
        """Return True if a jump is taken. A loop that depends on data ends at a position outside its axis."""
        if segment.jump != SKIP:
            return next_round(self.args, segment)
        self._check_stops()
        address, value = self.args[segment.words].tolist()
        byte = np.zeros(1, np.uint8)
        self.queue.download(address, byte)
        self.queue.wait()
        return bool(byte[0] != value)

    def _run_segment(self, segment: Segment) -> None:
        if segment.host is not None:
            run_on_host(self.queue, segment.host, self.args[segment.words].tolist())
            return
        try:
            if self.program.graphs and not self.program.check and not segment.repeats:
                self.graphs.run(segment, tuple(self._bound.values()))
            else:
                self.queue.run(segment.table)
            if self.program.check:
                self.queue.wait()
        except EngineError as error:
            where = label_of(self.code, segment.rows[error.row if isinstance(error, LaunchError) else 0])
            others = 0 if isinstance(error, LaunchError) else len(segment.rows) - 1
            raise EngineError(f"{where}{f' or one of {others} calls after it' if others else ''}: {error}") from None

    def _parts_of(self, steps: tuple[int, ...] | None, write: bool) -> tuple[list[Segment], list[Segment]]:
        """Return the segments before the first step that writes a Var, and those from there on."""
        parts = self._parts.get((steps, write))
        if parts is None:
            last, first = len(self.code.first_row) - 2, self.code.first_write
            order = [*(range(last) if steps is None else steps), *((last,) if write else ())]
            most = 1 if self.program.check else len(self.rows)
            before, after = [s for s in order if s < first], [s for s in order if s >= first]
            parts = (
                segments(self.code, self.rows, before, most),
                segments(self.code, self.rows, after, most),
            )
            self._parts.keep((steps, write), parts)
        return parts


def next_round(args: np.ndarray, segment: Segment) -> bool:
    """Begin the first or the next round of a loop: move its addresses. Return True if the row jumps."""
    begins, at = segment.jump == BEGIN, segment.words.start
    if begins:
        at = (int(args[at]) - args.ctypes.data) // args.itemsize
    number = 0 if begins else int(args[at + ROUND]) + 1
    args[at + ROUND] = number
    goes_on = number < args[at + ROUNDS]
    if goes_on:
        first = at + FIRST_MOVE
        moves = args[first : first + MOVE_WORDS * args[at + MOVES]].reshape(-1, MOVE_WORDS)
        args[(moves[:, 0] - args.ctypes.data) // args.itemsize] = moves[:, 1] + number * moves[:, 2]
    return bool(goes_on) != begins


def round_words(count: int) -> int:
    """Return the number of arguments of the kernel for a call with `count` arguments."""
    return max(1, -(-count // GROUP)) * GROUP


def launch_rows(program: CudaProgram, args: np.ndarray) -> np.ndarray:
    """Return the launch table of all calls; rows of calls on the host stay 0."""
    code = program.code
    rows = np.zeros((len(code.table), COLUMNS), np.int64)
    for row, (loaded, (number, first, tasks, _)) in enumerate(zip(program.loaded, code.table.tolist())):
        if loaded is not None:
            kernel = code.kernels[number]
            blocks = tasks if isinstance(kernel, Kernel) and kernel.is_block else -(-tasks // loaded.threads)
            rows[row] = loaded.function, blocks, loaded.threads, args.ctypes.data + 8 * first, tasks
    return rows


class Stops:
    """A word for each call that can fail, such as at an index outside its axis: kernels set it and continue.

    Mutable: the words on the device.
    """

    def __init__(self, code: Code, device: Device, args: np.ndarray, queue: Queue) -> None:
        relocation = next((r for r in code.relocations if r.symbol == STOP_SYMBOL), None)
        positions = np.zeros(0, np.int64) if relocation is None else relocation.positions
        rows = np.searchsorted(code.table[:, 1], positions, "right") - 1
        self.rows, numbers = np.unique(rows, return_inverse=True)
        self.words, self.queue = np.zeros(len(self.rows), np.int64), queue
        if len(self.rows):
            self.memory = Allocation(device, self.words.nbytes, watched=False)
            args[positions] = self.memory.address + self.words.itemsize * numbers
            queue.fill(self.memory.address, self.words.nbytes, 0)

    def first(self) -> tuple[int, int] | None:
        """Wait for the run and return its first row that set its word, and the word; None if none did."""
        if not len(self.rows):
            self.queue.wait()
            return None
        self.queue.download(self.memory.address, self.words)
        self.queue.wait()
        if not self.words.any():
            return None
        self.queue.fill(self.memory.address, self.words.nbytes, 0)
        first = int(np.flatnonzero(self.words)[0])
        return int(self.rows[first]), int(self.words[first])
