"""Simulation of quantised layers in float arithmetic."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cgraph.function import Function, compile
from cgraph.ir.graph import Node
from cgraph.ops.compare import where
from cgraph.ops.conv import Conv2d
from cgraph.ops.leaf import Var
from cgraph.ops.quantise import dequantize, quantize
from cgraph.ops.reduce import mean
from cgraph.quantiser.layers import WeightLayer
from cgraph.quantiser.network import Network
from cgraph.quantiser.ranges import ByteForm, IntegerWeights, Quantum
from cgraph.quantiser.rebuild import apply_layer
from cgraph.running.samples import Samples
from cgraph.storage.cell import assign_all
from cgraph.system.progress import Tell, with_progress


class Simulation:
    """A float network that simulates some of its layers as quantised. Changes: its Vars, by `choose` and `correct`.

    Fields
        network: all layers that may be quantised
        outputs: its outputs, then each layer's means
        biases: present corrections of each layer's channels
    """

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Var],
        quanta: Mapping[Node, Quantum],
        form: ByteForm,
        weights: Mapping[WeightLayer, IntegerWeights],
    ) -> None:
        self.network, self.inputs, self.integers = network, tuple(inputs), weights
        self.weights = {x: Var(x.weights.shape, name=f"weights of {x.name}") for x in network.layers}
        self.bias_vars = {x: Var(x.bias.shape, name=f"bias of {x.name}") for x in network.layers}
        self.flags = {x: Var((), "bool", f"flag{i}") for i, x in enumerate(network.bytes)}
        self.biases = {x: x.bias for x in network.layers}

        def layer(x: WeightLayer, operand: Node) -> Node:
            return apply_layer(x, operand, self.weights[x], self.bias_vars[x])

        def value(node: Node, plain: Node) -> Node:
            quantum = quanta[node]
            small = quantize(plain, quantum.scale, quantum.zero, form.dtype)
            return where(self.flags[node], dequantize(small, quantum.scale, quantum.zero), plain)

        new, self.outputs = network.rebuilt(layer, value)
        self.means = {x: mean_of_channels(x, new[x.end]) for x in network.layers}
        self.choose(())

    def choose(self, layers: Iterable[WeightLayer]) -> None:
        """Quantise these layers and the values that they read; leave all others float."""
        names = {x.name for x in layers}
        network = self.network.without(x.name for x in self.network.layers if x.name not in names)
        values: dict[Var, Any] = {flag: node in network.bytes for node, flag in self.flags.items()}
        for x, weights in self.weights.items():
            values[weights] = self.integers[x].floats if x.name in names else x.weights
            values[self.bias_vars[x]] = self.biases[x] if x.name in names else x.bias
        assign_all(values)

    def function(self, of: Sequence[Node], frozen: bool) -> Function:
        """Return a Function of the samples, with weights `frozen` at their present values or free to change between
        runs."""
        freeze = [*self.weights.values(), *self.flags.values()] if frozen else []
        return compile(of, self.inputs, freeze=freeze)

    def correct(self, layers: Sequence[WeightLayer], samples: Samples, tell: Tell) -> None:
        """Quantise these layers, and change their biases one by one until channels have the means of the float network.

        Source: Nagel and others 2019, arXiv:1906.04721, section 4.2, by samples.
        """
        self.biases = {x: x.bias for x in self.network.layers}
        self.choose(())
        if not layers:
            return
        means = [self.means[x] for x in layers]
        targets = averages(self.function(means, True), with_progress("means", samples, tell))
        self.choose(layers)
        function = self.function(means, True)
        for i, layer in enumerate(with_progress("biases", layers, tell)):
            got = averages(function, samples)
            self.biases[layer] = (layer.bias + (targets[i] - got[i])).astype("float32")
            self.bias_vars[layer].assign(self.biases[layer])


def averages(function: Function, samples: Iterable[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    """Return the mean of each output over samples, in double precision."""
    runs = [function(*arrays) for arrays in samples]
    return [np.mean(outputs, axis=0, dtype="float64") for outputs in zip(*runs)]


def mean_of_channels(layer: WeightLayer, x: Node) -> Node:
    """Return the mean of each channel of a layer's sums: ``[n, c, h, w]`` of images, ``[..., c]`` of rows."""
    channel = 1 if isinstance(layer.core.op, Conv2d) else x.ndim - 1
    return mean(x, tuple(i for i in range(x.ndim) if i != channel))
