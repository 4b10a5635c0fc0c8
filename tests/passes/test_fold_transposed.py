"""Transposed convolutions of volumes become those of frames, with the same values; images and sequences stay."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.traverse import post_order
from cgraph.ops.conv import ConvTranspose
from cgraph.passes import rewrite_graph
from cgraph.passes.fold_transposed import fold_transposed
from tests.support.rewrites import assert_left, assert_same_values

RNG = np.random.default_rng(0)


def filters(*shape, dtype="float32"):
    return cg.Const(RNG.normal(size=shape).astype(dtype))


def layers(node):
    return [x for x in post_order(fold_transposed((node,))) if isinstance(x.op, ConvTranspose)]


@pytest.mark.parametrize("window", [(3, 3, 3), (2, 3, 1), (1, 2, 2), (4, 1, 1)])
@pytest.mark.parametrize(
    "stride, pad, more", [(1, 0, 0), (2, 0, (1, 0, 1)), ((3, 2, 1), (0, 1, 0, 1, 0, 0), (2, 1, 0))]
)
@pytest.mark.parametrize("groups, dilation", [(1, 1), (2, (2, 1, 3))])
def test_volumes_keep_their_values(window, stride, pad, more, groups, dilation):
    x = cg.Var((2, 4, 3, 4, 5))
    node = cg.conv_transpose3d(x, filters(4, 6 // groups, *window), stride, pad, dilation, groups, more)
    (layer,) = layers(node)
    assert layer.ndim == 4 and layer.shape[:2] == (6, 6 * window[0])
    assert_same_values(fold_transposed, node)


def test_networks_and_computed_filters_keep_their_values():
    x = cg.Var((1, 4, 2, 3, 3))
    up = cg.relu(cg.conv_transpose3d(x, filters(4, 8, 2, 2, 2), 2) + np.ones((1, 8, 1, 1, 1), "float32"))
    assert_same_values(rewrite_graph, cg.conv3d(up, filters(5, 8, 3, 3, 3), pad=1))
    assert_same_values(fold_transposed, cg.conv_transpose3d(x, cg.Var((4, 3, 2, 2, 2), "float32"), 2))
    wide = cg.Var((1, 4, 2, 3, 3), "float64")
    assert_same_values(fold_transposed, cg.conv_transpose3d(wide, filters(4, 3, 3, 2, 2, dtype="float64"), 2))


def test_others_stay():
    assert_left(fold_transposed, cg.conv_transpose2d(cg.Var((1, 4, 3, 3)), filters(4, 3, 2, 2)))
    assert_left(fold_transposed, cg.conv_transpose1d(cg.Var((1, 4, 3)), filters(4, 3, 2)))
    assert_left(fold_transposed, cg.conv_transpose3d(cg.Var((0, 4, 3, 3, 3)), filters(4, 3, 2, 2, 2)))
