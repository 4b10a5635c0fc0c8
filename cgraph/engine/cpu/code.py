"""A program without addresses: kernels by name, memory by symbols. It can be shown, and bound as often as one likes."""

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ir.work import Part
from cgraph.kernels.callback import STOP
from cgraph.kernels.calls.move import copy_calls, fill_calls
from cgraph.kernels.kernel import ARENA, Call, Callback, Kernel, Pointer, contiguous
from cgraph.kernels.signature import text_of
from cgraph.kernels.target import Target as Machine
from cgraph.ops.leaf import ConstOp, Var
from cgraph.planning import Compiled
from cgraph.record import Record


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
        first_row: per step, its first row; one more at the end. The last step of all writes update edges
        first_write: the first step that writes into a Var
        labels, label_of: what there is to say of rows, and for each row which, int64 ``[calls]``
        compiled: the plan that it carries out
    """

    kernels: tuple[Kernel | Callback, ...]
    table: np.ndarray
    args: np.ndarray
    relocations: tuple[Relocation, ...]
    variables: tuple[Var, ...]
    targets: tuple[Var, ...]
    constants: tuple[np.ndarray, ...]
    first_row: np.ndarray
    first_write: int
    labels: tuple[str, ...]
    label_of: np.ndarray
    compiled: Compiled

    @property
    def compiled_kernels(self) -> list[Kernel]:
        """Those that are machine code of ours; the others are Python functions."""
        return [k for k in self.kernels if isinstance(k, Kernel)]

    @property
    def callbacks(self) -> list[Callback]:
        """The Python functions among the kernels."""
        return [k for k in self.kernels if isinstance(k, Callback)]

    def text(self) -> str:
        """Every call on a line of its own: the step, the kernel, its arguments by name, with memory by symbols."""
        return "\n".join(self.lines())

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


class Target(Record, eq=False):
    """The base of what takes a Var's new value; the Var itself is that of the value which is read."""

    variable: Var


DONE = "done"
SINGLE = {ARENA: "arena", STOP: "stop", DONE: "done"}


def code_of(parts_by_step: Sequence[Sequence[Part]], compiled: Compiled) -> Code:
    """The calls of all steps as one table, every base of an address a symbol; those of update edges are the last."""
    steps = compiled.layout.steps
    writes = (t for t, node in enumerate(steps) if node.op.writes)
    maker, first_row = _Maker(), [0]
    for parts in parts_by_step:
        for part in parts:
            for call in part.calls:
                maker.add(call, part.label)
        first_row.append(len(maker.rows))
    return maker.code(np.array(first_row), next(writes, len(steps)), compiled)


def update_calls(machine: Machine, compiled: Compiled) -> list[Call]:
    """Copy what no kernel has written into its Var, then say that all is done."""
    calls: list[Call] = []
    for x, source in zip(compiled.updated, compiled.sources):
        view = compiled.views[source]
        if not (source.op.writes and view.at.base is x):
            calls += copy_calls(machine, contiguous(Pointer(Target(x)), view.shape, view.dtype), view)
    if compiled.updated:
        calls += fill_calls(machine, contiguous(Pointer(DONE), (1,), "i8"), 1)
    return calls


class _Maker:
    """Calls on their way into a table. Changes: grows by a call at a time."""

    def __init__(self) -> None:
        self.kernels: dict[Any, int] = {}
        self.rows: list[tuple[int, int, int, int]] = []
        self.args: list[int] = []
        self.variables: list[Var] = []
        self.targets: list[Var] = []
        self.constants: list[np.ndarray] = []
        self.symbols: dict[int, Symbol] = {}
        self.places: dict[Symbol, tuple[list[int], list[int]]] = {}
        self.labels: dict[str, int] = {}
        self.label_of: list[int] = []

    def add(self, call: Call, label: str) -> None:
        self.label_of.append(self.labels.setdefault(label, len(self.labels)))
        number = self.kernels.setdefault(call.kernel, len(self.kernels))
        self.rows.append((number, len(self.args), call.tasks, max(call.chunk, 1)))
        for arg in call.args:
            if isinstance(arg, Pointer):
                positions, offsets = self.places.setdefault(self.symbol_of(arg.base), ([], []))
                positions.append(len(self.args))
                offsets.append(arg.offset)
            self.args.append(0 if isinstance(arg, Pointer) else word_of(arg))

    def symbol_of(self, base: Any) -> Symbol:
        """The symbol of what an address begins at: the arena, the stop word, a Var, a constant, or an array."""
        found = self.symbols.get(id(base))
        if found is None:
            found = self.symbols[id(base)] = self.new_symbol(base)
        return found

    def new_symbol(self, base: Any) -> Symbol:
        if isinstance(base, str):
            return Symbol(SINGLE[base])
        if isinstance(base, Var):
            self.variables.append(base)
            return Symbol("variable", len(self.variables) - 1)
        if isinstance(base, Target):
            self.targets.append(base.variable)
            return Symbol("target", len(self.targets) - 1)
        self.constants.append(base.op.array if isinstance(base, Node) and isinstance(base.op, ConstOp) else base)
        return Symbol("constant", len(self.constants) - 1)

    def code(self, first_row: np.ndarray, first_write: int, compiled: Compiled) -> Code:
        """What has been added."""
        relocations = tuple(
            Relocation(symbol, np.array(positions, np.int64), np.array(offsets, np.int64))
            for symbol, (positions, offsets) in self.places.items()
        )
        table = np.array(self.rows, np.int64).reshape(len(self.rows), 4)
        args = np.array(self.args, np.int64)
        memory = tuple(self.variables), tuple(self.targets), tuple(self.constants)
        labels = tuple(self.labels), np.array(self.label_of, np.int64)
        return Code(tuple(self.kernels), table, args, relocations, *memory, first_row, first_write, *labels, compiled)


def word_of(arg: int | float) -> int:
    """An argument as an int64: floats by their bits."""
    if isinstance(arg, float):
        return struct.unpack("q", struct.pack("d", arg))[0]
    return int(arg)
