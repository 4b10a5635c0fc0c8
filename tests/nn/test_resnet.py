"""ResNet: where strides are, shortcuts of both kinds, and the sizes of the paper's table."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.models import resnet18, resnet20, resnet34, resnet50, resnet56, resnet101, resnet152
from nn.models.resnet import Basic, Bottleneck, shortcut, subsample
from tests.nn.support import assert_close, draw, run


def test_a_subsampled_shortcut_takes_every_second_pixel_and_pads_channels_on_both_sides():
    x = draw(1, 2, 5, 4)
    got = run(nn.Lambda(lambda a: subsample(a, 2, 3)), x)
    assert got.shape == (1, 5, 3, 2)
    np.testing.assert_array_equal(got[:, 1:3], x[:, :, ::2, ::2])
    assert not got[:, [0, 3, 4]].any()


@pytest.mark.parametrize(
    ("sizes", "has_weights"), [((4, 4, 1), False), ((4, 4, 2), True), ((4, 8, 1), True), ((4, 8, 2), True)]
)
def test_a_shortcut_has_weights_where_the_shapes_differ(sizes, has_weights):
    layer = shortcut(*sizes)
    assert (layer is not None) == has_weights
    if layer is not None:
        assert (layer.window, layer.stride, layer.function) == (1, sizes[2], "none")


@pytest.mark.parametrize("inputs", [4, 2])
def test_a_basic_block_is_two_convolutions_a_sum_and_relu(inputs):
    layer, x = Basic(inputs, 4, 2 if inputs == 2 else 1), draw(1, inputs, 6, 6)
    got = run(layer, x)
    inner = run(layer.second, run(layer.first, x))
    assert inner.min() < 0
    assert_close(got, np.maximum(inner + (x if inputs == 4 else run(layer.shortcut, x)), 0))


def test_a_basic_block_without_weights_in_its_shortcut_adds_what_is_subsampled():
    layer, x = Basic(2, 4, 2, True), draw(1, 2, 6, 6)
    got = run(layer, x)
    inner = run(layer.second, run(layer.first, x))
    inner[:, 1:3] += x[:, :, ::2, ::2]
    assert_close(got, np.maximum(inner, 0))
    assert layer.shortcut is None


@pytest.mark.parametrize("first_stride", [False, True])
def test_the_stride_is_in_the_window_of_3_or_in_the_first_convolution(first_stride):
    """Then pixels of odd rows and columns do not count."""
    layer = Bottleneck(2, 16, 2, first_stride)
    assert [x.stride for x in (layer.first, layer.second, layer.third)] == ([2, 1, 1] if first_stride else [1, 2, 1])
    x = draw(1, 2, 6, 6)
    other = x.copy()
    other[:, :, 1::2, 1::2] += 1
    got = run(layer, x)
    assert np.array_equal(got, run(layer, other)) == first_stride
    assert got.shape == (1, 64, 3, 3)
    inner = run(layer.third, run(layer.second, run(layer.first, x)))
    assert_close(got, np.maximum(inner + run(layer.shortcut, x), 0))


def test_eps_and_frozen_reach_every_norm_of_a_bottleneck():
    layer = Bottleneck(2, 2, 2, eps=0.5, frozen=True)
    norms = [x for x in layer.layers().values() if isinstance(x, nn.BatchNorm)]
    assert len(norms) == 4 and {(x.eps, x.frozen) for x in norms} == {(0.5, True)}
    assert layer.parameters().keys() == {f"{x}.conv.weight" for x in ("first", "second", "third", "shortcut")}


def group_shapes(model, side):
    x = model.stem(cg.Var((1, 3, side, side)))
    if not model.small:
        x = nn.MaxPool2d(3, 2, 1)(x)
    shapes = []
    for group in model.groups:
        for block in group:
            x = block(x)
        shapes.append(x.shape[1:])
    return shapes


@pytest.mark.parametrize(
    ("build", "depths", "widths"),
    [
        (resnet18, (2, 2, 2, 2), (64, 128, 256, 512)),
        (resnet34, (3, 4, 6, 3), (64, 128, 256, 512)),
        (resnet50, (3, 4, 6, 3), (256, 512, 1024, 2048)),
        (resnet101, (3, 4, 23, 3), (256, 512, 1024, 2048)),
        (resnet152, (3, 8, 36, 3), (256, 512, 1024, 2048)),
    ],
)
def test_groups_are_those_of_the_papers_table(build, depths, widths):
    model = build(None, 7)
    assert tuple(map(len, model.groups)) == depths
    assert group_shapes(model, 224) == [(width, side, side) for width, side in zip(widths, (56, 28, 14, 7))]
    assert (model.classifier.inputs, model.classifier.outputs) == (widths[-1], 7)
    assert model(cg.Var((2, 3, 64, 64))).shape == (2, 7) and model.samples[0].shape == (3, 224, 224)


@pytest.mark.parametrize(("build", "depth"), [(resnet20, 3), (resnet56, 9)])
def test_networks_for_small_pictures_have_no_pool_and_no_weights_in_shortcuts(build, depth):
    model = build(None)
    assert tuple(map(len, model.groups)) == (depth,) * 3
    assert group_shapes(model, 32) == [(16, 32, 32), (32, 16, 16), (64, 8, 8)]
    assert not [path for path in model.variables() if "shortcut" in path]
    assert model(cg.Var((2, 3, 32, 32))).shape == (2, 10) and model.samples[0].shape == (3, 32, 32)
