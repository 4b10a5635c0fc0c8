"""Products of TFLite beside NumPy: rows, biases, activations, weights of bytes, one scale for each row of weights."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.tflite import load
from tests.support.tflite_models import Network
from tests.support.tolerance import assert_near

rng = np.random.default_rng(0)
X = rng.standard_normal((2, 3, 4)).astype("f4")
W, B = rng.standard_normal((5, 4)).astype("f4"), rng.standard_normal(5).astype("f4")


def run(net, result, *values):
    model = load(net.bytes(result))
    return evaluate(list(model.outputs), dict(zip(model.inputs, values, strict=True)))[0]


def connected(x, *weights, **options):
    net = Network()
    operands = [net.input(x.shape), *(w if isinstance(w, int) else net.constant(w) for w in weights)]
    return run(net, net.op("FULLY_CONNECTED", operands, **options), x)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_rows_times_weights_and_a_bias(keepdims, biased):
    got = connected(X, W, *([B] if biased else []), keepdims=keepdims)
    want = X @ W.T + (B if biased else 0)
    assert_near(got, want if keepdims else want.reshape(6, 5), "float32 products")


@pytest.mark.parametrize(("activation", "low", "high"), [(0, -np.inf, np.inf), (1, 0, np.inf), (2, -1, 1), (3, 0, 6)])
def test_an_activation_follows_the_bias(activation, low, high):
    got = connected(X[0] * 3, W, B, activation=activation)
    assert_near(got, np.clip(X[0] * 3 @ W.T + B, low, high), "float32 products")


def test_rows_are_as_long_as_those_of_the_weights():
    wide = rng.standard_normal((5, 12)).astype("f4")
    assert_near(connected(X, wide), X.reshape(2, 12) @ wide.T, "float32 products")
    for x, options in ((X[:, :, :3], {}), (X, {"keepdims": True})):
        weights = W if not options else wide
        with pytest.raises(FormatError, match="in FULLY_CONNECTED 0: .* cannot be cut into rows of"):
            connected(x, weights, **options)
    with pytest.raises(FormatError, match=r"weights_format 1 \(shuffled\) is not supported"):
        connected(X, W, weights_format=1)


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("columns", [1, 5])
def test_floats_are_multiplied_by_weights_of_bytes(asymmetric, columns):
    weights = rng.integers(-127, 128, (5, 4)).astype("i1")
    scale = rng.uniform(0.01, 0.02, columns).astype("f4")
    net = Network()
    operands = [net.input((6, 4)), net.constant(weights, scale=scale), net.constant(B)]
    got = run(net, net.op("FULLY_CONNECTED", operands, asymmetric=asymmetric), X.reshape(6, 4))
    wide = weights * scale.reshape(-1, 1)
    want, unit = X.reshape(6, 4) @ wide.T + B, np.abs(X).max() / 127
    assert_near(got, want, "numbers of a unit", 2 * unit * np.abs(wide).sum(1))
    assert got.std() > 0.1


@pytest.mark.parametrize("columns", [1, 5])
@pytest.mark.parametrize("activation", [0, 1])
def test_bytes_are_added_up_exactly_and_rounded_once(columns, activation):
    x = rng.integers(-128, 128, (6, 4)).astype("i1")
    weights, bias = rng.integers(-127, 128, (5, 4)).astype("i1"), rng.integers(-500, 500, 5).astype("i4")
    scale = rng.uniform(0.01, 0.02, columns).astype("f4")
    net = Network()
    operands = [net.input((6, 4), "int8", scale=0.5, zero=-3), net.constant(weights, scale=scale)]
    operands += [net.constant(bias, scale=0.5 * scale)]
    result = net.op("FULLY_CONNECTED", operands, {"dtype": "int8", "scale": 2.0, "zero": 10}, activation=activation)
    exact = ((x.astype(int) + 3) @ weights.T.astype(int) + bias) * (0.5 * scale.astype(float)) / 2.0
    want = np.clip(np.rint(exact) + 10, 10 if activation else -128, 127)
    got = run(net, result, x)
    assert got.dtype == np.int8 and len(set(want.ravel())) > 8
    assert np.abs(got - want).max() <= (np.abs(exact - np.floor(exact) - 0.5) < 1e-4).any()


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_batches_of_products(turned):
    a = rng.standard_normal((2, 4, 3) if turned[0] else (2, 3, 4)).astype("f4")
    b = rng.standard_normal((2, 5, 4) if turned[1] else (2, 4, 5)).astype("f4")
    net = Network()
    operands = [net.input(a.shape), net.input(b.shape)]
    got = run(net, net.op("BATCH_MATMUL", operands, adjoint_x=turned[0], adjoint_y=turned[1]), a, b)
    want = (a.swapaxes(1, 2) if turned[0] else a) @ (b.swapaxes(1, 2) if turned[1] else b)
    assert_near(got, want, "float32 products")


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("activation", [0, 1, 2, 3])
def test_products_of_floats_with_bytes_may_lack_a_bias_and_have_an_activation(asymmetric, biased, activation):
    weights = rng.integers(-127, 128, (5, 4)).astype("i1")
    net, x = Network(), (X * 3).reshape(6, 4)
    operands = [net.input((6, 4)), net.constant(weights, scale=0.02), *([net.constant(B)] if biased else [])]
    model = net.bytes(net.op("FULLY_CONNECTED", operands, activation=activation, asymmetric=asymmetric))
    found = load(model)
    got = evaluate(list(found.outputs), {found.inputs[0]: x})[0]
    low, high = {0: (-np.inf, np.inf), 1: (0, np.inf), 2: (-1, 1), 3: (0, 6)}[activation]
    wide = weights * np.float32(0.02)
    want = np.clip(x @ wide.T + (B if biased else 0), low, high)
    assert_near(got, want, "numbers of a unit", 2 * np.abs(x).max() / 127 * np.abs(wide).sum(1))
    assert got.min() >= low and got.max() <= high and got.std() > 0.1


@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 4), (1, 2, 3, 4), (4,)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes_before_the_rows_stay_where_told(shape, keepdims):
    """Of floats, of floats with weights of bytes, and of bytes."""
    x = rng.integers(-3, 4, shape).astype("f4")
    weights, want = rng.integers(-3, 4, (5, 4)), (*shape[:-1], 5)
    for is_quantised in (False, True):
        net = Network()
        how = {"scale": 1.0, "zero": 0} if is_quantised else {}
        operands = [
            net.input(shape, "int8" if how else "float32", **how),
            net.constant(weights.astype("i1"), scale=1.0),
        ]
        if not how:
            operands[1] = net.constant(weights.astype("f4"))
        result = {"dtype": "int8", **how} if how else "float32"
        found = run(
            net, net.op("FULLY_CONNECTED", operands, result, keepdims=keepdims), x.astype("i1" if how else "f4")
        )
        exact = np.clip(x @ weights.T, -128, 127)
        np.testing.assert_array_equal(found, exact if keepdims else exact.reshape(-1, 5))
        assert found.shape == (want if keepdims else (x.size // 4, 5))
