"""The files of an export: object file, header, example, manifest, and for WebAssembly the module and its loader."""

from collections.abc import Sequence
from hashlib import sha256

from cgraph.kernels.machines import machine_named
from cgraph.kernels.target import Target, new_target_machine
from cgraph.record import Record
from cgraph.standalone.elf import with_any_float_abi
from cgraph.standalone.entry import EntryWriter, entry_text
from cgraph.standalone.entry_c import c_entries
from cgraph.standalone.folder import json_bytes
from cgraph.standalone.header import ABI, Facts, errors_of, example_of_all, header_of_all
from cgraph.standalone.interface import CValue
from cgraph.standalone.memory import MemoryLayout, caller_layout, static_layout
from cgraph.standalone.object_file import object_file
from cgraph.standalone.program import ExportProgram, largest_arena
from cgraph.standalone.settings import Settings
from cgraph.standalone.stack import stack_bound
from cgraph.standalone.undefined import builtins_of
from cgraph.standalone.wasm import linked_module, loader
from cgraph.standalone.word_tables import word_tables
from cgraph.version import __version__


class ExportFiles(Record, eq=False):
    """The files of an export.

    Fields
        contents: bytes by name
        table_nbytes: bytes of the tables of arguments, before the optimiser drops some
        stack_nbytes: bound of the stack; None if it is unknown
        externals: names of the external functions
    """

    contents: dict[str, bytes]
    table_nbytes: int
    stack_nbytes: int | None
    externals: tuple[str, ...]


def files_of(programs: Sequence[ExportProgram], how: Settings, target: Target) -> ExportFiles:
    """Return the files of programs that share kernels, constants, arena and state."""
    row, first = machine_named(how.machine), programs[0]
    layout = static_layout() if how.memory == "static" else caller_layout(first.interface, largest_arena(programs))
    machine = new_target_machine(target, row.generation)
    is_c, section = how.form == "c", row.arena_section(how.prefix)
    tables = () if is_c else word_tables(programs, row.bits)
    writers = [EntryWriter(x, layout, row.bits, section, how.reset, tables) for x in programs]
    entry = "" if is_c else entry_text(writers)
    file = object_file(first, entry, machine, target, how.form, not layout.is_caller, tables)
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
        files[f"{how.prefix}.wasm"] = linked_module(raw, programs)
        files[f"{how.prefix}.mjs"] = loader(programs).encode()
    if is_c:
        files[f"{how.prefix}.c"] = c_entries(programs, layout, facts).encode()
    return ExportFiles(files, sum(x.all_tables_nbytes for x in writers), stack, externals)


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
