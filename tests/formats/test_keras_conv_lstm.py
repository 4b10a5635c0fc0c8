"""Convolutional LSTMs of Keras, step by step in NumPy."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from tests.support.keras_networks import (
    IDS,
    OTHER,
    UNITS,
    WEIGHTS,
    T,
    curves,
    layer,
    masked_rows,
    normal,
    run,
    sigmoid,
    start,
    stored,
)
from tests.support.tolerance import assert_near


def conv_lstm(w, x, options, states=None):
    """All states h ``[n, t, h, w, units]``, and the last h and c; windows 3 × 2, padding "same" and stride 1 inside."""
    x = x[:, ::-1] if options.get("go_backwards") else x
    rows, (outer_curve, gate) = [], curves(options)
    for t in range(x.shape[1]):
        inputs = windowed(x[:, t], w["kernel"], options["strides"]) + w.get("bias", 0)
        states = states or [np.zeros((*inputs.shape[:-1], UNITS))] * 2
        h, c = states
        i, f, new, o = np.split(inputs + windowed(h, w["recurrent_kernel"], [1, 1]), 4, -1)
        c = gate(f) * c + gate(i) * outer_curve(new)
        states = [gate(o) * outer_curve(c), c]
        rows.append(states[0])
    return np.stack(rows, 1), *states


def windowed(x, kernel, steps):
    around = [(0, 0)]
    for n, w, s in zip(x.shape[1:], kernel.shape, steps):
        total = max((-(-n // s) - 1) * s + w - n, 0)
        around.append((total // 2, total - total // 2))
    seen = np.lib.stride_tricks.sliding_window_view(np.pad(x, [*around, (0, 0)]), kernel.shape[:2], (1, 2))
    return np.einsum("npqcrs,rsck->npqk", seen[:, :: steps[0], :: steps[1]].astype(float), kernel)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"go_backwards": True, "strides": [2, 1]},
        {"use_bias": False},
        {"activation": "relu", "recurrent_activation": "tanh"},
    ],
    ids=str,
)
def test_a_convolutional_lstm_is_its_steps(options):
    x = normal(2, 3, 5, 4, 2)
    options = {
        "strides": [1, 1],
        "kernel_size": [3, 2],
        "padding": "same",
        "activation": "tanh",
        "filters": UNITS,
    } | options
    w = {"kernel": normal(3, 2, 2, 4 * UNITS), "recurrent_kernel": normal(3, 2, UNITS, 4 * UNITS)}
    if options.get("use_bias", True):
        w["bias"] = normal(4 * UNITS)
    every, h, c = conv_lstm(w, x, options)
    rows = [start("x", x.shape[1:])]
    rows.append(layer("ConvLSTM2D", "l", ["x"], options | {"return_sequences": True, "return_state": True}))
    rows.append(layer("ConvLSTM2D", "m", ["x"], options))
    weights = dict.fromkeys("lm", stored(w, "cell"))
    found = run(rows, weights, [np.moveaxis(x, -1, 1)], [("l", 0), ("l", 1), ("l", 2), ("m", 0)])
    for got, want in zip(found, (every, h, c, h)):
        assert_near(np.moveaxis(got, 1, -1), want, "float32 sums near zero")


def test_a_convolutional_lstm_goes_both_ways_and_starts_where_it_is_told():
    x, h, c = normal(2, 3, 5, 4, 2), normal(2, 5, 4, UNITS), normal(2, 5, 4, UNITS)
    options = {"strides": [1, 1], "kernel_size": [3, 2], "padding": "same", "activation": "tanh", "filters": UNITS}
    one, two = (
        {"kernel": normal(3, 2, 2, 4 * UNITS), "recurrent_kernel": normal(3, 2, UNITS, 4 * UNITS)} for _ in range(2)
    )
    inner = {"class_name": "ConvLSTM2D", "config": options | {"name": "g", "return_sequences": True}}
    rows = [start("x", x.shape[1:]), start("h", h.shape[1:]), start("c", c.shape[1:])]
    rows.append(layer("Bidirectional", "b", ["x"], {"layer": inner, "merge_mode": "concat"}))
    rows.append(layer("ConvLSTM2D", "l", ["x"], options, {"initial_state": [["h", 0, 0], ["c", 0, 0]]}))
    weights = {"b": stored(one, "b/forward_g/cell") | stored(two, "b/backward_g/cell"), "l": stored(one, "cell")}
    both, last = run(rows, weights, [np.moveaxis(v, -1, 1) for v in (x, h, c)], [("b", 0), ("l", 0)])
    backward = conv_lstm(two, x, options | {"go_backwards": True})[0][:, ::-1]
    want = np.concatenate([conv_lstm(one, x, options)[0], backward], -1)
    assert_near(np.moveaxis(both, 1, -1), want, "float32 sums near zero")
    assert_near(np.moveaxis(last, 1, -1), conv_lstm(one, x, options, [h, c])[1], "float32 sums near zero")
    rows = masked_rows(layer("Reshape", "r", ["e"], {"target_shape": [T, 2, 2]}), layer("Masking", "m", ["e"]))
    rows.append(layer("ConvLSTM1D", "n", ["r"], options | {"kernel_size": [2], "strides": [1]}, {"mask": ["i", 0, 0]}))
    with pytest.raises(FormatError, match="its argument mask= is not supported"):
        run(rows, WEIGHTS, [IDS, OTHER], [("n", 0)])


def test_a_convolutional_lstm_of_rows_is_one_of_images_of_one_row():
    """Its states are sequences, which have their channels last."""
    x, h, c = normal(2, 3, 4, 2), normal(2, 4, UNITS), normal(2, 4, UNITS)
    w = {"kernel": normal(2, 2, 4 * UNITS), "recurrent_kernel": normal(2, UNITS, 4 * UNITS), "bias": normal(4 * UNITS)}
    options = {"strides": [1], "kernel_size": [2], "padding": "same", "activation": "tanh", "filters": UNITS}
    options |= {"return_sequences": True, "return_state": True}
    rows = [start("x", x.shape[1:]), start("h", h.shape[1:]), start("c", c.shape[1:])]
    rows.append(layer("ConvLSTM1D", "l", ["x"], options, {"initial_state": [["h", 0, 0], ["c", 0, 0]]}))
    found = run(rows, {"l": stored(w, "cell")}, [np.moveaxis(x, -1, 1), h, c], [("l", 0), ("l", 1), ("l", 2)])
    wide = {name: v if name == "bias" else v[None] for name, v in w.items()}
    every, *states = conv_lstm(wide, x[:, :, None], {"strides": [1, 1]}, [h[:, None], c[:, None]])
    assert_near(np.moveaxis(found[0], 1, -1), every[:, :, 0], "float32 sums near zero")
    for got, want in zip(found[1:], states, strict=True):
        assert_near(got, want[:, 0], "float32 sums near zero")


@pytest.mark.parametrize(
    "options", [{"padding": "valid"}, {"dilation_rate": [1, 2]}, {"dilation_rate": [2, 1]}], ids=str
)
def test_steps_enter_a_convolutional_lstm_by_its_padding_and_dilation_and_states_by_neither(options):
    """The window over the state has padding "same" and no gaps, whatever that over a step has."""
    x = normal(2, 3, 6, 5, 2)
    plain = {"strides": [1, 1], "kernel_size": [3, 2], "padding": "same", "activation": "tanh", "filters": UNITS}
    w = {"kernel": normal(3, 2, 2, 4 * UNITS), "recurrent_kernel": normal(3, 2, UNITS, 4 * UNITS)}
    d = options.get("dilation_rate", [1, 1])
    spread = np.zeros(((3 - 1) * d[0] + 1, (2 - 1) * d[1] + 1, 2, 4 * UNITS))
    spread[:: d[0], :: d[1]] = w["kernel"]
    states = None
    for t in range(3):
        inputs = windowed(x[:, t], spread, [1, 1])
        if options.get("padding") == "valid":
            seen = np.lib.stride_tricks.sliding_window_view(x[:, t], (3, 2), (1, 2))
            inputs = np.einsum("npqcrs,rsck->npqk", seen.astype(float), w["kernel"])
        h, c = states or [np.zeros((*inputs.shape[:-1], UNITS))] * 2
        i, f, new, o = np.split(inputs + windowed(h, w["recurrent_kernel"], [1, 1]), 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
        states = sigmoid(o) * np.tanh(c), c
    rows = [start("x", x.shape[1:]), layer("ConvLSTM2D", "l", ["x"], plain | options)]
    (found,) = run(rows, {"l": stored(w, "cell")}, [np.moveaxis(x, -1, 1)], [("l", 0)])
    assert_near(np.moveaxis(found, 1, -1), states[0], "float32 sums near zero")


def test_two_directions_of_images_have_their_states():
    x = normal(2, 3, 5, 4, 2)
    options = {"strides": [1, 1], "kernel_size": [3, 2], "padding": "same", "activation": "tanh", "filters": UNITS}
    one, two = (
        {"kernel": normal(3, 2, 2, 4 * UNITS), "recurrent_kernel": normal(3, 2, UNITS, 4 * UNITS)} for _ in range(2)
    )
    inner = {"class_name": "ConvLSTM2D", "config": options | {"name": "g", "return_state": True}}
    rows = [start("x", x.shape[1:]), layer("Bidirectional", "b", ["x"], {"layer": inner, "merge_mode": None})]
    both = stored(one, "b/forward_g/cell") | stored(two, "b/backward_g/cell")
    found = run(rows, {"b": both}, [np.moveaxis(x, -1, 1)], [("b", i) for i in range(6)])
    a, b = conv_lstm(one, x, options), conv_lstm(two, x, options | {"go_backwards": True})
    for got, want in zip(found, [a[1], b[1], *a[1:], *b[1:]], strict=True):
        assert_near(np.moveaxis(got, 1, -1), want, "float32 sums near zero")


@pytest.mark.parametrize("every", [False, True])
def test_states_of_a_convolutional_lstm_may_follow_its_sequence(every):
    x, h, c = normal(2, 3, 5, 4, 2), normal(2, 5, 4, UNITS), normal(2, 5, 4, UNITS)
    options = {"strides": [1, 1], "kernel_size": [3, 2], "padding": "same", "activation": "tanh", "filters": UNITS}
    w = {"kernel": normal(3, 2, 2, 4 * UNITS), "recurrent_kernel": normal(3, 2, UNITS, 4 * UNITS)}
    rows = [start("x", x.shape[1:]), start("h", h.shape[1:]), start("c", c.shape[1:])]
    rows.append(layer("ConvLSTM2D", "l", ["x", "h", "c"], options | {"return_sequences": every}))
    (found,) = run(rows, {"l": stored(w, "cell")}, [np.moveaxis(v, -1, 1) for v in (x, h, c)], [("l", 0)])
    steps, last, _ = conv_lstm(w, x, options, [h, c])
    assert_near(np.moveaxis(found, 1, -1), steps if every else last, "float32 sums near zero")
    rows[-1] = layer("ConvLSTM2D", "l", ["x", "h"], options)
    with pytest.raises(FormatError, match="it is called with 1 states, and has 2. Pass each state"):
        run(rows, {"l": stored(w, "cell")}, [np.moveaxis(v, -1, 1) for v in (x, h, c)], [("l", 0)])
