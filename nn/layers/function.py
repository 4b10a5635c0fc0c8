"""Layers without weights that apply a function."""

from collections.abc import Callable
from typing import Any

import cgraph as cg
from cgraph import Node
from nn.layer import Layer
from nn.mode import Mode

ACTIVATIONS: dict[str, Callable[[Any], Node]] = {
    "none": lambda x: x,
    "celu": cg.celu,
    "elu": cg.elu,
    "gelu": cg.gelu,
    "hard_sigmoid": cg.hard_sigmoid,
    "hard_swish": cg.hard_swish,
    "leaky_relu": cg.leaky_relu,
    "mish": cg.mish,
    "relu": cg.relu,
    "relu6": cg.relu6,
    "selu": cg.selu,
    "sigmoid": cg.sigmoid,
    "softmax": lambda x: cg.softmax(x, axis=-1),
    "softplus": cg.softplus,
    "softsign": cg.softsign,
    "swish": cg.swish,
    "tanh": cg.tanh,
    "thresholded_relu": cg.thresholded_relu,
}
Function = str | Callable[[Any], Node]


def activation(function: Function) -> Callable[[Any], Node]:
    """Return an activation by its name in ACTIVATIONS, or the function itself. ValueError for an unknown name."""
    if not isinstance(function, str):
        return function
    if function not in ACTIVATIONS:
        raise ValueError(
            f"activation {function!r} is unknown. Use one of {', '.join(ACTIVATIONS)}, or pass a function."
        )
    return ACTIVATIONS[function]


class Activation(Layer):
    """A pointwise function or softmax, by name or as a function of a node."""

    function: Function = "relu"

    def __post_init__(self) -> None:
        activation(self.function)

    def build(self, *xs: Node, mode: Mode) -> Node:
        return activation(self.function)(xs[0])


class Lambda(Layer):
    """Any function of one node that builds a graph."""

    function: Callable[[Node], Any]

    def build(self, *xs: Node, mode: Mode) -> Any:
        return self.function(xs[0])


class LambdaArray(Layer):
    """Any function of several nodes that builds a graph."""

    function: Callable[..., Any]

    def build(self, *xs: Node, mode: Mode) -> Any:
        return self.function(*xs)
