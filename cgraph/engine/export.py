"""The export engine: lowers, plans and makes code for a processor that this process does not run."""

from itertools import chain
from typing import Any

from cgraph.engine.cpu.code import Code
from cgraph.engine.cpu.make_code import UpdateTarget, code_of, update_calls
from cgraph.errors import GraphError
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from cgraph.ir.work import Part
from cgraph.kernels.kernel import ARENA, Call, Pointer, contiguous
from cgraph.kernels.machines import machine_named, machines
from cgraph.kernels.mapped import in_place
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import Target
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import lower_graph
from cgraph.memory.calls import CallsOfSteps
from cgraph.ops.physical.byte_matmul import ByteMatmul
from cgraph.ops.physical.integer import BlockedIntegerConv, IntegerConv, IntegerMatmul, PackedIntegerMatmul
from cgraph.ops.physical.table import ByteTable
from cgraph.planning.compiled import Compiled
from cgraph.planning.options import CompileOptions, Request
from cgraph.planning.plan import plan_request
from cgraph.record import Record
from cgraph.system.alignment import ALIGNMENT

BYTE_OPS = (BlockedIntegerConv, ByteMatmul, ByteTable, IntegerConv, IntegerMatmul, PackedIntegerMatmul)


class OutputPlace(Record, eq=False):
    """The base of memory that a caller passes for an output.

    Fields
        number: of the output
    """

    number: int


class ExportEngine(Record):
    """Code for a machine that this process does not run on: `Function.export` writes it.

    Fields
        machine: a name of `cgraph.export_targets`, such as ``cortex-m7``

    Raises
        GraphError: there is no such machine
    """

    machine: str
    name = "export"
    feeds_rows = False
    refuses = ("weights", "rows")
    alignment = ALIGNMENT

    def __post_init__(self) -> None:
        if self.machine not in machines():
            raise GraphError(f"there is no machine {self.machine!r:.60}. Use one of {', '.join(machines())}")

    def target_for(self, roots: tuple[Node, ...]) -> Target:
        """Return the target of a lowered graph: 8-bit kernels have a separate one on processors without vectors."""
        row = machine_named(self.machine)
        has_bytes = any(isinstance(x.op, BYTE_OPS) for x in post_order(roots))
        return row.bytes_target if has_bytes else row.target

    def lower(self, roots: tuple[Node, ...], options: CompileOptions) -> tuple[Node, ...]:
        """Run all passes, then choose the layouts of the target."""
        how = LoweringOptions(
            options.passes,
            options.winograd,
            in_place,
            options.storage_dtype,
            options.in_pairs,
            options.rounded_layers,
        )
        target = machine_named(self.machine).target
        lowered = lower_graph(roots, target, how)
        better = self.target_for(lowered)
        return lowered if better == target else lower_graph(roots, better, how)

    def plan(self, request: Request, options: CompileOptions) -> Compiled:
        """Plan memory with the target's workspaces."""
        return plan_request(request, self.target_for(request.roots), self.alignment, options)

    def code(self, request: Request, compiled: Compiled) -> Code:
        """Return all kernel calls by name. Those that copy strided outputs to the caller are among them."""
        calls, target = CallsOfSteps(None), self.target_for(request.roots)
        first, last = output_calls(target, compiled)
        parts = [
            [Part("outputs", first)],
            *(calls.parts(step) for step in compiled.steps),
            [Part("update edges", update_calls(target, compiled))],
            [Part("outputs", last)],
        ]
        return code_of(chain(parts), compiled)

    def program(self, code: Code) -> "ExportedProgram":
        """Return the code as a program that refuses to run."""
        return ExportedProgram(code, self)


def output_calls(target: Target, compiled: Compiled) -> tuple[list[Call], list[Call]]:
    """Return calls that copy outputs whose elements are not adjacent: before the run, and after it."""
    first: list[Call] = []
    last: list[Call] = []
    written = [x for x, source in zip(compiled.updated, compiled.sources) if source.op.writes]
    for i, x in enumerate(compiled.outputs):
        view = compiled.views[x]
        if view.is_contiguous:
            continue
        place = contiguous(Pointer(UpdateTarget(OutputPlace(i))), view.shape, view.dtype)  # type: ignore[arg-type]
        is_fresh = view.at.base is ARENA or any(view.at.base is base for base in written)
        (last if is_fresh else first).extend(copy_calls(target, place, view))
    return first, last


class ExportedProgram(Record, eq=False):
    """Code of another machine in place of a program.

    Fields
        code: kernel calls by name
        engine: the engine that made it
    """

    code: Code
    engine: ExportEngine
    on_host = ()
    own_array = None

    def instance(self, memory: Any = None) -> Any:
        """Raise GraphError: this process does not run the code."""
        raise GraphError(
            f"this Function is compiled for {self.engine.machine} and cannot be called here. Write it with "
            "Function.export, or compile with engine='cpu'"
        )
