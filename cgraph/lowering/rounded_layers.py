"""The layers that may round their factors to bfloat16, by name: convolutions, products, and gradients for filters."""

from math import prod

from cgraph.ir.graph import Node, Op
from cgraph.ir.traverse import post_order
from cgraph.kernels.isa.bfloat16 import reason_for_float32
from cgraph.kernels.target import Target
from cgraph.ops.leaf import ConstOp, Var
from cgraph.ops.shape import Transpose, unbroadcast
from cgraph.passes.fold_constants import is_widened
from cgraph.passes.layer_names import layer_name


class RoundedLayers:
    """The layers of a graph that may round. Changes: lowering lists the layers, and which of them can round.

    Layers that read the same constant are one layer. Each other product is one of its own.

    Fields
        names: the layers that may round; None for all
        multiply_adds: of each layer, by name, in running order
        able: names of the layers that round if they may
        reason: why the target rounds none; empty if it may round
    """

    def __init__(self, names: frozenset[str] | None = None) -> None:
        self.names = names
        self.multiply_adds: dict[str, int] = {}
        self.able: set[str] = set()
        self.reason = ""
        self._name_of: dict[Node, str] = {}

    def begin(self, roots: tuple[Node, ...], target: Target) -> None:
        """List the layers of a graph that is lowered for a target."""
        self.reason = reason_for_float32(target)
        self.multiply_adds.clear()
        self.able.clear()
        for node in post_order(roots):
            if not node.op.is_layer or node.dtype != "f4" or not node.size:
                continue
            key, right = key_of(node), leaf_of(node.operands[1])
            if key not in self._name_of:
                variable = right.name if isinstance(right, Var) else None
                otherwise = variable or node.origin.name or op_of(node).name.removesuffix("_epilogue")
                self._name_of[key] = layer_name(right, otherwise, self.multiply_adds)
            name = self._name_of[key]
            self.multiply_adds[name] = self.multiply_adds.get(name, 0) + work_of(node)

    def allow(self, node: Node) -> bool:
        """Return True if a layer may round. Lowering calls it last, once the layer can."""
        name = self._name_of.get(key_of(node))
        if name is None:
            return self.names is None
        self.able.add(name)
        return self.names is None or name in self.names

    def replace_layer(self, layer: Node, other: Node) -> None:
        """Give another node the name of a layer."""
        if layer in self._name_of:
            self._name_of[other] = self._name_of[layer]


def op_of(node: Node) -> Op:
    """Return the op of a layer without its epilogue."""
    return getattr(node.op, "conv", node.op)


def work_of(node: Node) -> int:
    """Return the multiply-adds of a layer; of frames of volumes, whose op counts none, from the filters' size."""
    x, y = node.operands[:2]
    return op_of(node).multiply_adds(x.spec, y.spec) or node.size * prod(y.shape[1:])


def key_of(node: Node) -> Node:
    """Return what identifies a layer: the constant that it multiplies by, else its own node."""
    leaf = leaf_of(node.operands[1])
    return leaf if isinstance(leaf.op, ConstOp) else node


def leaf_of(right: Node) -> Node:
    """Return the value that is broadcast, transposed or widened."""
    right = unbroadcast(right)
    while isinstance(right.op, Transpose) or is_widened(right):
        (right,) = right.operands
    return right
