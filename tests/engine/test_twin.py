"""Twins: lanes and rounding of another processor with this machine's instructions, or its own target as it is."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu import twin
from cgraph.engine.cpu.twin import TwinEngine, runs_here
from cgraph.errors import BudgetError, GraphError
from cgraph.kernels.isa.architectures import host_architecture
from cgraph.kernels.machines import machine_named
from cgraph.kernels.target import host_target
from cgraph.record import replace


@pytest.mark.parametrize("machine", ["cortex-m7", "wasm32", "riscv64"])
def test_a_twin_has_the_lanes_and_rounding_of_the_other(machine):
    of = machine_named(machine).target
    own = TwinEngine(of=of).kernel_target
    assert (own.lanes, own.registers, own.fma, own.has_libc) == (of.lanes, of.registers, of.fma, of.has_libc)
    assert own.name == f"twin-{of.name}" and own.dot == "plain" and not own.converts_half
    assert own.architecture == host_target().architecture != of.architecture


def test_a_target_of_this_architecture_is_its_own_twin():
    for target in host_architecture().targets:
        if runs_here(target):
            assert TwinEngine(of=target).kernel_target.name == target.name
    assert runs_here(host_target()) and not runs_here(replace(host_target(), lanes=2 * host_target().lanes))


def test_a_machine_that_rounds_otherwise_is_refused(monkeypatch):
    monkeypatch.setattr(twin, "runs_here", lambda target: False)
    with pytest.raises(GraphError, match="does not round products as the exported code does.*check=False"):
        _ = TwinEngine(of=machine_named("cortex-m7").target).kernel_target


def test_a_twin_computes_on_this_machine():
    x = cg.Var((50,), name="x")
    f = cg.compile(cg.cumsum(x, 0), [x], engine=TwinEngine(threads=1, of=machine_named("cortex-m7").target))
    np.testing.assert_array_equal(f(np.arange(50, dtype="f4")), np.cumsum(np.arange(50, dtype="f4")))


def test_a_twin_takes_its_smallest_plan_where_none_is_within_the_budget():
    x = cg.Var((50,), name="x")
    y = cg.cumsum(cg.sort(cg.cumsum(x, 0)), 0)
    engine = TwinEngine(threads=1, of=machine_named("cortex-m7").target)
    f = cg.compile(y, [x], engine=engine, budget=1)
    assert 1 < f.nbytes <= cg.compile(y, [x], engine=engine).nbytes
    np.testing.assert_array_equal(f(np.ones(50)), np.cumsum(np.arange(1, 51)))
    with pytest.raises(BudgetError):
        cg.compile(y, [x], budget=1)
