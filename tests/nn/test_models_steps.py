"""Steps of published memory tables: what continues a step, when results are in use, channels rounded up to 4."""

import numpy as np

import cgraph as cg
from nn.layer import Parameter
from nn.models.steps import NetworkStep, breadth_first, nodes_of, steps_of, usage_records


def test_bias_and_activation_belong_to_the_step_before_and_weights_have_none():
    x, w, b = cg.Var((2, 3), name="x"), Parameter((3, 5)), Parameter((5,))
    y = cg.relu(x @ cg.exp(w) + b)
    (step,) = steps_of([y])
    assert step.kind == "matmul" and step.result is y and step.operands == ()
    assert step.nbytes == 4 * 2 * 8, "5 channels take the bytes of 8"


def test_a_value_with_two_readers_ends_its_step():
    x = cg.Var((2, 4), name="x")
    a = x @ Parameter((4, 4))
    left, right = cg.relu(a), cg.tanh(a)
    steps = steps_of([left, right])
    assert [s.kind for s in steps][0] == "matmul" and len(steps) == 3
    assert [s.operands for s in steps] == [(), (0,), (0,)]


def test_results_are_in_use_from_their_step_to_their_last_reader():
    x = cg.Var((2, 4), name="x")
    a = x @ Parameter((4, 4))
    b = a @ Parameter((4, 8))
    out = cg.concat([a, b], 1) @ Parameter((12, 4))
    records = usage_records([out])
    assert records == [(0, 2, 32, "matmul"), (1, 2, 64, "matmul"), (2, 3, 96, "concat")]


def test_images_count_channels_along_the_second_axis():
    assert NetworkStep("pad", cg.Var((1, 3, 5, 7)), ()).nbytes == 4 * 4 * 35
    assert NetworkStep("pad", cg.Var((6, 9)), ()).nbytes == 4 * 6 * 12


def test_steps_run_as_they_become_ready():
    node = cg.Const(np.zeros(4, "f4"))
    reads = ((), (), (1,), (0, 2), (0,))
    assert breadth_first([NetworkStep("take", node, r) for r in reads]) == [0, 1, 4, 2, 3]
    x = cg.Var((2,))
    assert nodes_of([y := x + x, x]) == [x, y]
