"""Fusion of matrix products with a following sum and activation, and of sums of products."""

from collections.abc import Callable

from cgraph.ir.graph import Node, Op, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.kernels.activation.calls import NONE, RELU
from cgraph.ops.activation import Relu
from cgraph.ops.arithmetic import Add
from cgraph.ops.linear import Matmul
from cgraph.ops.physical.matmul import MatmulEpilogue
from cgraph.ops.reduce import Sum
from cgraph.ops.shape import Reshape, Transpose, ViewOp, reshape, swapaxes
from cgraph.record import replace


def fuse_matmul(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Fuse float products with the ops that follow, if no other node reads the value in between: fewer bytes.

    Values change in the last places: the sum begins with the addend, and a sum of products has one order. Not fused:
    activations other than relu.
    """
    graph = Roots.of(outputs)
    if not graph.has(Matmul, MatmulEpilogue):
        return outputs

    def change(node: Node, new: New) -> Node | None:
        rule = RULES.get(type(node.op))
        if rule is None:
            return None
        return rule(node.op, tuple([new[x] for x in node.operands]), tuple(map(graph.is_inner, node.operands)))

    return rebuild(graph, change)


def is_product(x: Node, own: bool) -> bool:
    """Return True for a product of floats with a nonempty sum that no other node reads."""
    return own and isinstance(x.op, Matmul) and x.dtype.kind == "f" and x.operands[0].shape[-1] > 0


def take_sum(op: Op, operands: tuple[Node, ...], own: tuple[bool, ...]) -> Node | None:
    """x @ y + z, z + x @ y -> one op"""
    for i in (0, 1):
        product, other = operands[i], operands[1 - i]
        if is_product(product, own[i]) and product is not other:
            return apply(MatmulEpilogue(True), *product.operands, other)
    return None


def take_relu(op: Op, operands: tuple[Node, ...], own: tuple[bool, ...]) -> Node | None:
    """relu(x @ y), relu(x @ y + z) -> one op"""
    (product,) = operands
    if is_product(product, own[0]):
        return apply(MatmulEpilogue(False, RELU), *product.operands)
    if own[0] and isinstance(product.op, MatmulEpilogue) and product.op.activation == NONE:
        return apply(replace(product.op, activation=RELU), *product.operands)
    return None


def join_batches(op: Op, operands: tuple[Node, ...], own: tuple[bool, ...]) -> Node | None:
    """sum over the leading axes of x.T @ y -> x.T @ y of tall ones, as in the gradient of weights"""
    (product,) = operands
    lead = tuple(range(product.ndim - 2))
    if not is_product(product, own[0]) or op.axes != lead:  # type: ignore[attr-defined]
        return None
    x, y = product.operands
    turned = (*lead, x.ndim - 1, x.ndim - 2)
    if not isinstance(x.op, Transpose) or x.op.axes != turned or is_moved(x.operands[0]) or is_moved(y):
        return None
    tall = [reshape(z, (-1, z.shape[-1])) for z in (x.operands[0], y)]
    return apply(Matmul(), swapaxes(tall[0], 0, 1), tall[1])


def is_moved(x: Node) -> bool:
    """Return True for a view of other bytes that one tall matrix would have to copy."""
    return isinstance(x.op, ViewOp) and not isinstance(x.op, Reshape)


RULES: dict[type, Callable[[Op, tuple[Node, ...], tuple[bool, ...]], Node | None]] = {
    Add: take_sum,
    Relu: take_relu,
    Sum: join_batches,
}
