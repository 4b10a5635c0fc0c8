"""export_sizes: one object file with a run for each of several sizes, and one arena, state and set of constants."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.record import replace
from cgraph.sizes import SizedFunction
from cgraph.standalone.export import Exported, ExportGraph, engine_of, export_functions, export_graphs
from cgraph.standalone.settings import settings_of

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
        build: a function that takes each size by name and returns the arguments of `cgraph.compile`: outputs, inputs
            and, perhaps, update edges. State is Vars from outside it, or Vars of one name, shape and value
        sizes: of each run, by name: ``[{"n": 64}, {"n": 128}]``. Their values, in this order, end the run's name
        folder, target, name, names, form, memory, reset, options: as for `cgraph.export`
        check: as for `cgraph.export`; a list has the inputs of each size
    Raises
        FormatError: as for `cgraph.export`; sizes that are not distinct or have different names; a state whose shape
            or value depends on the size
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
    settings = settings_of(folder, target, name=name, names=names, form=form, memory=memory, reset=reset)
    if not isinstance(check, bool) and len(check) != len(sizes):
        raise FormatError(f"check= has inputs of {len(check)} runs; there are {len(sizes)} sizes. Give them for each")
    graphs = {suffix: graph_of(build, x) for suffix, x in zip(suffixes, sizes, strict=True)}
    return export_graphs(graphs, settings, check, options)


def export_sized_function(
    function: SizedFunction, folder: str | os.PathLike, sizes: Sequence[Sizes], **settings: Any
) -> Exported:
    """Write a function of several sizes that `cgraph.ExportEngine` compiles, without check vectors.

    Parameters
        settings: name, names, form, memory and reset, as for `cgraph.export`
    Raises
        FormatError: as for `export_sizes`; another engine compiles the function
    """
    functions = {suffix: function.at(**x) for suffix, x in zip(suffixes_of(sizes), sizes, strict=True)}
    how = settings_of(folder, engine_of(next(iter(functions.values()))).machine, **settings)
    return export_functions(functions, replace(how, names=how.names or function.names))


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


def graph_of(build: Callable[[Sizes], tuple], sizes: Sizes) -> ExportGraph:
    """Return the outputs, inputs and update edges of the graph of these sizes."""
    graph = build(sizes)
    if not isinstance(graph, tuple) or len(graph) not in (2, 3):
        raise FormatError(
            f"build gives outputs, inputs and, perhaps, update edges, not {graph!r:.60}. Return such a tuple"
        )
    return ExportGraph(*graph)
