"""Unpacking: what was packed comes back, whatever the order, the zeros between, and the size of positions."""

from functools import partial

import numpy as np
import pytest

from cgraph.kernels.target import host_target
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.pack import pack_conv
from cgraph.kernels.views.window import Window
from cgraph.kernels.winograd.calls import Winograd, pack_winograd
from cgraph.ops.physical.conv import unpack_winograd
from cgraph.ops.physical.unpack import STEP, unpack
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)


def with_gaps(x):
    """Elements in reverse order, with zeros between and at the end."""
    out = np.zeros((3, x.size + 2), x.dtype)
    out[1, : x.size] = x.ravel()[::-1]
    return out


@pytest.mark.parametrize("shape", [(2, 3), (STEP,), (5, STEP + 3), (1,)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elements_come_back_to_their_places(shape, dtype):
    x = RNG.normal(size=shape).astype(dtype)
    got = unpack(with_gaps(x), shape, with_gaps)
    np.testing.assert_array_equal(got, x)
    assert got.dtype == dtype


def test_zeros_among_the_elements_are_elements():
    x = np.array([[0.0, 1.0], [2.0, 0.0]], "float32")
    np.testing.assert_array_equal(unpack(with_gaps(x), (2, 2), with_gaps), x)


@pytest.mark.parametrize("c, k, groups", [(5, 7, 1), (8, 12, 4)])
def test_filters_of_a_convolution(c, k, groups):
    shape = ConvShape(c, 6, 6, k, host_target(), Window((3, 2)), groups)
    f = RNG.normal(size=(k, c // groups, 3, 2)).astype("f4")
    np.testing.assert_array_equal(unpack(pack_conv(shape, f), f.shape, partial(pack_conv, shape)), f)


@pytest.mark.parametrize("tile", [2, 4])
def test_filters_of_winograd_come_back_without_the_padded_ones(tile):
    shape = ConvShape(10, 12, 12, 21, host_target(), Window((3, 3), pad=(1, 1, 1, 1)))
    plan = Winograd(shape, 1, tile)
    f = RNG.normal(size=(21, 10, 3, 3)).astype("f4")
    got = unpack_winograd(plan, pack_winograd(plan, f))
    assert got.shape == f.shape and got.dtype == "float32"
    assert_near(got, f, "float32 sums near zero")
