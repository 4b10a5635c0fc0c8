"""The quantised network: `compile` computes it on bytes, and ONNX files contain it as QDQ pairs."""

from collections.abc import Mapping

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ops.conv import Conv2d, conv2d
from cgraph.ops.leaf import Const
from cgraph.ops.linear import matmul
from cgraph.ops.quantise import dequantize, quantize
from cgraph.ops.shape import reshape
from cgraph.quantiser.layers import WeightLayer
from cgraph.quantiser.network import Network
from cgraph.quantiser.ranges import ByteForm, IntegerWeights, Quantum


def quantised_outputs(
    network: Network,
    quanta: Mapping[Node, Quantum],
    form: ByteForm,
    weights: Mapping[WeightLayer, IntegerWeights],
    biases: Mapping[WeightLayer, np.ndarray],
) -> tuple[Node, ...]:
    """Replace values by ``dequantize(quantize(x))``, and the layers' constants by dequantised ones.

    Parameters
        quanta: scale of each value that becomes bytes
        biases: correction of each layer's channels
    """

    def layer(x: WeightLayer, operand: Node) -> Node:
        integers = weights[x]
        filters = dequantize(Const(integers.numbers, copy=False), integers.wide)
        bias = dequantize(Const(integers.bias(biases[x])), integers.unit) if biases[x].any() else None
        return apply_layer(x, operand, filters, bias)

    def value(node: Node, new: Node) -> Node:
        quantum = quanta[node]
        small = quantize(new, quantum.scale, quantum.zero, form.dtype)
        return dequantize(small, quantum.scale, quantum.zero)

    return network.rebuilt(layer, value)[1]


def apply_layer(layer: WeightLayer, x: Node, weights: Node, bias: Node | None) -> Node:
    """Apply a layer with other weights."""
    op = layer.core.op
    if isinstance(op, Conv2d):
        sums = conv2d(x, weights, op.stride, op.pad, op.dilation, op.groups)
        return sums if bias is None else sums + reshape(bias, (-1, 1, 1))
    sums = matmul(x, weights)
    return sums if bias is None else sums + bias
