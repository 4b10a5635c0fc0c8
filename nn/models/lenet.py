"""The network of Owl's example lazy_mnist: one convolution, pooling, dropout, two fully connected layers."""

import cgraph as cg
from nn.layer import Weights, initialise
from nn.layers.container import Sequential
from nn.layers.conv import Conv2d
from nn.layers.function import Activation
from nn.layers.linear import FullyConnected, Linear
from nn.layers.noise import Dropout
from nn.layers.pool import MaxPool2d
from nn.layers.shape import Input


def lenet(weights: Weights = 0, image: tuple[int, int, int] = (1, 28, 28), classes: int = 10) -> Sequential:
    """Return LeNet: images ``[n, c, h, w]`` with values from 0 to 1 to class scores (logits) ``[n, classes]``."""
    c, h, w = image
    features = 32 * (h // 2) * (w // 2)
    parts = (Conv2d(c, 32, 5, pad="same"), Activation(cg.relu), MaxPool2d(2), Dropout(0.1))
    head = (FullyConnected(features, 1024), Activation(cg.relu), Linear(1024, classes))
    return initialise(Sequential(Input(image), *parts, *head), weights)
