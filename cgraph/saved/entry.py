"""Files and manifest entry of a function compiled for one target."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from cgraph.engine.cpu.code import Code, Ring, Symbol
from cgraph.engine.cpu.threads import interpreter
from cgraph.errors import FormatError
from cgraph.kernels.code_image import UnknownCode
from cgraph.kernels.isa.architectures import generic_target, needs_of
from cgraph.kernels.isa.records import Target
from cgraph.kernels.kernel import ARENA, Jump, Kernel, View
from cgraph.kernels.mapped import release
from cgraph.kernels.store import store
from cgraph.memory.tables import Tables
from cgraph.running.runner import Runner
from cgraph.saved.layout import JUMP, KINDS, PAGE, constants_file, image_file, program_file, weights_file
from cgraph.saved.pieces import Pieces


def target_of(function: Runner) -> Target:
    """Return the target whose code is saved: one that any processor of its kind runs. FormatError if it cannot be
    saved.
    """
    target = getattr(function.program, "target", None)
    if target is None:
        raise FormatError("only what the CPU engine compiled can be saved. Compile with engine='cpu'")
    if needs_of(target) is None:
        raise FormatError(f"code for the target {target.name!r} cannot be saved. Compile for another target")
    if target.tiles:
        raise FormatError("products on tile registers cannot be saved. Compile with CpuEngine(tiles=False)")
    callbacks = {function.program.code.labels[i] for i in callback_labels(function.program.code)}
    if callbacks:
        raise FormatError(f"Python functions cannot be saved: {', '.join(sorted(callbacks)[:5])}. Replace them by ops")
    return generic_target(target)


def callback_labels(code: Code) -> list[int]:
    """Return the labels of rows that call Python functions."""
    numbers = [i for i, k in enumerate(code.kernels) if k in code.callbacks]
    return code.label_of[np.isin(code.table[:, 0], numbers)].tolist()


def compiled_entry(
    function: Runner, target: Target, number_of: Mapping[Any, int], pieces: dict[str, Pieces]
) -> dict[str, Any]:
    """Return the manifest entry of a compiled function, and add its files to `pieces`."""
    code, arrays, constants = function.program.code, Pieces(), Pieces()
    streamed = {p.constant: i for i, p in enumerate(code.ring.pieces)} if code.ring else {}
    start_of = {id(x): constants.add_once(x) for x in in_program_order(code, streamed)}
    add_code(code, arrays, start_of, streamed)
    assert function.incremental is not None  # functions of the CPU engine have a plan
    add_tables(function.incremental.tables, arrays)
    entry: dict[str, Any] = {"ring": None}
    if code.ring and code.ring.pieces:
        pieces[weights_file(target.name)], entry["ring"] = weights_of(code, code.ring)
    for name, kernels in (("kernels", code.compiled_kernels), ("interpreter", interpreter())):
        try:
            image, starts = store().image(kernels, target)
        except UnknownCode as error:
            raise FormatError(f"the code of {target.name} cannot be saved: {error}") from None
        arrays.name(f"{name}.starts", starts)
        arrays.name(f"{name}.inner", image.inner)
        entry[f"{name}.outer"] = image.outer
        pieces[image_file(name, target.name)] = file = Pieces()
        file.add(image.code)
    called = [k for k in code.kernels if isinstance(k, Kernel | Jump)]  # all: Python functions are not saved
    pieces[program_file(target.name)], pieces[constants_file(target.name)] = arrays, constants
    return entry | {
        "kernels": [[k.family, plain(k.params)] if isinstance(k, Kernel) else [JUMP, [k.number]] for k in called],
        "sizes": [code.nbytes, int(code.first_write)],
        "variables": [number_of[x] for x in code.variables],
        "targets": [number_of[x] for x in code.targets],
        "complete": [code.complete[x] for x in function.outputs],
        "views": [view_entry(code.views[x], number_of, start_of) for x in function.outputs],
        "arrays": arrays.index,
        "precision": None if function.precision is None else function.precision.facts(),
    }


def plain(params: tuple) -> list[Any]:
    """Return a kernel's params as JSON values; the name for a user's function."""
    return [plain(x) if isinstance(x, tuple) else x if isinstance(x, int | float | str) else str(x) for x in params]


def weights_of(code: Code, ring: Ring) -> tuple[Pieces, list[Any]]:
    """Return the file of the weights that go through a ring; the ring's bytes; start and bytes of each piece."""
    file, places = Pieces(), []
    for piece in ring.pieces:
        array = code.constants[piece.constant]
        places.append([file.add(array, PAGE), array.nbytes])
        release(array)
    file.fill(PAGE)
    return file, [ring.nbytes, places]


def in_program_order(code: Code, streamed: Collection[int]) -> list[np.ndarray]:
    """Return the constants in the order in which rows first read them; those that no row reads come last.

    `streamed`: the constants that go through a ring, which are omitted.
    """
    read = (r for r in code.relocations if r.symbol.kind == "constant" and r.symbol.number not in streamed)
    first = {r.symbol.number: int(r.positions.min()) for r in read}
    shown = [view.at.base for view in code.views.values() if isinstance(view.at.base, np.ndarray)]
    return [code.constants[i] for i in sorted(first, key=first.__getitem__)] + shown


def add_code(code: Code, arrays: Pieces, start_of: Mapping[int, int], streamed: Mapping[int, int]) -> None:
    """Add the table and the relocations. Constants' addresses point into one piece of memory, their file.

    `streamed`: the constants that go through a ring, and the piece of each; they are numbered after the others.
    """
    arrays.name("table", code.table)
    arrays.name("args", code.args)
    arrays.name("first_row", code.first_row)
    arrays.name("labels", np.frombuffer("\n".join(x.replace("\n", " ") for x in code.labels).encode(), np.uint8), "|u1")
    arrays.name("label_of", code.label_of)
    others = [(r.symbol, r.positions, r.offsets) for r in code.relocations if r.symbol.kind != "constant"]
    constants = [r for r in code.relocations if r.symbol.kind == "constant"]
    into = [
        (r.positions, r.offsets + start_of[id(code.constants[r.symbol.number])])
        for r in constants
        if r.symbol.number not in streamed
    ]
    others += [
        (Symbol("constant", 1 + streamed[r.symbol.number]), r.positions, r.offsets)
        for r in constants
        if r.symbol.number in streamed
    ]
    if into:
        positions, offsets = (np.concatenate(x) for x in zip(*into))
        others.append((Symbol("constant"), positions, offsets))
    symbols = [(KINDS.index(symbol.kind), symbol.number, len(positions)) for symbol, positions, _ in others]
    arrays.name("symbols", symbols or np.zeros((0, 3)))
    empty = np.zeros(0, np.int64)
    arrays.name("positions", np.concatenate([empty, *(positions for _, positions, _ in others)]))
    arrays.name("offsets", np.concatenate([empty, *(offsets for _, _, offsets in others)]))


def add_tables(tables: Tables, arrays: Pieces) -> None:
    arrays.name("again.segments", tables.segments)
    arrays.name("again.workspace", tables.workspace)
    arrays.name("again.kept", tables.lasting)
    arrays.name("again.depends", tables.depends, "|u1")
    for name in ("reads", "parts"):
        lists = getattr(tables, name)
        arrays.name(f"again.{name}.starts", lists.starts)
        arrays.name(f"again.{name}.items", lists.items)


def view_entry(view: View, number_of: Mapping[Any, int], start_of: Mapping[int, int]) -> list[Any]:
    """Return an output's location: kind of memory, number, byte offset, strides."""
    base, offset, strides = view.at.base, view.at.offset, list(view.strides)
    if base is ARENA:
        return ["arena", 0, offset, strides]
    if isinstance(base, np.ndarray):
        return ["constant", 0, start_of[id(base)] + offset, strides]
    return ["variable", number_of[base], offset, strides]
