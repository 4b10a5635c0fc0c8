"""compile: an engine lowers, plans and makes a program; calling the Function that comes out; update edges."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from cgraph.engine.engine import Engine, Instance, Program
from cgraph.engine.engines import engine_named
from cgraph.errors import ArenaError, GraphError, InputError, ShapeError, UnassignedError, bytes_text
from cgraph.ir.check import check_graph
from cgraph.ir.graph import Node, public
from cgraph.ir.traverse import post_order
from cgraph.kernels.mapped import in_c_order
from cgraph.memory.problem import Plan
from cgraph.memory.recompute import Recompute, Steps
from cgraph.ops.leaf import Value, Var, fitting_array
from cgraph.passes.freeze import freeze
from cgraph.planning import Compiled, needs_text
from cgraph.request import Request, options_of
from cgraph.turns import Turns


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
        self._turns = Turns()
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
        values, rooms = self._values(args, named), self._rooms(out)
        if self.updates:
            return self._turns.run(lambda: self._run(values, rooms, copy))
        return self._run(values, rooms, copy)

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
        return {x: in_c_order(fitting_array(value, x.spec, x.name)) for x, value in given.items()}

    def _rooms(self, out: Sequence[np.ndarray] | None) -> Sequence[np.ndarray] | None:
        """The arrays that take the outputs, checked before anything is done."""
        if out is None:
            return None
        rooms = [out] if self._single and isinstance(out, np.ndarray) else list(out)
        if len(rooms) != len(self.outputs):
            raise InputError(f"out has {len(rooms)} arrays for {len(self.outputs)} outputs")
        for room, x in zip(rooms, self.outputs):
            if not isinstance(room, np.ndarray):
                raise InputError(f"out has {room!r:.60} for {x.spec}; it takes arrays")
            if room.shape != x.shape or room.dtype != x.dtype:
                raise InputError(f"out has {room.dtype}{list(room.shape)} for {x.spec}")
            if not room.flags.writeable:
                raise InputError(f"out has a read-only array for {x.spec}")
        return rooms

    def _run(self, given: dict[Node, np.ndarray], out: Sequence[np.ndarray] | None, copy: bool) -> Any:
        held = self._take()
        try:
            found = self._run_on(held, given, out, copy)
        finally:
            self._idle.append(held)
        return found[0] if self._single else found

    def _run_on(
        self, held: "_Held", given: dict[Node, np.ndarray], out: Sequence[np.ndarray | None] | None, copy: bool
    ) -> Sequence[np.ndarray]:
        """A run: all that may fail, then the run itself, which writes all update edges or none, then the results.

        Whoever sees a Var's version may keep what is computed from it. So there is none while a run may be writing, and
        what the instance holds is known only when the run is over.
        """
        instance = held.instance
        cells = {x: x.cell.value for x in (*self._cells, *self.updates)}
        versions = {x: cells[x].version for x in self._cells}
        self._check(cells)
        if not all(cells[x].is_there for x in self.updates):
            held.done = np.zeros(1, np.int64)
        instance.bind(given, cells, held.done)
        shown = {x: np.array(instance.read(x)) for x in self.outputs if not instance.makes(x)}
        if out is None:
            is_new = [x not in shown and (copy or not instance.owns(x)) for x in self.outputs]
            out = [np.empty(x.shape, x.dtype) if new else None for new, x in zip(is_new, self.outputs)]
        steps = self._steps(held, versions)
        held.state = None
        try:
            for x in self.updates:
                cells[x].version = None
            instance.run(steps.run)
            held.versions, held.state = versions, steps.after
        finally:
            for x in self.updates:
                cells[x].renew()
        values = (shown[x] if x in shown else instance.read(x) for x in self.outputs)
        return [value if room is None else filled(room, value) for room, value in zip(out, values)]

    def _steps(self, held: "_Held", versions: dict[Var, int | None]) -> Steps:
        """What must run, given what the instance holds."""
        if self._recompute is None:
            return Steps(None, None)
        changed = {x for x, now in versions.items() if now is None or held.versions.get(x) != now}
        return self._recompute.steps(held.state, frozenset(changed.union(self.inputs)))

    def _check(self, cells: Mapping[Var, Value]) -> None:
        """Every Var that is no input holds a value."""
        for x in self._cells:
            if not cells[x].is_there:
                raise UnassignedError(f"{x.name} {x.spec} (made at {x.where}) has no value; assign one first")

    def _take(self) -> "_Held":
        """An idle instance, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return _Held(self.program.instance())
        except MemoryError:
            if self.compiled is None:
                raise
            raise ArenaError(needs_text(self.compiled, "which the machine does not give")) from None


def filled(room: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The array that takes a value, with it."""
    np.copyto(room, value)
    return room


class _Held:
    """An instance and what it holds. Changes: the values of which run, for which versions of the Vars.

    Fields
        state: which values, see `Recompute`; None: nobody knows of any
        versions: of the Vars in the run that `state` is of
        done: the word that a run sets when it has written its update edges
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.state: int | None = None
        self.versions: dict[Var, int | None] = {}
        self.done = np.zeros(1, np.int64)


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
