"""TFLite operators on floats compute what the reference kernels do; a network's images are turned once."""

from itertools import permutations

import numpy as np
import pytest

from cgraph.cli import main
from cgraph.engine.reference import evaluate
from cgraph.formats.tflite import load
from cgraph.formats.tflite.context import OPERATORS
from cgraph.formats.tflite.value import FIRST, LAST, permute
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Var
from cgraph.ops.shape import Transpose, transpose
from tests.support.tflite_cases import CASES, constant, model_of, whole
from tests.support.tflite_models import Network, reference
from tests.support.tolerance import assert_near

ORDERS = list(permutations(range(4)))
NOT_IN_REFERENCE = {
    "CEIL", "ELU", "ROUND", "SEGMENT_SUM", "STABLEHLO_AND", "STABLEHLO_SHIFT_LEFT",
    "LOCAL_RESPONSE_NORMALIZATION",  # whose reference kernel leaves out the last channel of each window
    *(x for x in OPERATORS if x.startswith("CUSTOM")),
}  # fmt: skip
"""Operators that only the other kernels compute, or compute in full."""


@pytest.mark.parametrize("name", CASES)
def test_operators_compute_what_the_reference_kernels_do(name):
    net, outputs, values = model_of(name)
    model = net.bytes(*outputs)
    wanted = reference(model, *values, kinds="BUILTIN" if CASES[name][0] in NOT_IN_REFERENCE else "BUILTIN_REF")
    found = load(model)
    got = evaluate(list(found.outputs), dict(zip(found.inputs, values)))
    assert len(got) == len(wanted)
    for x, y in zip(got, wanted):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        assert_near(x, y, "float32 weights of others")


DYNAMIC = [name for name in CASES if name.endswith("_of_bytes")]


@pytest.mark.slow
@pytest.mark.parametrize("name", DYNAMIC)
def test_floats_with_filters_of_bytes_are_added_up_as_bytes(name):
    net, outputs, values = model_of(name)
    model = net.bytes(*outputs)
    found = load(model)
    kinds = {x.op.name for x in post_order(list(found.outputs))}
    assert kinds & {"integer_conv", "integer_matmul"} and not kinds & {"conv2d", "matmul"}
    for x, y in zip(found.compile()(*values), reference(model, *values), strict=True):
        assert_near(x, y, "float32 formulas near zero")


def test_every_operator_has_a_case():
    assert OPERATORS.keys() <= {kind for kind, _ in CASES.values()} | {"SHAPE", "QUANTIZE"}


def network():
    """Two convolutions around a pool, a sum, a mean and a product: images stay in one order of axes between them."""
    rng, net = np.random.default_rng(0), Network()
    steps = {"stride_w": 1, "stride_h": 1}
    x = net.input((1, 12, 12, 3))
    a = net.op("CONV_2D", [x, constant(net, rng, 8, 3, 3, 3), constant(net, rng, 8)], activation=1, **steps)
    b = net.op("DEPTHWISE_CONV_2D", [a, constant(net, rng, 1, 3, 3, 8), constant(net, rng, 8)], multiplier=1, **steps)
    c = net.op("ADD", [net.op("HARD_SWISH", [b]), a], activation=3)
    d = net.op("MEAN", [c, whole(net, 1, 2)])
    e = net.op("FULLY_CONNECTED", [d, constant(net, rng, 5, 8), constant(net, rng, 5)])
    return net.bytes(net.op("SOFTMAX", [e], beta=1.0))


def test_a_network_runs_and_has_one_transpose():
    """That of the input: images are turned where they enter, and nowhere else."""
    model = network()
    value = np.random.default_rng(3).standard_normal((1, 12, 12, 3)).astype("float32")
    found = load(model)
    (got,), (want,) = found.compile()(value), reference(model, value)
    assert_near(got, want, "float32 TFLite")
    assert sum(isinstance(x.op, Transpose) for x in post_order(list(found.outputs))) == 1


def test_the_command_line_runs_it(tmp_path):
    path = tmp_path / "net.tflite"
    path.write_bytes(network())
    value = np.random.default_rng(3).standard_normal((1, 12, 12, 3)).astype("float32")
    np.save(tmp_path / "x.npy", value)
    assert main(["run", str(path), "-i", str(tmp_path / "x.npy"), "--save", str(tmp_path / "y.npz")]) == 0
    (want,) = reference(path.read_bytes(), value)
    with np.load(tmp_path / "y.npz") as found:
        assert_near(next(iter(found.values())), want, "float32 TFLite")


@pytest.mark.parametrize("axes", [FIRST, LAST])
@pytest.mark.parametrize("order", ORDERS)
def test_a_transpose_undoes_no_other_one_than_its_inverse(order, axes):
    """Of all 24 orders of four axes of different sizes."""
    x = Var((2, 3, 4, 5), name="x")
    value = np.arange(120, dtype="f4").reshape(2, 3, 4, 5)
    (found,) = evaluate([permute(transpose(x, order), axes)], {x: value})
    np.testing.assert_array_equal(found, value.transpose(order).transpose(axes))


@pytest.mark.parametrize("before", ORDERS)
def test_a_transpose_of_the_files_own_stays_before_and_behind_a_convolution(before):
    """A filter of one pixel leaves its image alone, between any transpose and the one that undoes it, and another."""
    net = Network()
    x = net.input((2, 3, 4, 5))
    channels = (2, 3, 4, 5)[before[3]]
    a = net.op("TRANSPOSE", [x, whole(net, *before)])
    ones = net.constant(np.ones((1, 1, 1, channels), "f4"))
    bias = net.constant(np.zeros(channels, "f4"))
    b = net.op("DEPTHWISE_CONV_2D", [a, ones, bias], multiplier=1, stride_w=1, stride_h=1)
    c = net.op("TRANSPOSE", [b, whole(net, *np.argsort(before).tolist())])
    d = net.op("TRANSPOSE", [b, whole(net, 3, 0, 2, 1)])
    model = load(net.bytes(c, d))
    value = np.arange(120, dtype="f4").reshape(2, 3, 4, 5)
    first, second = evaluate(list(model.outputs), {model.inputs[0]: value})
    np.testing.assert_array_equal(first, value)
    np.testing.assert_array_equal(second, value.transpose(before).transpose(3, 0, 2, 1))


@pytest.mark.parametrize("masks", range(16))
def test_each_bit_of_a_mask_of_slices_speaks_of_its_own_end_and_axis(masks):
    """Bits 0 and 1: begins of both axes; bits 2 and 3: ends."""
    net = Network()
    x = net.input((7, 9))
    begin, end, step = [1, 3], [5, 8], [2, 3]
    y = net.op("STRIDED_SLICE", [x, *(whole(net, *n) for n in (begin, end, step))], begin=masks & 3, end=masks >> 2)
    model = load(net.bytes(y))
    value = np.arange(63, dtype="f4").reshape(7, 9)
    index = tuple(
        slice(None if masks >> i & 1 else begin[i], None if masks >> 2 + i & 1 else end[i], step[i]) for i in (0, 1)
    )
    np.testing.assert_array_equal(evaluate(list(model.outputs), {model.inputs[0]: value})[0], value[index])


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("stride", [(1, 1), (1, 2), (3, 1)])
def test_strides_dilations_and_windows_of_rows_are_not_those_of_columns(kind, padding, stride):
    """As many results as the filter's reach leaves room for, each from its own pixels."""
    net, window, dilation, image = Network(), (2, 3), (3, 2), (11, 13)
    x = net.input((1, *image, 1))
    filters = net.constant(np.array([[1, 10, 100], [1e3, 1e4, 1e5]], "f4").reshape(1, 2, 3, 1))
    bias = net.constant(np.zeros(1, "f4"))
    options = {"stride_h": stride[0], "stride_w": stride[1], "dilation_h": dilation[0], "dilation_w": dilation[1]}
    more = {"multiplier": 1} if kind.startswith("DEPTH") else {}
    y = net.op(kind, [x, filters, bias], padding=padding, **options, **more)
    model = load(net.bytes(y))
    value = np.random.default_rng(0).integers(0, 9, (1, *image, 1)).astype("f4")
    (found,) = evaluate(list(model.outputs), {model.inputs[0]: value})
    wide = [(w - 1) * d + 1 for w, d in zip(window, dilation)]
    total = [max((-(-n // s) - 1) * s + w - n, 0) if padding == 0 else 0 for n, w, s in zip(image, wide, stride)]
    padded = np.pad(value[0, :, :, 0], [(n // 2, n - n // 2) for n in total])
    counts = [(n + t - w) // s + 1 for n, t, w, s in zip(image, total, wide, stride)]
    want = np.zeros(counts)
    for i, j in np.ndindex(*window):
        rows, columns = (
            slice(k * d, k * d + (c - 1) * s + 1, s) for k, d, c, s in zip((i, j), dilation, counts, stride)
        )
        want += 10.0 ** (3 * i + j) * padded[rows, columns]
    np.testing.assert_array_equal(found[0, :, :, 0], want)
