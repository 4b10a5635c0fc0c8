"""Symbolic code and incremental tables, read from the arrays of a saved function."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of as dtype_code
from cgraph.engine.cpu.code import Code, Relocation, Ring, Symbol
from cgraph.kernels.control import BEGIN, BETWEEN, FIRST_MOVE, MOVE_WORDS, MOVES, REPEAT, SKIP
from cgraph.kernels.kernel import ARENA, Jump, Kernel, Pointer, View
from cgraph.memory.tables import Lists, Tables
from cgraph.record import replace
from cgraph.saved.layout import JUMP, KINDS
from cgraph.saved.manifest import FileArrays, check_inside, get, integers, is_size, items, malformed, numbers
from cgraph.saved.parts import Parts


def code_of(parts: Parts) -> Code:
    """Return the symbolic code."""
    arrays, manifest, entry = parts.arrays, parts.manifest, parts.entry
    kernels = tuple(kernel_of(*items(x, 2)) for x in get(entry, "kernels", list))
    arrays.get("kernels.starts", "<i8", sum(isinstance(k, Kernel) for k in kernels))
    table, args = arrays.get("table", "<i8", -1, 4), arrays.get("args", "<i8", -1)
    nbytes, first_write = integers(get(entry, "sizes", list), 2)
    first_row = arrays.get("first_row", "<i8", -1, below=len(table) + 1)
    labels = arrays.get("labels", "|u1", -1).tobytes().decode(errors="replace").split("\n")
    label_of = arrays.get("label_of", "<i8", len(table), below=len(labels))
    check_rows(table, first_row, (len(kernels), len(args) + 1))
    if nbytes < 0 or not 0 <= first_write < len(first_row) - 1:
        raise malformed("sizes")
    which = [numbers(entry, name, len(manifest.variables)) for name in ("variables", "targets")]
    variables, targets = (tuple(manifest.variables[i] for i in indices) for indices in which)
    if not set(targets) <= set(manifest.updated):
        raise malformed("targets")
    views = dict(zip(manifest.outputs, views_of(parts, nbytes)))
    counts = dict(zip(KINDS, (1, 1, 1, 1, len(variables), len(targets), 1 + len(parts.places))))
    relocations = relocations_of(arrays, counts, len(args))
    weights = (parts.weights[start : start + nbytes] for start, nbytes in parts.places)
    constants = (parts.constants, *weights)  # the first is the file of all constants that stay in memory
    memory = variables, targets, constants, manifest.updated
    steps = first_row, first_write, tuple(labels), label_of
    complete = integers(get(entry, "complete", list), len(manifest.outputs))
    if not np.isin(complete, first_row).all():
        raise malformed("outputs")
    code = Code(kernels, table, args, relocations, *memory, views, nbytes, *steps)
    code = replace(code, complete=dict(zip(manifest.outputs, complete)))
    check_jumps(code)
    return with_ring(code, parts)


def with_ring(code: Code, parts: Parts) -> Code:
    """Return the code with the ring that it was saved with; the pieces and their offsets follow from the rows."""
    if parts.ring is None:
        return code
    rings, (path, stamp, nbytes) = import_module("cgraph.engine.cpu.ring"), parts.ring
    starts = {id(x): start for x, (start, _) in zip(code.constants[1:], parts.places)}
    pieces = rings.pieces_of(code, lambda x: starts.get(id(x)))
    pieces_in_file = {start: parts.weights[start : start + size] for start, size in parts.places}
    sums = import_module("cgraph.storage.weight_file").sums_of(pieces_in_file) if parts.is_verified else {}
    return replace(code, ring=Ring(path, stamp, nbytes, rings.place_pieces(pieces, nbytes), sums))


def kernel_of(family: Any, params: Any) -> Kernel | Jump:
    """Return a kernel by name, for `Code.text`; its machine code is in the image. A jump has its number."""
    if type(family) is not str or type(params) is not list:
        raise malformed("kernels")
    if family != JUMP:
        return Kernel(family, as_tuple(params))
    if params not in ([BEGIN], [REPEAT], [SKIP], [BETWEEN]):
        raise malformed("jumps")
    return Jump(params[0])


def as_tuple(values: list[Any]) -> tuple:
    """Return lists in lists as tuples."""
    return tuple(as_tuple(x) if type(x) is list else x for x in values)


def check_rows(table: np.ndarray, first_row: np.ndarray, below: tuple[int, int]) -> None:
    """Raise FormatError unless every row calls an existing kernel and every step has rows."""
    ordered = len(first_row) >= 2 and first_row[0] == 0 and first_row[-1] == len(table)
    if not ordered or (np.diff(first_row) < 0).any():
        raise malformed("steps")
    if table.size and ((table < 0).any() or (table[:, :2] >= below).any() or not table[:, 3].all()):
        raise malformed("rows")


def check_jumps(code: Code) -> None:
    """Raise FormatError if a row jumps out of its step, or the arguments of a loop are not its own."""
    for number, row, to in code.jumps():
        step = int(np.searchsorted(code.first_row, row, "right")) - 1
        if not code.first_row[step] <= to <= code.first_row[step + 1]:
            raise malformed("jumps")
        first, last = code.table[row, 1], code.table[row + 1, 1] if row + 1 < len(code.table) else len(code.args)
        words = code.args[first:last]
        least = {BEGIN: 1, SKIP: 2, BETWEEN: 3, REPEAT: FIRST_MOVE}[number]
        if len(words) < least or (number == REPEAT and len(words) != FIRST_MOVE + MOVE_WORDS * words[MOVES]):
            raise malformed("loops")
    offsets = [r.offsets for r in code.relocations if r.symbol.kind == "args"]
    if any(x.size and not (x.min() >= 0 and x.max() < code.args.nbytes) for x in offsets):
        raise malformed("loops")


def relocations_of(arrays: FileArrays, counts: dict[str, int], words: int) -> tuple[Relocation, ...]:
    """Return the relocations. FormatError unless every variable and target has exactly one."""
    symbols = arrays.get("symbols", "<i8", -1, 3).tolist()
    positions = arrays.get("positions", "<i8", -1, below=words)
    offsets = arrays.get("offsets", "<i8", len(positions))
    relocations, at = [], 0
    for kind, number, count in symbols:
        is_valid = 0 <= kind < len(KINDS) and 0 <= number < counts[KINDS[kind]]
        if not is_valid or not 0 <= count <= len(positions) - at:
            raise malformed("symbols")
        relocations.append(
            Relocation(Symbol(KINDS[kind], number), positions[at : at + count], offsets[at : at + count])
        )
        at += count
    named = [r.symbol for r in relocations]
    needs = [Symbol(kind, i) for kind in ("variable", "target") for i in range(counts[kind])]
    if at != len(positions) or len(set(named)) != len(named) or not set(needs) <= set(named):
        raise malformed("symbols")
    return tuple(relocations)


def views_of(parts: Parts, nbytes: int) -> list[View]:
    """Return the location of each output."""
    manifest, views, entries = parts.manifest, [], get(parts.entry, "views", list)
    bases: dict[str, Sequence[Any]] = {"arena": [ARENA], "variable": manifest.variables, "constant": [parts.constants]}
    if len(entries) != len(manifest.outputs):
        raise malformed("views")
    for output, entry in zip(manifest.outputs, entries):
        kind, number, offset, strides = items(entry, 4)
        candidates = bases.get(kind, ()) if type(kind) is str else ()
        if not is_size(number) or number >= len(candidates) or type(offset) is not int:
            raise malformed("views")
        spec, base = output.spec, candidates[number]
        view = View(Pointer(base, offset), spec.shape, integers(strides, spec.ndim), dtype_code(spec.dtype))
        check_inside(view, nbytes if kind == "arena" else len(base) if kind == "constant" else base.spec.nbytes)
        views.append(view)
    return views


def tables_of(arrays: FileArrays) -> Tables:
    """Return the plan's tables for incremental evaluation."""
    workspace = arrays.get("again.workspace", "<i8", -1)
    steps = len(workspace)
    values = len(arrays.get("again.segments", "<i8", -1, 2))
    segments = arrays.get("again.segments", "<i8", -1, 2, below=2 * values)
    if values < steps or not (workspace.min(initial=-1) >= -1 and workspace.max(initial=-1) < values):
        raise malformed("workspaces")

    def lists(name: str, count: int) -> Lists:
        entries = arrays.get(f"again.{name}.items", "<i8", -1, below=steps)
        return Lists(arrays.get(f"again.{name}.starts", "<i8", count + 1, below=len(entries) + 1), entries)

    persistent, depends = (
        arrays.get("again.kept", "<i8", -1, below=steps),
        arrays.get("again.depends", "|u1", steps, -1),
    )
    return Tables(segments, lists("reads", steps), lists("parts", values), workspace, persistent, depends)
