"""A float network for the quantiser: its layers, and the values that become bytes.

A layer reads bytes. Nodes upstream that compute the same from bytes as from floats, or are pointwise, read bytes as
well, back to the next layers, whose results become bytes after their bounds. A chain of pointwise ops is one loop and
stays float inside. Nodes that are upstream of no layer stay unchanged: scores, softmaxes, norms, and sums with them.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from cgraph.errors import GraphError
from cgraph.ir.graph import Node
from cgraph.ir.origin import keeps_origin
from cgraph.ir.rewrite import with_new_operands
from cgraph.ir.traverse import at_origins, post_order, users_of
from cgraph.ops.arithmetic import TrueDivide
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.family import Pointwise
from cgraph.ops.join import Concat
from cgraph.ops.leaf import ConstOp, Var
from cgraph.ops.pad import Pad
from cgraph.ops.pool import MaxPool
from cgraph.ops.quantise import Dequantize, Quantize
from cgraph.ops.reduce import Sum
from cgraph.ops.resize import Resize
from cgraph.ops.shape import BroadcastTo, Reshape, Transpose
from cgraph.ops.slicing import Slice
from cgraph.passes.drop_identities import drop_identities
from cgraph.passes.fold_constants import fold_constants
from cgraph.passes.fold_norm import fold_norm
from cgraph.passes.freeze import freeze
from cgraph.passes.integers.patterns import PIXELS, IsInner
from cgraph.quantiser.layers import WeightLayer, layers_of
from cgraph.record import Record

ALIKE = (Reshape, Transpose, Slice, MaxPool, Pad)  # ops whose result contains the operand's numbers, and zeros
BETWEEN = (*ALIKE, Concat, AvgPool, Resize, Pointwise, BroadcastTo)


class Network(Record, eq=False):
    """A graph whose Vars are its inputs, and the values that become bytes.

    Fields
        outputs, order: the graph, operands before users
        all_layers: its layers, in running order
        layers: the layers that are quantised
        bytes: for each value that becomes bytes, in running order, the value whose scale it has
    """

    outputs: tuple[Node, ...]
    order: Sequence[Node]
    all_layers: tuple[WeightLayer, ...]
    layers: tuple[WeightLayer, ...]
    bytes: dict[Node, Node]

    def without(self, names: Iterable[str]) -> "Network":
        """Return the network with the layers of these names left as floats. GraphError for an unknown name."""
        left = set(names)
        unknown = left.difference(x.name for x in self.all_layers)
        if unknown:
            layer_names = ", ".join(x.name for x in self.all_layers) or "none"
            raise GraphError(f"the network has no layer {min(unknown)!r} to skip. Use one of {layer_names}")
        layers = tuple(x for x in self.layers if x.name not in left)
        values = ByteValues(self.order, *reading(self.order, self.outputs), self.all_layers, layers)
        return Network(self.outputs, self.order, self.all_layers, layers, values.bytes())

    @keeps_origin
    def rebuilt(
        self, layer: Callable[[WeightLayer, Node], Node], value: Callable[[Node, Node], Node]
    ) -> tuple[dict[Node, Node], tuple[Node, ...]]:
        """Return the graph with other layers and values.

        Parameters
            layer: function of a layer and its present operand that returns the sum and bias
            value: function of a value that becomes bytes and its present node that returns its replacement
        Result
            the new node of each old one, and the outputs
        """
        new: dict[Node, Node] = {}
        ends = {x.end: x for x in self.layers}
        for node in at_origins(self.order):
            if node in ends:
                copy = layer(ends[node], new[ends[node].x])
            else:
                copy = with_new_operands(node, tuple([new[x] for x in node.operands]))
            new[node] = value(node, copy) if node in self.bytes else copy
        return new, tuple(new[x] for x in self.outputs)


def prepare(outputs: Iterable[Node], inputs: Iterable[Var]) -> tuple[Node, ...]:
    """Return a graph with its weights as constants, and batch norms as factors and terms.

    Raises
        UnassignedError: a Var that is not an input has no value
        GraphError: the graph contains quantised values
    """
    roots = tuple(outputs)
    input_vars = set(inputs)
    order = post_order(roots)
    for x in order:
        if isinstance(x.op, Quantize | Dequantize):
            raise GraphError(f"the network is quantised already, at {x.name} ({x.where}). Pass the float network")
    roots = freeze(roots, [x for x in order if isinstance(x, Var) and x not in input_vars])
    return drop_identities(fold_norm(fold_constants(roots)))


def network_of(outputs: tuple[Node, ...]) -> Network:
    """Return the network of a graph from `prepare`, with all of its layers."""
    order = post_order(outputs)
    users, is_inner = reading(order, outputs)
    layers = tuple(layers_of(order, users, is_inner))
    return Network(outputs, order, layers, layers, ByteValues(order, users, is_inner, layers, layers).bytes())


def reading(order: Sequence[Node], outputs: Iterable[Node]) -> tuple[dict[Node, list[Node]], IsInner]:
    """Return each node's users, and a predicate: one user and not an output."""
    users, shown = users_of(order), set(outputs)
    return users, lambda node: len(users[node]) == 1 and node not in shown


class ByteValues(Record, eq=False):
    """Selection of the values that become bytes, when `layers` of `all_layers` are quantised."""

    order: Sequence[Node]
    users: dict[Node, list[Node]]
    is_inner: IsInner
    all_layers: tuple[WeightLayer, ...]
    layers: tuple[WeightLayer, ...]

    def bytes(self) -> dict[Node, Node]:
        """Return, for each value that becomes bytes, the value whose scale it has."""
        upstream, interior = self.upstream(), self.interior()
        ends = {x.last for x in self.all_layers}.union(x.x for x in self.layers)
        candidates = [
            x for x in self.order if x in upstream and x not in interior and (x in ends or not self.passes(x))
        ]
        scale_of = {x: x for x in candidates if x.dtype == np.float32 and x.size}
        for x in scale_of:
            if isinstance(x.op, ALIKE) and x.operands[0] in scale_of:
                scale_of[x] = x.operands[0]
            elif self.is_inner(x) and isinstance(self.users[x][0].op, Concat) and self.users[x][0] in scale_of:
                scale_of[x] = self.users[x][0]
        return {x: root(x, scale_of) for x in scale_of}

    def upstream(self) -> set[Node]:
        """Return the values that layers read, and those they are computed from, back to other layers."""
        cores, nodes = {x.core for x in self.layers}, set()
        for x in reversed(self.order):
            if any((u in cores and u.operands[0] is x) or (u in nodes and self.is_between(u)) for u in self.users[x]):
                nodes.add(x)
        return nodes

    def is_between(self, node: Node) -> bool:
        """Return True if the node computes bytes from bytes, or floats within one loop."""
        if isinstance(node.op, Pad):
            return node.op.value == 0
        return isinstance(node.op, BETWEEN) or self.is_total(node)

    def is_total(self, node: Node) -> bool:
        """Return True for the sum over all pixels that a mean divides, or for its reshape."""
        while isinstance(node.op, Reshape):
            (node,) = node.operands
        if not isinstance(node.op, Sum) or node.op.axes != PIXELS or node.operands[0].ndim != len(PIXELS) + 2:
            return False
        while self.is_inner(node) and isinstance(self.users[node][0].op, Reshape):
            (node,) = self.users[node]
        return self.is_inner(node) and isinstance(self.users[node][0].op, TrueDivide)

    def interior(self) -> set[Node]:
        """Return the nodes between a layer's op and the last of its bounds."""
        nodes: set[Node] = set()
        for layer in self.all_layers:
            node = layer.core
            while node is not layer.last:
                nodes.add(node)
                (node,) = self.users[node]
        return nodes

    def passes(self, node: Node) -> bool:
        """Return True if the value stays float between two pointwise ops."""
        if isinstance(node.op, ConstOp):
            return not any(isinstance(u.op, Concat) for u in self.users[node])
        if isinstance(node.op, BroadcastTo) or self.is_total(node):
            return True
        user = self.users[node][0]
        return isinstance(node.op, Pointwise) and self.is_inner(node) and isinstance(user.op, Pointwise | BroadcastTo)


def root(x: Node, shared: dict[Node, Node]) -> Node:
    """Return the value at the end of a chain of shared scales."""
    while shared[x] is not x:
        x = shared[x]
    return x
