"""export_sizes: one object file with a run for each of several sizes, and one arena, state and set of constants."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cgraph.engine.cpu.twin import TwinEngine
from cgraph.engine.export import ExportEngine
from cgraph.errors import FormatError
from cgraph.function import Function, compile
from cgraph.ir.graph import NodeLike
from cgraph.kernels.machines import machine_named
from cgraph.ops.leaf import Var
from cgraph.record import replace
from cgraph.sizes import SizedFunction
from cgraph.standalone.check import check_files
from cgraph.standalone.export import (
    Exported,
    Settings,
    compile_options,
    engine_of,
    files_of_programs,
    names_of,
    settings_of,
    target_of,
)
from cgraph.standalone.folder import write_folder
from cgraph.standalone.interface import interface_of, present_bytes
from cgraph.standalone.program import export_programs

Sizes = Mapping[str, int]


def export_sizes(
    build: Callable[[Sizes], tuple],
    sizes: Sequence[Sizes],
    folder: str | os.PathLike,
    *,
    target: str,
    name: str | None = None,
    names: Sequence[str] = (),
    form: str = "whole",
    memory: str = "static",
    reset: bool = False,
    check: bool | Sequence[Sequence[np.ndarray]] = True,
    **options: Any,
) -> Exported:
    """Write a graph for several sizes as one object file, with one run function for each, such as ``NAME_run_64``.

    Equal constants are stored once. The runs share one arena, which has the size of the largest plan, and one state: a
    run reads what a run of another size left there. See docs/standalone.md.

    Parameters
        build: a function that gets each size by name and returns the arguments of `cgraph.compile`: outputs, inputs
            and, perhaps, update edges. State is Vars from outside it, or Vars of one name, shape and value
        sizes: of each run, by name: ``[{"n": 64}, {"n": 128}]``. Their values, in this order, end the run's name
        folder, target, name, names, form, memory, reset, options: as for `cgraph.export`
        check: as for `cgraph.export`; a list has the inputs of each size
    Raises
        FormatError: as for `cgraph.export`; sizes that are not distinct or have different names; a state whose shape
            or value depends on the size; a target whose object is linked
        BudgetError, GraphError, ShapeError: as for `cgraph.compile`

    Examples
        >>> import cgraph as cg
        >>> w = cg.Var((8,), "float32", "w").assign([1] * 8)
        >>> def build(sizes):
        ...     x = cg.Var((sizes["n"], 8), "float32", "x")
        ...     return x * w, x
        >>> print(cg.export_sizes(build, [{"n": 1}, {"n": 4}], "rows", target="cortex-m7"))  # doctest: +SKIP
    """
    suffixes = suffixes_of(sizes)
    settings = settings_of(folder, target, name, names, form, memory, reset)
    check_target(target)
    if not isinstance(check, bool) and len(check) != len(sizes):
        raise FormatError(f"check= has inputs of {len(check)} runs; there are {len(sizes)} sizes. Give them for each")
    graphs = [graph_of(build, x) for x in sizes]
    options = compile_options(options)
    functions = [compile(*x, engine=ExportEngine(target), **options) for x in graphs]
    labels = names or names_of(graphs[0][0], functions[0])
    files, facts = files_of_sizes(functions, replace(settings, names=labels), suffixes)
    if check is not False:
        inputs = [None] * len(sizes) if check is True else check
        for graph, function, suffix, arrays in zip(graphs, functions, suffixes, inputs, strict=True):
            twin = compile(*graph, engine=TwinEngine(threads=1, of=target_of(function)), **options)
            files |= check_files(twin, arrays, suffix)
    write_folder(settings.folder, files)
    return Exported(os.fspath(settings.folder), *facts)


def export_sized_function(
    function: SizedFunction,
    folder: str | os.PathLike,
    sizes: Sequence[Sizes],
    *,
    name: str | None = None,
    names: Sequence[str] = (),
    form: str = "whole",
    memory: str = "static",
    reset: bool = False,
) -> Exported:
    """Write a function of several sizes that `cgraph.ExportEngine` compiles, without check vectors.

    Raises
        FormatError: as for `export_sizes`; another engine compiles the function
    """
    suffixes = suffixes_of(sizes)
    functions = [function.at(**x) for x in sizes]
    machine = engine_of(functions[0]).machine
    check_target(machine)
    settings = settings_of(folder, machine, name, names or function.names, form, memory, reset)
    files, facts = files_of_sizes(functions, settings, suffixes)
    write_folder(settings.folder, files)
    return Exported(os.fspath(settings.folder), *facts)


def check_target(machine: str) -> None:
    """Raise FormatError for a target whose object is linked for one run."""
    if machine_named(machine).is_linked:
        raise FormatError(f"{machine} is a linked module with one run. Export one folder for each size")


def suffixes_of(sizes: Sequence[Sizes]) -> list[str]:
    """Return the end of each run's name: its sizes. FormatError if `sizes` has another form, or equal ones."""
    if not isinstance(sizes, Sequence) or not sizes or not all(isinstance(x, Mapping) and x for x in sizes):
        raise FormatError(f"sizes is {sizes!r:.60}. Give a list with a dict for each size, such as [{{'n': 64}}]")
    names = list(sizes[0])
    for x in sizes:
        if set(x) != set(names):
            raise FormatError(f"sizes have {', '.join(names)} and {', '.join(x)}. Give each one the same names")
        wrong = next((n for n in x.values() if not isinstance(n, int) or isinstance(n, bool) or n < 0), None)
        if wrong is not None:
            raise FormatError(f"a size is {wrong!r:.60}. Give integers from 0")
    suffixes = ["".join(f"_{x[name]}" for name in names) for x in sizes]
    twice = next((x for x, suffix in zip(sizes, suffixes) if suffixes.count(suffix) > 1), None)
    if twice is not None:
        raise FormatError(f"sizes has {dict(twice)} twice. Give each size once")
    return suffixes


def graph_of(build: Callable[[Sizes], tuple], sizes: Sizes) -> tuple[NodeLike | Sequence[NodeLike], Any, Any]:
    """Return the outputs, inputs and update edges of the graph of these sizes."""
    graph = build(sizes)
    if not isinstance(graph, tuple) or len(graph) not in (2, 3):
        raise FormatError(
            f"build gives outputs, inputs and, perhaps, update edges, not {graph!r:.60}. Return such a tuple"
        )
    return graph if len(graph) == 3 else (*graph, None)


def files_of_sizes(
    functions: Sequence[Function], how: Settings, suffixes: Sequence[str]
) -> tuple[dict[str, bytes], tuple[Any, ...]]:
    """Return the files by name, and the fields of `Exported` after its folder."""
    targets = list(map(target_of, functions))
    if any(x != targets[0] for x in targets):
        raise FormatError("some sizes have 8-bit kernels of their own and others do not. Export a folder for each")
    states = shared_state(functions)
    interfaces = [
        interface_of(function, how.prefix, how.names, state) for function, state in zip(functions, states, strict=True)
    ]
    programs = export_programs(functions, interfaces, suffixes, how.keeps_start)
    return files_of_programs(programs, how, engine_of(functions[0]).machine, targets[0])


def shared_state(functions: Sequence[Function]) -> list[list[Var]]:
    """Return the state of each function: those of all, in one order.

    Vars of different functions are one state if they are the same Var, or have one name, shape and value.
    """
    every: list[Var] = []
    own: list[dict[int, Var]] = [{} for _ in functions]
    for i, function in enumerate(functions):
        for x in function.updated:
            at = place_of(x, every, own[i])
            if at == len(every):
                every.append(x)
            own[i][at] = x
    for function, places in zip(functions, own):
        for x in function.cells:  # one that this size only reads
            at = place_of(x, every, places)
            if at < len(every):
                places[at] = x
    return [[places.get(at, x) for at, x in enumerate(every)] for places in own]


def place_of(x: Var, every: Sequence[Var], own: Mapping[int, Var]) -> int:
    """Return the place of a Var among those of other sizes; their number if it is not there."""
    for at, other in enumerate(every):
        if x is other or x is own.get(at):
            return at
    for at, other in enumerate(every):
        if at not in own and x.name == other.name:
            check_same(x, other)
            return at
    return len(every)


def check_same(x: Var, other: Var) -> None:
    """Raise FormatError unless two Vars of one name have one shape, dtype and value."""
    if x.spec != other.spec:
        raise FormatError(f"the state {x.name} is {other.spec} at one size and {x.spec} at another; all sizes share it")
    if x.cell.array is not None and other.cell.array is not None and present_bytes(x) != present_bytes(other):
        raise FormatError(f"the state {x.name} has other values at another size; all sizes share it. Use one Var")
