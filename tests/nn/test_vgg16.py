"""VGG-16 as its paper's configuration D: thirteen convolutions, five pools, three fully connected layers."""

import pytest

import cgraph as cg
from nn.layers.conv import Conv2d
from nn.layers.linear import FullyConnected, Linear
from nn.layers.noise import Dropout
from nn.layers.pool import MaxPool2d
from nn.models import vgg16


def test_layers_are_those_of_configuration_d():
    parts = vgg16(None).parts
    widths = [x.outputs if isinstance(x, Conv2d) else "M" for x in parts if isinstance(x, Conv2d | MaxPool2d)]
    d = [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"]
    assert widths == d
    assert all((x.window, x.pad, x.stride) == (3, 1, 1) for x in parts if isinstance(x, Conv2d))
    tail = [x for x in parts if isinstance(x, Linear)]
    assert [(type(x), x.inputs, x.outputs) for x in tail] == [
        (FullyConnected, 512 * 7 * 7, 4096),
        (Linear, 4096, 4096),
        (Linear, 4096, 1000),
    ]


def test_relu_follows_every_layer_but_the_last_and_dropout_the_two_large_ones():
    kinds = [type(x).__name__ for x in vgg16(None).parts[-7:]]
    assert kinds == ["FullyConnected", "Activation", "Dropout", "Linear", "Activation", "Dropout", "Linear"]
    assert [x.rate for x in vgg16(None).parts if isinstance(x, Dropout)] == [0.5, 0.5]
    names = [type(x).__name__ for x in vgg16(None).parts]
    assert all(after == "Activation" for name, after in zip(names, names[1:]) if name == "Conv2d")


@pytest.mark.parametrize("classes", [10, 1000])
def test_each_pool_halves_the_sides_and_scores_are_as_many_as_classes(classes):
    x, sides = cg.Var((1, 3, 224, 224)), []
    model = vgg16(None, classes)
    for part in model.parts:
        x = part(x)
        if isinstance(part, MaxPool2d):
            sides.append(x.shape[2:])
    assert sides == [(112, 112), (56, 56), (28, 28), (14, 14), (7, 7)] and x.shape == (1, classes)
    assert model.samples[0].shape == (3, 224, 224)
