"""Taps that meet only padding are dropped, and no others."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.traverse import post_order
from cgraph.ops.conv import Conv
from cgraph.passes import rewrite_graph
from cgraph.passes.drop_taps import drop_taps
from tests.support.rewrites import assert_left, assert_same_values

RNG = np.random.default_rng(0)


def filters(*shape):
    return cg.Const(RNG.normal(size=shape).astype("float32"))


def conv_of(node):
    (conv,) = (n for n in post_order(drop_taps((node,))) if isinstance(n.op, Conv))
    return conv


@pytest.mark.parametrize("dilation", [10, 24, 36])
def test_a_dilation_beyond_the_image_leaves_the_middle(dilation):
    node = cg.conv2d(cg.Var((1, 4, 10, 10)), filters(5, 4, 3, 3), pad=dilation, dilation=dilation)
    conv = conv_of(node)
    assert conv.operands[1].shape == (5, 4, 1, 1) and set(conv.op.pad) == {0}
    assert_same_values(drop_taps, node)
    assert_same_values(rewrite_graph, node)


@pytest.mark.parametrize("stride, dilation", [*product([1, 2, 3], [1, 2, 4, 7])])
def test_any_stride_dilation_and_frame_keeps_the_values(stride, dilation):
    dropped = 0
    for size, taps, before, after in product([1, 4, 5], [1, 3, 4], [0, 3, 8], [0, 4, 9]):
        if size + before + after <= (taps - 1) * dilation:
            continue
        frame = (before, 1, after, 2)
        node = cg.conv2d(cg.Var((2, 2, size, 3)), filters(2, 1, taps, 2), (stride, 1), frame, (dilation, 1), groups=2)
        assert conv_of(node).shape == node.shape
        dropped += conv_of(node) is not node
        assert_same_values(drop_taps, node)
    assert dropped


@pytest.mark.parametrize("conv, axes", [(cg.conv1d, 1), (cg.conv3d, 3)])
def test_sequences_and_volumes(conv, axes):
    node = conv(cg.Var((1, 2, *[3] * axes)), filters(2, 2, *[3] * axes), pad=4, dilation=4)
    assert conv_of(node).operands[1].shape == (2, 2, *[1] * axes)
    assert_same_values(drop_taps, node)


@pytest.mark.parametrize("dilation", [1, 8, 9])
def test_taps_that_meet_the_image_once_stay(dilation):
    x = cg.Var((1, 4, 10, 10))
    assert_left(drop_taps, cg.conv2d(x, filters(5, 4, 3, 3), pad=dilation, dilation=dilation))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_filters_with_values_that_are_not_finite_stay(value):
    f = np.ones((1, 1, 3, 3), "float32")
    f[0, 0, 0, 0] = value
    assert_left(drop_taps, cg.conv2d(cg.Var((1, 1, 4, 4)), cg.Const(f), pad=9, dilation=9))


def test_filters_of_the_graph_and_results_of_padding_alone_stay():
    x = cg.Var((1, 1, 4, 4))
    assert_left(drop_taps, cg.conv2d(x, cg.Var((1, 1, 3, 3)), pad=9, dilation=9))
    assert_left(drop_taps, cg.conv2d(x, filters(1, 1, 2, 2), stride=20, pad=9, dilation=1))
