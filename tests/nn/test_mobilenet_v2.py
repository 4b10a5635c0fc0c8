"""MobileNet v2: channels by width, residual sums, and the forms of TensorFlow and torchvision."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.models import mobilenet_v2
from nn.models.mobilenet_v2 import InvertedResidual, body, channels
from tests.nn.support import assert_close, draw, run


# millions of parameters that timm states: mobilenetv2_035 to mobilenetv2_140
@pytest.mark.parametrize(("width", "millions"), [(0.35, 1.68), (0.5, 1.97), (0.75, 2.64), (1.0, 3.50), (1.4, 6.11)])
def test_parameters_by_width_are_as_many_as_published(width, millions):
    assert round(mobilenet_v2(None, width=width).size / 1e6, 2) == millions


@pytest.mark.parametrize(
    ("count", "width", "want"),
    [(32, 1.0, 32), (4, 0.5, 8), (16, 1.4, 24), (32, 0.35, 16), (24, 0.35, 8), (64, 0.35, 24), (10, 1.0, 16)],
)
def test_channels_are_multiples_of_8_of_at_least_nine_tenths(count, width, want):
    """11.2 would become 8, which is less than nine tenths of it; 8.4 becomes 8."""
    assert channels(count, width) == want


def test_sizes_after_each_group_are_those_of_the_papers_table():
    x = cg.Var((1, 3, 224, 224))
    shapes = []
    for part in body(1.0, "same", 1e-3):
        x = part(x)
        shapes.append((x.shape[1], x.shape[2]))
    groups = [(32, 112), (16, 112), *[(24, 56)] * 2, *[(32, 28)] * 3, *[(64, 14)] * 4, *[(96, 14)] * 3]
    assert shapes == [*groups, *[(160, 7)] * 3, (320, 7)]


@pytest.mark.parametrize(("inputs", "outputs", "stride", "adds"), [(4, 4, 1, True), (4, 4, 2, False), (4, 5, 1, False)])
def test_x_is_added_where_the_shapes_are_equal(inputs, outputs, stride, adds):
    layer, x = InvertedResidual(inputs, outputs, 2, stride), draw(1, inputs, 4, 4)
    got = run(layer, x)
    inner = run(layer.project, run(layer.depthwise, run(layer.expand, x)))
    assert_close(got, inner + x if adds else inner)
    assert inner.min() < 0  # the projection is linear


def test_an_expansion_of_1_has_no_layer_and_dilation_is_the_depthwise_layers():
    assert InvertedResidual(4, 4, 1).expand is None
    layer = InvertedResidual(4, 6, 3, 1, 2)
    assert [(x.window, x.dilation, x.groups) for x in (layer.expand, layer.depthwise, layer.project)] == [
        (1, 1, 1),
        (3, 2, 12),
        (1, 1, 1),
    ]


@pytest.mark.parametrize(("torch", "pad", "eps"), [(False, "same", 1e-3), (True, 1, 1e-5)])
def test_padding_and_eps_are_those_of_the_framework(torch, pad, eps):
    model = mobilenet_v2(None, torch=torch)
    windows = [x for x in model.layers().values() if isinstance(x, nn.ConvNorm) and x.window == 3]
    assert len(windows) == 18 and {x.pad for x in windows} == {pad}
    assert {x.eps for x in model.layers().values() if isinstance(x, nn.BatchNorm)} == {eps}


def test_the_last_layer_narrows_never_and_widens_with_the_network():
    assert mobilenet_v2(None, width=0.35).last.outputs == 1280
    assert mobilenet_v2(None, width=1.4).last.outputs == 1792


def test_results_are_shares_of_one():
    model = mobilenet_v2(0, 4, 0.35)
    got = run(model, draw(2, 3, 32, 32))
    assert got.shape == (2, 4)
    assert_close(got.sum(1), np.ones(2))
