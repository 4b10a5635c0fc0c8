"""Join a product of matrices with the sum and the activation that follow it."""

from collections.abc import Callable

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.kernels.calls.activation import NONE, RELU
from cgraph.ops.activation import Relu
from cgraph.ops.arithmetic import Add
from cgraph.ops.linear import Matmul
from cgraph.ops.physical.matmul import MatmulEpilogue
from cgraph.record import replace


def fuse_matmul(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Products of floats take in what follows them, as far as nobody else reads what lies between: fewer bytes.

    Values change in the last places: the sum begins with what is added. Not taken in: activations other than relu.
    """
    graph = Roots.of(outputs)
    if not graph.has(Matmul, MatmulEpilogue):
        return outputs

    def change(node: Node, new: New) -> Node | None:
        rule = RULES.get(type(node.op))
        return rule(tuple([new[x] for x in node.operands]), tuple(map(graph.is_inner, node.operands))) if rule else None

    return rebuild(graph, change)


def is_product(x: Node, own: bool) -> bool:
    """A product of floats, with something to add up, that nobody else reads."""
    return own and isinstance(x.op, Matmul) and x.dtype.kind == "f" and x.operands[0].shape[-1] > 0


def take_sum(operands: tuple[Node, ...], own: tuple[bool, ...]) -> Node | None:
    """x @ y + z, z + x @ y -> one op"""
    for i in (0, 1):
        product, other = operands[i], operands[1 - i]
        if is_product(product, own[i]) and product is not other:
            return apply(MatmulEpilogue(True), *product.operands, other)
    return None


def take_relu(operands: tuple[Node, ...], own: tuple[bool, ...]) -> Node | None:
    """relu(x @ y), relu(x @ y + z) -> one op"""
    (product,) = operands
    if is_product(product, own[0]):
        return apply(MatmulEpilogue(False, RELU), *product.operands)
    if own[0] and isinstance(product.op, MatmulEpilogue) and product.op.activation == NONE:
        return apply(replace(product.op, activation=RELU), *product.operands)
    return None


RULES: dict[type, Callable[[tuple[Node, ...], tuple[bool, ...]], Node | None]] = {Add: take_sum, Relu: take_relu}
