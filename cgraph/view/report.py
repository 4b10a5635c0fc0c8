"""Report of a Function: bytes by step, the peak and its values, kernels, and measured times."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.function import Function
from cgraph.ir.graph import public
from cgraph.kernels.store import store
from cgraph.ops.leaf import ConstOp, VarOp
from cgraph.planning.compiled import Compiled
from cgraph.view.boxes import MemoryPicture
from cgraph.view.figures import Alive, Figures, Kernels, StepRow, WeightFigures
from cgraph.view.frames import region_row, regions_of
from cgraph.view.planned import Shown, compiled_of, memory_of
from cgraph.view.report_html import report_html
from cgraph.view.report_text import report_text
from cgraph.view.timing import program_size, step_seconds
from cgraph.view.weights import time_weights, weights_of


class FunctionReport(Figures):
    """The figures of a Function, printed as text and shown as a page in a notebook."""

    def text(self, most: int | None = 50) -> str:
        """Return plain text; of more than `most` steps only those with the most bytes or the longest times."""
        return report_text(self, most)

    def html(self) -> str:
        """Return the report as HTML, for a part of a page."""
        return report_html(self)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()


@public
def report(shown: Shown) -> FunctionReport:
    """Return the report of a Function. GraphError if it has no plan, as on the reference engine."""
    return _report(shown, None, weights_of(shown) if isinstance(shown, Function) else None)


@public
def timed_report(function: Function, *args: Any, repeats: int = 3, **named: Any) -> FunctionReport:
    """Return the report with the time of each step for these inputs; see `cgraph.view.timing`. Updates are not
    written.

    For weights in a file it has the time that a run waits for them, predicted and measured; see `cgraph.view.weights`.
    """
    seconds = step_seconds(function, args, named, repeats)
    return _report(function, seconds, time_weights(function, args, named, seconds, repeats))


def _report(shown: Shown, seconds: Sequence[float] | None, weights: WeightFigures | None) -> FunctionReport:
    compiled, memory = compiled_of(shown), memory_of(shown)
    return FunctionReport(
        _steps(compiled, memory, seconds),
        memory.peak,
        memory.peak_nbytes,
        _alive(compiled, memory),
        compiled.nbytes,
        compiled.unshared_nbytes,
        compiled.lower_bound,
        compiled.plain_lower_bound,
        _leaf_nbytes(compiled, VarOp),
        _leaf_nbytes(compiled, ConstOp),
        compiled.order,
        memory.strategy,
        memory.proved,
        _kernels(shown),
        tuple(
            (f"{name} of {node.name} at {node.where}", report(plan)) for (node, name), plan in compiled.inner.items()
        ),
        shown.program.on_host if isinstance(shown, Function) else (),
        weights,
        tuple(region_row(t, node) for t, node in regions_of(compiled)),
        shown.precision if isinstance(shown, Function) else None,
    )


def _steps(compiled: Compiled, memory: MemoryPicture, seconds: Sequence[float] | None) -> tuple[StepRow, ...]:
    nodes = compiled.layout.steps
    if not len(memory.changes):
        return ()
    at = np.searchsorted(memory.changes, np.arange(len(nodes)), "right") - 1
    in_use = memory.in_use[at].tolist()
    times = seconds if seconds is not None else [None] * len(nodes)
    return tuple(
        StepRow(t, node.title, str(node.spec), node.place, node.spec.nbytes, used, time)
        for t, (node, used, time) in enumerate(zip(nodes, in_use, times))
    )


def _alive(compiled: Compiled, memory: MemoryPicture) -> tuple[Alive, ...]:
    """Return the operands in use at the peak; their bytes add up to those in use."""
    problem, alive = compiled.usage.problem, []
    by_operand: dict[int, list[int]] = {}
    for i in memory.alive(memory.peak):
        by_operand.setdefault(memory.boxes[i].operand, []).append(i)
    for i, (operand, nbytes) in enumerate(zip(problem.operands, problem.nbytes.tolist())):
        if nbytes and operand.interval.first <= memory.peak <= operand.interval.last:
            boxes = [memory.boxes[k] for k in sorted(by_operand.get(i, []))]
            name = ", ".join(f"{x.name} {x.spec}".rstrip() for x in boxes) or f"reserved for {operand.name}"
            alive.append(Alive(nbytes, name, boxes[-1].where if boxes else ""))
    return tuple(sorted(alive, key=lambda x: -x.nbytes))


def _leaf_nbytes(compiled: Compiled, kind: type) -> int:
    return sum(node.nbytes for node in compiled.layout.views if isinstance(node.op, kind))


def _kernels(shown: Shown) -> Kernels | None:
    size = program_size(shown) if isinstance(shown, Function) else None
    return Kernels(*size, store().loaded, store().misses, store().compile_seconds) if size else None
