"""compile: an engine lowers, plans and makes a program; calling the Function that comes out; update edges."""

import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from cgraph.engine.engine import Engine, Instance, Program
from cgraph.engine.engines import engine_named
from cgraph.errors import GraphError, InputError, ShapeError, UnassignedError, bytes_text
from cgraph.ir.check import check_graph
from cgraph.ir.graph import Node, public
from cgraph.ir.traverse import post_order
from cgraph.memory.problem import Plan
from cgraph.memory.recompute import Recompute, Steps
from cgraph.ops.leaf import Var, fitting_array
from cgraph.passes.freeze import freeze
from cgraph.planning import Compiled
from cgraph.request import Request, options_of


def compile(
    outputs: Node | Sequence[Node],
    inputs: Var | Sequence[Var] = (),
    updates: Mapping[Var, Node] | None = None,
    *,
    engine: str | Engine = "cpu",
    threads: int = 0,
    **options: Any,
) -> "Function":
    """Make a Function of a graph.

    Parameters
        outputs: one node or several
        inputs: Vars that each call is given, in order (or one); the others are read from their cells
        updates: update edges: after a run each Var holds its node's value, all at once
        engine: ``cpu``, ``reference`` (NumPy, unplanned), or an engine
        threads: 0 is all the cores this process may use; any number gives the same bits
        options: memory, order, changing, budget, passes, winograd, freeze, recompute: see `cgraph.request.Options`
    Raises
        GraphError: no outputs; an input or the target of an update is no Var; a name that there is not
        ShapeError: an update's node and Var differ
        BudgetError: no plan within the budget
    """
    given = (inputs,) if isinstance(inputs, Var) else tuple(inputs)
    wanted = (outputs,) if isinstance(outputs, Node) else tuple(outputs)
    request = Request(wanted, given, dict(updates or {}))
    check_request(request)
    chosen, how = engine_named(engine, threads), options_of(options)
    request = request.of(chosen.lower(freeze(request.roots, how.freeze), how))
    compiled = chosen.plan(request, how)
    program = chosen.program(chosen.code(request, compiled))
    return Function(request, compiled, program, isinstance(outputs, Node))


def check_request(request: Request) -> None:
    """Refuse what cannot be compiled, naming it."""
    inputs, updates = request.inputs, request.updates
    if not request.roots:
        raise GraphError("compile needs at least one output or update edge")
    for x in request.roots:
        if not isinstance(x, Node):
            raise GraphError(f"compile makes nodes into a Function; {x!r:.60} is no node")
    for x in (*inputs, *updates):
        if not isinstance(x, Var):
            raise GraphError(f"{x!r:.80} is no Var: only a Var can be an input or the target of an update")
    names = [x.name for x in inputs]
    for name in names:
        if names.count(name) > 1:
            raise GraphError(f"two inputs are called {name!r}; give each a name of its own")
    for x, node in updates.items():
        if x.spec != node.spec:
            raise ShapeError(f"update of {x.name} {x.spec} with {node.name} {node.spec} (made at {node.where})")
    check_graph(request.roots)


class Function:
    """A compiled graph: call it with arrays for its inputs. Changes: arenas, and the Vars of its update edges.

    Fields
        outputs, inputs, updates: those given to `compile`, after passes and lowering
        compiled: schedule, plan and places; None on an engine that plans nothing
        program: what the engine made of it; its code can be shown
    """

    def __init__(self, request: Request, compiled: Compiled | None, program: Program, single: bool) -> None:
        if compiled:  # the graph as it was lowered, with weights that were packed since, need not live on
            request = request.of((*compiled.outputs, *compiled.sources))
        self.outputs, self.inputs, self.updates = request.outputs, request.inputs, dict(request.updates)
        self.compiled, self.program, self._single = compiled, program, single
        given = set(self.inputs)
        self._cells = tuple(v for v in post_order(request.roots) if isinstance(v, Var) and v not in given)
        self._by_name = {v.name: v for v in self.inputs}
        self._idle: list[_Held] = []
        self._lock = threading.RLock()
        self._recompute = Recompute(compiled) if compiled else None

    def __repr__(self) -> str:
        given = ", ".join(f"{x.name} {x.spec}" for x in self.inputs)
        found = ", ".join(str(x.spec) for x in self.outputs)
        size = f"; arena {bytes_text(self.nbytes)}" if self.compiled else ""
        return f"<Function ({given}) -> {found or 'updates only'}{size}>"

    @property
    def plan(self) -> Plan:
        """The memory plan: offsets, and the arena's bytes."""
        if self.compiled is None:
            raise GraphError("there is no plan, as on the reference engine")
        return self.compiled.plan

    @property
    def nbytes(self) -> int:
        """Bytes of the arena."""
        return self.plan.nbytes

    # -- pictures stand above this module: each is loaded when it is first asked for ------------------------------
    def report(self) -> Any:
        """Bytes by step, the peak and what is in use there; printing it gives a table: see `cgraph.view.report`."""
        return import_module("cgraph.view.report").report(self)

    def _repr_html_(self) -> str | None:
        return import_module("cgraph.view.notebook").notebook_html(self)

    def _repr_svg_(self) -> str | None:
        return import_module("cgraph.view.notebook").notebook_svg(self)

    # -- a run ----------------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, out: Sequence[np.ndarray] | None = None, copy: bool = True, **named: Any) -> Any:
        """Run.

        Parameters
            args, named: arrays for the inputs, by position or by name
            out: arrays that take the outputs
            copy: False gives views that the next run overwrites
        Raises
            InputError: an input is unknown, missing, given twice, or of another shape or dtype
            UnassignedError: a Var that is no input holds no value
        """
        values = self._values(args, named)
        if self.updates:
            with self._lock:
                return self._run(values, out, copy)
        return self._run(values, out, copy)

    def _values(self, args: tuple, named: dict[str, Any]) -> dict[Node, np.ndarray]:
        if len(args) > len(self.inputs):
            raise InputError(f"{len(args)} inputs are given, the Function takes {len(self.inputs)}")
        given: dict[Node, Any] = dict(zip(self.inputs, args))
        for name, value in named.items():
            x = self._by_name.get(name)
            if x is None:
                known = ", ".join(self._by_name) or "none"
                raise InputError(f"there is no input {name!r}; the inputs are {known}")
            if x in given:
                raise InputError(f"input {name!r} is given twice")
            given[x] = value
        for x in self.inputs:
            if x not in given:
                raise InputError(f"input {x.name} {x.spec} is missing")
        return {x: fitting_array(value, x.spec, x.name) for x, value in given.items()}

    def _run(self, values: dict[Node, np.ndarray], out: Any, copy: bool) -> Any:
        held = self._take()
        instance = held.instance
        try:
            instance.bind(self._arrays(values))
            steps = self._steps(held)
            held.state = None
            try:
                instance.run(steps.run)
            except KeyboardInterrupt:
                if instance.wrote:  # some Vars have their new values: give all of them theirs
                    self._write_updates(instance)
                raise
            held.state = steps.after
            found = [self._output(instance, x, copy and out is None) for x in self.outputs]
            self._write_updates(instance)
            return self._finish(found, out)
        finally:
            self._idle.append(held)

    def _steps(self, held: "_Held") -> Steps:
        """What must run, given what the instance holds."""
        changed = held.changed(self._cells, self.inputs)
        return self._recompute.steps(held.state, changed) if self._recompute else Steps(None, None)

    def _output(self, instance: Instance, node: Node, copy: bool) -> np.ndarray:
        """One output's value; a copy where it lies in a Var or an input, whose bytes are not this Function's."""
        value = instance.read(node)
        return value if instance.owns(node) and not copy else np.array(value)

    def _take(self) -> "_Held":
        try:
            return self._idle.pop()
        except IndexError:
            return _Held(self.program.instance())

    def _arrays(self, values: dict[Node, np.ndarray]) -> dict[Node, np.ndarray]:
        """The memory of every Var: inputs in C order, cells as they are."""
        arrays = {x: np.ascontiguousarray(v) for x, v in values.items()}
        for x in self._cells:
            if x.cell.array is None:
                raise UnassignedError(f"{x.name} {x.spec} (made at {x.where}) has no value; assign one first")
            if x.cell.shared and x in self.updates:
                x.cell.change(x.spec, keep=True)
            arrays[x] = x.cell.array
        return arrays

    def _write_updates(self, instance: Instance) -> None:
        for x, source in self.updates.items():
            instance.write(x, source)

    def _finish(self, found: list[np.ndarray], out: Sequence[np.ndarray] | None) -> Any:
        if out is not None:
            targets = [out] if self._single and isinstance(out, np.ndarray) else list(out)
            if len(targets) != len(found):
                raise InputError(f"out has {len(targets)} arrays for {len(found)} outputs")
            for target, value in zip(targets, found):
                if target.shape != value.shape or target.dtype != value.dtype:
                    raise InputError(f"out has {target.dtype}{list(target.shape)} for {value.dtype}{list(value.shape)}")
                np.copyto(target, value)
            found = targets
        return found[0] if self._single else found


class _Held:
    """An instance and what it holds. Changes: the values of which run, for which versions of the Vars."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.state: int | None = None
        self.versions: dict[Var, int] = {}

    def changed(self, cells: tuple[Var, ...], inputs: tuple[Var, ...]) -> frozenset[Var]:
        """Vars whose value may differ from the last run's."""
        found = {x for x in cells if self.versions.get(x) != x.cell.version}
        self.versions.update((x, x.cell.version) for x in found)
        return frozenset(found.union(inputs))


@public
def eval(node: Node) -> np.ndarray:
    """Compute one node now; the Function is remembered for the next time."""
    function = _EVALUATED.get(node)
    if function is None:
        while len(_EVALUATED) >= MOST_EVALUATED:
            del _EVALUATED[next(iter(_EVALUATED))]
        function = _EVALUATED[node] = compile(node)
    return function()


@public
def item(node: Node) -> float | int | bool:
    """The value of a node of one element, computed now, as a Python number."""
    return eval(node).item()


_EVALUATED: dict[Node, Function] = {}
MOST_EVALUATED = 64
