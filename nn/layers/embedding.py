"""Embedding: a table with a trained row for each symbol."""

from dataclasses import field

import cgraph as cg
from cgraph import Node
from nn.init import Initialiser, Uniform
from nn.layer import Layer, Parameter
from nn.mode import Mode


class Embedding(Layer):
    """Row ``weight[x]`` for every symbol.

    Operands
        x: integers ``[...]`` from 0 to ``symbols - 1``
    Result
        ``[..., features]``
    """

    symbols: int
    features: int
    start: Initialiser = Uniform()
    weight: Parameter = field(init=False)

    def __post_init__(self) -> None:
        self.hold(weight=Parameter((self.symbols, self.features), self.start))

    def build(self, *xs: Node, mode: Mode) -> Node:
        return cg.take(self.weight, xs[0], axis=0)
