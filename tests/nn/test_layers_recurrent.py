"""Recurrent layers against cells written out in NumPy, in our order of gates and in PyTorch's."""

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.errors import ShapeError
from nn.torch_names import TorchNames
from tests.nn.support import assert_close, draw, run, value


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, w, u, b):
    h = c = np.zeros((x.shape[0], u.shape[0]))
    found = []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ w + h @ u + b, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        found.append(h)
    return np.stack(found, 1)


def gru(x, w, u, b, inner):
    units = u.shape[0]
    h = np.zeros((x.shape[0], units))
    found = []
    for t in range(x.shape[1]):
        given = x[:, t] @ w + b
        z, r = np.split(sigmoid(given[:, : 2 * units] + h @ u[:, : 2 * units]), 2, axis=1)
        h = z * h + (1 - z) * np.tanh(given[:, 2 * units :] + r * (h @ u[:, 2 * units :] + inner))
        found.append(h)
    return np.stack(found, 1)


def elman(x, w, u, b):
    h = np.zeros((x.shape[0], u.shape[0]))
    found = []
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ w + h @ u + b)
        found.append(h)
    return np.stack(found, 1)


@pytest.mark.parametrize(("kind", "want"), [(nn.LSTM, lstm), (nn.GRU, gru), (nn.Recurrent, elman)])
@pytest.mark.parametrize("sequence", [False, True])
def test_recurrent_layers(kind, want, sequence):
    x = draw(2, 5, 3)
    layer = kind(3, 4, sequence)
    for i, parameter in enumerate(layer.parameters().values()):
        parameter.assign(draw(*parameter.shape, seed=i))
    got = run(layer, x)
    states = want(x.astype(np.float64), *map(value, layer.parameters().values()))
    assert_close(got, states if sequence else states[:, -1], name="float32 layers")


def test_bidirectional():
    x = draw(2, 5, 3)
    layer = nn.Bidirectional(nn.GRU(3, 4, True), nn.GRU(3, 2, True))
    got = run(layer, x)
    one, two = ([value(v) for v in part.parameters().values()] for part in (layer.forward, layer.backward))
    assert_close(got, np.concatenate([gru(x, *one), gru(x[:, ::-1], *two)[:, ::-1]], -1), name="float32 layers")


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.Recurrent])
@pytest.mark.parametrize("sequence", [False, True])
def test_the_layer_against_the_sequence_reads_it_backwards(kind, sequence):
    """And its states lie beside those of the same steps; each half has weights of its own."""
    both = nn.Bidirectional(kind(3, 4, sequence), kind(3, 2, sequence))
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    found = run(both, x)
    forward, backward = run(both.forward, x), run(both.backward, x[:, ::-1].copy())
    backward = backward[:, ::-1] if sequence else backward
    np.testing.assert_array_equal(found, np.concatenate([forward, backward], -1))


def test_an_elman_cell_takes_another_function():
    x, layer = draw(2, 1, 3), nn.Recurrent(3, 4, function="relu")
    got = run(layer, x)
    assert_close(got, np.maximum(x[:, 0] @ value(layer.weight), 0), "float32 layers")


def test_states_begin_at_zero_and_biases_too():
    """So that a sequence of zeros leaves zeros; a GRU's second bias is the candidate's alone."""
    for layer, shape in ((nn.LSTM(3, 4), (16,)), (nn.GRU(3, 4), (12,)), (nn.Recurrent(3, 4), (4,))):
        np.testing.assert_array_equal(run(layer, np.zeros((2, 3, 3), np.float32)), np.zeros((2, 4)))
        assert layer.bias.shape == shape
    assert nn.GRU(3, 4).state_bias.shape == (4,)


def torch_arrays(gates, end=""):
    names = {"weight_ih": (gates * 4, 3), "weight_hh": (gates * 4, 4), "bias_ih": (gates * 4,), "bias_hh": (gates * 4,)}
    return {name + end: draw(*shape, seed=i) for i, (name, shape) in enumerate(names.items())}


def torch_gru(x, w, u, b, c):
    """PyTorch's formula, whose gates are reset, update, candidate."""
    h = np.zeros((x.shape[0], 4))
    for t in range(x.shape[1]):
        xr, xz, xn = np.split(x[:, t] @ w.T + b, 3, 1)
        hr, hz, hn = np.split(h @ u.T + c, 3, 1)
        r, z = sigmoid(xr + hr), sigmoid(xz + hz)
        h = (1 - z) * np.tanh(xn + r * hn) + z * h
    return h


def torch_lstm(x, w, u, b, c):
    return lstm(x, w.T, u.T, b + c)[:, -1]


def torch_elman(x, w, u, b, c):
    return elman(x, w.T, u.T, b + c)[:, -1]


@pytest.mark.parametrize(
    ("kind", "gates", "want"), [(nn.LSTM, 4, torch_lstm), (nn.GRU, 3, torch_gru), (nn.Recurrent, 1, torch_elman)]
)
@pytest.mark.parametrize("end", ["", "_l0"], ids=["cell", "layer"])
def test_weights_of_torch_compute_what_they_do_there(kind, gates, want, end):
    arrays, layer, x = torch_arrays(gates, end), kind(3, 4), draw(2, 5, 3, seed=9)
    nn.set_values(layer, layer.from_torch(TorchNames(arrays)))
    assert_close(run(layer, x), want(x.astype("float64"), *arrays.values()), "float32 layers")


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.Recurrent])
@pytest.mark.parametrize("sequence", [False, True])
def test_a_sequence_has_at_least_one_step(kind, sequence):
    layer = kind(3, 4, sequence)
    assert layer(cg.Var((2, 1, 3))).shape == ((2, 1, 4) if sequence else (2, 4))
    with pytest.raises(ShapeError, match=f"{kind.__name__} got .* a sequence without steps. Pass at least one step"):
        layer(cg.Var((2, 0, 3)))
