"""export: compile a graph for a named processor and write it as an object file with a C header."""

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
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
from cgraph.record import Record, replace
from cgraph.standalone.check import check_files
from cgraph.standalone.elf import with_any_float_abi
from cgraph.standalone.entry import EntryWriter, entry_text
from cgraph.standalone.entry_c import c_entries
from cgraph.standalone.folder import check_folder, json_bytes, write_folder
from cgraph.standalone.header import ABI, Facts, errors_of, example_of_all, header_of_all
from cgraph.standalone.interface import CValue, interface_of
from cgraph.standalone.memory import MemoryLayout, caller_layout, static_layout
from cgraph.standalone.names import c_name, check_prefix
from cgraph.standalone.object_file import object_file
from cgraph.standalone.program import ExportProgram, export_program, largest_arena
from cgraph.standalone.stack import stack_bound
from cgraph.standalone.undefined import builtins_of
from cgraph.standalone.wasm import linked_module, loader
from cgraph.version import __version__

FORMS = ("whole", "small", "shared", "c")
MEMORY = ("static", "caller")


class Exported(Record, eq=False):
    """Folder, processor and sizes of an export.

    Fields
        folder: path of the files
        target: name of the processor
        arena_nbytes, state_nbytes, constant_nbytes, table_nbytes: sizes in bytes; the arena has the plan's size
        stack_nbytes: upper bound of the stack without external functions; None if it is unknown
        externals: names of the external functions that the linker needs
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

    The code needs no Python, no interpreter and no allocation. Its arena has exactly the size of the memory plan. Its
    results equal, bit for bit, those of the same graph on x86-64 with as many lanes. See docs/standalone.md.

    Parameters
        outputs, inputs, updates: as for `cgraph.compile`; Vars with an update edge are state of the exported function,
            all others are constants with their current values
        folder: path of the folder to create
        target: a name of `cgraph.export_targets`, such as ``cortex-m7``
        name: prefix of all C names; the folder's name by default
        names: the names of the outputs
        form: ``whole`` optimises kernels and entry together for speed, ``small`` for size; ``shared`` stores each
            kernel once and its arguments in tables; ``c`` writes the entry as C, with a parameter for threads
        memory: ``static`` puts arena and state into the object file; with ``caller``, the caller passes memory for both
        reset: add a function that restores the initial state, of which flash then holds a copy
        check: write inputs and expected outputs of one run into ``check/``; a list of arrays sets the inputs
        options: options of `cgraph.compile`, such as ``budget="64 KiB"``; `strategy` is its ``memory``
    Returns
        sizes in bytes and the external functions; printed as a table
    Raises
        FormatError: the folder exists; an unknown target, form or memory; an op that the target does not support
        BudgetError: no plan within the budget
        GraphError, ShapeError: as for `cgraph.compile`

    Examples
        >>> import cgraph as cg
        >>> x = cg.Var((64,), "float32", "x")
        >>> print(cg.export(cg.sum(x * x), x, "energy", target="cortex-m7"))  # doctest: +SKIP
    """
    settings = settings_of(folder, target, name, names, form, memory, reset)
    options = compile_options(options)
    function = compile(outputs, inputs, updates, engine=ExportEngine(target), **options)
    files, sizes = files_of(function, replace(settings, names=names or names_of(outputs, function)))
    if check is not False:
        twin = compile(outputs, inputs, updates, engine=TwinEngine(threads=1, of=target_of(function)), **options)
        files |= check_files(twin, None if check is True else check)
    write_folder(settings.folder, files)
    return Exported(os.fspath(settings.folder), *sizes)


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
    """Write a function that `cgraph.ExportEngine` compiled into a new folder, without check vectors; see `export`.

    Raises
        FormatError: as for `export`; another engine compiled the function
    """
    settings = settings_of(folder, engine_of(function).machine, name, names, form, memory, reset)
    files, sizes = files_of(function, settings)
    write_folder(settings.folder, files)
    return Exported(os.fspath(settings.folder), *sizes)


class Settings(Record, eq=False):
    """Checked arguments of `export`.

    Fields
        folder: path of the new folder
        prefix: prefix of all C names
        names: names of the outputs; empty for those of the graph
        form, memory, reset: as for `export`
    """

    folder: Path
    prefix: str
    names: Sequence[str]
    form: str
    memory: str
    reset: bool

    @property
    def keeps_start(self) -> bool:
        """True if the constants contain the initial state."""
        return self.reset or self.memory == "caller"


def settings_of(
    folder: str | os.PathLike,
    machine: str,
    name: str | None,
    names: Sequence[str],
    form: str,
    memory: str,
    reset: bool,
) -> Settings:
    """Return the settings of an export. FormatError for unknown ones, and for ones that exclude each other."""
    path = check_folder(folder)
    prefix = check_prefix(c_name(path.name) if name is None else name)
    if machine not in machines():
        raise FormatError(f"there is no target {machine!r:.60}. Use one of {', '.join(machines())}")
    choose("form", form, FORMS)
    choose("memory", memory, MEMORY)
    if form == "c" and memory == "caller":
        raise FormatError("the form 'c' has static memory. Use form='whole' for memory of the caller")
    if machine_named(machine).is_linked and (form == "c" or memory == "caller"):
        raise FormatError(f"{machine} is a linked module with static memory. Use form='whole' and memory='static'")
    return Settings(path, prefix, names, form, memory, reset)


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
    """Return options of `compile`, where `strategy` is called ``memory``."""
    if "strategy" not in options:
        return options
    return {"memory" if name == "strategy" else name: value for name, value in options.items()}


def names_of(outputs: Any, function: Function) -> list[str]:
    """Return the names of the outputs in the user's graph, before lowering."""
    nodes = (outputs,) if isinstance(outputs, Node) else tuple(outputs)
    return ["out"] if len(function.outputs) == 1 else [x.name for x in nodes]


def files_of(function: Function, how: Settings) -> tuple[dict[str, bytes], tuple[Any, ...]]:
    """Return the files by name, and the fields of `Exported` after its folder."""
    interface = interface_of(function, how.prefix, how.names)
    program = export_program(function, interface, how.keeps_start)
    return files_of_programs([program], how, engine_of(function).machine, target_of(function))


def files_of_programs(
    programs: Sequence[ExportProgram], how: Settings, machine_name: str, target: Target
) -> tuple[dict[str, bytes], tuple[Any, ...]]:
    """Return the files of programs that share kernels, constants and state, and the fields of `Exported`."""
    row, first, arena_nbytes = machine_named(machine_name), programs[0], largest_arena(programs)
    interface = first.interface
    layout = static_layout() if how.memory == "static" else caller_layout(interface, arena_nbytes)
    machine = new_target_machine(target, row.generation)
    is_c, section = how.form == "c", row.arena_section(how.prefix)
    writers = [EntryWriter(x, layout, row.bits, section, how.reset) for x in programs]
    file = object_file(first, "" if is_c else entry_text(writers), machine, target, how.form, not layout.is_caller)
    raw = with_any_float_abi(file.raw) if row.generation.form == "arm-elf" else file.raw
    stacks = {
        x.run_name: None if is_c or row.is_linked else stack_bound(file.assembly, file.calls, x.run_name)
        for x in programs
    }
    bounds = [x for x in stacks.values() if x is not None]
    stack = max(bounds) if len(bounds) == len(programs) else None
    externals = tuple(sorted({*file.externals, "memcpy"})) if is_c else file.externals
    facts = Facts(row.name, machine.triple, digest_of(programs), stack, externals, how.reset, is_c, stacks)
    files = {
        f"{how.prefix}.h": header_of_all(programs, layout, facts).encode(),
        f"{how.prefix}.{row.suffix}": raw,
        "main.c": example_of_all(programs, layout, facts.has_threads).encode(),
        "manifest.json": json_bytes(manifest(programs, layout, facts, raw)),
    }
    if row.is_linked:
        files |= {f"{how.prefix}.wasm": linked_module(raw, first), f"{how.prefix}.mjs": loader(first).encode()}
    if is_c:
        files[f"{how.prefix}.c"] = c_entries(programs, layout, facts).encode()
    state, tables = sum(x.nbytes for x in interface.state), sum(x.table_nbytes for x in programs)
    sizes = (arena_nbytes, state, len(first.constants), tables)
    return files, (row.name, *sizes, stack, externals)


def digest_of(programs: Sequence[ExportProgram]) -> str:
    """Return a hash of the programs: kernels, rows and constants."""
    text = "".join(repr([(row.kernel, row.words, row.tasks) for row in x.rows]) for x in programs)
    text += repr(programs[0].kernels)
    return sha256(text.encode() + sha256(programs[0].constants).digest()).hexdigest()[:16]


def manifest(programs: Sequence[ExportProgram], layout: MemoryLayout, facts: Facts, raw: bytes) -> dict[str, object]:
    """Return the entries of ``manifest.json``, for tools."""
    program, interface = programs[0], programs[0].interface
    return {
        "abi": ABI,
        "cgraph": __version__,
        "name": interface.prefix,
        "target": facts.target,
        "triple": facts.triple,
        "graph": facts.digest,
        **({"runs": [run_entry(x, facts) for x in programs]} if program.suffix else values_entry(program)),
        "state": list(map(value_entry, interface.state)),
        "bytes": {
            "arena": largest_arena(programs),
            "constants": len(program.constants),
            "state": sum(x.nbytes for x in interface.state),
            "stack": facts.stack_nbytes,
            "memory": layout.nbytes,
            "object": len(raw),
        },
        "threads": facts.has_threads,
        "externals": list(facts.externals),
        "builtins": list(builtins_of(facts.externals)),
        "errors": errors_of(programs),
        "sum": sha256(raw).hexdigest(),
    }


def values_entry(program: ExportProgram) -> dict[str, object]:
    interface = program.interface
    return {"inputs": list(map(value_entry, interface.inputs)), "outputs": list(map(value_entry, interface.outputs))}


def run_entry(program: ExportProgram, facts: Facts) -> dict[str, object]:
    """Return the entries of one of several runs."""
    nbytes = {"arena": program.arena_nbytes, "stack": facts.stacks[program.run_name]}
    return {"run": program.run_name, "suffix": program.suffix, **values_entry(program), "bytes": nbytes}


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
