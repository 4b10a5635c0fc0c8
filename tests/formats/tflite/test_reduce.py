"""Reductions of TFLite beside NumPy: axes, kept axes, places of extremes, exclusive and reversed sums."""

import numpy as np
import pytest

from cgraph.errors import FormatError
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
