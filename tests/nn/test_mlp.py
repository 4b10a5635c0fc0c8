"""The fully connected network: its layers in order, and its scores by hand."""

import numpy as np
import pytest

from nn.layers.function import Activation
from nn.layers.linear import Linear
from nn.models import mlp
from tests.nn.support import assert_close, draw, run, value


@pytest.mark.parametrize(
    ("sizes", "kinds"),
    [
        ((5, 3), [Linear]),
        ((5, 4, 3), [Linear, Activation, Linear]),
        ((5, 5, 5, 5), [Linear, Activation] * 2 + [Linear]),
    ],
)
def test_relu_stands_between_layers_and_not_behind_the_last(sizes, kinds):
    model = mlp(None, sizes)
    assert [type(x) for x in model.parts[1:]] == kinds
    assert [(x.inputs, x.outputs) for x in model.parts if isinstance(x, Linear)] == list(zip(sizes, sizes[1:]))
    assert model.samples[0].shape == sizes[:1]


def test_scores_are_those_of_numpy():
    model, x = mlp(0, (5, 4, 3)), draw(6, 5)
    first, last = (part for part in model.parts if isinstance(part, Linear))
    hidden = np.maximum(x @ value(first.weight), 0)
    assert (hidden == 0).any() and (hidden > 0).any()
    assert_close(run(model, x), hidden @ value(last.weight))


def test_the_default_is_the_network_for_digits_of_784_pixels():
    assert [x.shape for x in mlp(None).parameters().values()] == [
        *((784, 300), (300,)), *((300, 100), (100,)), *((100, 10), (10,)),
    ]  # fmt: skip
