"""The rows of an exported program: kernel calls whose arguments are numbers and named addresses."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from cgraph.engine.cpu.code import Code, Relocation
from cgraph.engine.export import OutputPlace
from cgraph.errors import FormatError
from cgraph.kernels.control import BEGIN, BETWEEN, FIRST_MOVE, MOVE_WORDS, MOVES, REPEAT, ROUNDS, SKIP
from cgraph.kernels.kernel import ARENA, Callback, Kernel
from cgraph.kernels.kernel import Jump as TableJump
from cgraph.record import Record, replace
from cgraph.running.runner import Runner
from cgraph.standalone.interface import CValue, Interface, present_bytes
from cgraph.system.alignment import round_up

VECTOR = 64  # bytes; constants of at least this size begin at a multiple of it, as in an arena
WORD = 8
ARENA_SYMBOL, CONSTANTS, STOP_WORD, DONE_WORD = "arena", "constants", "stop", "done"


class Address(Record):
    """A byte of named memory.

    Fields
        symbol: ``arena``, ``constants``, ``stop``, ``done``, ``in:NAME``, ``out:NAME`` or ``state:NAME``
        offset: in bytes
    """

    symbol: str
    offset: int

    @property
    def is_parameter(self) -> bool:
        """True if the caller of the run passes the memory."""
        return self.symbol.startswith(("in:", "out:"))


class Moving(Record):
    """An address that a loop moves: in round `n` of the loop, it is `start` plus `n * stride` bytes.

    Fields
        start: the address in the first round; an outer loop may move it
        loop: the row that begins the loop
        stride: in bytes
    """

    start: "Address | Moving"
    loop: int
    stride: int


Word = int | Address | Moving


class RowJump(Record):
    """A row that selects the next row.

    Fields
        kind: ``BEGIN``, ``REPEAT``, ``SKIP`` or ``BETWEEN`` of `cgraph.kernels.control`
        to: the row that it may jump to
        loop: of ``BEGIN`` and ``REPEAT``, the row that begins the loop
        rounds: number of rounds
        at, value: ``SKIP`` jumps unless the byte at an address has the value
        high: ``BETWEEN`` jumps unless the int64 at the address is above `value` and not above this one
    """

    kind: int
    to: int
    loop: int = -1
    rounds: int = 0
    at: Word = 0
    value: int = 0
    high: int = 0


class ExportRow(Record, eq=False):
    """One kernel call.

    Fields
        kernel: its number; -1 for a jump
        words: the arguments
        tasks: number of tasks
        chunk: number of tasks that one thread runs at a time
        label: index of its description
        can_stop: True if it may set the stop word
        jump: the jump, if the row is one
    """

    kernel: int
    words: tuple[Word, ...]
    tasks: int
    chunk: int
    label: int
    can_stop: bool
    jump: RowJump | None = None


class OutputCopy(Record):
    """An output that is copied to the caller as contiguous bytes.

    Fields
        output: name
        source: address of its bytes
        nbytes: number of bytes
    """

    output: str
    source: Address
    nbytes: int


class ExportProgram(Record, eq=False):
    """A program for an object file.

    Fields
        interface: the names and types that the caller uses
        kernels: the distinct kernels
        rows: the calls and jumps in order
        first_copies, last_copies: outputs copied before the first row (values from before the update), and at the end
        labels: descriptions of rows
        arena_nbytes: bytes of the plan's arena
        constants: bytes of all constants, followed by the state's initial values if `keeps_start`
        state: the current value of each state Var, by name
        start_state: offsets of the initial values in `constants`, by name; empty unless `keeps_start`
        suffix: of the run's name, where an object file has runs for several sizes
    """

    interface: Interface
    kernels: tuple[Kernel, ...]
    rows: tuple[ExportRow, ...]
    first_copies: tuple[OutputCopy, ...]
    last_copies: tuple[OutputCopy, ...]
    labels: tuple[str, ...]
    arena_nbytes: int
    constants: bytes
    state: Mapping[str, bytes]
    start_state: Mapping[str, int]
    suffix: str = ""

    @property
    def run_name(self) -> str:
        """The C name of the run."""
        return self.interface.symbol(f"run{self.suffix}")

    @property
    def macro(self) -> str:
        """The prefix of the macros of this run."""
        return f"{self.interface.prefix}{self.suffix}".upper()

    @property
    def errors(self) -> dict[int, str]:
        """What a run may return: descriptions of the steps whose index may be outside its axis, by number."""
        return {1 + label: self.labels[label] for label in sorted({row.label for row in self.rows if row.can_stop})}


def export_program(function: Runner, interface: Interface, keeps_start: bool = False) -> ExportProgram:
    """Return the program of a function that the export engine compiled; see `export_programs`."""
    return export_programs([function], [interface], [""], keeps_start)[0]


def export_programs(
    functions: Sequence[Runner],
    interfaces: Sequence[Interface],
    suffixes: Sequence[str],
    keeps_start: bool,
    alignment: int = VECTOR,
) -> tuple[ExportProgram, ...]:
    """Return the programs of functions for one object file. All have the same kernels, constants, labels and state.

    Parameters
        interfaces: of each function; their state has the same names and specs
        suffixes: of each run's name
        alignment: of constants, in bytes
        keeps_start: store the state's current values as constants, too, to restore them later
    Raises
        FormatError: a step is a Python function, reads weights from a file or repeats rows
    """
    codes: list[Code] = [function.program.code for function in functions]
    for code in codes:
        check_code(code)
    state = {x.name: present_bytes(x.source) for x in interfaces[0].state}
    initial = list(state.values()) if keeps_start else []
    constants, start_of = placed_constants(functions, codes, interfaces, initial, alignment)
    kernels = list(dict.fromkeys(k for code in codes for k in code.compiled_kernels))
    labels = tuple(dict.fromkeys(x for code in codes for x in code.labels)) if len(codes) > 1 else codes[0].labels
    starts = {name: start_of[id(raw)] for name, raw in state.items()} if keeps_start else {}
    programs = []
    for code, interface, suffix in zip(codes, interfaces, suffixes, strict=True):
        symbols = _Symbols(interface, start_of, code)
        copies = [(x, copy_of(x, code, symbols)) for x in interface.outputs]
        whole = [(x, copy) for x, copy in copies if copy is not None and copy.nbytes]
        first = tuple(copy for x, copy in whole if not is_fresh(x, code))
        last = tuple(copy for x, copy in whole if is_fresh(x, code))
        rows = shared_rows(rows_of(code, symbols), code, kernels, labels)
        programs.append(
            ExportProgram(
                interface, tuple(kernels), rows, first, last, labels, code.nbytes, constants, state, starts, suffix
            )
        )
    return tuple(programs)


def shared_rows(
    rows: Sequence[ExportRow], code: Code, kernels: Sequence[Kernel], labels: Sequence[str]
) -> tuple[ExportRow, ...]:
    """Return rows with the numbers of kernels and labels that several programs share."""
    number_of, label_of = ({x: i for i, x in reversed([*enumerate(values)])} for values in (kernels, labels))
    own = [number_of[k] for k in code.compiled_kernels]
    is_own = labels is code.labels  # a program alone keeps its numbers
    return tuple(
        replace(
            row,
            kernel=row.kernel if row.kernel < 0 else own[row.kernel],
            label=row.label if is_own else label_of[code.labels[row.label]],
        )
        for row in rows
    )


def largest_arena(programs: Sequence[ExportProgram]) -> int:
    """Return the bytes of the arena that the programs of one object file share."""
    return max(x.arena_nbytes for x in programs)


def check_code(code: Code) -> None:
    """Raise FormatError for steps that have no machine code."""
    functions = [i for i, k in enumerate(code.kernels) if isinstance(k, Callback)]
    if functions:
        labels = labels_of(code, functions)
        raise FormatError(f"{labels}: a Python function cannot be exported. Write the step with ops of cgraph")
    lapack = [i for i, k in enumerate(code.kernels) if isinstance(k, Kernel) and k.calls_lapack]
    if lapack:
        labels = labels_of(code, lapack)
        raise FormatError(f"{labels}: LAPACK cannot be exported. Use inv, solve, det or cholesky of up to 8 rows")
    if code.ring is not None or code.again is not None:
        raise FormatError(
            "weights from a file and streamed rows cannot be exported. Compile without weights= and rows="
        )


def labels_of(code: Code, kernels: list[int]) -> str:
    """Return the labels of up to five rows that call these kernels."""
    rows = np.flatnonzero(np.isin(code.table[:, 0], kernels))
    return ", ".join(sorted({code.labels[code.label_of[i]] for i in rows})[:5])


def placed_constants(
    functions: Sequence[Runner],
    codes: Sequence[Code],
    interfaces: Sequence[Interface],
    others: list[bytes],
    alignment: int,
) -> tuple[bytes, dict[int, int]]:
    """Return the bytes of all constants, and the offset of each one by the `id` of its array, Var or bytes.

    Equal constants are stored once, in the order in which rows first read them. Vars without an update edge and
    `others` follow.
    """
    sources: list[tuple[int, Any]] = []
    for code in codes:
        first = {r.symbol.number: int(r.positions.min()) for r in code.relocations if r.symbol.kind == "constant"}
        sources += [(id(code.constants[i]), code.constants[i]) for i in sorted(first, key=first.__getitem__)]
        sources += [(id(b), b) for b in (v.at.base for v in code.views.values()) if isinstance(b, np.ndarray)]
    updated = {id(x.source) for interface in interfaces for x in interface.state}
    sources += [(id(x), x.cell.array) for function in functions for x in function.cells if id(x) not in updated]
    sources += [(id(raw), np.frombuffer(raw, np.uint8)) for raw in others]
    return joined(sources, alignment)


def joined(sources: Sequence[tuple[int, Any]], alignment: int = VECTOR) -> tuple[bytes, dict[int, int]]:
    """Return the bytes of distinct arrays, aligned, and the offset of each array by its key."""
    parts: list[bytes] = []
    starts: dict[int, int] = {}
    starts_by_content: dict[tuple[int, bytes], int] = {}
    end = 0
    for key, array in sources:
        raw = np.ascontiguousarray(array).tobytes()
        content = len(raw), sha256(raw).digest()
        if content not in starts_by_content:
            start = round_up(end, alignment if len(raw) >= VECTOR else WORD)
            parts += [bytes(start - end), raw]
            starts_by_content[content], end = start, start + len(raw)
        starts[key] = starts_by_content[content]
    return b"".join(parts), starts


class _Symbols:
    """Names the memory of relocations and views."""

    def __init__(self, interface: Interface, start_of: Mapping[int, int], code: Code) -> None:
        self._start_of, self._code = start_of, code
        self._names = {id(x.source): f"in:{x.name}" for x in interface.inputs}
        self._names |= {id(x.source): f"state:{x.name}" for x in interface.state}
        self._outputs = [f"out:{x.name}" for x in interface.outputs]

    def address(self, base: Any, offset: int) -> Address:
        """Return the name of a byte of the arena, a Var, an output or a constant's array."""
        if base is ARENA:
            return Address(ARENA_SYMBOL, offset)
        if isinstance(base, OutputPlace):
            return Address(self._outputs[base.number], offset)
        if id(base) in self._names:
            return Address(self._names[id(base)], offset)
        return Address(CONSTANTS, offset + self._start_of[id(base)])

    def base_of(self, relocation: Relocation) -> Any:
        symbol, code = relocation.symbol, self._code
        if symbol.kind == "arena":
            return ARENA
        return {"variable": code.variables, "target": code.targets, "constant": code.constants}[symbol.kind][
            symbol.number
        ]


def rows_of(code: Code, symbols: _Symbols) -> tuple[ExportRow, ...]:
    """Return the calls with all addresses named, and the jumps between them."""
    words: list[Word] = code.args.tolist()
    inside: list[tuple[int, int]] = []  # positions of addresses of arguments, and the positions that they name
    for relocation in code.relocations:
        places = zip(relocation.positions.tolist(), relocation.offsets.tolist())
        kind = relocation.symbol.kind
        if kind == "args":
            inside += [(position, offset // WORD) for position, offset in places]
            continue
        base = None if kind in (STOP_WORD, DONE_WORD) else symbols.base_of(relocation)
        for position, offset in places:
            words[position] = Address(kind, offset) if base is None else symbols.address(base, offset)
    words_at = dict(inside)
    spans = list(zip(code.table[:, 1].tolist(), [*code.table[1:, 1].tolist(), len(words)]))
    jumps = jumps_of(code, words, words_at, spans)
    numbers = {i: n for n, i in enumerate(i for i, k in enumerate(code.kernels) if isinstance(k, Kernel))}
    rows = []
    for n, ((kernel, _, tasks, chunk), (start, end)) in enumerate(zip(code.table.tolist(), spans)):
        own = () if n in jumps else tuple(words[start:end])
        can_stop = any(isinstance(w, Address) and w.symbol == STOP_WORD for w in own)
        label = int(code.label_of[n])
        rows.append(ExportRow(numbers.get(kernel, -1), own, tasks, chunk, label, can_stop, jumps.get(n)))
    return tuple(rows)


def jumps_of(
    code: Code, words: list[Word], words_at: Mapping[int, int], spans: list[tuple[int, int]]
) -> dict[int, RowJump]:
    """Return the jumps by row. Words that loops move become `Moving`, those of outer loops first."""
    kind_of = {i: k.number for i, k in enumerate(code.kernels) if isinstance(k, TableJump)}
    rows = [(n, kind_of[k], far) for n, (k, _, _, far) in enumerate(code.table.tolist()) if k in kind_of]
    jumps: dict[int, RowJump] = {}
    repeats = {spans[n][0]: n for n, kind, _ in rows if kind == REPEAT}
    for n, kind, far in rows:  # an outer loop begins before an inner one
        start = spans[n][0]
        if kind in (SKIP, BETWEEN):
            numbers = [int(word) for word in words[start + 1 : spans[n][1]]]  # type: ignore[arg-type]
            jumps[n] = RowJump(kind, n + far, value=numbers[0], high=numbers[-1])
        if kind != BEGIN:
            continue
        repeat = repeats[words_at[start]]
        first = spans[repeat][0]
        rounds, moves = int(words[first + ROUNDS]), int(words[first + MOVES])  # type: ignore[arg-type]
        for i in range(moves):
            at = first + FIRST_MOVE + MOVE_WORDS * i
            words[words_at[at]] = Moving(words[at + 1], n, int(words[at + 2]))  # type: ignore[arg-type]
        jumps[n] = RowJump(kind, n + far, n, rounds)
        jumps[repeat] = RowJump(REPEAT, n + 1, n, rounds)
    return {n: replace(x, at=words[spans[n][0]]) if x.kind in (SKIP, BETWEEN) else x for n, x in jumps.items()}


def copy_of(x: CValue, code: Code, symbols: _Symbols) -> OutputCopy | None:
    """Return the copy of an output; None if its elements are not contiguous, so that rows write it."""
    view = code.views[x.source]
    if not view.is_contiguous:
        return None
    return OutputCopy(x.name, symbols.address(view.at.base, view.at.offset), x.nbytes)


def is_fresh(x: CValue, code: Code) -> bool:
    """Return True if the run computes the output: it is copied after the last row, other outputs before the first."""
    base = code.views[x.source].at.base
    return base is ARENA or any(base is v for v in code.written)
