"""The gradient of a convolution for its filters in blocks of threads: what NumPy computes, parts, distances too far."""

import numpy as np
import pytest

from cgraph.kernels.conv.addresses import Images
from cgraph.kernels.filter_grad import gpu_calls as gpu_filter_grad
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from tests.kernels import test_filter_grad
from tests.support.gpu import BLOCKS, run_on_gpu_as
from tests.support.images import laned

PARTS = (3, 2, 9, 8, 5, Window((3, 3), pad=(1, 1, 1, 1)), 1)


def in_blocks(calls, target, order="all"):
    """Run calls, of which those with products are in blocks."""
    assert any(call.kernel.family == "filter_grad.gpu.tile" for call in calls)
    run_on_gpu_as(calls, target, order)


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("case", ["stride and dilation", "one weight", "one pixel"])
def test_gradient_for_the_filters(case, is_plain):
    test_filter_grad.filter_grad(test_filter_grad.CASES[case], BLOCKS, is_plain=is_plain, run=in_blocks)


def test_the_gradient_for_the_filters_of_several_images_and_parts(monkeypatch):
    monkeypatch.setattr(test_filter_grad.FilterGrad, "images", 2)
    found = [test_filter_grad.filter_grad(PARTS, BLOCKS, run=in_blocks) for _ in range(2)]
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("lines", [pytest.param(128, marks=pytest.mark.slow), 64])
def test_larger_tiles(monkeypatch, lines):
    monkeypatch.setattr(gpu_filter_grad, "lines_of", lambda *given: lines)
    test_filter_grad.filter_grad((2, 8, 5, 5, 67, Window((3, 3), pad=(1, 1, 1, 1)), 1), BLOCKS, run=in_blocks)


def test_strides_and_dilations_that_differ_in_float64():
    window = Window((2, 3), (3, 1), (0, 2, 1, 0), (1, 3))
    test_filter_grad.filter_grad((2, 3, 9, 11, 4, window, 1), BLOCKS, dtype="f8", run=in_blocks)


def test_offsets_are_those_of_nested_axes():
    assert gpu_filter_grad.offsets_of((2, 100), (3, 10), (2, 1)).tolist() == [
        0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121
    ]  # fmt: skip
    assert gpu_filter_grad.offsets_of((3, -4)).tolist() == [0, -4, -8]


def made(row, g_row, farthest, monkeypatch):
    """Calls for images of two rows that are `row` elements apart, and gradients of as many."""
    monkeypatch.setattr(gpu_filter_grad, "FARTHEST", farthest)
    shape = ConvShape(1, 2, 3, 1, BLOCKS)
    x = Images(Pointer("x"), np.zeros(1, np.int64), 2 * row, row, 1, 2 * row, 2 * row)
    g = laned(np.zeros((1, 1, 2, 3), "f4"), 1, (0, 0, 0, g_row - 3))
    return gpu_filter_grad.filter_grad_calls(shape, 1, (1, 1, 1), x, g, Pointer("out"))


def test_pixels_too_far_apart_for_their_tables_have_the_other_kernel(monkeypatch):
    """The last pixel lies a row and two columns behind the first; images or gradients may be the wide ones."""
    assert made(10, 3, 12, monkeypatch) is not None and made(10, 3, 11, monkeypatch) is None
    assert made(3, 10, 12, monkeypatch) is not None and made(3, 10, 11, monkeypatch) is None
