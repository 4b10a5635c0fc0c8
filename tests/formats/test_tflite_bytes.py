"""TFLite operators on quantised values: the bits of the reference kernels, by the meaning of ops and by kernels."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.tflite import load
from cgraph.formats.tflite.fixed import parts_of
from cgraph.formats.tflite.source import TfliteSource
from cgraph.ir.traverse import post_order
from tests.support.data import shared
from tests.support.hostile import refused
from tests.support.tflite_byte_cases import CASES, Quantised, model_of, values_of
from tests.support.tflite_models import reference

SEEDS = range(1, 6)  # of scales, zero points, weights and values


@pytest.mark.parametrize("name", CASES)
def test_operators_have_the_bits_of_the_reference_kernels(name):
    for seed in SEEDS:
        net, outputs, values = model_of(name, seed)
        model = net.bytes(*outputs)
        wanted, found = reference(model, *values), load(model)
        for x, y in zip(evaluate(list(found.outputs), dict(zip(found.inputs, values))), wanted, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            np.testing.assert_array_equal(x, y)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_kernels_have_them_too(name):
    net, outputs, values = model_of(name, seed=9)
    model = net.bytes(*outputs)
    for x, y in zip(load(model).compile()(*values), reference(model, *values), strict=True):
        np.testing.assert_array_equal(x, y)


def network(rng):
    """Convolutions of each kind, a sum, a pool, a mean, a product: one byte value after another."""
    net = Quantised("int8", rng)
    steps = {"stride_w": 1, "stride_h": 1}
    x = net.bytes_in((1, 20, 18, 3))
    a = net.op("CONV_2D", [x, net.filters((24, 3, 3, 3), 0, 24), net.bias(24)], net.made(3.0), activation=1, **steps)
    more = net.filters((1, 3, 3, 24), 3, 24), net.bias(24)
    b = net.op("DEPTHWISE_CONV_2D", [a, *more], net.made(3.0), multiplier=1, activation=3, **steps)
    c = net.op("ADD", [b, a], net.made(4.0), activation=1)
    how = net.scaled(4.0)
    d = net.op("CONV_2D", [c, net.filters((40, 1, 1, 24), 0, 40), net.bias(40)], net.made(**how), **steps)
    e = net.op("MAX_POOL_2D", [d], net.made(**how), window_w=2, window_h=2, stride_w=2, stride_h=2)
    f = net.op("AVERAGE_POOL_2D", [e], net.made(**how), window_w=3, window_h=3, stride_w=2, stride_h=2)
    g = net.op("MEAN", [net.op("HARD_SWISH", [f], net.made(4.0)), net.whole(1, 2)], net.made(2.0))
    h = net.op("FULLY_CONNECTED", [g, net.filters((10, 40), 0, 1), net.bias(10)], net.made(9.0))
    return net.bytes(net.op("SOFTMAX", [h], net.made(scale=1 / 256, zero=-128), beta=1.0), h, d, c)


def test_a_network_runs_on_bytes_and_has_the_same_bits():
    rng = np.random.default_rng(4)
    model = network(rng)
    found = load(model)
    function = found.compile()
    kinds = [x.op.name for x in post_order(list(found.outputs))]
    assert kinds.count("integer_conv") == 4 and kinds.count("integer_matmul") == 1 and "conv2d" not in kinds
    for _ in range(5):
        value = rng.integers(-128, 128, (1, 20, 18, 3)).astype("int8")
        for x, y in zip(function(value), reference(model, value), strict=True):
            np.testing.assert_array_equal(x, y)


def test_inputs_and_outputs_may_be_floats():
    rng = np.random.default_rng(5)
    model = network(rng)
    plain, floats = load(model), load(model, floats=True)
    (x,), (tensor,) = plain.inputs, [TfliteSource(memoryview(model), "model").tensor(0).quantised]
    value = rng.integers(-128, 128, x.shape).astype("int8")
    scores = plain.compile()(value)[0]
    given = (value.astype("float32") - np.float32(tensor.zeros[0])) * tensor.scale
    np.testing.assert_array_equal(floats.compile()(given)[0], (scores.astype("float32") + 128) / 256)


REFUSED = {
    "filters around another number": lambda net: net.op(
        "FULLY_CONNECTED", [net.bytes_in((4, 3)), net.constant(np.ones((2, 3), "int8"), scale=0.1, zero=3)], net.made()
    ),
    "floats with filters of uint8": lambda net: net.op(
        "FULLY_CONNECTED", [net.input((4, 3)), net.constant(np.ones((2, 3), "uint8"), scale=0.1, zero=128)]
    ),
    "a move to another scale": lambda net: net.op("RESHAPE", [net.bytes_in((2, 3)), net.whole(3, 2)], net.made()),
    "an operator without such arithmetic": lambda net: net.op("SIN", [net.bytes_in((2, 3))], net.made()),
    "a result much finer than its operand": lambda net: net.op(
        "HARD_SWISH", [net.bytes_in((2, 3), scale=1.0, zero=0)], net.made(scale=1 / 192, zero=0)
    ),
    "16 bits": lambda net: net.op("TANH", [net.input((2, 3), "int16", scale=0.1)], {"dtype": "int16", "scale": 0.1}),
    "sums of 16 bits whose scales are powers of 2": lambda net: net.op(
        "ADD", [net.input((2, 3), "int16", scale=0.5) for _ in range(2)], {"dtype": "int16", "scale": 0.25}
    ),
    "results of 16 bits of bytes": lambda net: net.op(
        "CONV_2D", [net.bytes_in((1, 2, 2, 3)), net.filters((4, 1, 1, 3), 0, 4), net.bias(4)],
        {"dtype": "int16", "scale": 0.1}, stride_w=1, stride_h=1,
    ),
    "16 bits around another number": lambda net: net.op(
        "CONV_2D", [net.input((1, 2, 2, 3), "int16", scale=0.1, zero=5), net.filters((4, 1, 1, 3), 0, 4), net.bias(4)],
        {"dtype": "int16", "scale": 0.1}, stride_w=1, stride_h=1,
    ),
    "a scale of 16 bits that is too large": lambda net: net.op(
        "CONV_2D", [net.input((1, 2, 2, 3), "int16", scale=1e9), net.filters((4, 1, 1, 3), 0, 4), net.bias(4)],
        {"dtype": "int16", "scale": 0.1}, stride_w=1, stride_h=1,
    ),
    "filters of 16 bits": lambda net: net.op(
        "FULLY_CONNECTED", [net.bytes_in((4, 3)), net.constant(np.ones((2, 3), "int16"), scale=0.1)], net.made()
    ),
    "a bias of 64 bits": lambda net: net.op(
        "FULLY_CONNECTED",
        [net.bytes_in((4, 3)), net.filters((2, 3), 0, 1), net.constant(np.ones(2, "int64"), scale=0.1)], net.made(),
    ),
    "a softmax of 16 bits": lambda net: net.op(
        "SOFTMAX", [net.input((2, 3), "int16", scale=0.1)], {"dtype": "int16", "scale": 2.0**-15}, beta=1.0
    ),
    "a softmax to 16 bits around 0": lambda net: net.op(
        "SOFTMAX", [net.bytes_in((2, 3))], {"dtype": "int16", "scale": 2.0**-15}, beta=1.0
    ),
    "a softmax to 16 bits of nearly equal shares": lambda net: net.op(
        "SOFTMAX", [net.bytes_in((2, 3), scale=1e-9, zero=0)],
        {"dtype": "int16", "scale": 2.0**-16, "zero": -(2**15)}, beta=1.0,
    ),
    "a scale of 0": lambda net: net.op("RELU", [net.bytes_in((2, 3), scale=0.0)], net.made()),
    "a zero point outside": lambda net: net.op("RELU", [net.bytes_in((2, 3), scale=0.1, zero=300)], net.made()),
    "scales for another axis": lambda net: net.op(
        "RELU", [net.bytes_in((2, 3), scale=[0.1, 0.2], zero=(0, 1))], net.made()
    ),
    "images with a scale for each channel": lambda net: net.op(
        "RELU", [net.bytes_in((2, 3), scale=[0.1, 0.2, 0.3], zero=(0, 1))], net.made()
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_has_no_arithmetic_here_is_refused(kind):
    net = Quantised("int8", np.random.default_rng(6))
    refused(load, net.bytes(REFUSED[kind](net)))


@pytest.mark.parametrize("count", [1, 3, 5, 8])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_a_bias_has_one_number_for_each_filter(kind, dtype, count):
    net = Quantised("int8", np.random.default_rng(6))
    x = net.bytes_in((1, 4) if kind == "FULLY_CONNECTED" else (1, 3, 3, 4))
    shape, axis = {"CONV_2D": ((4, 1, 1, 4), 0), "DEPTHWISE_CONV_2D": ((1, 1, 1, 4), 3)}.get(kind, ((4, 4), 0))
    bias = net.constant(np.ones(count, dtype), scale=0.0001)
    options = {} if kind == "FULLY_CONNECTED" else {"stride_w": 1, "stride_h": 1}
    y = net.op(kind, [x, net.filters(shape, axis, 4), bias], net.made(), **options)
    with pytest.raises(FormatError, match=f"a bias of {count} numbers of {dtype} for 4 filters"):
        load(net.bytes(y))


def test_a_scale_that_rounds_to_a_whole_power_keeps_31_bits():
    assert parts_of([1 - 2.0**-33, 0.5, 0.75, 3.0]).tolist() == [[1 << 30, 1 << 30, 3 << 29, 3 << 29], [1, 0, 0, 2]]
    assert parts_of([2.0**-40, 2.0**40]).tolist() == [[0, 2**31 - 1], [0, 30]]


def test_resnet_8_has_no_difference():
    """The quantised network of MLPerf Tiny, its scores and the values in front of them."""
    path = shared("mlperf_tiny/pretrainedResnet_quant.tflite")
    model = load(path)
    function, rng = model.compile(), np.random.default_rng(0)
    for _ in range(10):
        value = rng.integers(-128, 128, (1, 32, 32, 3)).astype("int8")
        np.testing.assert_array_equal(function(value)[0], reference(path.read_bytes(), value)[0])


def swish_of(scale, unit):
    """A hard swish whose result has a unit of 128 in parts of its operand's scale."""
    return lambda net: net.op("HARD_SWISH", [net.bytes_in((16, 32), scale=scale, zero=5)], net.made(
        scale=float(np.float32(scale) / np.float32(128) * np.float32(unit)), zero=-9,
    ))  # fmt: skip


def softmax_of(shape, **form):
    """Shares of bytes, as bytes or as int16."""
    form = form or {"scale": 1 / 256, "zero": -128}
    return lambda net: net.op("SOFTMAX", [net.bytes_in(shape, 4.0)], {"dtype": "int8", **form}, beta=1.0)


def whole_pool(net):
    """Windows as large as their image, one around each of its pixels."""
    how = net.scaled()
    options = {"window_w": 6, "window_h": 7, "stride_w": 1, "stride_h": 1}
    return [net.op("AVERAGE_POOL_2D", [net.bytes_in((2, 7, 6, 5), **how)], net.made(**how), **options)]


def far_words(net):
    """Sums of int16 whose scales are powers of 2, as the file says that they are computed in the common way."""
    operands = [net.input((16, 32), "int16", scale=2.0**-i) for i in (12, 9)]
    return [net.op(kind, operands, {"dtype": "int16", "scale": 2.0**-9}, pot=False) for kind in ("ADD", "SUB")]


WORDS = {"dtype": "int16", "scale": 2.0**-16, "zero": -(2**15)}
EDGES = {
    "a swish of a small scale": swish_of(0.002, 2.0), "a swish of a very small scale": swish_of(0.0003, 3.0),
    "a swish of a large scale": swish_of(8.0, 300.0), "a swish of a very large scale": swish_of(200.0, 200.0),
    "a swish to the smallest unit": swish_of(0.04, 1.25), "a swish to nearly its own unit": swish_of(0.04, 1 + 2**-20),
    "a swish around a power": swish_of(3 / 256, 2.0), "a swish below a power": swish_of(3 / 256 * (1 - 2**-20), 2.0),
    "shares of a row": softmax_of((7,)), "shares of steps": softmax_of((2, 3, 7)),
    "shares of channels": softmax_of((2, 3, 4, 7)), "shares of one": softmax_of((3, 1)),
    "shares of channels in 16 bits": softmax_of((2, 3, 4, 7), **WORDS),
    "a mean of pixels beside one of volumes": lambda net: [
        net.op("MEAN", [net.bytes_in((2, 3, 4, 5, 2)), net.whole(*axes)], net.made()) for axes in ((2, 3), (1, 4))
    ],
    "a mean along the last two of four axes": lambda net: net.op(
        "MEAN", [net.bytes_in((2, 3, 4, 5)), net.whole(2, 3)], net.made(), keepdims=True
    ),
    "windows around each pixel": whole_pool,
    "sums of powers of 2": far_words,
    "products without a bias": lambda net: net.op(
        "FULLY_CONNECTED", [net.bytes_in((6, 24)), net.filters((17, 24), 0, 17)], net.made(4.0)
    ),
    "products of turned operands": lambda net: [
        net.op("BATCH_MATMUL", [net.bytes_in((2, 8, 6)), net.bytes_in((2, 5, 8))], net.made(2.0), adjoint_x=True,
               adjoint_y=True),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_results_at_the_edges_of_their_arithmetic_have_the_bits_of_the_reference_kernels(name):
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        net = Quantised("int8", rng)
        made = EDGES[name](net)
        outputs = made if isinstance(made, list) else [made]
        model, values = net.bytes(*outputs), values_of(net, rng)
        found = load(model)
        wanted = reference(model, *values)
        for x, y in zip(evaluate(list(found.outputs), dict(zip(found.inputs, values))), wanted, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            np.testing.assert_array_equal(x, y)


LARGE = {"dtype": "int8", "scale": 0.5, "zero": -128}
MIXED: dict[str, tuple] = {
    "a pool of bytes to words of one scale": (
        lambda net: net.op(
            "MAX_POOL_2D", [net.input((1, 4, 4, 2), "int8", scale=0.5, zero=-128)],
            LARGE | {"dtype": "int16", "zero": 0},
            window_w=2, window_h=2, stride_w=2, stride_h=2,
        ),
        "does not support quantised values of 16 bits",
    ),
    "a concatenation of bytes and words of one scale": (
        lambda net: net.op(
            "CONCATENATION", [net.input((2, 3), "int8", scale=0.5, zero=-128), net.input((2, 3), "int16", scale=0.5)],
            LARGE, axis=0,
        ),
        "its operands and results have different scales or zero points",
    ),
    "a resize of uint8": (
        lambda net: net.op(
            "RESIZE_BILINEAR", [net.input((1, 4, 4, 2), "uint8", scale=0.5, zero=3), net.whole(3, 3)],
            {"dtype": "uint8", "scale": 0.5, "zero": 3},
        ),
        "a resize of uint8, or one whose result has another scale, is not supported",
    ),
    "a number without a form": (
        lambda net: net.op("QUANTIZE", [net.input((3,), "int8", scale=0.5)], {"dtype": "int8"}),
        "int8 is not float32|mixed with others|uint8 is not float32",
    ),
    "floats to a number without a form": (
        lambda net: net.op("QUANTIZE", [net.input((3,))], {"dtype": "int8"}), "mixed with others are not supported",
    ),
    "filters that are computed": (
        lambda net: net.op(
            "FULLY_CONNECTED", [net.bytes_in((4, 3)), net.input((2, 3), "int8", scale=0.1, zero=0)], net.made(),
        ),
        "quantised filters that are computed, empty, of int16, or of int8 with a zero point",
    ),
    "filters without channels": (
        lambda net: net.op(
            "CONV_2D", [net.bytes_in((1, 4, 4, 0)), net.constant(np.ones((2, 1, 1, 0), "int8"), scale=0.1)], net.made(),
            stride_w=1, stride_h=1,
        ),
        "in CONV_2D 0: ",
    ),
    "no filters": (
        lambda net: net.op(
            "CONV_2D", [net.bytes_in((1, 4, 4, 3)), net.constant(np.ones((0, 1, 1, 3), "int8"), scale=0.1)], net.made(),
            stride_w=1, stride_h=1,
        ),
        "quantised filters that are computed, empty, of int16",
    ),
    "filters of 16 bits": (
        lambda net: net.op(
            "CONV_2D", [net.input((1, 4, 4, 3), "int16", scale=0.1), net.constant(np.ones((2, 1, 1, 3), "int16"),
             scale=0.1)], {"dtype": "int16", "scale": 0.1}, stride_w=1, stride_h=1,
        ),
        "quantised filters that are computed, empty, of int16",
    ),
    "integers with filters of bytes": (
        lambda net: net.op(
            "FULLY_CONNECTED", [net.input((4, 3), "int32"), net.constant(np.ones((2, 3), "int8"), scale=0.1)],
        ),
        "int32 with filters of uint8 is not supported. Use int8 filters",
    ),
    "rows of nothing": (
        lambda net: net.op(
            "FULLY_CONNECTED", [net.input((4, 0)), net.constant(np.ones((2, 0), "float32"))],
        ),
        r"\[4, 0\] cannot be cut into rows of 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXED)
def test_what_is_mixed_computed_or_empty_is_named(name):
    build, match = MIXED[name]
    net = Quantised("int8", np.random.default_rng(6))
    with pytest.raises(FormatError, match=match):
        load(net.bytes(build(net)))
