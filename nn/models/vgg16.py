"""VGG-16. Source: Simonyan and Zisserman 2014, arXiv:1409.1556, configuration D."""

import cgraph as cg
from nn.init import HE_NORMAL
from nn.layer import Layer, Weights, initialise
from nn.layers.container import Sequential
from nn.layers.conv import Conv2d
from nn.layers.function import Activation
from nn.layers.linear import FullyConnected, Linear
from nn.layers.noise import Dropout
from nn.layers.pool import MaxPool2d
from nn.layers.shape import Input

GROUPS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))


def vgg16(weights: Weights = 0, classes: int = 1000) -> Sequential:
    """Return VGG-16: images ``[n, 3, 224, 224]`` to class scores (logits) ``[n, classes]``."""
    parts: list[Layer] = [Input((3, 224, 224))]
    before = 3
    for channels, count in GROUPS:
        for _ in range(count):
            parts += [Conv2d(before, channels, 3, pad=1, start=HE_NORMAL), Activation(cg.relu)]
            before = channels
        parts.append(MaxPool2d(2))
    parts += [FullyConnected(before * 7 * 7, 4096, start=HE_NORMAL), Activation(cg.relu), Dropout(0.5)]
    parts += [Linear(4096, 4096, start=HE_NORMAL), Activation(cg.relu), Dropout(0.5), Linear(4096, classes)]
    return initialise(Sequential(*parts), weights)
