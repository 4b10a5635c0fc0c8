"""Layers that contain layers: which operands each part gets, in which order, and in which mode."""

import numpy as np
import pytest

import cgraph as cg
import nn
from tests.nn.support import assert_close, draw, run, value

LESS = nn.LambdaArray(lambda a, b: a - b)


def test_containers():
    x = draw(2, 4)
    inner, short = nn.Linear(4, 4), nn.Linear(4, 4)
    assert_close(run(nn.Residual(inner), x), x @ value(inner.weight) + value(inner.bias) + x)
    both = run(nn.Residual(inner, short), x)
    assert_close(both, x @ (value(inner.weight) + value(short.weight)))
    one, two = run(nn.Branches((inner, short)), x)
    assert_close(one + two, both)
    assert_close(run(nn.Sequential(inner, nn.Activation("relu")), x), np.maximum(x @ value(inner.weight), 0))


def test_a_layer_used_twice_has_one_set_of_weights():
    shared = nn.Linear(4, 4)
    model = nn.Sequential(shared, nn.Activation("tanh"), shared)
    assert list(model.parameters()) == ["parts.0.weight", "parts.0.bias"]
    x = draw(2, 4)
    assert_close(run(model, x), np.tanh(x @ value(shared.weight)) @ value(shared.weight))


def test_several_inputs_and_outputs():
    model = nn.Sequential(nn.Branches((nn.Add(), nn.Mul())), nn.LambdaArray(lambda a, b: (a - b, a)))
    x, y = draw(2, 3), draw(2, 3, seed=1)
    difference, total = run(model, x, y)
    assert_close(difference, x + y - x * y)
    assert_close(total, x + y)


@pytest.mark.parametrize("parts", [(), (nn.Branches((nn.Activation("none"),)),)])
def test_one_result_is_no_tuple(parts):
    x = cg.Var((2, 3))
    assert nn.Sequential(*parts)(x) is x


def test_the_first_part_says_what_a_sample_is():
    assert nn.Sequential().samples is None
    assert nn.Sequential(nn.Input((3,), "int32"), nn.Input((4,))).samples == (nn.Sample((3,), "int32"),)


def test_parts_follow_one_another_and_pass_on_every_result():
    swap = nn.LambdaArray(lambda a, b: (b, a))
    x, y = draw(2, 3), draw(2, 3, seed=1)
    assert_close(run(nn.Sequential(swap, LESS), x, y), y - x)
    assert_close(run(nn.Sequential(nn.Lambda(lambda a: a + 1), nn.Lambda(lambda a: a * 2)), x), (x + 1) * 2)


def test_a_shortcut_gets_every_operand_and_without_one_the_first_is_added():
    x, y = draw(2, 3), draw(2, 3, seed=1)
    assert_close(run(nn.Residual(nn.Mul()), x, y), x * y + x)
    assert_close(run(nn.Residual(nn.Mul(), LESS), x, y), x * y + x - y)


def test_branches_are_merged_in_their_order():
    x, y = draw(2, 3), draw(2, 3, seed=1)
    assert_close(run(nn.Branches((nn.Add(), LESS), LESS), x, y), 2 * y)
    first, second = run(nn.Branches((nn.Add(), LESS)), x, y)
    assert_close(first, x + y)
    assert_close(second, x - y)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda a, b: nn.Sequential(a, b),
        lambda a, b: nn.Residual(a, b),
        lambda a, b: nn.Branches((a, nn.Activation("none")), nn.Sequential(nn.Add(), b)),
    ],
    ids=["sequential", "residual", "branches"],
)
def test_every_part_is_built_for_training(wrap):
    norms = nn.BatchNorm(3), nn.BatchNorm(3)
    mode = nn.Mode(training=True)
    wrap(*norms)(cg.Var((4, 3)), mode=mode)
    assert set(mode.updates) == {norm_value for norm in norms for norm_value in (norm.mean, norm.variance)}
