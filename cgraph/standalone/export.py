"""export: a graph compiled for any processor of the table and written as an object file with a C header."""

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from cgraph.engine.cpu.twin import TwinEngine
from cgraph.engine.export import ExportedProgram, ExportEngine
from cgraph.errors import FormatError, bytes_text
from cgraph.function import Function, compile
from cgraph.ir.graph import Node, NodeLike
from cgraph.kernels.machines import machine_named, machines
from cgraph.kernels.target import Target, new_target_machine
from cgraph.ops.leaf import Var
from cgraph.record import Record
from cgraph.standalone.check import check_files
from cgraph.standalone.elf import with_any_float_abi
from cgraph.standalone.entry import EntryWriter
from cgraph.standalone.entry_c import c_entry
from cgraph.standalone.folder import check_folder, json_bytes, write_folder
from cgraph.standalone.header import ABI, Facts, example, header
from cgraph.standalone.interface import CValue, interface_of
from cgraph.standalone.memory import MemoryLayout, caller_layout, static_layout
from cgraph.standalone.names import c_name, check_prefix
from cgraph.standalone.object_file import object_file
from cgraph.standalone.program import ExportProgram, export_program
from cgraph.standalone.stack import stack_bound
from cgraph.standalone.wasm import linked_module, loader
from cgraph.version import __version__

FORMS = ("whole", "small", "shared", "c")
MEMORY = ("static", "caller")


class Exported(Record, eq=False):
    """What was written.

    Fields
        folder: where
        target: for which processor
        arena_nbytes, state_nbytes, constant_nbytes, table_nbytes: sizes in bytes; the arena is the plan's
        stack_nbytes: bound of the stack without functions from outside, None where it is unknown
        externals: names of the functions that the linker needs
    """

    folder: str
    target: str
    arena_nbytes: int
    state_nbytes: int
    constant_nbytes: int
    table_nbytes: int
    stack_nbytes: int | None
    externals: tuple[str, ...]

    def __str__(self) -> str:
        stack = "unknown" if self.stack_nbytes is None else bytes_text(self.stack_nbytes)
        lines = (
            f"{self.folder} for {self.target}",
            f"RAM    arena {bytes_text(self.arena_nbytes)}, state {bytes_text(self.state_nbytes)}, stack {stack}",
            f"flash  constants {bytes_text(self.constant_nbytes)}, tables at most {bytes_text(self.table_nbytes)}",
            f"needs  {', '.join(self.externals) or 'nothing from outside'}",
        )
        return "\n".join(lines)


def export(
    outputs: NodeLike | Sequence[NodeLike],
    inputs: Var | Sequence[Var],
    folder: str | os.PathLike,
    *,
    target: str,
    updates: Mapping[Var, NodeLike] | None = None,
    name: str | None = None,
    names: Sequence[str] = (),
    form: str = "whole",
    memory: str = "static",
    reset: bool = False,
    check: bool | Sequence[np.ndarray] = True,
    **options: Any,
) -> Exported:
    """Compile a graph for a processor, and write an object file, a C header and an example into a new folder.

    The code needs no Python, no interpreter and no allocation. Its arena is the memory plan's, to the byte, and its
    results have the bits of the same graph on x86-64 with as many lanes. See docs/standalone.md.

    Parameters
        outputs, inputs, updates: as for `cgraph.compile`; Vars with an update edge are state of the exported function,
            all others are constants with their present values
        folder: where there is nothing yet
        target: a name of `cgraph.export_targets`, such as ``cortex-m7``
        name: beginning of all C names; the folder's name by default
        names: what the outputs are called
        form: ``whole`` optimises everything as one; ``small`` for size; ``shared`` keeps each kernel once and its
            arguments in tables; ``c`` writes the entry as C, with a parameter for threads
        memory: ``static`` has arena and state in the object file; ``caller`` in memory that each run is given
        reset: add a function that restores the state; it costs the state's bytes once more in flash
        check: write inputs and the outputs that they must give into ``check/``; arrays in place of True are the inputs
        options: options of `cgraph.compile`, such as ``budget="64 KiB"``; `strategy` is its ``memory``
    Returns
        sizes in bytes, and what the linker needs; printed, they are a table
    Raises
        FormatError: the folder exists; an unknown target, form or memory; an op that the target cannot have
        BudgetError: no plan within the budget
        GraphError, ShapeError: as for `cgraph.compile`

    Examples
        >>> import cgraph as cg
        >>> x = cg.Var((64,), "float32", "x")
        >>> print(cg.export(cg.sum(x * x), x, "energy", target="cortex-m7"))  # doctest: +SKIP
    """
    path = check_folder(folder)
    prefix = check_prefix(c_name(path.name) if name is None else name)
    check_settings(target, form, memory)
    options = compile_options(options)
    function = compile(outputs, inputs, updates, engine=ExportEngine(target), **options)
    settings = Settings(prefix, form, memory, reset, list(names) or names_of(outputs, function))
    files, exported = files_of(function, settings)
    if check is not False:
        twin = compile(outputs, inputs, updates, engine=TwinEngine(threads=1, of=target_of(function)), **options)
        files |= check_files(twin, None if check is True else check)
    write_folder(path, files)
    return Exported(os.fspath(path), *exported)


def export_function(
    function: Function,
    folder: str | os.PathLike,
    *,
    name: str | None = None,
    names: Sequence[str] = (),
    form: str = "whole",
    memory: str = "static",
    reset: bool = False,
) -> Exported:
    """Write what `cgraph.ExportEngine` compiled into a new folder, without check vectors: see `export`.

    Raises
        FormatError: as for `export`; another engine compiled the function
    """
    path = check_folder(folder)
    check_settings(engine_of(function).machine, form, memory)
    prefix = check_prefix(c_name(path.name) if name is None else name)
    files, exported = files_of(function, Settings(prefix, form, memory, reset, list(names)))
    write_folder(path, files)
    return Exported(os.fspath(path), *exported)


class Settings(Record, eq=False):
    """How a function is written; see `export`.

    Fields
        prefix: beginning of all C names
        form, memory, reset: as for `export`
        names: of the outputs; empty for those of the graph
    """

    prefix: str
    form: str
    memory: str
    reset: bool
    names: Sequence[str]


def check_settings(machine: str, form: str, memory: str) -> None:
    """Raise FormatError for unknown settings, and for settings that exclude each other."""
    if machine not in machines():
        raise FormatError(f"there is no target {machine!r:.60}. Use one of {', '.join(machines())}")
    choose("form", form, FORMS)
    choose("memory", memory, MEMORY)
    if form == "c" and memory == "caller":
        raise FormatError("the form 'c' has static memory. Use form='whole' for memory of the caller")
    if machine_named(machine).is_linked and (form == "c" or memory == "caller"):
        raise FormatError(f"{machine} is a linked module with static memory. Use form='whole' and memory='static'")


def engine_of(function: Function) -> ExportEngine:
    """Return the export engine that compiled a function. FormatError if it was another engine."""
    if not isinstance(function.program, ExportedProgram):
        raise FormatError(
            "only code for a named machine can be exported. Compile with engine=cgraph.ExportEngine('cortex-m7'), or "
            "use cgraph.export"
        )
    return function.program.engine


def target_of(function: Function) -> Target:
    """Return the target of an exported function's kernels."""
    assert function.compiled
    return engine_of(function).target_for((*function.compiled.outputs, *function.compiled.sources))


def choose(option: str, value: str, choices: Sequence[str]) -> None:
    """Raise FormatError unless a value is one of the choices."""
    if value not in choices:
        raise FormatError(f"{option} is {value!r:.60}. Use one of {', '.join(choices)}")


def compile_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `compile`: the strategy under its name there."""
    if "strategy" not in options:
        return options
    return {"memory" if name == "strategy" else name: value for name, value in options.items()}


def names_of(outputs: Any, function: Function) -> list[str]:
    """Return the users' names of the outputs: those of the graph as written."""
    nodes = (outputs,) if isinstance(outputs, Node) else tuple(outputs)
    return ["out"] if len(function.outputs) == 1 else [x.name for x in nodes]


def files_of(function: Function, how: Settings) -> tuple[dict[str, bytes], tuple[Any, ...]]:
    """Return the files by name, and the facts of `Exported` after its folder."""
    row, target = machine_named(engine_of(function).machine), target_of(function)
    interface = interface_of(function, how.prefix, how.names)
    program = export_program(function, interface, how.reset or how.memory == "caller")
    layout = static_layout() if how.memory == "static" else caller_layout(interface, program.arena_nbytes)
    machine = new_target_machine(target, row.generation)
    is_c, section = how.form == "c", row.arena_section(how.prefix)
    entry = "" if is_c else EntryWriter(program, layout, row.bits, section, how.reset).text()
    file = object_file(program, entry, machine, target, how.form, not layout.is_caller)
    raw = with_any_float_abi(file.raw) if row.generation.form == "arm-elf" else file.raw
    stack = None if is_c or row.is_linked else stack_bound(file.assembly, file.calls, f"{how.prefix}_run")
    facts = Facts(row.name, machine.triple, digest_of(program), stack, file.externals, how.reset, is_c)
    files = {
        f"{how.prefix}.h": header(program, layout, facts).encode(),
        f"{how.prefix}.{row.suffix}": raw,
        "main.c": example(program, layout, facts.has_threads).encode(),
        "manifest.json": json_bytes(manifest(program, layout, facts, raw)),
    }
    if row.is_linked:
        files |= {f"{how.prefix}.wasm": linked_module(raw, program), f"{how.prefix}.mjs": loader(program).encode()}
    if is_c:
        files[f"{how.prefix}.c"] = c_entry(program, layout, facts).encode()
    state = sum(x.nbytes for x in interface.state)
    sizes = (program.arena_nbytes, state, len(program.constants), program.table_nbytes)
    return files, (row.name, *sizes, stack, file.externals)


def digest_of(program: ExportProgram) -> str:
    """Return a sum of the program: kernels, rows and constants."""
    text = repr([(row.kernel, row.words, row.tasks) for row in program.rows]) + repr(program.kernels)
    return sha256(text.encode() + sha256(program.constants).digest()).hexdigest()[:16]


def manifest(program: ExportProgram, layout: MemoryLayout, facts: Facts, raw: bytes) -> dict[str, object]:
    """Return everything that tools may ask of an export."""
    interface = program.interface
    return {
        "abi": ABI,
        "cgraph": __version__,
        "name": interface.prefix,
        "target": facts.target,
        "triple": facts.triple,
        "graph": facts.digest,
        "inputs": list(map(value_entry, interface.inputs)),
        "outputs": list(map(value_entry, interface.outputs)),
        "state": list(map(value_entry, interface.state)),
        "bytes": {
            "arena": program.arena_nbytes,
            "constants": len(program.constants),
            "state": sum(x.nbytes for x in interface.state),
            "stack": facts.stack_nbytes,
            "memory": layout.nbytes,
            "object": len(raw),
        },
        "threads": facts.has_threads,
        "externals": list(facts.externals),
        "errors": {1 + row.label: program.labels[row.label] for row in program.rows if row.can_stop},
        "sum": sha256(raw).hexdigest(),
    }


def value_entry(x: CValue) -> dict[str, object]:
    dtype = str(x.spec).partition("[")[0]
    return {
        "name": x.name,
        "type": x.type,
        "count": x.count,
        "dtype": dtype,
        "shape": list(x.spec.shape),
        "bytes": x.nbytes,
    }


def export_targets() -> tuple[str, ...]:
    """Return the names of all processors and systems that `export` writes code for.

    Examples
        >>> import cgraph as cg
        >>> "cortex-m7" in cg.export_targets()
        True
    """
    return tuple(machines())
