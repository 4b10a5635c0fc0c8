"""Large constants move to a file, for runs that read them from there."""

from math import prod

import numpy as np

from cgraph.alignment import aligned
from cgraph.errors import GraphError
from cgraph.ir.graph import Node, apply
from cgraph.ir.traverse import post_order, rebuild
from cgraph.kernels.calls.depthwise import is_depthwise
from cgraph.ops.join import concat
from cgraph.ops.leaf import HASHED_NBYTES, Const, ConstOp
from cgraph.ops.linear import Matmul
from cgraph.ops.physical.conv import LanedConv
from cgraph.ops.physical.matmul import MatmulEpilogue
from cgraph.ops.physical.sliced import SlicedConv
from cgraph.ops.shape import Transpose
from cgraph.passes.rewrite import remade
from cgraph.weight_file import StreamedWeights, on_disk

SLICE = 4 << 20  # bytes of filters at most: time to compute while the next ones are read
SLICES = 3  # that a ring should hold at least


def weights_on_disk(roots: tuple[Node, ...], weights: StreamedWeights) -> tuple[Node, ...]:
    """The same graph over constants in the file, in the order in which they are needed; small ones stay as they are.

    The last pass of all: constants have the form that kernels read.
    """
    if not isinstance(weights, StreamedWeights):
        raise GraphError(f"weights takes StreamedWeights(path, ring), not {weights!r:.60}")
    roots = sliced(roots, max(min(weights.ring // SLICES, SLICE), 2 * HASHED_NBYTES))
    order, shown = post_order(roots), set(roots)
    large = [x for x in order if isinstance(x.op, ConstOp) and x.nbytes > HASHED_NBYTES and x not in shown]
    if not large:
        return roots
    arrays = on_disk(weights, [x.op.array for x in large])  # type: ignore[attr-defined]
    moved = {
        x: Const(array, name=x.op.label, copy=False)  # type: ignore[attr-defined]
        for x, array in zip(large, arrays)
    }

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        return moved[node] if node in moved else remade(node, operands)

    return rebuild(roots, change, order)


def sliced(roots: tuple[Node, ...], most: int) -> tuple[Node, ...]:
    """Direct convolutions and products of one row, with even pieces of their constants of at most so many bytes.

    The same bits: slices are of results, and every sum is whole.
    """

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        large = len(operands) > 1 and operands[1].nbytes > most
        if large and is_direct(node):
            return sliced_conv(node, operands, most)
        if large and is_row(node):
            return sliced_row(node, operands, most)
        return remade(node, operands)

    return rebuild(roots, change)


def sliced_conv(node: Node, operands: tuple[Node, ...], most: int) -> Node:
    """Some panels of channels after others; a slice has at least one."""
    filters = node.operands[1].op.array  # type: ignore[attr-defined]
    each = max(most // filters[0].nbytes, 1)
    parts = np.array_split(filters, -(-len(filters) // each))
    slices = [Const(part, copy=False) for part in parts]
    return apply(SlicedConv(node.op, tuple(map(len, parts))), operands[0], *slices, *operands[2:])  # type: ignore[arg-type]


def sliced_row(node: Node, operands: tuple[Node, ...], most: int) -> Node:
    """Some columns after others, joined in place; a slice has whole cache lines of them."""
    matrix, columns = operands[1], node.shape[-1]
    constant, turn = (matrix, None) if isinstance(matrix.op, ConstOp) else (matrix.operands[0], matrix.op)
    array = constant.op.array  # type: ignore[attr-defined]
    each = aligned(-(-columns // -(-array.nbytes // most)))
    parts = []
    for first in range(0, columns, each):
        some = slice(first, first + each)
        part = Const(array[:, some] if turn is None else array[some], copy=False)
        part = part if turn is None else apply(turn, part)
        parts.append(apply(node.op, operands[0], part, *(v[..., some] for v in operands[2:])))
    return concat(parts, -1)


def is_direct(node: Node) -> bool:
    """A convolution of images in lanes by constant filters, panel after panel."""
    op = node.op
    return (
        isinstance(op, LanedConv)
        and not op.tile
        and op.source is not None
        and op.shape.groups == 1
        and not is_depthwise(op.shape)
        and isinstance(node.operands[1].op, ConstOp)
    )


def is_row(node: Node) -> bool:
    """A product of one row of floats with a constant matrix, as it lies or turned."""
    if not isinstance(node.op, Matmul | MatmulEpilogue) or node.dtype.kind != "f" or prod(node.shape[:-1]) != 1:
        return False
    matrix = node.operands[1]
    turned = isinstance(matrix.op, Transpose) and matrix.op.axes == (1, 0)
    return matrix.ndim == 2 and isinstance((matrix.operands[0] if turned else matrix).op, ConstOp)
