"""LSTM, GRU and RNN beside onnxruntime: directions, layouts, lengths of samples, activations, peepholes, clips."""

import numpy as np
import pytest
from onnx import helper

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.recurrent import GATES, function_named
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Const
from cgraph.ops.physical.integer import IntegerMatmul
from cgraph.passes.integers.compute_integers import compute_integers
from tests.support.onnx_models import FLOAT, assert_equal_results, model_of, one, results_of
from tests.support.tolerance import assert_near

pytest.importorskip("onnxruntime")
LENGTH, BATCH, INPUTS, HIDDEN = 4, 3, 2, 5
RESULTS = {"LSTM": 3, "GRU": 2, "RNN": 2}
rng = np.random.default_rng(0)


def numbers(*shape):
    return rng.uniform(-1, 1, shape).astype("f4")


def operands(kind, ways=1, *, bias=True, lengths=None, state=False, peep=False, layout=0):
    rows = GATES[kind] * HIDDEN
    first = (BATCH, ways) if layout else (ways, BATCH)
    x = numbers(BATCH, LENGTH, INPUTS) if layout else numbers(LENGTH, BATCH, INPUTS)
    given = [x, numbers(ways, rows, INPUTS), numbers(ways, rows, HIDDEN)]
    given += [numbers(ways, 2 * rows) if bias else None, None if lengths is None else np.array(lengths, "i4")]
    given += [numbers(*first, HIDDEN) if state else None]
    if kind == "LSTM":
        given += [numbers(*first, HIDDEN) if state else None, numbers(ways, 3 * HIDDEN) if peep else None]
    while given[-1] is None:
        given.pop()
    return given


def check(kind, given, **options):
    options = {"results": RESULTS[kind], "hidden_size": HIDDEN, "near": "float32 small networks", **options}
    assert_equal_results(kind, given, **options)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [None, [4, 1, 2], [2, 4, 3]])
def test_directions_and_lengths_of_samples(kind, direction, lengths):
    ways = 2 if direction == "bidirectional" else 1
    check(kind, operands(kind, ways, lengths=lengths, state=True), direction=direction)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("state", [False, True])
def test_what_is_absent_is_zero(kind, bias, state):
    check(kind, operands(kind, bias=bias, state=state))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_samples_may_come_first(kind, direction):
    """What onnxruntime computes of the same numbers with time first, turned."""
    given = operands(kind, 2 if direction == "bidirectional" else 1, state=True)
    turned = [v if v is None or i in (1, 2, 3) else v.swapaxes(0, 1).copy() for i, v in enumerate(given)]
    options = {"results": RESULTS[kind], "hidden_size": HIDDEN, "direction": direction}
    _, want = results_of(kind, given, **options)
    got, _ = results_of(kind, turned, by="nobody", layout=1, **options)
    for i, (x, y) in enumerate(zip(got, want, strict=True)):
        y = y.transpose(2, 0, 1, 3) if i == 0 else y.swapaxes(0, 1)
        assert x.shape == y.shape
        assert_near(x, y, "float32 small networks")


@pytest.mark.parametrize("reset", [0, 1])
@pytest.mark.parametrize("clip", [None, 0.25])
def test_a_gru_resets_before_or_behind_its_product(reset, clip):
    more = {} if clip is None else {"clip": clip}
    check("GRU", operands("GRU", 1, state=True), linear_before_reset=reset, **more)


@pytest.mark.parametrize("forget", [0, 1])
@pytest.mark.parametrize("clip", [None, 0.25])
@pytest.mark.parametrize("peep", [False, True])
def test_an_lstm_with_peepholes_and_tied_gates(forget, clip, peep):
    more = {} if clip is None else {"clip": clip}
    check("LSTM", operands("LSTM", 2, state=True, peep=peep), direction="bidirectional", input_forget=forget, **more)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("RNN", ["Relu", "Sigmoid"]),
        ("GRU", ["HardSigmoid", "Softsign", "Sigmoid", "Tanh"]),
        ("LSTM", ["Sigmoid", "Relu", "Tanh", "HardSigmoid", "Tanh", "Softsign"]),
    ],
)
def test_each_direction_has_activations_of_its_own(kind, names):
    check(kind, operands(kind, 2), direction="bidirectional", activations=names)


def test_coefficients_belong_to_their_activation():
    given = operands("RNN", 2)
    check("RNN", given, direction="bidirectional", activations=["LeakyRelu", "LeakyRelu"], activation_alpha=[0.5, 0.25])


X = np.array([-2, -0.5, 0, 0.5, 2])
FUNCTIONS = {
    ("Affine", 2.0, 3.0): 2 * X + 3,
    ("Affine", None, None): X,
    ("ScaledTanh", 2.0, 0.5): 2 * np.tanh(0.5 * X),
    ("ScaledTanh", None, None): np.tanh(X),
    ("LeakyRelu", 0.5, None): np.where(X < 0, 0.5 * X, X),
    ("ThresholdedRelu", 1.0, None): np.where(X > 1, X, 0),
    ("HardSigmoid", 0.5, 0.25): np.clip(0.5 * X + 0.25, 0, 1),
    ("Elu", 2.0, None): np.where(X < 0, 2 * np.expm1(X), X),
    ("TANH", None, None): np.tanh(X),
    ("softplus", None, None): np.log1p(np.exp(X)),
    ("Softsign", None, None): X / (1 + np.abs(X)),
}


@pytest.mark.parametrize(("name", "alpha", "beta"), FUNCTIONS)
def test_an_activation_is_its_formula_whatever_its_case(name, alpha, beta):
    got = evaluate([function_named(name, alpha, beta)(Const(X))], {})[0]
    assert_near(got, FUNCTIONS[name, alpha, beta], "float64 formulas near zero")


def test_what_is_unknown_or_does_not_fit_is_refused():
    with pytest.raises(FormatError, match="activation 'Sine' is not supported"):
        function_named("Sine", None, None)
    x = [("x", FLOAT, (LENGTH, BATCH, INPUTS))]
    weights = {"w": numbers(1, 15, INPUTS), "r": numbers(1, 15, HIDDEN)}
    with pytest.raises(
        FormatError, match="direction 'sideways' is not supported. Use forward, reverse or bidirectional"
    ):
        load(one("GRU", x, weights, hidden_size=HIDDEN, direction="sideways"))
    with pytest.raises(FormatError, match="weights of 15 rows do not fit 4 gates of 5"):
        load(one("LSTM", x, weights, hidden_size=HIDDEN))
    with pytest.raises(FormatError, match="would take .* nodes"):
        load(one("GRU", [("x", FLOAT, (10_000, 1, INPUTS))], weights, hidden_size=HIDDEN))


@pytest.mark.parametrize(
    ("kind", "names", "options"),
    [
        ("GRU", ["Sigmoid", "LeakyRelu"], {"activation_alpha": [0.5]}),
        ("LSTM", ["Sigmoid", "HardSigmoid", "Elu"], {"activation_alpha": [0.3, 0.7], "activation_beta": [0.4]}),
        ("LSTM", ["HardSigmoid", "Tanh", "Affine"], {"activation_alpha": [0.3, 0.7], "activation_beta": [0.4, 0.2]}),
        ("GRU", ["HardSigmoid", "Tanh"], {"activation_beta": [0.4]}),
        ("RNN", ["LeakyRelu"], {}),
    ],
)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_coefficients_are_taken_in_order_by_the_activations_that_have_some(kind, names, options, direction):
    ways = 2 if direction == "bidirectional" else 1
    options = {key: values * ways for key, values in options.items()}
    check(kind, operands(kind, ways, state=True), direction=direction, activations=names * ways, **options)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_samples_that_come_first_have_different_lengths(kind, direction):
    given = operands(kind, 2 if direction == "bidirectional" else 1, lengths=[4, 1, 2], state=True)
    turned = [v if v is None or i in (1, 2, 3, 4) else v.swapaxes(0, 1).copy() for i, v in enumerate(given)]
    options = {"results": RESULTS[kind], "hidden_size": HIDDEN, "direction": direction}
    _, want = results_of(kind, given, **options)
    got, _ = results_of(kind, turned, by="nobody", layout=1, **options)
    assert_near(got[0], want[0].transpose(2, 0, 1, 3), "float32 small networks")
    for x, y in zip(got[1:], want[1:], strict=True):
        assert_near(x, y.swapaxes(0, 1), "float32 small networks")


@pytest.mark.parametrize("kind", GATES)
def test_no_steps_leave_the_state(kind):
    given = operands(kind, state=True)
    given[0] = given[0][:0]
    got, _ = results_of(kind, given, by="nobody", results=RESULTS[kind], hidden_size=HIDDEN)
    assert got[0].shape == (0, 1, BATCH, HIDDEN)
    for x, start in zip(got[1:], given[5:], strict=True):
        np.testing.assert_array_equal(x, start)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_length_beyond_the_sequence_is_that_of_the_sequence(kind, direction):
    """onnxruntime refuses it."""
    x, *weights = operands(kind, lengths=[LENGTH + 3, 2, LENGTH])
    inside = [*weights[:3], np.array([LENGTH, 2, LENGTH], "i4")]
    options = {"results": RESULTS[kind], "hidden_size": HIDDEN, "direction": direction, "by": "nobody"}
    got, want = (results_of(kind, [x, *some], **options)[0] for some in (weights, inside))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_lengths_of_samples_are_not_compared_in_each_step(kind, direction):
    counts = []
    for steps in (4, 9):
        x, *weights = operands(kind, lengths=[2, 1, 3])
        constants = dict(zip("wrbl", weights))
        raw = one(kind, [("x", FLOAT, (steps, *x.shape[1:]))], constants, hidden_size=HIDDEN, direction=direction)
        counts.append(sum(v.op.name in ("where", "greater", "less") for v in post_order(load(raw).outputs)))
    assert counts[0] == counts[1] > 0


def byte_operands(ways, kind="int8", *, columns=False, bias=True, lengths=None, state=True, peep=False):
    """Operands of onnxruntime's DynamicQuantizeLSTM: weights of bytes with their scales and zero points."""
    low, high = np.iinfo(kind).min + 1, np.iinfo(kind).max + 1
    given = operands("LSTM", ways, bias=bias, lengths=lengths, state=state, peep=peep)
    given += [None] * (8 - len(given))
    for i, inputs in ((1, INPUTS), (2, HIDDEN)):
        given[i] = rng.integers(low, high, (ways, inputs, 4 * HIDDEN)).astype(kind)
    shape = (ways, 4 * HIDDEN) if columns else (ways,)
    for _ in range(2):
        given.append(rng.uniform(0.002, 0.01, shape).astype("f4"))
        given.append(np.full(shape, 0, kind) if kind == "int8" else rng.integers(100, 150, shape).astype(kind))
    return given


def by_one_thread(raw, x):
    """What onnxruntime computes; with more threads it rounds the states of samples apart."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(raw, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})


def byte_lstm(given, direction="forward"):
    """A file of one such layer; all operands but the first are constants."""
    names = [None if v is None else f"w{i}" for i, v in enumerate(given)]
    names[0] = "x"
    node = helper.make_node(
        "DynamicQuantizeLSTM", [name or "" for name in names], ["y", "h", "c"], domain="com.microsoft",
        hidden_size=HIDDEN, direction=direction,
    )  # fmt: skip
    constants = {name: v for name, v in zip(names[1:], given[1:]) if v is not None}
    return model_of([node], [("x", FLOAT, given[0].shape)], constants, ["y", "h", "c"])


LAYERS_OF_BYTES = {
    "plain": {},
    "unsigned, with zero points": {"kind": "uint8"},
    "a scale for each column": {"columns": True},
    "no bias and no state": {"bias": False, "state": False},
    "peepholes": {"peep": True},
    "lengths of whole samples": {"lengths": [LENGTH] * BATCH},
}


@pytest.mark.parametrize("name", LAYERS_OF_BYTES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_weights_of_bytes_are_those_of_onnxruntime(name, direction):
    given = byte_operands(2 if direction == "bidirectional" else 1, **LAYERS_OF_BYTES[name])
    raw = byte_lstm(given, direction)
    want = by_one_thread(raw, given[0])
    for engine in ("reference", "cpu"):
        for x, y in zip(load(raw).compile(engine=engine)(given[0]), want, strict=True):
            assert x.shape == y.shape and x.dtype == y.dtype
            assert_near(x, y, "float32 small networks")


def test_a_sample_of_bytes_ends_with_its_length():
    """Its state rounds those of the others, as it does not in onnxruntime."""
    given = byte_operands(1, lengths=[4, 1, 2])
    y, h, c = load(byte_lstm(given)).compile(engine="reference")(given[0])
    assert not y[1:, :, 1].any() and not y[2:, :, 2].any() and y[1, :, 2].any()
    np.testing.assert_array_equal(h[0], [y[3, 0, 0], y[0, 0, 1], y[1, 0, 2]])
    assert_near(y, by_one_thread(byte_lstm(given), given[0])[0], "int8 shares")


def test_steps_of_bytes_are_products_of_bytes():
    raw = byte_lstm(byte_operands(1, "uint8"))
    nodes = post_order(compute_integers(load(raw).outputs))
    assert sum(isinstance(x.op, IntegerMatmul) for x in nodes) == 1 + LENGTH


def test_byte_weights_of_another_size_are_refused():
    given = byte_operands(1)
    given[1] = given[1][..., 1:]
    with pytest.raises(FormatError, match=r"weights of 19 rows do not fit 4 gates of 5"):
        load(byte_lstm(given))
