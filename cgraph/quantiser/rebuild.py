"""The network with quantised values: what `compile` computes on bytes, and what is written as ONNX (QDQ)."""

from collections.abc import Mapping

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ops.conv import Conv2d, conv2d
from cgraph.ops.leaf import Const
from cgraph.ops.linear import matmul
from cgraph.ops.quantise import dequantize, quantize
from cgraph.ops.shape import reshape
from cgraph.quantiser.layers import Layer
from cgraph.quantiser.network import Network
from cgraph.quantiser.ranges import Form, Quantum, Weights


def quantised(
    network: Network,
    quanta: Mapping[Node, Quantum],
    form: Form,
    weights: Mapping[Layer, Weights],
    biases: Mapping[Layer, np.ndarray],
) -> tuple[Node, ...]:
    """``dequantize(quantize(x))`` in place of each value that becomes bytes, and dequantised constants in the layers.

    Parameters
        quanta: of each value that becomes bytes
        biases: what is added to each layer's channels
    """

    def layer(x: Layer, given: Node) -> Node:
        held = weights[x]
        filters = dequantize(Const(held.numbers, copy=False), held.wide)
        bias = dequantize(Const(held.bias(biases[x])), held.unit) if biases[x].any() else None
        return applied(x, given, filters, bias)

    def value(node: Node, made: Node) -> Node:
        quantum = quanta[node]
        small = quantize(made, quantum.scale, quantum.zero, form.dtype)
        return dequantize(small, quantum.scale, quantum.zero)

    return network.rebuilt(layer, value)[1]


def applied(layer: Layer, x: Node, weights: Node, bias: Node | None) -> Node:
    """A layer of other weights."""
    op = layer.core.op
    if isinstance(op, Conv2d):
        made = conv2d(x, weights, op.stride, op.pad, op.dilation, op.groups)
        return made if bias is None else made + reshape(bias, (-1, 1, 1))
    made = matmul(x, weights)
    return made if bias is None else made + bias
