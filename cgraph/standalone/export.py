"""export: compile a graph for a named processor and write it as an object file with a C header."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cgraph.engine.cpu.twin import TwinEngine
from cgraph.engine.export import ExportedProgram, ExportEngine
from cgraph.errors import FormatError, bytes_text
from cgraph.function import Function, compile
from cgraph.ir.graph import Node, NodeLike
from cgraph.kernels.machines import machine_named, machines
from cgraph.kernels.target import Target
from cgraph.ops.leaf import Var
from cgraph.record import Record, replace
from cgraph.standalone.check import check_files
from cgraph.standalone.files import files_of
from cgraph.standalone.folder import write_folder
from cgraph.standalone.interface import interface_of
from cgraph.standalone.program import export_programs, largest_arena
from cgraph.standalone.settings import Settings, settings_of
from cgraph.standalone.shared_state import shared_state


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
    settings = settings_of(folder, target, name=name, names=names, form=form, memory=memory, reset=reset)
    arrays = check if isinstance(check, bool) else [check]
    return export_graphs({"": ExportGraph(outputs, inputs, updates)}, settings, arrays, options)


def export_function(function: Function, folder: str | os.PathLike, **settings: Any) -> Exported:
    """Write a function that `cgraph.ExportEngine` compiled into a new folder, without check vectors; see `export`.

    Parameters
        settings: name, names, form, memory and reset, as for `export`
    Raises
        FormatError: as for `export`; another engine compiled the function
    """
    return export_functions({"": function}, settings_of(folder, engine_of(function).machine, **settings))


class ExportGraph(Record, eq=False):
    """The arguments of `cgraph.compile` that say what is computed.

    Fields
        outputs, inputs, updates: as there
    """

    outputs: NodeLike | Sequence[NodeLike]
    inputs: Var | Sequence[Var]
    updates: Mapping[Var, NodeLike] | None = None

    def compile(self, engine: Any, options: Mapping[str, Any]) -> Function:
        """Compile the graph by an engine."""
        return compile(self.outputs, self.inputs, self.updates, engine=engine, **options)


def export_graphs(
    graphs: Mapping[str, ExportGraph],
    how: Settings,
    check: bool | Sequence[Sequence[np.ndarray]],
    options: Mapping[str, Any],
) -> Exported:
    """Write one folder for graphs by the ends of their runs' names.

    Parameters
        check: write check vectors; a list has the inputs of each graph
        options: of `export`
    """
    options = compile_options(options)
    functions = {suffix: graph.compile(ExportEngine(how.machine), options) for suffix, graph in graphs.items()}
    first = next(iter(graphs))
    how = replace(how, names=how.names or names_of(graphs[first].outputs, functions[first]))
    contents, exported = files_of_functions(functions, how)
    if check is not False:
        arrays = [None] * len(graphs) if check is True else check
        for (suffix, graph), values in zip(graphs.items(), arrays, strict=True):
            twin = graph.compile(TwinEngine(threads=1, of=target_of(functions[suffix])), options)
            contents |= check_files(twin, values, suffix)
    write_folder(how.folder, contents)
    return exported


def export_functions(functions: Mapping[str, Function], how: Settings) -> Exported:
    """Write one folder for compiled functions by the ends of their runs' names, without check vectors."""
    contents, exported = files_of_functions(functions, how)
    write_folder(how.folder, contents)
    return exported


def files_of_functions(functions: Mapping[str, Function], how: Settings) -> tuple[dict[str, bytes], Exported]:
    """Return the files by name, and their sizes."""
    runs = list(functions.values())
    target = target_of(runs[0])
    if any(target_of(x) != target for x in runs):
        raise FormatError("some sizes have 8-bit kernels of their own and others do not. Export a folder for each")
    states = shared_state(runs)
    interfaces = [interface_of(x, how.prefix, how.names, state) for x, state in zip(runs, states, strict=True)]
    alignment = machine_named(how.machine).constant_alignment
    programs = export_programs(runs, interfaces, list(functions), how.keeps_start, alignment)
    files = files_of(programs, how, target)
    exported = Exported(
        folder=os.fspath(how.folder),
        target=how.machine,
        arena_nbytes=largest_arena(programs),
        state_nbytes=sum(x.nbytes for x in interfaces[0].state),
        constant_nbytes=len(programs[0].constants),
        table_nbytes=files.table_nbytes,
        stack_nbytes=files.stack_nbytes,
        externals=files.externals,
    )
    return files.contents, exported


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


def compile_options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return options of `compile`, where `strategy` is called ``memory``."""
    if "strategy" not in options:
        return options
    return {"memory" if name == "strategy" else name: value for name, value in options.items()}


def names_of(outputs: Any, function: Function) -> list[str]:
    """Return the names of the outputs in the user's graph, before lowering."""
    nodes = (outputs,) if isinstance(outputs, Node) else tuple(outputs)
    return ["out"] if len(function.outputs) == 1 else [x.name for x in nodes]


def export_targets() -> tuple[str, ...]:
    """Return the names of all processors and systems that `export` writes code for.

    Examples
        >>> import cgraph as cg
        >>> "cortex-m7" in cg.export_targets()
        True
    """
    return tuple(machines())
