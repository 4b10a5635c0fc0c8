"""Steps of recurrent networks by their formulas: each gate by itself, from a state that is not zero."""

import numpy as np
import pytest

import cgraph as cg
from tests.support.tolerance import assert_near

N, INPUTS, HIDDEN = 2, 3, 4
RNG = np.random.default_rng(5)


def draw(*shape):
    return RNG.normal(size=shape)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(function, *values):
    xs = [cg.Var(v.shape, "float64", f"x{i}") for i, v in enumerate(values)]
    made = function(*xs)
    return cg.compile(list(made) if isinstance(made, tuple) else [made], xs, engine="reference")(*values)


def weights(gates):
    return draw(INPUTS, gates * HIDDEN), draw(HIDDEN, gates * HIDDEN), draw(gates * HIDDEN)


def test_a_plain_step_is_a_tanh_of_both_products_and_the_bias():
    x, h, (w, u, b) = draw(N, INPUTS), draw(N, HIDDEN), weights(1)
    assert_near(step(cg.rnn_cell, x, h, w, u, b)[0], np.tanh(x @ w + h @ u + b), "float64 formulas near zero")


def test_gates_of_an_lstm_let_in_keep_write_and_show():
    x, h, c, (w, u, b) = draw(N, INPUTS), draw(N, HIDDEN), draw(N, HIDDEN), weights(4)
    i, f, g, o = np.split(x @ w + h @ u + b, 4, -1)
    cell = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    got, after = step(cg.lstm_cell, x, h, c, w, u, b)
    assert_near(after, cell, "float64 formulas near zero")
    assert_near(got, sigmoid(o) * np.tanh(cell), "float64 formulas near zero")


@pytest.mark.parametrize("inside", [False, True])
def test_gates_of_a_gru_keep_and_reset(inside):
    x, h, (w, u, b), more = draw(N, INPUTS), draw(N, HIDDEN), weights(3), draw(HIDDEN)
    (xz, xr, xn), (hz, hr, hn) = np.split(x @ w + b, 3, -1), np.split(h @ u, 3, -1)
    z, r = sigmoid(xz + hz), sigmoid(xr + hr)
    new = np.tanh(xn + r * (hn + (more if inside else 0)))
    (got,) = step(cg.gru_cell, x, h, w, u, b, *([more] if inside else []))
    assert_near(got, (1 - z) * new + z * h, "float64 formulas near zero")
