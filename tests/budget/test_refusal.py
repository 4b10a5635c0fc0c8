"""Refusals of budgets: the peak that they name, the bytes that are missing, the way out."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from benchmarks.micro_networks import Writer
from cgraph.budget.refusal import (
    budget_text,
    device_refusal,
    needs_text,
    recompute_refusal,
    ring_refusal,
    streamed_refusal,
)
from cgraph.errors import BudgetError
from cgraph.formats import tflite
from cgraph.memory.problem import Plan, problem_of

KIB = 1 << 10


@pytest.mark.parametrize("last", [False, True])
def test_the_step_with_most_bytes_in_use_is_named(last):
    x = cg.Var((64,), name="x")
    large = cg.cumsum(x[:, None] * np.ones(256, "f4"), 1)
    small = cg.sort(cg.tanh(x))
    parts = [small, cg.sum(large, 1)] if last else [cg.sum(large, 1), small]
    y = cg.concat(parts)
    with pytest.raises(BudgetError) as refused:
        cg.compile(y, [x], budget=100, passes=False)
    least = int(re.search(r"is (\d+) bytes", str(refused.value))[1])
    assert f"{least - 100} bytes are missing" in str(refused.value)
    in_use = re.search(r"(\S+) at \S+ has (\S+ KiB) in use", str(refused.value))
    assert in_use[1].startswith(("cumsum", "multiply", "sum")) and float(in_use[2].split()[0]) >= 64
    assert cg.compile(y, [x], budget=least, passes=False).nbytes == least


def convolutions():
    """Three convolutions of floats with a residual sum."""
    rng = np.random.default_rng(0)
    x = cg.Var((1, 4, 16, 16), "float32", "x")
    y = cg.relu(cg.conv2d(x, rng.random((4, 4, 3, 3), np.float32), pad=1))
    return cg.sum(cg.conv2d(cg.tanh(y), rng.random((4, 4, 3, 3), np.float32), pad=1) + x, (2, 3)), [x]


def gradients():
    """The gradient of a chain of products, whose forward values can be computed again."""
    x, y = cg.Var((24, 24), "float32", "x"), None
    for _ in range(4):
        y = cg.tanh((x if y is None else y) @ x)
    return cg.gradient(cg.sum(y), x), [x]


def byte_network():
    """Two inverted residuals of bytes."""
    writer = Writer(24)
    writer.conv(8, 3, 2)
    writer.block(1, 8, 1, 3)
    writer.block(3, 8, 1, 3)
    model = tflite.load(writer.net.bytes(writer.scores(5, False)))
    return model.outputs, model.inputs


@pytest.mark.parametrize("network", [convolutions, gradients, byte_network])
@pytest.mark.parametrize("machine", ["", "cortex-m7"])
def test_the_least_budget_compiles_and_one_byte_less_is_refused(network, machine):
    outputs, inputs = network()
    options = {"engine": cg.ExportEngine(machine) if machine else "cpu", "winograd": False}
    with pytest.raises(BudgetError) as refused:
        cg.compile(outputs, inputs, budget=1, **options)
    least = int(re.search(r"least budget of this graph is (\d+) bytes", str(refused.value))[1])
    assert cg.compile(outputs, inputs, budget=least, **options).nbytes == least
    with pytest.raises(BudgetError, match=f"1 bytes are missing.*least budget of this graph is {least} bytes"):
        cg.compile(outputs, inputs, budget=least - 1, **options)


def test_streamed_weights_name_each_part_and_their_sum():
    text = str(streamed_refusal(10 * KIB, 20 * KIB, 5 * KIB, 30 * KIB))
    assert "an arena of 10 KiB, a ring of 20 KiB and constants of 5 KiB" in text
    assert f"need {35 * KIB} bytes, the budget is 30 KiB: {5 * KIB} bytes are missing" in text
    assert f"least budget of this graph is {35 * KIB} bytes. Raise budget= to that" in text


def test_other_limits_say_what_is_needed_first():
    assert str(recompute_refusal(70, 50)).startswith("the arena needs 70 bytes, recompute= allows 50")
    assert "the ring of 4 KiB" in str(ring_refusal(4 * KIB, 9 * KIB)) and "needs 9 KiB" in str(
        ring_refusal(4 * KIB, 9 * KIB)
    )
    assert str(device_refusal(9 * KIB, "gpu", 4 * KIB)).startswith("the plan needs 9 KiB, gpu has 4 KiB.")
    assert needs_text(Plan((0,), 9 * KIB, "auto"), 4 * KIB, "a limit") == (
        "auto needs 9 KiB, a limit; no plan of this graph needs less than 4 KiB"
    )
    assert needs_text(Plan((0,), 9 * KIB, ""), 0, "a limit").startswith("the plan needs 9 KiB")


def test_the_first_of_the_broadest_steps_is_named_with_its_bytes_and_the_plan_with_its_own():
    """In use are 100, 150, 170 and 170 bytes at steps 0, 1, 3 and 4."""
    problem = problem_of([(100, 0, 1), (50, 1, 4), (120, 3, 3), (120, 4, 4)])
    layout = SimpleNamespace(steps=[SimpleNamespace(name=f"n{i}", where=f"f.py:{i}") for i in range(5)])
    for strategy in ("auto", ""):
        assert budget_text(layout, problem, Plan((), 190, strategy), 120) == (
            f"{strategy or 'the plan'} needs 190 B, the budget is 120 B: 70 bytes are missing; n3 at f.py:3 has 170 B "
            "in use; the least budget of this graph is 190 bytes. Raise budget= (or recompute=) to that"
        )
