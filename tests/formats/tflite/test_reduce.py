"""Reductions of TFLite beside NumPy: axes, kept axes, places of extremes, exclusive and reversed sums."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.tflite import load
from tests.support.tflite_models import Network, results_of
from tests.support.tolerance import assert_near

X = np.random.default_rng(0).integers(-9, 10, (2, 3, 4)).astype("f4")
ALONG = {"SUM": np.sum, "REDUCE_MAX": np.max, "REDUCE_MIN": np.min, "REDUCE_PROD": np.prod, "MEAN": np.mean}


def reduced(kind, x, axes, dtype="float32", **options):
    net = Network()
    y = net.op(kind, [net.input(x.shape, x.dtype.name), net.constant(np.array(axes, "i4"))], dtype, **options)
    return results_of(net, [y], x)[0]


@pytest.mark.parametrize("kind", ALONG)
@pytest.mark.parametrize("axes", [(1,), (0, -1), (2, -1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_numbers_are_reduced_along_axes_once_each(kind, axes, keepdims):
    want = ALONG[kind](X, axis=tuple({a % 3 for a in axes}), keepdims=keepdims)
    assert_near(reduced(kind, X, axes, keepdims=keepdims), want, "float32 sums")


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_outside_is_refused(axis):
    with pytest.raises(FormatError, match="are outside a tensor of 3 axes"):
        reduced("SUM", X, (axis,))


def test_the_place_of_the_largest_and_of_the_least():
    np.testing.assert_array_equal(reduced("ARG_MAX", X, (1,), "int32"), X.argmax(1).astype("i4"), strict=True)
    np.testing.assert_array_equal(reduced("ARG_MIN", X, (-1,), "int64"), X.argmin(-1), strict=True)
    with pytest.raises(FormatError, match="one axis is expected, not 2"):
        reduced("ARG_MAX", X, (0, 1), "int32")


@pytest.mark.parametrize(
    ("exclusive", "reverse", "want"),
    [(False, False, [1, 3, 6]), (True, False, [0, 1, 3]), (False, True, [6, 5, 3]), (True, True, [5, 3, 0])],
)
def test_cumulative_sums(exclusive, reverse, want):
    x = np.array([[1, 2, 3]], "f4")
    got = reduced("CUMSUM", x, (1,), exclusive=exclusive, reverse=reverse)
    np.testing.assert_array_equal(got, np.array([want], "f4"), strict=True)


def test_beta_sharpens_a_softmax():
    net = Network()
    y = net.op("SOFTMAX", [net.input(X.shape)], beta=0.5)
    powers = np.exp(0.5 * X.astype("f8"))
    assert_near(results_of(net, [y], X)[0], powers / powers.sum(-1, keepdims=True), "float32 normalised")


@pytest.mark.parametrize(("activation", "low", "high"), [(0, -1, 1), (1, 0, 1), (2, -1, 1), (3, 0, 1)])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (2, 2, 3, 4)])
def test_vectors_of_length_one_have_an_activation_and_those_of_zeros_stay(shape, activation, low, high):
    x = np.random.default_rng(1).standard_normal(shape).astype("f4")
    x[0] = 0
    net = Network()
    y = net.op("L2_NORMALIZATION", [net.input(shape)], activation=activation)
    length = np.sqrt((x.astype("f8") ** 2).sum(-1, keepdims=True))
    assert_near(
        results_of(net, [y], x)[0], np.clip(x / np.maximum(length, 1e-6), low, high), "float32 formulas near zero"
    )
    assert_near(
        results_of(net, [y], x * np.float32(1e-8))[0], np.clip(x * 1e-2, low, high), "float32 formulas near zero"
    )


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -4])
@pytest.mark.parametrize("kind", ["ARG_MAX", "ARG_MIN"])
def test_places_are_along_the_axis_of_the_file_whatever_the_order_of_axes(kind, axis):
    x = np.random.default_rng(2).permutation(144).reshape(2, 4, 6, 3).astype("f4")
    net = Network()
    eye = np.eye(3, dtype="f4").reshape(3, 1, 1, 3)
    turned = net.op(
        "CONV_2D", [net.input(x.shape), net.constant(eye), net.constant(np.zeros(3, "f4"))], stride_w=1, stride_h=1
    )
    y = net.op(kind, [turned, net.constant(np.array([axis], "i4"))], "int32")
    want = (np.argmax if kind == "ARG_MAX" else np.argmin)(x, axis).astype("i4")
    np.testing.assert_array_equal(results_of(net, [y], x)[0], want, strict=True)


@pytest.mark.parametrize("axes", [(3,), (1, 2), (1,), (0, 3), (1, 2, 3), (0, 1, 2, 3), (0,), (2, 3)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("kind", [*ALONG, "REDUCE_ANY", "REDUCE_ALL"])
def test_images_that_are_turned_are_reduced_along_the_axes_of_the_file(kind, axes, keepdims):
    x = np.random.default_rng(2).integers(-2, 4, (2, 4, 6, 3)).astype("f4")
    net = Network()
    eye = np.eye(3, dtype="f4").reshape(3, 1, 1, 3)
    turned = net.op(
        "CONV_2D", [net.input(x.shape), net.constant(eye), net.constant(np.zeros(3, "f4"))], stride_w=1, stride_h=1
    )
    dtype, rule = "float32", ALONG.get(kind)
    if rule is None:
        dtype, rule = "bool", np.any if kind == "REDUCE_ANY" else np.all
        turned = net.op("GREATER", [turned, net.constant(np.float32(-2))], "bool")
    y = net.op(kind, [turned, net.constant(np.array(axes, "i4"))], dtype, keepdims=keepdims)
    want = rule(x if dtype == "float32" else x > -2, axis=axes, keepdims=keepdims)
    got = results_of(net, [y], x)[0]
    assert got.shape == want.shape
    assert_near(got.astype("f4"), want.astype("f4"), "float32 sums")


@pytest.mark.parametrize("more", [0, 1])
def test_a_mean_of_bytes_takes_as_many_as_their_sum_of_32_bits_can_hold(more):
    count = (2**31 - 1) // 255 + more
    net, how = Network(), {"scale": 0.5, "zero": 3}
    x = net.input((1, count), "uint8", **how)
    y = net.op("MEAN", [x, net.constant(np.array([1], "i4"))], {"dtype": "uint8", **how})
    if not more:
        assert load(net.bytes(y)).outputs[0].shape == (1,)
        return
    with pytest.raises(FormatError, match=f"a sum of {count} numbers is not supported"):
        load(net.bytes(y))
