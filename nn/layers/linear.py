"""Fully connected layers."""

from dataclasses import field

import numpy as np

import cgraph as cg
from cgraph import Node
from nn.checks import check_axes
from nn.init import GLOROT_UNIFORM, ZEROS, Initialiser
from nn.layer import Layer, Parameter
from nn.mode import Mode
from nn.torch_names import TorchNames


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

    def from_torch(self, names: TorchNames) -> dict[str, np.ndarray]:
        arrays = super().from_torch(names)
        return arrays | {"weight": arrays["weight"].T}


class SwiGLU(Layer):
    """``(swish(x @ gate) * (x @ up)) @ down``: the feed-forward part of Llama.

    Operands
        x: ``[..., features]``
    Fields
        hidden: number of columns of `gate` and `up`
    Result
        ``[..., features]``
    Source
        Shazeer 2020, arXiv:2002.05202
    """

    features: int
    hidden: int
    gate: Linear = field(init=False)
    up: Linear = field(init=False)
    down: Linear = field(init=False)

    def __post_init__(self) -> None:
        self.hold(gate=Linear(self.features, self.hidden, False), up=Linear(self.features, self.hidden, False))
        self.hold(down=Linear(self.hidden, self.features, False))

    def build(self, *xs: Node, mode: Mode) -> Node:
        gates, ups = (part(xs[0], mode=mode) for part in (self.gate, self.up))
        return self.down(cg.swish(gates) * ups, mode=mode)


class FullyConnected(Linear):
    """A Linear over all axes of a sample at once.

    Operands
        x: ``[n, ...]`` with `inputs` elements per sample
    Result
        ``[n, outputs]``
    """

    def build(self, *xs: Node, mode: Mode) -> Node:
        x = xs[0]
        check_axes(self, x, "n ...")
        return super().build(cg.reshape(x, (x.shape[0], self.inputs)), mode=mode)
