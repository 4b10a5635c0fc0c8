"""Filters packed at run time: as constants are packed, from any strides, zero where a filter lacks a channel."""

import numpy as np
import pytest

from cgraph.kernels.conv.transpose_calls import TransposedShape, pack_transposed
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.pack_filters.calls import pack_conv_calls, pack_transposed_calls
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.pack import pack_conv
from cgraph.kernels.views.window import Window
from tests.kernels.test_filter_grad import CASES
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_filters_packed_at_run_time_equal_constant_ones(case, target):
    _, c, h, w, k, window, groups = case
    target = target_named(target)
    shape = ConvShape(c, h, w, k, target, window, groups)
    turned = np.random.default_rng(2).standard_normal((*window.kernel, k, c // groups)).astype("f4")
    filters = turned.transpose(2, 3, 0, 1)
    out = np.full(shape.weights_nbytes // 4, np.nan, "f4")
    run_calls(pack_conv_calls(shape, Pointer(out), view_of(filters)).calls, target)
    np.testing.assert_array_equal(out, pack_conv(shape, filters).ravel())


def test_filters_of_plain_images_packed_at_run_time():
    shape = ConvShape(3, 20, 20, 40, host_target(), Window((7, 7), (2, 2), (3, 3, 3, 3)), is_plain=True)
    filters = np.random.default_rng(3).standard_normal((40, 3, 7, 7)).astype("f4")
    out = np.full(shape.weights_nbytes // 4, np.nan, "f4")
    run_calls(pack_conv_calls(shape, Pointer(out), view_of(filters)).calls)
    np.testing.assert_array_equal(out, pack_conv(shape, filters).ravel())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_filters_of_the_image_gradient_packed_at_run_time(case):
    _, c, h, w, k, window, groups = case
    p, q = window.result(h, w)
    shape = TransposedShape(k, p, q, c, host_target(), window, (0, 0), groups)
    filters = np.random.default_rng(4).standard_normal((k, c // groups, *window.kernel)).astype("f4")
    out = np.full(shape.weights_nbytes // 4, np.nan, "f4")
    run_calls(pack_transposed_calls(shape, Pointer(out), view_of(filters)).calls)
    np.testing.assert_array_equal(out, pack_transposed(shape, filters))


def packed(shape, filters, order="all"):
    out = np.full(shape.weights_nbytes // filters.itemsize, np.nan, filters.dtype)
    run_calls(pack_conv_calls(shape, Pointer(out), view_of(filters)).calls, shape.target, order)
    return out.reshape(shape.panels, len(shape.steps), shape.unroll, shape.panel_channels)


@pytest.mark.parametrize("order", ORDERS)
def test_a_filter_reads_the_channels_of_its_group_alone(order):
    """Groups of 3 channels and 2 filters in one panel: filter 2 i + j reads the channels 3 i to 3 i + 2."""
    shape = ConvShape(9, 4, 4, 6, host_target(), Window((1, 2)), groups=3)
    filters = np.arange(1, 37, dtype="f4").reshape(6, 3, 1, 2)
    got, want = packed(shape, filters, order), np.zeros((len(shape.steps), shape.unroll, shape.panel_channels), "f4")
    for step, (first, _, tap) in enumerate(shape.steps):
        for u in range(shape.unroll):
            for k in range(6):
                c = first + u - k // 2 * 3
                want[step, u, k] = filters[k, c, 0, tap] if 0 <= c < 3 else 0
    np.testing.assert_array_equal(got, want[None])


def test_filters_in_float64_and_of_negative_strides():
    shape = ConvShape(5, 4, 4, 7, host_target(), Window((2, 3)), dtype="f8")
    filters = np.random.default_rng(0).standard_normal((7, 5, 2, 3))[::-1, ::-1, ::-1, ::-1]
    np.testing.assert_array_equal(packed(shape, filters), pack_conv(shape, np.ascontiguousarray(filters)))


def test_filters_of_another_shape_are_refused():
    shape, turned = ConvShape(6, 4, 4, 4, host_target(), groups=2), TransposedShape(6, 4, 4, 4, host_target(), groups=2)
    for calls, of, wrong in (
        (pack_conv_calls, shape, (4, 6, 1, 1)),
        (pack_conv_calls, shape, (6, 2, 1, 1)),
        (pack_transposed_calls, turned, (4, 3, 1, 1)),
        (pack_transposed_calls, turned, (6, 4, 1, 1)),
    ):
        with pytest.raises(ValueError, match="do not fit"):
            calls(of, Pointer("out"), view_of(np.zeros(wrong, "f4")))
