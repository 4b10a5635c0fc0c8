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


def test_a_value_that_one_node_reads_twice_has_one_reader():
    a = cg.Var((2, 4), name="x") @ Parameter((4, 4))
    (step,) = steps_of([a * a])
    assert step.kind == "matmul"
    both = steps_of([cg.concat([a, a], 1)])
    assert [(s.kind, s.operands) for s in both] == [("matmul", ()), ("concat", (0,))]


def test_an_output_that_another_one_reads_ends_its_step():
    a = cg.Var((2, 4), name="x") @ Parameter((4, 4))
    b = cg.relu(a)
    assert [s.result for s in steps_of([a, b])] == [a, b] and [s.result for s in steps_of([b])] == [b]
    assert usage_records([a, b]) == []


def test_a_view_belongs_to_the_step_of_a_reduction_or_of_a_view_and_to_no_other():
    x = cg.Var((2, 4, 3, 3), name="x")
    turned = cg.transpose(cg.reshape(cg.max(x, axis=(2, 3)), (4, 2)))
    assert [(s.kind, s.result) for s in steps_of([turned])] == [("max", turned)]
    flat = cg.reshape(cg.tanh(x), (2, 36))
    assert [(s.kind, s.operands) for s in steps_of([flat])] == [("tanh", ()), ("reshape", (0,))]
    first, second = steps_of([cg.transpose(cg.reshape(x, (4, 18))) @ Parameter((4, 5))])
    assert (first.kind, second.kind, second.operands) == ("reshape", "matmul", (0,))


def test_channels_are_the_last_axis_of_all_but_images():
    for shape, nbytes in (((5,), 32), ((2, 5), 64), ((2, 3, 5), 192), ((2, 5, 3, 7), 4 * 2 * 8 * 21), ((2, 8), 64)):
        assert NetworkStep("pad", cg.Var(shape), ()).nbytes == nbytes
