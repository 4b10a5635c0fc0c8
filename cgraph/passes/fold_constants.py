"""Constant folding."""

from collections.abc import Mapping, Sequence

import numpy as np

from cgraph.dtypes.convert import FLOAT32, is_storage
from cgraph.ir.graph import Node
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ir.spec import Bundle
from cgraph.kernels.mapped import in_c_order, release
from cgraph.ops.arithmetic import Cast
from cgraph.ops.conv import Conv, ConvTranspose
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.linear import Matmul
from cgraph.ops.shape import BroadcastTo, Transpose, unbroadcast

_SMALL = 1 << 16


def fold_constants(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Replace pure nodes of constants by their value: fewer nodes.

    May worsen: bytes kept for good, so a result larger than its operands (a fill) is folded only while it is small, or
    where a convolution or a product packs what becomes of it. Not folded: any other broadcast, and a large matrix that
    is transposed for products alone, which cost nothing as they are; large constants of a storage dtype, which stay as
    small; ops that are not pure. The value is the op's meaning, which may differ in the last place from the kernel's.
    """
    graph = Roots.of(outputs)
    computable = [n for n in graph.order if is_of_constants(n.operands)] if graph.has(ConstOp) else []
    if not computable:
        return outputs
    users = graph.users
    if all(is_free(n, users) for n in computable):
        return outputs
    packed = packed_in_the_end(graph)

    def change(node: Node, new: New) -> Node | None:
        operands = tuple([new[x] for x in node.operands])
        if not is_of_constants(operands) or not node.op.pure or isinstance(node.spec, Bundle) or is_free(node, users):
            return None
        if node.nbytes > max(_SMALL, sum(unbroadcast(x).nbytes for x in operands)) and node not in packed:
            return None
        values = [v for v in map(constant_of, operands) if v is not None]
        with np.errstate(all="ignore"):
            value = in_c_order(np.asarray(node.op.meaning(*values), node.dtype))
        for x in values:
            release(x)
        return Const(value, copy=False)

    return rebuild(graph, change)


def is_of_constants(operands: tuple[Node, ...]) -> bool:
    """Return True if there are operands and all are constants."""
    return bool(operands) and all(map(is_constant, operands))


def is_constant(node: Node) -> bool:
    """Return True for a constant, broadcast or transposed or unchanged."""
    while isinstance(node.op, BroadcastTo | Transpose):
        node = node.operands[0]
    return isinstance(node.op, ConstOp)


def is_free(node: Node, users: Mapping[Node, Sequence[Node]]) -> bool:
    """Return True if readers take the node without a copy: a broadcast; a large matrix transposed for products, or
    widened.
    """
    if isinstance(node.op, BroadcastTo):
        return not are_filters(node, users)
    if is_widened(node):
        return node.nbytes > _SMALL
    return isinstance(node.op, Transpose) and node.nbytes > _SMALL and is_for_products(node, users)


def are_filters(node: Node, users: Mapping[Node, Sequence[Node]]) -> bool:
    """Return True if a convolution reads the node as its filters, which are packed once if they are constant."""
    return any(isinstance(u.op, Conv | ConvTranspose) and u.operands[1] is node for u in users[node])


def packed_in_the_end(graph: Roots) -> set[Node]:
    """Return the nodes computed of constants alone whose values, or values computed of them, are packed: as the filters
    of a convolution, or as the right side of a product.
    """
    computed: set[Node] = set()
    for node in graph.order:
        is_pure = bool(node.operands) and node.op.pure and not isinstance(node.spec, Bundle)
        if is_pure and all(x in computed or is_constant(x) for x in node.operands):
            computed.add(node)
    packed: set[Node] = set()
    for node in reversed(graph.order):
        readers = graph.users[node]
        if node in computed and (are_packed(node, readers) or any(x in packed for x in readers)):
            packed.add(node)
    return packed


def are_packed(node: Node, readers: Sequence[Node]) -> bool:
    """Return True if a convolution or a product of one matrix reads the node as its right side."""
    kinds = (Conv, ConvTranspose, Matmul) if node.ndim == 2 else (Conv, ConvTranspose)
    return any(isinstance(x.op, kinds) and x.operands[1] is node for x in readers)


def is_for_products(node: Node, users: Mapping[Node, Sequence[Node]]) -> bool:
    """Return True if only products of floats read the node, perhaps broadcast."""
    return node.dtype.kind == "f" and all(
        isinstance(u.op, Matmul) or (isinstance(u.op, BroadcastTo) and is_for_products(u, users)) for u in users[node]
    )


def is_widened(node: Node) -> bool:
    """Return True for a constant of a storage dtype that is widened to float32."""
    source = node.operands[0] if isinstance(node.op, Cast) else node
    return isinstance(source.op, ConstOp) and is_storage(source.dtype) and node.dtype == FLOAT32


def stored_array(node: Node) -> np.ndarray | None:
    """Return the array of a constant, in the storage dtype if it has one; None for anything else."""
    return constant_of(node.operands[0] if is_widened(node) else node)


def constant_of(node: Node) -> np.ndarray | None:
    """Return the value of a constant, broadcast or transposed or unchanged; None for anything else."""
    if isinstance(node.op, ConstOp):
        return node.op.array
    source = constant_of(node.operands[0]) if isinstance(node.op, BroadcastTo | Transpose) else None
    return None if source is None else node.op.meaning(source)
