"""Recurrent operators of TFLite files that are refused; what the others compute is in tflite_cases.py,
tflite_byte_cases.py and test_variables.py.
"""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.tflite import load
from tests.support.tflite_byte_cases import Quantised
from tests.support.tflite_byte_cases import lstm as lstm_of_bytes
from tests.support.tflite_cases import both_ways, constant, lstm, simple_cell, small_weights
from tests.support.tflite_models import Network, results_of, successive
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
SEQUENCE, TANH = "UNIDIRECTIONAL_SEQUENCE_LSTM", {"activation": 4}


def changed(numbers, tensor, kind=SEQUENCE, shape=(2, 5, 3), options=TANH):
    """An LSTM some of whose operands a function has replaced."""

    def build(net):
        y = lstm(net, RNG, kind, shape, 4, options)
        for i in numbers:
            net.operators[-1][1][i] = tensor(net)
        return y

    return build


def ones(*shape):
    return lambda net: net.constant(np.ones(shape, "f4"))


def quantised(numbers, tensor, **form):
    """An LSTM of bytes, with some operands replaced, or with its result in another format."""

    def build(net):
        y = lstm_of_bytes(net, SEQUENCE, (2, 5, 3))
        for i in numbers:
            net.operators[-1][1][i] = tensor(net)
        if form:
            other = net.tensor((), **form)
            net.operators[-1][2][:] = other
            return other
        return y

    return build


LSTMS = {
    "no forget gate": (changed((2, 6, 13), lambda net: -1), "operand 2 is missing"),
    "half an input gate": (changed((5,), lambda net: -1), "operand 5 is missing"),
    "a norm alone": (changed((21,), ones(4)), "operand 20 is missing"),
    "a projection of bytes": (
        changed((16,), lambda net: small_weights(net, RNG, (4, 4), 0, 1)),
        "floats with weights of bytes is not supported",
    ),
    "the basic kernel": (
        changed((), ones(), "LSTM", (2, 3), TANH | {"kernel": 1}), "kernel_type 1 is not supported",
    ),
    "rows without steps": (changed((0,), lambda net: net.input((2, 3))), "does not have 3 axes: samples, steps"),
    "an activation": (changed((), ones(), options={"activation": 5}), "the activation 5 is not supported"),
    "weights of bytes alone": (
        changed((2,), lambda net: small_weights(net, RNG, (4, 3), 0, 1)),
        "floats with weights of bytes is not supported",
    ),
}  # fmt: skip
BYTES = {
    "peephole weights": (quantised((9, 10, 11), ones(4)), "peephole weights of a quantised LSTM are not supported"),
    "a projection": (quantised((16,), ones(4, 4)), "projections of a quantised LSTM are not supported"),
    "layer norms": (quantised((20, 21, 22, 23), ones(4)), "layer norms of a quantised LSTM are not supported"),
    "no input gate": (quantised((1, 5, 12), lambda net: -1), "coupled input and forget gates is not supported"),
    "weights around a number": (
        quantised((2,), lambda net: net.constant(np.ones((4, 3), "int8"), scale=0.1, zero=3)),
        "must be constant int8 without zero points",
    ),
    "weights of another state": (
        quantised((2,), lambda net: net.constant(np.ones((5, 3), "int8"), scale=0.1)), "do not fit a state of 4",
    ),
    "a cell of bytes": (
        quantised((19,), lambda net: net.variable((2, 4), "int8", scale=2.0**-5)),
        "the cell of a quantised LSTM must be",
    ),
    "a cell of another scale": (
        quantised((19,), lambda net: net.variable((2, 4), "int16", scale=0.0007)), "and its scale a power of 2",
    ),
    "a coarse cell": (
        quantised((19,), lambda net: net.variable((2, 4), "int16", scale=2.0**-8)), "and its scale a power of 2",
    ),
    "a result of another scale": (
        quantised((), lambda net: -1, dtype="int8", scale=0.5), "results in the format of its state",
    ),
    "a state that is not a variable": (
        quantised((19,), lambda net: net.input((2, 4), "int16", scale=2.0**-11)), "is not a variable",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LSTMS)
def test_lstms_of_floats_that_are_not_supported_are_refused(name):
    build, match = LSTMS[name]
    net = Network()
    with pytest.raises(FormatError, match=match):
        load(net.bytes(build(net)))


def simple(numbers, tensor, kind="UNIDIRECTIONAL_SEQUENCE_RNN", shape=(2, 5, 3)):
    """An RNN some of whose operands a function has replaced."""

    def build(net):
        cells = simple_cell(net, RNG) if kind[0] == "U" else [*simple_cell(net, RNG), *simple_cell(net, RNG), *[-1] * 3]
        y = net.op(kind, [net.input(shape), *cells], **TANH)
        for i in numbers:
            net.operators[-1][1][i] = tensor(net)
        return y

    return build


def crossed(net):
    y = both_ways(net, RNG, (5, 2, 3), {}, ["float32"], merge=True)
    net.operators[-1][1][39] = net.input((5, 2, 3))
    return y


SIMPLE = {
    "weights of bytes": (
        simple((1,), lambda net: small_weights(net, RNG, (4, 3), 0, 1)), "RNN does not support quantised values",
    ),
    "rows without steps": (simple((), ones(), shape=(2, 3)), "does not have 3 axes"),
    "a state that is not a variable": (simple((4,), lambda net: net.input((2, 4))), "is not a variable"),
    "a second input of an RNN": (
        simple((9,), lambda net: net.input((2, 5, 3)), "BIDIRECTIONAL_SEQUENCE_RNN"), "a second input is not supported",
    ),
    "a second input of an LSTM": (crossed, "a second input is not supported"),
}  # fmt: skip


@pytest.mark.parametrize("name", SIMPLE)
def test_other_cells_that_are_not_supported_are_refused(name):
    build, match = SIMPLE[name]
    net = Network()
    with pytest.raises(FormatError, match=match):
        load(net.bytes(build(net)))


@pytest.mark.parametrize("kind", ["BIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_LSTM"])
@pytest.mark.parametrize("time_major", [False, True])
def test_merged_results_are_those_of_both_directions_side_by_side(kind, time_major):
    """LiteRT joins those of a batch in front wrongly, so this is not compared with it."""
    found = []
    for merge in (False, True):
        rng, net = np.random.default_rng(4), Network()
        results, options = ["float32"] * (2 - merge), {"merge": merge, "time_major": time_major}
        if kind.endswith("LSTM"):
            y = both_ways(net, rng, (2, 2, 3), {}, results, **options)
        else:
            cells = [*simple_cell(net, rng), *simple_cell(net, rng), *[-1] * 3]
            y = net.op(kind, [net.input((2, 2, 3)), *cells], *results, activation=4, **options)
        x = np.random.default_rng(5).standard_normal((2, 2, 3)).astype("f4")
        found.append(results_of(net, [y] if merge else y, x))
    np.testing.assert_array_equal(found[1][0], np.concatenate(found[0], 2))


@pytest.mark.parametrize("name", BYTES)
def test_quantised_lstms_that_are_not_supported_are_refused(name):
    build, match = BYTES[name]
    net = Quantised("int8", np.random.default_rng(1))
    with pytest.raises(FormatError, match=match):
        load(net.bytes(build(net)))


def svdf(net, rank=2, filters=6, memory=18, **weights):
    features = net.constant(np.ones((filters, 5), "f4")) if not weights else net.filters((filters, 5), 0, 1)
    slow = net.constant(np.ones((filters, 3), weights.get("dtype", "float32")), **weights.get("form", {}))
    if not weights:
        return net.op("SVDF", [net.input((2, 5)), features, slow, -1, net.variable((2, memory))], rank=rank)
    operands = [net.bytes_in((2, 5)), features, slow, net.bias(3)]
    return net.op("SVDF", [*operands, net.variable((2, memory), "int16", scale=0.01)], net.made(), rank=rank)


@pytest.mark.parametrize("options", [{"rank": 0}, {"rank": 4}, {"memory": 17}])
def test_filters_that_do_not_fit_the_state_are_refused(options):
    net = Network()
    with pytest.raises(FormatError, match=r"filters \[6, 3\] of rank . do not fit"):
        load(net.bytes(svdf(net, **options)))


def test_a_quantised_svdf_needs_filters_of_time_of_16_bits():
    net = Quantised("int8", np.random.default_rng(1))
    with pytest.raises(FormatError, match="int16 filters of time and an int16 state"):
        load(net.bytes(svdf(net, dtype="int8", form={"scale": 0.1})))


def test_weights_of_bytes_with_floats_are_refused():
    net = Network()
    features = small_weights(net, RNG, (6, 5), 0, 1)
    operands = [net.input((2, 5)), features, net.constant(np.ones((6, 3), "f4")), -1, net.variable((2, 18))]
    with pytest.raises(FormatError, match="SVDF of floats with weights of bytes is not supported"):
        load(net.bytes(net.op("SVDF", operands, rank=2)))


SVDF_FORMS = {
    "input": {"dtype": "int8", "scale": 0.05, "zero": 3}, "features": {"dtype": "int8", "scale": 0.01, "zero": 0},
    "time": {"dtype": "int16", "scale": 0.01, "zero": 0}, "state": {"dtype": "int16", "scale": 0.01, "zero": 0},
    "result": {"dtype": "int8", "scale": 0.1, "zero": -5},
}  # fmt: skip


def svdf_of(**changes):
    """An SVDF of bytes, some of whose operands have another form."""
    forms = {name: form | changes.get(name, {}) for name, form in SVDF_FORMS.items()}
    net, how = Network(), {name: {x: form[x] for x in ("scale", "zero")} for name, form in forms.items()}
    operands = [
        net.input((2, 5), forms["input"]["dtype"], **how["input"]),
        net.constant(np.ones((6, 5), forms["features"]["dtype"]), **how["features"]),
        net.constant(np.ones((6, 3), forms["time"]["dtype"]), **how["time"]),
        net.constant(np.ones(3, "int32"), scale=0.1),
        net.variable((2, 18), forms["state"]["dtype"], **how["state"]),
    ]
    return net.bytes(net.op("SVDF", operands, forms["result"], rank=2))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("input", {"dtype": "int16", "zero": 0}), ("result", {"dtype": "int16", "zero": 0}),
        ("features", {"dtype": "int16"}), ("features", {"dtype": "uint8"}), ("time", {"dtype": "int8"}),
        ("time", {"zero": 1}), ("state", {"dtype": "int8"}), ("state", {"zero": -1}),
    ],
    ids=str,
)  # fmt: skip
def test_each_operand_of_a_quantised_svdf_has_its_form(name, change):
    assert load(svdf_of()).outputs[0].shape == (2, 3)
    with pytest.raises(FormatError, match="a quantised SVDF must have int8 filters of features, int16 filters of time"):
        load(svdf_of(**{name: change}))


WORDS = {"dtype": "int16", "scale": 2.0**-9, "zero": 0}


def lstm_with(activation=4, result=None, state=None, x=None, weights="int8", computed=False, clip=0.0):
    """A quantised LSTM of one step, some of whose operands have another form."""
    net, rng = Network(), np.random.default_rng(1)
    how = {"dtype": "int8", "scale": 0.01, "zero": 3}
    x = x or {"dtype": "int8", "scale": 0.02, "zero": -5}

    def constants(*shape):
        low = 0 if weights == "uint8" else -127
        return [net.constant(rng.integers(low, low + 255, shape).astype(weights), scale=0.01) for _ in range(4)]

    inputs = constants(4, 3)
    if computed:
        inputs[1] = net.input((4, 3), weights, scale=0.01)
    kept = net.variable((2, 4), **(state or how)), net.variable((2, 4), "int16", scale=2.0**-11)
    biases = [net.constant(rng.integers(-99, 99, 4).astype("int32"), scale=0.0002) for _ in range(4)]
    operands = [*inputs, *constants(4, 4), *[-1] * 3, *biases, -1, -1, *kept, *[-1] * 4]
    forms = {name: x[name] for name in ("scale", "zero")}
    y = net.op("LSTM", [net.input((2, 3), x["dtype"], **forms), *operands], result or how, activation=activation,
               clip=clip)  # fmt: skip
    between = [net.tensor((), "int16", scale=2.0**-12) for _ in range(4)]
    net.operators[-1][8] = np.array([*between, net.tensor((), "int8", scale=0.01, zero=3)], "int32")
    return net.bytes(y)


@pytest.mark.parametrize(("change", "match"), [
    *(({"activation": n}, "results in the format of its state, and the activation tanh") for n in (0, 1, 3, 5)),
    ({"x": WORDS}, "a quantised LSTM must have bytes"), ({"result": WORDS, "state": WORDS}, "must have bytes"),
    ({"state": {"dtype": "int8", "scale": 0.01, "zero": 4}}, "results in the format of its state"),
    ({"state": {"dtype": "int8", "scale": 0.02, "zero": 3}}, "results in the format of its state"),
    ({"weights": "uint8"}, "must be constant int8 without zero points"),
    ({"computed": True}, "must be constant int8 without zero points"),
], ids=str)  # fmt: skip
def test_each_operand_of_a_quantised_lstm_has_its_form(change, match):
    assert load(lstm_with()).outputs[0].shape == (2, 4)
    with pytest.raises(FormatError, match=match):
        load(lstm_with(**change))


@pytest.mark.parametrize("clip", [0.0, 0.05, 1.0, 1e9])
def test_cells_of_a_quantised_lstm_are_clipped_as_the_reference_kernels_do(clip):
    model = lstm_with(clip=clip)
    x = np.random.default_rng(3).integers(-128, 128, (2, 3)).astype("int8")
    rows = [(x,), (x[::-1].copy(),), (x,)]
    function = load(model).compile(engine="reference")
    for row, want in zip(rows, successive(model, rows), strict=True):
        np.testing.assert_array_equal(function(*row)[0], want[0], strict=True)


def svdf_shapes(x=(2, 5), slow=(6, 3), memory=(2, 18), biased=True):
    """An SVDF of floats of two filters for each of three units."""
    net = Network()
    operands = [net.input(x), constant(net, RNG, 6, x[-1]), constant(net, RNG, *slow)]
    operands.append(constant(net, RNG, 3) if biased else -1)
    return net.bytes(net.op("SVDF", [*operands, net.variable(memory)], rank=2, activation=1))


@pytest.mark.parametrize("change", [
    {"x": (5,)}, {"x": (1, 2, 5)}, {"slow": (18,)}, {"slow": (6, 3, 1)}, {"memory": (2, 12)}, {"memory": (1, 18)},
])  # fmt: skip
def test_samples_and_filters_of_time_have_two_axes_and_fit_the_state(change):
    assert load(svdf_shapes()).outputs[0].shape == (2, 3)
    with pytest.raises(FormatError, match="of rank 2 do not fit"):
        load(svdf_shapes(**change))


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_an_svdf_of_floats_is_its_formula_with_or_without_a_bias(biased, rank):
    rng, net = np.random.default_rng(7), Network()
    wide, slow, bias = (rng.uniform(-1, 1, shape).astype("f4") for shape in ((6, 5), (6, 3), (6 // rank,)))
    operands = [net.input((2, 5)), net.constant(wide), net.constant(slow), net.constant(bias) if biased else -1]
    model = net.bytes(net.op("SVDF", [*operands, net.variable((2, 18))], rank=rank, activation=1))
    function, state = load(model).compile(engine="reference"), np.zeros((2, 6, 3))
    for _ in range(4):
        x = rng.uniform(-1, 1, (2, 5)).astype("f4")
        state = np.concatenate([state[:, :, 1:], (x @ wide.T)[:, :, None]], 2)
        want = (state * slow).sum(2).reshape(2, 6 // rank, rank).sum(2) + (bias if biased else 0)
        assert_near(function(x)[0], np.maximum(want, 0), "float32 sums near zero")


@pytest.mark.parametrize("which", [1, 2])
def test_neither_filters_of_features_nor_of_time_are_bytes_alone(which):
    net = Network()
    operands = [net.input((2, 5)), constant(net, RNG, 6, 5), constant(net, RNG, 6, 3), -1, net.variable((2, 18))]
    operands[which] = net.constant(np.ones(((6, 5), (6, 3))[which - 1], "int8"), scale=0.1)
    with pytest.raises(FormatError, match="SVDF of floats with weights of bytes is not supported"):
        load(net.bytes(net.op("SVDF", operands, rank=2)))


@pytest.mark.parametrize("clip", [0.0, 0.25, 2.0])
@pytest.mark.parametrize("major", [False, True])
def test_an_lstm_of_floats_clips_its_cells_and_has_samples_or_steps_first(clip, major):
    """Step by step in NumPy; the state stays from run to run."""
    rng, net, count = np.random.default_rng(9), Network(), 4
    w, u, b = (
        [rng.uniform(-2, 2, shape).astype("f4") for _ in range(4)] for shape in ((count, 3), (count, 4), (count,))
    )
    kept = [net.variable((2, count)) for _ in range(2)]
    parts = [*map(net.constant, w), *map(net.constant, u), *[-1] * 3, *map(net.constant, b), -1, -1, *kept, *[-1] * 4]
    shape = (5, 2, 3) if major else (2, 5, 3)
    model = net.bytes(net.op(SEQUENCE, [net.input(shape), *parts], activation=4, clip=clip, time_major=major))
    function = load(model).compile(engine="reference")
    h = c = np.zeros((2, count))
    for _ in range(2):
        x = rng.uniform(-2, 2, shape).astype("f4")
        rows = []
        for t in range(5):
            step = x[t] if major else x[:, t]
            i, f, g, o = (step @ a.T + h @ r.T + s for a, r, s in zip(w, u, b))
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            c = np.clip(c, -clip, clip) if clip else c
            h = sigmoid(o) * np.tanh(c)
            rows.append(h)
        assert_near(function(x)[0], np.stack(rows, 0 if major else 1), "float32 sums near zero")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))
