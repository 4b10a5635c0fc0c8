"""The estimate of Winograd's error agrees with the errors of the kernels."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.kernels.target import host_target
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from cgraph.kernels.winograd.calls import Winograd
from cgraph.kernels.winograd.error import MOST_FILTERS, error_ratio
from cgraph.lowering import image_lowerings


def plan_of(c, m):
    return Winograd(ConvShape(c, 28, 28, 16, host_target(), Window((3, 3), pad=(1, 1, 1, 1))), 1, m)


def filters_of(k, c):
    return np.random.default_rng(c).standard_normal((k, c, 3, 3)).astype("f4")


def measured(x, filters, m, monkeypatch):
    """Return the root mean square error of a layer computed by tiles of m, or directly."""
    monkeypatch.setattr(image_lowerings, "winograd_rule", lambda *rest: m)
    image = cg.Var(x.shape)
    padded = np.pad(x.astype("f8"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    exact = np.einsum("nchwij,kcij->nkhw", windows, filters, optimize=True)
    got = cg.compile(cg.conv2d(image, filters, pad=1), [image])(x)
    return np.sqrt(np.mean((got - exact) ** 2))


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("c", [32, 64, 128])
def test_the_estimate_is_within_a_quarter_of_the_kernels_error(c, m, monkeypatch):
    x, filters = np.random.default_rng(0).standard_normal((1, c, 28, 28)).astype("f4"), filters_of(16, c)
    ratio = measured(x, filters, m, monkeypatch) / measured(x, filters, 0, monkeypatch)
    assert 0.75 < error_ratio(plan_of(c, m), filters) / ratio < 1.25


def test_filters_of_one_sign_have_larger_errors_than_those_of_edges():
    """Points that cancel in the result are larger for smooth filters."""
    filters = filters_of(16, 64)
    smooth, edges = np.ones_like(filters), filters - filters.mean((2, 3), keepdims=True)
    small, middle, large = (error_ratio(plan_of(64, 4), x) for x in (edges, filters, smooth))
    assert small < middle < large


def test_a_sample_of_many_filters_is_enough():
    filters = filters_of(4 * MOST_FILTERS // 64, 64)
    parts = [error_ratio(plan_of(64, 4), x) for x in np.split(filters, 4)]
    assert min(parts) / 1.05 < error_ratio(plan_of(64, 4), filters) < max(parts) * 1.05


def test_chains_make_the_error_of_many_channels_smaller_than_that_of_a_direct_convolution():
    assert error_ratio(plan_of(512, 4), filters_of(16, 512)) < error_ratio(plan_of(64, 4), filters_of(16, 64))
    assert error_ratio(plan_of(512, 4), filters_of(16, 512)) < 1


def test_filters_of_zeros_have_no_error():
    assert error_ratio(plan_of(32, 4), np.zeros((16, 32, 3, 3), "f4")) == 0
