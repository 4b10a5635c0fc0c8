"""Fully connected layers."""

from dataclasses import field

import cgraph as cg
from cgraph import Node
from nn.init import GLOROT_UNIFORM, ZEROS, Initialiser
from nn.layer import Layer, Parameter
from nn.mode import Mode


class Linear(Layer):
    """``x @ weight + bias`` over the last axis.

    Operands
        x: ``[..., inputs]``
    Result
        ``[..., outputs]``
    """

    inputs: int
    outputs: int
    use_bias: bool = True
    start: Initialiser = GLOROT_UNIFORM
    weight: Parameter = field(init=False)
    bias: Parameter | None = field(init=False)

    def __post_init__(self) -> None:
        self.hold(weight=Parameter((self.inputs, self.outputs), self.start))
        self.hold(bias=Parameter((self.outputs,), ZEROS) if self.use_bias else None)

    def build(self, *xs: Node, mode: Mode) -> Node:
        y = cg.matmul(xs[0], self.weight)
        return y if self.bias is None else y + self.bias


class FullyConnected(Linear):
    """A Linear over all axes of a sample at once.

    Operands
        x: ``[n, ...]`` with `inputs` elements a sample
    Result
        ``[n, outputs]``
    """

    def build(self, *xs: Node, mode: Mode) -> Node:
        x = xs[0]
        return super().build(cg.reshape(x, (x.shape[0], self.inputs)), mode=mode)
