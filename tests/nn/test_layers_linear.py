"""Fully connected layers against NumPy: axes, biases, initialisers and PyTorch's order of weights."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import ShapeError
from nn.torch_names import TorchNames
from tests.nn.support import assert_close, draw, run, value


def test_linear_and_fully_connected():
    x = draw(2, 3, 4)
    layer = nn.Linear(4, 5)
    assert_close(run(layer, x), x @ value(layer.weight) + value(layer.bias))
    layer = nn.FullyConnected(12, 5)
    assert_close(run(layer, x), x.reshape(2, 12) @ value(layer.weight) + value(layer.bias))


def test_a_bias_starts_at_zero_and_can_be_left_out():
    with_bias, without = nn.Linear(4, 5), nn.Linear(4, 5, use_bias=False)
    x = draw(2, 4)
    run(with_bias, x)
    np.testing.assert_array_equal(with_bias.bias.value, np.zeros(5))
    with_bias.bias.assign(draw(5, seed=1))
    assert_close(run(with_bias, x), x @ value(with_bias.weight) + draw(5, seed=1))
    assert_close(run(without, x), x @ value(without.weight))
    assert without.bias is None and list(without.variables()) == ["weight"]


def test_the_initialiser_sets_the_weight_alone():
    layer = nn.initialise(nn.Linear(3, 2, start=nn.init.Identity(4.0)))
    np.testing.assert_array_equal(layer.weight.value, [[4, 0], [0, 4], [0, 0]])
    np.testing.assert_array_equal(layer.bias.value, [0, 0])


def test_torch_has_the_weight_transposed():
    arrays = {"head.weight": draw(3, 4), "head.bias": draw(3, seed=1)}
    names = TorchNames(arrays, "head.")
    values = nn.Linear(4, 3).from_torch(names)
    np.testing.assert_array_equal(values["weight"], arrays["head.weight"].T)
    np.testing.assert_array_equal(values["bias"], arrays["head.bias"])
    assert nn.Linear(4, 3, use_bias=False).from_torch(names).keys() == {"weight"}


@pytest.mark.parametrize("shape", [(5, 3), (2, 4, 3)])
def test_swiglu_gates_one_product_with_the_swish_of_the_other(shape):
    layer, x = nn.SwiGLU(3, 7), draw(*shape)
    got = run(layer, x)
    gate, up, down = (value(part.weight) for part in (layer.gate, layer.up, layer.down))
    gates = x @ gate
    assert_close(got, (gates / (1 + np.exp(-gates)) * (x @ up)) @ down, name="float32 layers")
    assert {path: v.shape for path, v in layer.variables().items()} == {
        "gate.weight": (3, 7),
        "up.weight": (3, 7),
        "down.weight": (7, 3),
    }


def test_a_sample_without_axes_of_its_own_is_one_number():
    layer, x = nn.FullyConnected(1, 2), draw(3)
    assert_close(run(layer, x), x[:, None] @ value(layer.weight))


@pytest.mark.parametrize("shape", [(4, 6), (4, 24), (24,), ()], ids=str)
def test_samples_with_another_number_of_elements_are_refused_even_if_all_together_fit(shape):
    with pytest.raises(ShapeError):
        nn.FullyConnected(12, 5)(cg.Var(shape))


def test_a_batch_may_be_empty():
    assert nn.FullyConnected(12, 5)(cg.Var((0, 3, 4))).shape == (0, 5)
