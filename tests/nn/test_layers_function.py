"""Layers that apply a function: every named activation at chosen points, functions as they are, names unknown."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.layers.function import ACTIVATIONS, activation
from tests.nn.support import assert_close, draw, run

X = np.array([[-7.0, -2.5, -0.5, 0.0], [0.5, 1.5, 5.0, 7.0]], "f4")
EXP = np.exp(X.astype("f8"))
LOG1P = np.log1p(EXP)
SELU = 1.6732632423543772, 1.0507009873554805  # Klambauer et al. 2017
VALUES = {
    "none": X,
    "celu": np.where(X > 0, X, EXP - 1),
    "elu": np.where(X > 0, X, EXP - 1),
    "hard_swish": X * np.clip(X.astype("f8") + 3, 0, 6) / 6,
    "mish": X * np.tanh(LOG1P),
    "relu": np.maximum(X, 0),
    "relu6": np.clip(X, 0, 6),
    "selu": SELU[1] * np.where(X > 0, X, SELU[0] * (EXP - 1)),
    "sigmoid": EXP / (1 + EXP),
    "softmax": EXP / EXP.sum(1, keepdims=True),
    "softplus": LOG1P,
    "softsign": X / (1.0 + abs(X)),
    "swish": X * EXP / (1 + EXP),
    "tanh": np.tanh(X.astype("f8")),
    "thresholded_relu": np.where(X > 1, X, 0),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_name_is_its_function(name):
    assert_close(run(nn.Activation(name), X), VALUES[name])


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_every_name_keeps_the_shape(name):
    assert run(nn.Activation(name), X).shape == X.shape
    assert activation(name) is ACTIVATIONS[name]


def test_a_function_is_taken_as_it_is_and_an_unknown_name_is_refused_at_once():
    assert activation(cg.exp) is cg.exp and nn.Activation().function == "relu"
    with pytest.raises(ValueError, match="'rleu' is unknown. Use one of none, celu, .*or pass a function"):
        nn.Activation("rleu")


def test_lambdas_get_one_node_or_all():
    x, y = draw(2, 3), draw(2, 3, seed=1)
    got = run(nn.LambdaArray(lambda a, b: (b - a, a)), x, y)
    assert_close(got[0], y - x)
    assert_close(got[1], x)
    assert_close(run(nn.Lambda(lambda a: a[:, 1:] * 2), x), x[:, 1:] * 2)


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4), (2, 1, 3, 1)], ids=str)
def test_a_softmax_is_over_the_last_axis(shape):
    x = draw(*shape)
    exp = np.exp(x.astype("f8"))
    assert_close(run(nn.Activation("softmax"), x), exp / exp.sum(-1, keepdims=True))
