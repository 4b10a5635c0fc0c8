"""Fully connected layers with relu between them."""

import cgraph as cg
from nn.init import HE_NORMAL
from nn.layer import Layer, Weights, initialise
from nn.layers.container import Sequential
from nn.layers.function import Activation
from nn.layers.linear import Linear
from nn.layers.shape import Input


def mlp(weights: Weights = 0, sizes: tuple[int, ...] = (784, 300, 100, 10)) -> Sequential:
    """Return the network: rows ``[n, sizes[0]]`` to class scores (logits) ``[n, sizes[-1]]``."""
    parts: list[Layer] = [Input((sizes[0],))]
    for i, (before, after) in enumerate(zip(sizes, sizes[1:])):
        parts += [Activation(cg.relu)] if i else []
        parts.append(Linear(before, after, start=HE_NORMAL))
    return initialise(Sequential(*parts), weights)
