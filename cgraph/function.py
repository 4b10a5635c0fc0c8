"""compile: passes → schedule → plan → program; calling the Function that comes out; update edges."""

import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.engine import Step
from cgraph.engine.reference import evaluate
from cgraph.errors import BudgetError, GraphError, InputError, ShapeError, UnassignedError, bytes_text
from cgraph.ir.check import check_graph
from cgraph.ir.graph import Node, public
from cgraph.ir.traverse import post_order
from cgraph.kernels.kernel import ARENA, Pointer, View, contiguous
from cgraph.kernels.target import Target, building_for, target_named
from cgraph.memory.problem import Plan, Strategy
from cgraph.memory.recompute import Recompute
from cgraph.ops.leaf import ConstOp, Var, fitting_array
from cgraph.passes import PASSES
from cgraph.passes.align_constants import align_constants
from cgraph.passes.freeze import freeze as freeze_values
from cgraph.passes.fuse_reductions import fuse_reductions
from cgraph.passes.fuse_stencils import fuse_stencils
from cgraph.passes.lower_cpu import lower_cpu
from cgraph.passes.pack_matmul import pack_matmul
from cgraph.planning import Compiled, plan_graph, strategy_named


def compile(
    outputs: Node | Sequence[Node],
    inputs: Var | Sequence[Var] = (),
    updates: Mapping[Var, Node] | None = None,
    *,
    memory: str | Strategy = "auto",
    order: str = "auto",
    changing: Sequence[Var] = (),
    threads: int = 0,
    budget: int | None = None,
    engine: str | CpuEngine = "cpu",
    passes: bool = True,
    winograd: bool = True,
    freeze: Sequence[Var] = (),
    recompute: bool | int = False,
) -> "Function":
    """Make a Function of a graph.

    Parameters
        outputs: one node or several
        inputs: Vars that each call is given, in order (or one); the others are read from their cells
        updates: update edges: after a run each Var holds its node's value, all at once
        memory: a strategy's name, ``auto`` by default; ``one_each`` shares nothing
        order: in which order nodes run: ``depth_first``, ``breadth_first``, ``least_memory``, or ``auto``, which takes
            the first and the last where that makes the plan smaller
        changing: Vars that will change from run to run: what does not depend on them is kept, not recomputed
        threads: 0 is all the cores this process may use; any number gives the same bits
        budget: bytes that the arena may take at most
        engine: ``cpu``, ``reference`` (NumPy, unplanned), or an engine
        passes: rewrite the graph first; False runs it as it was written
        winograd: allow it where it is faster; False computes every convolution directly, which is the more exact
        freeze: Vars whose present values become constants, which passes fold and pack: weights at inference
        recompute: compute forward values again rather than keep them for the backward part: the same bits, less memory,
            more time. True for the least memory; a number of bytes to do only as much as it takes to fit in them
    Raises
        GraphError: no outputs; an input or the target of an update is no Var; a name that there is not
        ShapeError: an update's node and Var differ
        BudgetError: no plan within the budget
    """
    single = isinstance(outputs, Node)
    wanted = (outputs,) if isinstance(outputs, Node) else tuple(outputs)
    given = (inputs,) if isinstance(inputs, Var) else tuple(inputs)
    updates = dict(updates or {})
    check_request(wanted, given, updates)
    strategy = strategy_named(memory)
    if engine == "reference":
        return Function(wanted, given, updates, single, None, None)
    chosen = CpuEngine(threads=threads) if engine == "cpu" else engine
    if not isinstance(chosen, CpuEngine):
        raise GraphError(f"there is no engine {engine!r}; use 'cpu', 'reference' or an engine")
    roots = freeze_values((*wanted, *updates.values()), freeze)
    target = target_named(chosen.target)
    if passes:
        roots = rewritten(roots, target, winograd)
    roots = align_constants(roots)
    split = len(wanted)
    edges = dict(zip(updates, roots[split:]))
    with building_for(target):
        compiled = plan_graph(
            roots[:split], edges, strategy, tuple(changing), chosen.alignment, order, given, recompute
        )
    limit = min((n for n in (budget, recompute) if n is not None and not isinstance(n, bool)), default=None)
    if limit is not None and compiled.nbytes > limit:
        raise BudgetError(budget_text(compiled, limit))
    with building_for(target):
        code = chosen.program(steps_of(compiled), compiled.nbytes)
    return Function(wanted, given, updates, single, compiled, code)


def check_request(outputs: tuple[Node, ...], inputs: tuple[Var, ...], updates: dict[Var, Node]) -> None:
    """Refuse what cannot be compiled, naming it."""
    if not outputs and not updates:
        raise GraphError("compile needs at least one output or update edge")
    for x in (*outputs, *updates.values()):
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
    check_graph((*outputs, *updates.values()))


def rewritten(roots: tuple[Node, ...], target: Target, winograd: bool) -> tuple[Node, ...]:
    """All passes, then lowering, then what joins physical ops."""
    for rewrite in PASSES:
        roots = rewrite(roots)
    return fuse_stencils(fuse_reductions(pack_matmul(lower_cpu(roots, target, winograd), target)))


def steps_of(compiled: Compiled) -> list[Step]:
    """What the engine makes kernel calls from."""
    layout, usage, plan, views = compiled.layout, compiled.usage, compiled.plan, compiled.views
    dead: dict[int, list[View]] = {}
    kept = {usage.operand_of[i] for i, v in enumerate(layout.values) if v.kept}
    for i, (x, at) in enumerate(zip(usage.problem.operands, plan.offsets)):
        if i not in kept:
            dead.setdefault(x.interval.last, []).append(contiguous(Pointer(ARENA, at), (x.nbytes,), "u1"))
    return [
        Step(n, views[n], [views[x] for x in n.operands], layout.scratch(n, usage, plan), dead.get(t, ()))
        for t, n in enumerate(layout.steps)
    ]


def budget_text(compiled: Compiled, budget: int) -> str:
    plan, bound = compiled.plan, compiled.lower_bound
    return (
        f"{plan.strategy or 'the plan'} needs {bytes_text(plan.nbytes)}, the budget is {bytes_text(budget)}; "
        f"no plan of this graph needs less than {bytes_text(bound)}"
    )


class Function:
    """A compiled graph: call it with arrays for its inputs. Changes: arenas, and the Vars of its update edges.

    Fields
        outputs, inputs, updates: those given to `compile`, after passes and lowering
        compiled: schedule, plan and places; None on the reference engine
    """

    def __init__(
        self,
        outputs: tuple[Node, ...],
        inputs: tuple[Var, ...],
        updates: dict[Var, Node],
        single: bool,
        compiled: Compiled | None,
        code: Any,
    ) -> None:
        if compiled:  # the graph as it was written, with weights that were packed since, need not live on
            outputs, updates = compiled.outputs, dict(zip(compiled.updated, compiled.sources))
        self.outputs, self.inputs, self.updates, self.compiled = outputs, inputs, updates, compiled
        self._single, self._code = single, code
        order = post_order((*compiled.outputs, *compiled.sources) if compiled else (*outputs, *updates.values()))
        self._vars = tuple(n for n in order if isinstance(n, Var))
        given = set(inputs)
        self._cells = tuple(v for v in self._vars if v not in given)
        self._by_name = {v.name: v for v in inputs}
        self._idle: list[_Instance] = []
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
            raise GraphError("the reference engine has no plan")
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
        if self.compiled is None:
            return self._finish(self._run_reference(values), out)
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

    def _run_reference(self, values: dict[Node, np.ndarray]) -> list[np.ndarray]:
        found = evaluate((*self.outputs, *self.updates.values()), values)
        for x, value in zip(self.updates, found[len(self.outputs) :]):
            x.assign(value)
        return found[: len(self.outputs)]

    def _run(self, values: dict[Node, np.ndarray], out: Any, copy: bool) -> Any:
        assert self._recompute is not None
        instance = self._take()
        try:
            arrays = self._bind(instance, values)
            changed = instance.changed(self._cells, self.inputs)
            steps = self._recompute.steps(instance.state, changed)
            instance.state = None
            try:
                instance.program.run(steps.run)
            except KeyboardInterrupt:
                if instance.program.wrote:  # some Vars have their new values: give all of them theirs
                    self._write_updates(instance, arrays)
                raise
            instance.state = steps.after
            found = [self._output(instance, x, arrays, copy and out is None) for x in self.compiled.outputs]  # type: ignore[union-attr]
            self._write_updates(instance, arrays)
            return self._finish(found, out)
        finally:
            self._idle.append(instance)

    def _output(self, instance: "_Instance", node: Node, arrays: dict[Node, np.ndarray], copy: bool) -> np.ndarray:
        """One output's value; a copy where it lies in a Var or an input, whose bytes are not this Function's."""
        value = instance.read(node, arrays)
        return np.array(value) if copy or instance.is_outside(node) else value

    def _take(self) -> "_Instance":
        try:
            return self._idle.pop()
        except IndexError:
            return _Instance(self.compiled, self._code.instance())  # type: ignore[arg-type]

    def _bind(self, instance: "_Instance", values: dict[Node, np.ndarray]) -> dict[Node, np.ndarray]:
        arrays = {x: np.ascontiguousarray(v) for x, v in values.items()}
        for x in self._cells:
            if x.cell.array is None:
                raise UnassignedError(f"{x.name} {x.spec} (made at {x.where}) has no value; assign one first")
            if x.cell.shared and x in self.updates:
                x.cell.change(x.spec, keep=True)
            arrays[x] = x.cell.array
        instance.program.bind({id(x): a.ctypes.data for x, a in arrays.items()})
        return arrays

    def _write_updates(self, instance: "_Instance", arrays: dict[Node, np.ndarray]) -> None:
        assert self.compiled is not None
        for x, source in zip(self.compiled.updated, self.compiled.sources):
            if source.op.writes and instance.base(source) is x:
                x.cell.version += 1
            else:
                value = instance.read(source, arrays)
                np.copyto(x.cell.change(x.spec), value)

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


class _Instance:
    """One arena with its program. Changes: which values it holds, and for which versions of the Vars."""

    def __init__(self, compiled: Compiled, program: Any) -> None:
        self.compiled, self.program = compiled, program
        self.state: int | None = None
        self.versions: dict[Var, int] = {}
        self._arrays: dict[Node, np.ndarray] = {}
        constants = (n for n in compiled.views if isinstance(n.op, ConstOp))
        program.bind({id(n): n.op.array.ctypes.data for n in constants})  # type: ignore[attr-defined]

    def changed(self, cells: tuple[Var, ...], inputs: tuple[Var, ...]) -> frozenset[Var]:
        """Vars whose value may differ from the last run's."""
        found = {x for x in cells if self.versions.get(x) != x.cell.version}
        self.versions.update((x, x.cell.version) for x in found)
        return frozenset(found.union(inputs))

    def base(self, node: Node) -> object:
        """What the node's bytes belong to: the arena, a Var, a Const."""
        return self.compiled.views[node].at.base

    def is_outside(self, node: Node) -> bool:
        """The node's bytes are not in the arena."""
        return self.base(node) is not ARENA

    def read(self, node: Node, arrays: dict[Node, np.ndarray]) -> np.ndarray:
        """A node's value where it lies."""
        view = self.compiled.views[node]
        if not self.is_outside(node):
            if node not in self._arrays:
                self._arrays[node] = array_at(self.program.arena, view)
            return self._arrays[node]
        base = view.at.base
        memory = base.op.array if isinstance(base.op, ConstOp) else arrays[base]  # type: ignore[union-attr]
        return array_at(np.ascontiguousarray(memory).reshape(-1).view(np.uint8), view)


def array_at(memory: np.ndarray, view: View) -> np.ndarray:
    """A view as a NumPy array over bytes."""
    dtype = np.dtype("?" if view.dtype == "b1" else view.dtype)
    if view.size == 0:
        return np.empty(view.shape, dtype)
    return np.ndarray(view.shape, dtype, memory.data, view.at.offset, view.strides)


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
