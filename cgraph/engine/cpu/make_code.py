"""Conversion of the placed steps of a graph to symbolic code."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from cgraph.engine.cpu.code import DONE, SINGLE, Code, Relocation, RowLoop, Symbol
from cgraph.engine.cpu.results import ResultPlace
from cgraph.ir.graph import Node
from cgraph.ir.work import Part
from cgraph.kernels.bound import word_of
from cgraph.kernels.control import BEGIN, BETWEEN, REPEAT, SKIP
from cgraph.kernels.kernel import (
    ARENA,
    ARGS,
    Between,
    Call,
    End,
    Jump,
    Marker,
    Pointer,
    Repeat,
    Skip,
    Slot,
    View,
    contiguous,
)
from cgraph.kernels.move.calls import copy_calls, fill_calls
from cgraph.kernels.target import Target
from cgraph.ops.leaf import ConstOp, Var
from cgraph.planning.compiled import Compiled
from cgraph.record import Record, replace

TABLE_COLUMNS, WORD_NBYTES = 4, 8
Places = tuple[array, array]  # positions among the arguments, bytes from the beginning of some memory


class UpdateTarget(Record, eq=False):
    """The base of the memory that receives a Var's new value; the Var itself is the base of the value that is read."""

    variable: Var


def code_of(parts_by_step: Iterable[Sequence[Part]], compiled: Compiled) -> Code:
    """Return the calls of all steps as one table with symbolic bases; the rows of update edges come last."""
    steps = compiled.layout.steps
    writes = (t for t, node in enumerate(steps) if node.op.writes)
    maker, first_row = _Maker(), [0]
    for parts in parts_by_step:
        for part in parts:
            maker.add(part)
        first_row.append(len(maker.label_of))
    return maker.code(np.array(first_row), next(writes, len(steps)), compiled)


def update_calls(target: Target, compiled: Compiled) -> list[Call]:
    """Return calls that copy the new values that no kernel wrote into its Var, then set the done word."""
    calls: list[Call] = []
    for x, source in zip(compiled.updated, compiled.sources):
        view = compiled.views[source]
        if not (source.op.writes and view.at.base is x):
            calls += copy_calls(target, contiguous(Pointer(UpdateTarget(x)), view.shape, view.dtype), view)
    if compiled.updated:
        calls += fill_calls(target, contiguous(Pointer(DONE), (1,), "i8"), 1)
    return calls


class CallWords(Record, eq=False):
    """Kernel calls encoded as words.

    Fields
        calls: the calls
        table: per call the number of its kernel, the start of its arguments among the words, tasks, chunk
        words: the arguments of all calls; addresses are 0
        addresses: position in the words, base, offset
    """

    calls: list[Call]
    table: list[tuple[int, int, int, int]]
    words: array
    addresses: list[tuple[int, Any, int]]


class OpenJump(Record, eq=False):
    """A `Repeat`, `Skip` or `Between` whose `End` has not come yet.

    Fields
        row: its row
        word: the position of its argument
        starts: of a Repeat, the addresses of its bases in the first round
        moves: the positions of addresses that move, the first address and the stride of each; it grows
    """

    row: int
    word: int
    starts: tuple[Pointer, ...] = ()
    moves: list[tuple[int, Pointer, int]] = field(default_factory=list)


class _Maker:
    """Builds the table of calls. Mutable: grows by one part at a time."""

    def __init__(self) -> None:
        self.kernels: dict[Any, int] = {}
        self.table, self.args, self.label_of = array("q"), array("q"), array("q")
        self.variables: list[Var] = []
        self.targets: list[Var] = []
        self.constants: list[np.ndarray] = []
        self.results: list[ResultPlace] = []
        self.places: dict[Symbol, Places] = {}
        self.places_of: dict[int, tuple[Any, Places]] = {}
        self.labels: dict[str, int] = {}
        self.shared: dict[int, CallWords] = {}
        self.again: RowLoop | None = None
        self.open: dict[Marker, OpenJump] = {}
        self.moving: dict[int, tuple[Repeat, int]] = {}

    def add(self, part: Part) -> None:
        """Append the calls of a part; markers have parts of their own."""
        if part.calls and isinstance(part.calls[0].kernel, Marker):
            for call in part.calls:
                self.mark(part, call)
        elif part.calls:
            self.add_calls(part)

    def add_calls(self, part: Part) -> None:
        before = len(self.label_of)
        label, first, rows = self.labels.setdefault(part.label, len(self.labels)), len(self.args), self.rows_of(part)
        for number, begin, tasks, chunk in rows.table:
            self.table.extend((number, first + begin, tasks, chunk))
            self.label_of.append(label)
        self.args.extend(rows.words)
        for position, base, offset in rows.addresses:
            if isinstance(base, Slot):
                at = part.places[base.number]
                base, offset = at.base, at.offset + offset
            self.place(first + position, base, offset)
        if part.times > 1:
            self.again = RowLoop(self.again.first if self.again else before, len(self.label_of), part.times)

    def place(self, position: int, base: Any, offset: int) -> None:
        """Note that an argument is an address: of some memory, or one that a loop moves."""
        if id(base) in self.moving:
            loop, i = self.moving[id(base)]
            jump = self.open[loop]
            jump.moves.append((position, jump.starts[i] + offset, loop.strides[i]))
            return
        positions, offsets = self.places_from(base)
        positions.append(position)
        offsets.append(offset)

    def mark(self, part: Part, call: Call) -> None:
        """Add the row of a marker, and complete the rows that jump to it or over it."""
        marker, label = call.kernel, part.label
        if isinstance(marker, Repeat):
            self.open[marker] = OpenJump(len(self.label_of), len(self.args), call.args)  # type: ignore[arg-type]
            self.moving.update((id(base), (marker, i)) for i, base in enumerate(marker.moving))
            self.add_jump(label, BEGIN, (0,))
        elif isinstance(marker, Skip):
            self.open[marker] = OpenJump(len(self.label_of), len(self.args))
            self.add_jump(label, SKIP, (*call.args, marker.value))  # type: ignore[arg-type]
        elif isinstance(marker, Between):
            self.open[marker] = OpenJump(len(self.label_of), len(self.args))
            args = [placed(at, part.places) for at in call.args]
            self.add_jump(label, BETWEEN, (*args, marker.low, marker.high))
        elif isinstance(marker, End):
            self.end(label, marker.of)

    def end(self, label: str, marker: Repeat | Skip | Between) -> None:
        """Add the row that repeats the rounds of a Repeat; set the distances of jumps."""
        jump = self.open.pop(marker)
        if isinstance(marker, Repeat):
            for base in marker.moving:
                del self.moving[id(base)]
            self.place(jump.word, ARGS, WORD_NBYTES * len(self.args))
            moves = [x for at, start, stride in jump.moves for x in (Pointer(ARGS, WORD_NBYTES * at), start, stride)]
            self.add_jump(label, REPEAT, (0, marker.rounds, len(jump.moves), *moves), len(self.label_of) - jump.row)
        self.table[TABLE_COLUMNS * jump.row + 3] = len(self.label_of) - jump.row

    def add_jump(self, label: str, number: int, args: Sequence[int | Pointer], far: int = 1) -> None:
        kernel = self.kernels.setdefault(Jump(number), len(self.kernels))
        self.table.extend((kernel, len(self.args), 1, far))
        self.label_of.append(self.labels.setdefault(label, len(self.labels)))
        for arg in args:
            if isinstance(arg, Pointer):
                self.place(len(self.args), arg.base, arg.offset)
            self.args.append(0 if isinstance(arg, Pointer) else arg)

    def rows_of(self, part: Part) -> CallWords:
        """Return the calls as words; calls that steps share are encoded once."""
        rows = self.shared.get(id(part.calls))
        if rows is None:
            rows = self.new_rows(part.calls)
            if part.places:
                self.shared[id(part.calls)] = rows  # which keeps the calls, so the number stays theirs
        return rows

    def new_rows(self, calls: list[Call]) -> CallWords:
        table, words, addresses = [], array("q"), []
        for call in calls:
            number = self.kernels.setdefault(call.kernel, len(self.kernels))
            table.append((number, len(words), call.tasks, max(call.chunk, 1)))
            for arg in call.args:
                if isinstance(arg, Pointer):
                    addresses.append((len(words), arg.base, arg.offset))
                    words.append(0)
                else:
                    words.append(arg if type(arg) is int else word_of(arg))
        return CallWords(calls, table, words, addresses)

    def places_from(self, base: Any) -> Places:
        """Return the positions of addresses into the memory of this base, and their offsets from its start."""
        entry = self.places_of.get(id(base))
        if entry is None:
            places = self.places.setdefault(self.new_symbol(base), (array("q"), array("q")))
            entry = self.places_of[id(base)] = base, places  # with the base, so that the number stays its own
        return entry[1]

    def new_symbol(self, base: Any) -> Symbol:
        """Return the symbol of an address's base: the arena, the stop word, a Var, a constant, or an array."""
        if isinstance(base, str):
            return Symbol(SINGLE[base])
        if isinstance(base, Var):
            self.variables.append(base)
            return Symbol("variable", len(self.variables) - 1)
        if isinstance(base, UpdateTarget):
            self.targets.append(base.variable)
            return Symbol("target", len(self.targets) - 1)
        if isinstance(base, ResultPlace):
            self.results.append(base)
            return Symbol("result", len(self.results) - 1)
        self.constants.append(memory_of(base))
        return Symbol("constant", len(self.constants) - 1)

    def code(self, first_row: np.ndarray, first_write: int, compiled: Compiled) -> Code:
        """Return the code of all parts added so far."""
        results = self.take_results()
        relocations = tuple(relocation_of(symbol, places) for symbol, places in self.places.items())
        table, args = np.array(self.table, np.int64).reshape(-1, 4), np.array(self.args, np.int64)
        memory = tuple(self.variables), tuple(self.targets), tuple(self.constants), compiled.updated
        views = {x: output_view(compiled.views[x]) for x in compiled.outputs}
        steps, labels = (first_row, first_write), (tuple(self.labels), np.array(self.label_of, np.int64))
        code = Code(tuple(self.kernels), table, args, relocations, *memory, views, compiled.nbytes, *steps, *labels)
        return replace(code, again=self.again, results=results, complete=rows_of_outputs(compiled, first_row))

    def take_results(self) -> dict[Node, Relocation]:
        """Return the addresses into outputs that may move, and let them be addresses into the arena as well."""
        results = {}
        for i, result in enumerate(self.results):
            symbol = Symbol("result", i)
            places = self.places.pop(symbol)
            results[result.output] = relocation_of(symbol, places)
            positions, offsets = self.places_from(ARENA)
            positions.extend(places[0])
            offsets.extend(result.start + offset for offset in places[1])
        return results


def rows_of_outputs(compiled: Compiled, first_row: np.ndarray) -> dict[Node, int]:
    """Return the number of rows after which each output is complete: those up to the end of its step."""
    step_of = {node: t for t, node in enumerate(compiled.layout.steps)}
    rows = {}
    for x in compiled.outputs:
        node = x
        while node not in step_of and node.operands:  # a view of its operand
            node = node.operands[0]
        rows[x] = int(first_row[step_of[node] + 1]) if node in step_of else 0
    return rows


def relocation_of(symbol: Symbol, places: Places) -> Relocation:
    """Return the relocation of these places."""
    return Relocation(symbol, *(np.array(numbers, np.int64) for numbers in places))


def placed(at: Any, places: Sequence[Pointer]) -> Pointer:
    """Return an address with the memory of its slot, if it has one."""
    return places[at.base.number] + at.offset if isinstance(at.base, Slot) else at


def memory_of(base: Any) -> Any:
    """Return the array of a constant's node; return any other base unchanged."""
    return base.op.array if isinstance(base, Node) and isinstance(base.op, ConstOp) else base


def output_view(view: View) -> View:
    """Return the view of an output without references to the graph."""
    return replace(view, at=Pointer(memory_of(view.at.base), view.at.offset))
