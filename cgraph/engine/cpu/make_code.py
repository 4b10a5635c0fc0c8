"""From the placed steps of a graph to symbolic code."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.engine.cpu.code import DONE, SINGLE, Code, Relocation, Symbol
from cgraph.ir.graph import Node
from cgraph.ir.work import Part
from cgraph.kernels.calls.move import copy_calls, fill_calls
from cgraph.kernels.kernel import Call, Pointer, View, contiguous
from cgraph.kernels.target import Target as Machine
from cgraph.ops.leaf import ConstOp, Var
from cgraph.planning import Compiled
from cgraph.record import Record, replace


class Target(Record, eq=False):
    """The base of what takes a Var's new value; the Var itself is that of the value which is read."""

    variable: Var


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
        self.constants.append(memory_of(base))
        return Symbol("constant", len(self.constants) - 1)

    def code(self, first_row: np.ndarray, first_write: int, compiled: Compiled) -> Code:
        """What has been added."""
        relocations = tuple(
            Relocation(symbol, np.array(positions, np.int64), np.array(offsets, np.int64))
            for symbol, (positions, offsets) in self.places.items()
        )
        table = np.array(self.rows, np.int64).reshape(len(self.rows), 4)
        args = np.array(self.args, np.int64)
        memory = tuple(self.variables), tuple(self.targets), tuple(self.constants), compiled.updated
        views = {x: output_view(compiled.views[x]) for x in compiled.outputs}
        steps, labels = (first_row, first_write), (tuple(self.labels), np.array(self.label_of, np.int64))
        return Code(tuple(self.kernels), table, args, relocations, *memory, views, compiled.nbytes, *steps, *labels)


def memory_of(base: Any) -> Any:
    """A constant's array in the place of its node; whatever else an address begins at as it is."""
    return base.op.array if isinstance(base, Node) and isinstance(base.op, ConstOp) else base


def output_view(view: View) -> View:
    """The view of an output, apart from the graph."""
    return replace(view, at=Pointer(memory_of(view.at.base), view.at.offset))


def word_of(arg: int | float) -> int:
    """An argument as an int64: floats by their bits."""
    if isinstance(arg, float):
        return struct.unpack("q", struct.pack("d", arg))[0]
    return int(arg)
