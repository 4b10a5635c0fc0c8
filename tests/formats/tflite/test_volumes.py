"""Convolutions of volumes of TFLite files beside sums over windows in NumPy: strides, gaps and channels."""

from itertools import product

import numpy as np
import pytest

from tests.support.tflite_models import Network, results_of
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 5, 6, 7, 3)).astype("f4")
PLAIN = {"stride_d": 1, "stride_h": 1, "stride_w": 1}
OPTIONS = [
    PLAIN, PLAIN | {"stride_d": 3}, PLAIN | {"stride_h": 2}, PLAIN | {"stride_w": 4}, PLAIN | {"dilation_d": 2},
    PLAIN | {"dilation_h": 3}, PLAIN | {"dilation_w": 4},
    {"stride_d": 2, "stride_h": 3, "stride_w": 1, "dilation_w": 2},
]  # fmt: skip


def of_axes(options, name):
    return [options.get(f"{name}_{axis}", 1) for axis in "dhw"]


def convolved(x, f, options):
    """Windows inside the volume: for each tap of a filter, the elements that it meets."""
    steps, gaps = of_axes(options, "stride"), of_axes(options, "dilation")
    counts = [(n - (w - 1) * g - 1) // s + 1 for n, w, g, s in zip(x.shape[1:4], f.shape, gaps, steps)]
    total = np.zeros((x.shape[0], *counts, f.shape[4]))
    for tap in product(*map(range, f.shape[:3])):
        index = (slice(t * g, t * g + (n - 1) * s + 1, s) for t, g, s, n in zip(tap, gaps, steps, counts))
        total += x[(slice(None), *index)].astype("f8") @ f[tap].astype("f8")
    return total


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("window", [(1, 1, 1), (2, 1, 2), (1, 2, 2)])
def test_windows_are_summed(options, window):
    f, bias = RNG.standard_normal((*window, 3, 4)).astype("f4"), RNG.standard_normal(4).astype("f4")
    net = Network()
    y = net.op("CONV_3D", [net.input(X.shape), net.constant(f), net.constant(bias)], padding=1, activation=1, **options)
    want = np.maximum(convolved(X, f, options) + bias, 0)
    assert_near(results_of(net, [y], X)[0], want.astype("f4"), "float32 weights of others")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_transpose_is_the_adjoint(options):
    """``sum(conv(x) * y) == sum(x * transposed(y))``, also where windows leave elements at the end unread."""
    f = RNG.standard_normal((2, 1, 2, 3, 4)).astype("f4")
    forward = convolved(X, f, options)
    y = RNG.standard_normal(forward.shape).astype("f4")
    net = Network()
    operands = [net.constant(np.array(X.shape, "i4")), net.constant(f), net.input(y.shape)]
    back = results_of(net, [net.op("CONV_3D_TRANSPOSE", operands, padding=1, **options)], y)[0]
    assert back.shape == X.shape
    assert_near(np.sum(X.astype("f8") * back), np.sum(forward * y), "float32 weights of others")
