"""compile, and the Function that it returns: a graph lowered, planned and compiled by an engine, with update edges."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from cgraph import slots
from cgraph.budget.bands.streamed_rows import IMAGE_AXES, by_rows
from cgraph.budget.refusal import needs_text
from cgraph.collector import rare_collections
from cgraph.dtypes.convert import name_of
from cgraph.engine.engine import Engine
from cgraph.engine.engines import engine_named
from cgraph.engine.instance import Program
from cgraph.errors import BudgetError, FormatError, GraphError, ShapeError
from cgraph.ir.check import check_graph
from cgraph.ir.graph import Node, NodeLike, public
from cgraph.ir.traverse import post_order
from cgraph.late import LateModule
from cgraph.lowering.rounded_layers import RoundedLayers
from cgraph.memory.incremental import IncrementalPlan
from cgraph.memory.incremental_tables import tables_of
from cgraph.memory.problem import Plan, Strategy
from cgraph.ops.leaf import Var
from cgraph.ops.physical.ports import RowPort
from cgraph.passes.freeze import freeze
from cgraph.planning.compiled import Compiled
from cgraph.planning.mixed_precision import MixedPrecision, Tolerance
from cgraph.planning.options import CompileOptions, Request, check_together, members, options_of
from cgraph.planning.orders import check_order
from cgraph.planning.strategy import strategy_named
from cgraph.precision.choose import choose_precision, precision_of
from cgraph.precision.tiles import engines_of
from cgraph.record import replace
from cgraph.running.runner import Runner
from cgraph.running.streaming_runner import ByRows
from cgraph.storage.function_cache import FunctionCache, nbytes_of
from cgraph.storage.weight_file import StreamedWeights
from cgraph.system.keywords import checks_keywords

cut_patches = LateModule("cgraph.budget.patches.cut_patches").cut_patches
TRIAL = {
    "memory": "greedy_by_size",
    "order": "depth_first",
    "changing": (),
    "budget": None,
    "recompute": False,
    "bands": None,
    "weights": None,
    "rows": (),
}
"""Options of functions that are compiled to measure errors: planned fast, with the bits of any other plan."""


@checks_keywords()
def compile(
    outputs: NodeLike | Sequence[NodeLike] | Mapping[str, NodeLike],
    inputs: Var | Sequence[Var] = (),
    updates: Mapping[Var, NodeLike] | None = None,
    *,
    engine: str | Engine = "cpu",
    threads: int = 0,
    memory: str | Strategy = "auto",
    order: str = "auto",
    changing: Sequence[Var] = (),
    budget: int | str | None = None,
    passes: bool = True,
    winograd: bool = True,
    freeze: Sequence[Var] = (),
    recompute: bool | float | str = False,
    bands: int | None = None,
    restructure: tuple[float, tuple[int, int]] | None = None,
    weights: StreamedWeights | None = None,
    rows: Sequence[NodeLike] = (),
    weights_dtype: str | None = None,
    precision: str | Tolerance | MixedPrecision | None = None,
) -> "Function":
    """Make a Function of a graph.

        x = cg.Var((4,), name="x")
        f = cg.compile(cg.sin(x) + 1, [x], budget="1MiB")
        f(np.zeros(4, np.float32))  # [1, 1, 1, 1]

    Parameters
        outputs: one node, several, or several by name, ``{"boxes": b, "scores": s}``: results then have these names
        inputs: the Var or Vars that each call passes, in order; values of other Vars are read from their cells
        updates: update edges: after a run each Var holds its node's value, all at once
        engine: ``cpu``, ``cuda``, ``cuda-sim`` (a simulated GPU), ``reference`` (NumPy, unplanned), or an engine
        threads: 0 for all cores that this process may use; any number gives the same bits
        memory: the memory strategy, by name or as a function of a `Problem` that returns a `Plan`
        order: the running order: ``depth_first``, ``breadth_first``, ``least_memory`` or ``auto``
        changing: Vars that change from run to run: values that do not depend on them are stored between runs
        budget: maximum bytes of the arena, a number or text such as ``"2MiB"``; results have the same bits
        passes: rewrite the graph first; False runs it as written
        winograd: allow Winograd convolutions where they are faster; False has smaller rounding errors
        freeze: Vars whose present values become constants: weights at inference
        recompute: compute values again instead of keeping them: True, bytes to fit in, or a share of the work
        bands: compute images in bands of rows of at least this number of pixels where that needs less memory
        restructure: compute images around the memory peak in patches: a share of the peak, and numbers of patches
        weights: read large constants from a file while a run computes
        rows: inputs and outputs, images ``[n, c, h, w]``, that are streamed by rows and are never completely in memory
        weights_dtype: store large weights as ``float16`` or ``bfloat16``; arithmetic stays in float32
        precision: ``bf16``: convolutions and products may round their factors to bfloat16, in training too; a
            `Tolerance`: only those whose rounding keeps the outputs within an error; the `precision` of another
            Function: the same layers as there
    Raises
        GraphError: no outputs; an input or the target of an update is not a Var; an unknown name; options that
            contradict one another, the graph or the engine: `freeze` of an input, of an update's target or of a Var in
            `changing`; see `cgraph.planning.options.check_together`
        OptionError: there is no such option; the message names the nearest
        ShapeError: an update's node and its Var differ in shape or dtype
        BudgetError: no plan within the budget
        PlanError: `restructure` is not a share of the peak and two counts

    `cgraph.planning.options.CompileOptions` documents each option in full.
    """
    arguments = locals()
    input_vars = (inputs,) if isinstance(inputs, Var) else members(inputs)
    names = output_names(outputs)
    several = outputs.values() if isinstance(outputs, Mapping) else outputs
    nodes = (outputs,) if isinstance(outputs, Node) else members(several)
    if input_vars is None or nodes is None or not isinstance(updates, Mapping | None):
        raise GraphError(
            "compile needs a node or a list of nodes, a list of Vars, and a dict from Var to node; "
            f"got {outputs!r:.60}, {inputs!r:.60} and {updates!r:.60}. For a Python function "
            "use cg.jit(function)"
        )
    request = Request(nodes, input_vars, dict(updates or {}))
    check_request(request)
    backend = engine_named(engine, threads)
    options = options_of({name: arguments[name] for name in CompileOptions._fields})
    with rare_collections():
        return compile_request(request, options, backend, isinstance(outputs, Node), names)


def compile_request(
    request: Request, options: CompileOptions, backend: Engine, single: bool, names: Sequence[str]
) -> "Function":
    """Return the Function of a checked request.

    Parameters
        single: a call returns the only output itself
        names: of the outputs, or none
    """
    strategy_named(options.memory)
    check_order(options.order)
    check_together(request, options, backend.refuses, backend.name)
    backend, other = engines_of(backend, request.roots, options)
    try:
        function, later = compile_on(backend, request, options, single, names)
    except BudgetError:
        if other is backend:
            raise
        return compile_on(other, request, options, single, names)[0]
    if other is not backend:
        function.compile_savable = partial(compile_request, *without_freeze(request, later), other, single, names)
    return function


def compile_on(
    backend: Engine, request: Request, options: CompileOptions, single: bool, names: Sequence[str]
) -> "tuple[Function, CompileOptions]":
    """Return the Function that an engine makes, and options that compile it again with the same choice of layers."""
    pictures = pictures_of(request, options, backend)
    fed = frozenset(x for x in options.rows if isinstance(x, Var))
    choice, layers = rounding_of(request, backend, options, names)
    later = replace(options, precision=choice or options.precision)
    options = replace(options, precision=layers)
    roots = by_rows(request.roots, pictures, fed) if fed else request.roots
    request = request.of(backend.lower(prepared_roots(roots, request.inputs, options), options))
    compiled = backend.plan(request, options)
    program = backend.program(backend.code(request, compiled))
    function = (
        RowsFunction(request, compiled, program, single, names, pictures, fed)
        if fed
        else Function(request, compiled, program, single, names)
    )
    function.precision = None if layers is None else precision_of(layers, choice)
    return function, later


def without_freeze(request: Request, options: CompileOptions) -> tuple[Request, CompileOptions]:
    """Return a request and options with constants for the Vars of `freeze`, so that it can be compiled again later."""
    roots = freeze(request.roots, options.freeze)
    place_of = dict(zip(request.roots, roots))
    return request.of(roots), replace(options, freeze=(), rows=tuple(place_of.get(x, x) for x in options.rows))


def prepared_roots(roots: tuple[Node, ...], inputs: Sequence[Var], options: CompileOptions) -> tuple[Node, ...]:
    """Return a graph as engines lower it: with constants for the Vars of `freeze`, and in patches if requested."""
    roots = freeze(roots, options.freeze)
    return roots if options.restructure is None else cut_patches(roots, inputs, *options.restructure)


def rounding_of(
    request: Request, backend: Engine, options: CompileOptions, names: Sequence[str]
) -> tuple[MixedPrecision | None, RoundedLayers | None]:
    """Return the choice of layers that round, and the layers for lowering; None for all layers, and for none."""
    precision = options.precision
    if isinstance(precision, Tolerance):
        precision = measured_precision(request, backend, options, precision, names)
    if isinstance(precision, MixedPrecision):
        return precision, RoundedLayers(precision.bf16_layers)
    return None, None if precision is None else RoundedLayers()


def measured_precision(
    request: Request, backend: Engine, options: CompileOptions, tolerance: Tolerance, names: Sequence[str]
) -> MixedPrecision:
    """Return the choice of layers that keeps outputs and updates within a tolerance. Trials change no Var."""
    whole = Request(prepared_roots(request.roots, request.inputs, options), request.inputs, {})
    plain = replace(options, **TRIAL)

    def build(layers: RoundedLayers | None) -> Function:
        lowered = whole.of(backend.lower(whole.roots, replace(plain, precision=layers)))
        compiled = backend.plan(lowered, plain)
        return Function(lowered, compiled, backend.program(backend.code(lowered, compiled)), False)

    outputs = names or [f"output{i}" for i in range(len(request.outputs))]
    return choose_precision(build, tolerance, request.inputs, [*outputs, *(x.name for x in request.updates)])


def output_names(outputs: Any) -> tuple[str, ...]:
    """Return the names of outputs that are a dictionary; none for others. GraphError if a name is not a text."""
    if not isinstance(outputs, Mapping):
        return ()
    for name in outputs:
        if not isinstance(name, str):
            raise GraphError(f"the name of an output is a text, not {name!r:.60}. Pass a dict such as {{'y': node}}")
    return tuple(outputs)


def check_request(request: Request) -> None:
    """Raise GraphError or ShapeError for a graph that cannot be compiled."""
    inputs, updates = request.inputs, request.updates
    if not request.roots:
        raise GraphError("compile needs at least one output or update edge. Pass nodes as outputs= or updates=")
    for x in (*request.outputs, *updates.values()):
        if not isinstance(x, Node):
            raise GraphError(f"compile makes nodes into a Function; {x!r:.60} is not a node. Wrap arrays in cg.Const")
    for x in (*inputs, *updates):
        if not isinstance(x, Var):
            raise GraphError(f"{x!r:.60} is not a Var: only a Var can be an input or the target of an update")
    names = [x.name for x in inputs]
    for name in names:
        if names.count(name) > 1:
            raise GraphError(f"two inputs are called {name!r}; give each a different name")
    for x, node in updates.items():
        if x.spec != node.spec:
            raise ShapeError(
                f"the update of {x.name} {x.spec} is {node.name} {node.spec} (made at {node.where}): "
                f"shape and dtype must be those of the Var. {way_to_fit(node, x)}"
            )
    check_graph(request.roots)


def way_to_fit(node: Node, x: Var) -> str:
    """Return the advice for a node that does not have a Var's spec."""
    if node.shape == x.shape:
        return f"Convert it with .astype({name_of(x.dtype)!r})"
    return "Reshape or slice it, or make the Var of its shape"


def pictures_of(request: Request, how: CompileOptions, engine: Engine) -> dict[int, RowPort]:
    """Return the outputs that are streamed by rows, by position. GraphError if `rows` does not fit."""
    row_values, inputs = set(how.rows), set(request.inputs)
    outputs = {i: x for i, x in enumerate(request.outputs) if x in row_values - inputs}
    for x in how.rows:
        if x not in inputs.union(request.outputs):
            raise GraphError(f"rows has {x!r:.60}, which is not an input or output. Pass Vars of inputs=, or outputs")
        if x.ndim != IMAGE_AXES or not x.nbytes:
            raise GraphError(
                f"rows= has {x.name} {x.spec}, but only images [n, c, h, w] have rows. Reshape it to four axes"
            )
    if row_values and not row_values & inputs:
        raise GraphError("rows= names outputs only. Add the inputs that they are computed from to rows=")
    if len(outputs) > 1:
        raise GraphError(f"rows names {len(outputs)} outputs; at most one can be streamed. Keep one of them")
    if row_values and not engine.feeds_rows:
        raise GraphError(f"the engine {engine.name} takes images whole. Use engine='cpu' for rows=")
    return {i: RowPort(x.name, x.spec) for i, x in outputs.items()}


class Function(Runner):
    """A compiled graph: call it with arrays for its inputs. Mutable: its arenas, and the Vars of its update edges.

    Fields
        outputs, inputs, updates: those of `compile`, after passes and lowering
        compiled: schedule, plan and addresses; None on an engine without plans
        program: the engine's program; its code can be shown
        compile_savable: compiles the same graph for processors without tile registers; None if this Function needs none
    """

    compile_savable: "Callable[[], Function] | None" = None

    def __init__(
        self, request: Request, compiled: Compiled | None, program: Program, single: bool, names: Sequence[str] = ()
    ) -> None:
        if compiled:  # the lowered graph need not stay alive with weights that were packed since
            request = request.of((*compiled.outputs, *compiled.sources))
        self.updates, self.compiled = dict(request.updates), compiled
        inputs = set(request.inputs)
        cells = tuple(v for v in post_order(request.roots) if isinstance(v, Var) and v not in inputs)
        incremental = None
        if compiled:
            variables = (*request.inputs, *cells)
            tables = partial(tables_of, compiled, variables)
            incremental = IncrementalPlan(len(compiled.layout.steps), variables, tables)
        super().__init__(
            program, request.inputs, cells, tuple(self.updates), request.outputs, single, incremental, names
        )

    @property
    def plan(self) -> Plan:
        """The memory plan: offsets, and the arena's bytes."""
        if self.compiled is None:
            raise GraphError("there is no plan, as on the reference engine. Compile with engine='cpu'")
        return self.compiled.plan

    @property
    def nbytes(self) -> int:
        """Bytes of the arena."""
        return self.plan.nbytes

    def _needs(self, available: str) -> str:
        if self.compiled is None:
            return super()._needs(available)
        return needs_text(self.compiled.plan, self.compiled.lower_bound, available)

    def save(
        self,
        folder: str | os.PathLike,
        *,
        also: Sequence["Function"] = (),
        graph: bytes | None = None,
        names: Sequence[str] = (),
    ) -> None:
        """Write a folder that `cgraph.load` runs without compiling: see docs/saved.md.

        Parameters
            folder: a path where nothing exists yet
            also: the same graph compiled for other targets
            graph: the graph as `cgraph.formats.onnx.serialised` writes it, for other versions and processors
            names: of the outputs, the Function's own by default
        Raises
            FormatError: `folder` exists; a step is a Python function; the Function was not compiled by the CPU engine;
                the number of names differs from that of the outputs
        """
        if graph is not None and (self.cells or self.updated):
            raise FormatError("a graph has no cells, so it would be another function. Save it without graph=")
        slots.save_functions([self, *also], folder, graph, names)

    def export(self, folder: str | os.PathLike, **settings: Any) -> Any:
        """Write an object file and a C header, for a Function that was compiled with `cgraph.ExportEngine`.

        Parameters
            folder: path of the folder to create
            settings: name, names, form, memory and reset, as for `cgraph.export`, which also writes check vectors
        Raises
            FormatError: another engine compiled the Function; or as for `cgraph.export`
        """
        return slots.export_function(self, folder, **settings)

    def for_saving(self) -> Self:
        """Return this Function; or the same graph compiled without tile registers, where the default engine uses them.

        It reads the same Vars. Bits differ if products round to bfloat16: without tiles they may be float32.
        """
        if self.compile_savable is None:
            return self
        savable = type(self).__new__(type(self))
        savable.__dict__ |= {**self.__dict__, **self.compile_savable().__dict__, "names": self.names}
        return savable

    def __reduce__(self) -> tuple:
        return slots.reduced_function(self)

    # -- pictures, reports and traces are slots: modules above this one provide them ------------------------------
    def report(self) -> Any:
        """Return bytes by step, the peak and the values in use there; printed as a table. See `cgraph.view.report`."""
        return slots.report(self)

    def trace(self, path: str | os.PathLike, /, *args: Any, **named: Any) -> None:
        """Time the steps for these inputs, and write a trace for Perfetto and Chrome: see `cgraph.view.trace`."""
        slots.write_trace(self, path, args, named)

    def _repr_html_(self) -> str | None:
        return slots.function_html(self)

    def _repr_svg_(self) -> str | None:
        return slots.function_svg(self)


class RowsFunction(ByRows, Function):
    """A Function of images that are streamed by rows and are never completely in memory.

    For an input in `rows`, a call takes an array (perhaps in a mapped file, which is read some rows at a time) or an
    iterator of rows, arrays ``[n, c, w]`` or ``[n, c, rows, w]``. For an output in `rows`, ``out=`` takes an array,
    which may be in a mapped file, or a function that is called with each band ``[n, c, rows, w]``. A failed run changes
    no Var; rows delivered before the failure stay delivered.
    """

    def __init__(
        self,
        request: Request,
        compiled: Compiled | None,
        program: Program,
        single: bool,
        names: Sequence[str],
        pictures: Mapping[int, RowPort],
        fed: frozenset[Var],
    ) -> None:
        super().__init__(request, compiled, program, single, names)
        self.pictures, self.fed = pictures, fed


@public
def eval(node: NodeLike) -> np.ndarray:
    """Compute one node now, and cache its Function.

    The cache has at most 64 Functions of at most 32 MiB in total, and always the last one.
    """
    function = EVALUATED.get(node)
    if function is None:
        function = compile(node)
        EVALUATED.keep(node, function, nbytes_of(function, (node,)))
    return function()


EVALUATED = FunctionCache(most=64, most_nbytes=32 << 20)
"""Functions of the nodes that `eval` computed last, with their constants and arenas."""


@public
def item(node: NodeLike) -> float | int | bool:
    """Return the value of a node of one element, computed now, as a Python number."""
    return eval(node).item()
