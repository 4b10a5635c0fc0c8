"""Programs of exported functions, without a compiler."""

from collections.abc import Mapping, Sequence

import numpy as np

import cgraph as cg
from cgraph.engine.export import ExportEngine
from cgraph.ir.graph import Node
from cgraph.standalone.header import Facts
from cgraph.standalone.interface import interface_of
from cgraph.standalone.program import ExportProgram, export_program


def exported(
    outputs: Sequence[Node],
    inputs: Sequence[cg.Var],
    updates: Mapping[cg.Var, Node] | None = None,
    machine: str = "cortex-m7",
    keeps_start: bool = False,
    names: Sequence[str] = (),
) -> ExportProgram:
    """The program of a graph for a machine, with names that begin with ``m``."""
    function = cg.compile(list(outputs), list(inputs), updates, engine=ExportEngine(machine))
    return export_program(function, interface_of(function, "m", names), keeps_start)


def counter(
    input_names: Sequence[str] = ("x", "at"), state: str = "mean", machine: str = "cortex-m7", keeps_start: bool = False
) -> ExportProgram:
    """Two inputs, a mean as state, a constant of 1200 bytes, and an index that may leave its axis."""
    x, at = cg.Var((300,), "float32", input_names[0]), cg.Var((3,), "int32", input_names[1])
    mean = cg.Var((300,), "float32", state).assign(np.arange(300, dtype="f4"))
    new = cg.cumsum(x * cg.Const(np.arange(300, dtype="f4") + 7), 0) + mean
    names = ("total", "some")
    return exported([cg.sum(new), cg.take(x, at, 0)], [x, at], {mean: new}, machine, keeps_start, names)


def facts(**changes: object) -> Facts:
    values = {"target": "a target", "triple": "a-triple", "digest": "d1", "stack_nbytes": 96, "externals": ("memcpy",)}
    return Facts(**(values | changes))  # type: ignore[arg-type]
