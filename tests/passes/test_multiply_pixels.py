"""Transposed convolutions of one pixel become products; those of several pixels, groups and dilations stay."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.passes import rewrite_graph
from cgraph.passes.multiply_pixels import multiply_pixels
from tests.support.rewrites import assert_left, assert_same_values, ops_of

RNG = np.random.default_rng(0)
CONV = {1: cg.conv_transpose1d, 2: cg.conv_transpose2d, 3: cg.conv_transpose3d}


def filters(*shape, dtype="float32"):
    return cg.Const(RNG.normal(size=shape).astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axes", CONV)
def test_a_pixel_is_a_product(axes, dtype):
    x = cg.Var((2, 5, *[1] * axes), dtype)
    node = CONV[axes](x, filters(5, 3, *range(2, 2 + axes), dtype=dtype))
    kinds = ops_of(multiply_pixels((node,)))
    assert kinds["matmul"] == 1 and not kinds["conv_transpose"]
    assert_same_values(multiply_pixels, node)
    assert_same_values(rewrite_graph, cg.relu(node + 1))


@pytest.mark.parametrize(
    "window, stride, frame, more", [(4, 2, (1, 0, 2, 1), 1), (3, 3, (2, 0, 0, 2), 2), (2, 5, 0, 4)]
)
def test_results_are_cropped_and_padded(window, stride, frame, more):
    node = cg.conv_transpose2d(cg.Var((2, 4, 1, 1)), filters(4, 3, window, window), stride, frame, output_pad=more)
    assert not ops_of(multiply_pixels((node,)))["conv_transpose"]
    assert_same_values(multiply_pixels, node)


def test_filters_may_be_computed():
    x, f = cg.Var((2, 4, 1, 1)), cg.Var((4, 3, 2, 2))
    assert_same_values(multiply_pixels, cg.conv_transpose2d(x, f))


def test_others_stay():
    pixel = cg.Var((1, 4, 1, 1))
    assert_left(multiply_pixels, cg.conv_transpose2d(cg.Var((1, 4, 1, 2)), filters(4, 3, 2, 2)))
    assert_left(multiply_pixels, cg.conv_transpose2d(pixel, filters(4, 3, 2, 2), groups=2))
    assert_left(multiply_pixels, cg.conv_transpose2d(pixel, filters(4, 3, 2, 2), dilation=2))
    assert_left(multiply_pixels, cg.conv_transpose2d(cg.Var((0, 4, 1, 1)), filters(4, 3, 2, 2)))
    assert_left(multiply_pixels, cg.conv2d(pixel, filters(3, 4, 1, 1)))
