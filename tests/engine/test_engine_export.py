"""Code for other machines: when strided outputs are copied to the caller, and the target of 8-bit kernels."""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine import export
from cgraph.engine.export import ExportEngine, OutputPlace, output_calls
from cgraph.errors import GraphError
from cgraph.kernels.kernel import ARENA, Pointer
from cgraph.kernels.machines import machine_named
from cgraph.ops.elementary import Tanh
from cgraph.ops.physical.byte_matmul import ByteMatmul
from cgraph.ops.physical.integer import BlockedIntegerConv, IntegerConv, IntegerMatmul, PackedIntegerMatmul
from cgraph.ops.physical.table import ByteTable
from cgraph.planning.options import CompileOptions

CONST = np.arange(6, dtype="f4").reshape(2, 3)


def places(calls) -> list[int]:
    """The numbers of the outputs that calls write."""
    bases = [arg.base.variable for call in calls for arg in call.args[:1] if isinstance(arg, Pointer)]
    assert all(isinstance(base, OutputPlace) for base in bases)
    return [base.number for base in bases]


def compiled(machine: str = "cortex-m7") -> cg.Function:
    """Outputs that are strided views of: an input, a Var that a step writes in place, its old value, a Var that is
    copied into, and the arena; contiguous ones between them.
    """
    x = cg.Var((2, 3), name="x")
    v, w = (cg.Var((2, 3), name=name).assign(CONST) for name in "vw")
    new = cg.cumsum(v, 1) + x
    outputs = [x.T, cg.exp(x), new.T, cg.Const(CONST).T, cg.sin(x).T, w.T, x]
    return cg.compile(outputs, [x], updates={v: new, w: x * 2}, engine=ExportEngine(machine))


def test_strided_outputs_are_copied_when_their_memory_has_its_value():
    plan = compiled().compiled
    first, last = output_calls(machine_named("cortex-m7").target, plan)
    bases = [plan.views[x].at.base for x in plan.outputs]
    assert bases[2] is plan.updated[0] and bases[4] == ARENA, "the case that this test is about"
    assert places(first) == [0, 5] and places(last) == [2, 4]


@pytest.mark.parametrize("machine", ["cortex-m7", "avx2"])
def test_outputs_are_copied_before_all_steps_or_after_the_update_edges(machine):
    code = compiled(machine).program.code
    labels = [code.labels[i] for i in code.label_of]
    first, edges = labels.index("update edges"), len(labels) - labels[::-1].index("update edges")
    copied = [i for i, label in enumerate(labels) if label == "outputs"]
    before, after = [i for i in copied if i < first], [i for i in copied if i >= edges]
    assert before == [0, 1] and after == list(range(len(labels) - 2, len(labels)))
    assert copied == before + after


def test_a_machine_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(GraphError, match=r"there is no machine 'cortex-m99'. Use one of .*cortex-m7"):
        ExportEngine("cortex-m99")


def test_exported_code_refuses_a_call_and_names_its_machine():
    with pytest.raises(GraphError, match="compiled for cortex-m7 and cannot be called here"):
        compiled()(CONST)


@pytest.mark.parametrize(
    "kind", [BlockedIntegerConv, ByteMatmul, ByteTable, IntegerConv, IntegerMatmul, PackedIntegerMatmul, Tanh]
)
def test_a_graph_with_any_op_of_bytes_is_lowered_again_for_the_target_of_bytes(kind, monkeypatch):
    row, asked, engine = machine_named("cortex-m7"), [], ExportEngine("cortex-m7")
    nodes = [SimpleNamespace(op=object.__new__(op)) for op in (Tanh, kind, Tanh)]
    monkeypatch.setattr(export, "post_order", lambda roots: nodes)
    monkeypatch.setattr(export, "lower_graph", lambda roots, target, how: asked.append((roots, target)) or "lowered")
    engine.lower("graph", CompileOptions())
    targets = [row.target] if kind is Tanh else [row.target, row.bytes_target]
    assert asked == [("graph", target) for target in targets] and row.target != row.bytes_target
    assert engine.target_for("graph") == targets[-1]
