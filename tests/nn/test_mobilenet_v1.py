"""MobileNet v1: published counts by width, strides, and depthwise before pointwise convolutions."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.models import mobilenet_v1
from nn.models.mobilenet_v1 import Separable, body
from tests.nn.support import assert_close, draw, run

# Keras' trainable values of its MobileNet, by alpha
PUBLISHED = {0.25: 470_072, 0.5: 1_331_592, 0.75: 2_585_560, 1.0: 4_231_976}


@pytest.mark.parametrize("width", PUBLISHED)
def test_parameters_by_width_are_as_many_as_published(width):
    assert mobilenet_v1(None, width=width).size == PUBLISHED[width]


def test_sizes_after_each_block_are_those_of_the_paper():
    x = cg.Var((1, 3, 224, 224))
    shapes = []
    for part in body(1.0):
        x = part(x)
        shapes.append(x.shape[1:])
    want = [(32, 112), (64, 112), (128, 56), (128, 56), (256, 28), (256, 28), *((512, 14),) * 6, *((1024, 7),) * 2]
    assert shapes == [(c, side, side) for c, side in want]


def test_blocks_can_be_others():
    parts = body(0.5, ((16, 1), (32, 2)))
    assert [(x.inputs, x.outputs, x.stride) for x in parts] == [(3, 16, 2), (16, 8, 1), (8, 16, 2)]


def test_a_block_mixes_pixels_first_and_channels_after():
    layer, x = Separable(3, 5, 2, 2), draw(1, 3, 9, 7)
    got = run(layer, x)
    np.testing.assert_array_equal(got, run(layer.pointwise, run(layer.depthwise, x)))
    assert layer.depthwise.conv.weight.shape == (3, 1, 3, 3) and layer.pointwise.conv.weight.shape == (5, 3, 1, 1)
    assert layer.depthwise.dilation == 2 and layer.pointwise.dilation == 1
    assert got.shape == (1, 5, 5, 4) and got.min() == 0


@pytest.mark.parametrize("which", ["depthwise", "pointwise"])
def test_activations_end_at_6(which):
    layer = nn.initialise(getattr(Separable(1, 1), which), 0)
    layer.norm.shift.assign([100.0])
    np.testing.assert_array_equal(run(layer, draw(1, 1, 3, 3)), np.full((1, 1, 3, 3), 6))
    assert layer.norm.eps == 1e-3


def test_results_are_shares_of_one():
    model = mobilenet_v1(0, 4, 0.25)
    got = run(model, draw(2, 3, 32, 32))
    assert got.shape == (2, 4)
    assert_close(got.sum(1), np.ones(2))
    assert model.samples[0].shape == (3, 224, 224)
