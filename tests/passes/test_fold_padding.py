"""Zeros around images become padding of the convolution, and nothing else does."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.passes import rewrite_graph
from cgraph.passes.fold_padding import fold_padding
from tests.support.computed import computed
from tests.support.rewrites import assert_left, assert_same_values, ops_of

RNG = np.random.default_rng(0)
CONVS = {1: cg.conv1d, 2: cg.conv2d, 3: cg.conv3d}


def filters(*shape):
    return cg.Const(RNG.normal(size=shape).astype("float32"))


def image(axes):
    return cg.Var((2, 2, *(5, 7, 4)[:axes]), name="x")


@pytest.mark.parametrize("axes", CONVS)
@pytest.mark.parametrize("own", [0, 1])
def test_zeros_on_any_side_become_padding(axes, own):
    for sides in product([0, 1, 3], repeat=2 * axes):
        if not any(sides) or axes == 3 and sum(sides) % 3:  # a third of the many for volumes
            continue
        widths = [(0, 0), (0, 0), *zip(sides[::2], sides[1::2])]
        node = CONVS[axes](cg.pad(image(axes), widths), filters(3, 2, *(2, 3, 1)[:axes]), pad=own)
        (folded,) = fold_padding((node,))
        assert ops_of([folded]) == {node.op.name: 1}
        assert folded.shape == node.shape
        assert_same_values(fold_padding, node)


@pytest.mark.parametrize("options", [{"stride": (2, 3)}, {"dilation": (2, 1)}, {"groups": 2}], ids=str)
def test_other_options_stay(options):
    groups = options.get("groups", 1)
    node = cg.conv2d(cg.pad(image(2), [(0, 0), (0, 0), (0, 1), (2, 0)]), filters(4, 2 // groups, 3, 2), **options)
    assert ops_of(fold_padding((node,))) == {"conv2d": 1}
    assert_same_values(fold_padding, node)
    assert_same_values(rewrite_graph, node)


def test_filters_that_are_computed_and_several_pads():
    f = cg.Var((3, 2, 3, 3), name="f")
    twice = cg.pad(cg.pad(image(2), [(0, 0), (0, 0), (1, 0), (0, 2)]), [(0, 0), (0, 0), (1, 1), (0, 1)])
    assert ops_of(fold_padding((cg.conv2d(twice, f * 2),))) == {"conv2d": 1, "multiply": 1}
    assert_same_values(fold_padding, cg.conv2d(twice, f * 2))


def test_a_padded_image_that_another_node_reads_is_computed_for_it_alone():
    padded = cg.pad(image(2), [(0, 0), (0, 0), (1, 1), (1, 1)])
    outputs = cg.conv2d(padded, filters(3, 2, 3, 3)), padded.sum()
    conv, total = fold_padding(outputs)
    assert ops_of([conv]) == {"conv2d": 1}
    assert total is outputs[1]
    assert_same_values(fold_padding, *outputs)


@pytest.mark.parametrize("value", [1, -np.inf, np.nan])
def test_other_values_stay(value):
    assert_left(fold_padding, cg.conv2d(cg.pad(image(2), 2, constant_values=value), filters(3, 6, 3, 3)))
    assert_left(
        fold_padding,
        cg.conv2d(cg.pad(image(2), [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=value), filters(3, 2, 3, 3)),
    )


@pytest.mark.parametrize("axis", [0, 1])
def test_more_images_and_channels_are_no_padding(axis):
    widths = [(0, 0)] * 4
    widths[axis] = (0, 1)
    x = cg.pad(image(2), widths)
    assert_left(fold_padding, cg.conv2d(x, filters(3, x.shape[1], 3, 3)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_padding_times_what_is_not_finite_is_nan(value):
    f = np.ones((1, 1, 3, 3), "float32")
    f[0, 0, 0, 0] = value
    x = cg.Var(np.ones((1, 1, 3, 3), "float32"))
    node = cg.conv2d(cg.pad(x, [(0, 0), (0, 0), (1, 0), (1, 0)]), cg.Const(f))
    want = cg.compile(node, passes=False)()
    assert np.isnan(want[0, 0, 0, 0])
    np.testing.assert_array_equal(computed(node), want)
