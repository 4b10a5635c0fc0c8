"""One transposed copy for several products of few rows."""

from math import prod

from cgraph.ir.graph import Node, apply
from cgraph.ir.rewrite import rebuild_node
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.kernels.gemm.portions import direct_rows
from cgraph.kernels.target import Target
from cgraph.ops.linear import Matmul
from cgraph.ops.physical.matmul import MatmulEpilogue
from cgraph.ops.shape import Contiguous, Transpose

PRODUCTS = (Matmul, MatmulEpilogue)


def transpose_once(outputs: tuple[Node, ...], target: Target) -> tuple[Node, ...]:
    """Copy a transposed right side of several products once, where each product then reads the copy directly.

    Otherwise each product packs the whole right side, as in the gradients of a recurrent layer's states. Values change
    in the last places if the sums are so long that packed ones are cut. May increase bytes: the copy waits from the
    first product to the last, instead of panels at each product.
    """
    graph = Roots.of(outputs)
    if target.has_blocks or not graph.has(Transpose) or not graph.has(*PRODUCTS):
        return outputs
    readers: dict[Node, int] = {}
    for node in graph.order:
        if isinstance(node.op, PRODUCTS) and is_read_as_it_lies(node):
            readers[node.operands[1]] = readers.get(node.operands[1], 0) + 1

    def change(node: Node, new: New) -> Node:
        product = rebuild_node(node, new)
        if not isinstance(node.op, PRODUCTS) or readers.get(node.operands[1], 0) < 2 or not is_read_as_it_lies(node):
            return product
        x, y, *rest = product.operands
        return apply(product.op, x, apply(Contiguous(), y), *rest)

    return rebuild(graph, change)


def is_read_as_it_lies(node: Node) -> bool:
    """Return True for a product of few rows of floats whose right side is a transposed matrix, and whose kernel would
    read a copy directly.
    """
    y = node.operands[1]
    if not isinstance(y.op, Transpose) or y.dtype.kind != "f" or prod(y.shape[:-2]) != 1 or not node.size:
        return False
    k, n = y.shape[-2:]
    return 1 < node.shape[-2] <= direct_rows(n * y.dtype.itemsize, k) and node.ndim == y.ndim
