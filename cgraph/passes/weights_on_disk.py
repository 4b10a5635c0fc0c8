"""Large constants move to a file, for runs that read them from there."""

import numpy as np

from cgraph.errors import GraphError
from cgraph.ir.graph import Node, apply
from cgraph.ir.traverse import post_order, rebuild
from cgraph.kernels.calls.depthwise import is_depthwise
from cgraph.ops.leaf import HASHED_NBYTES, Const, ConstOp
from cgraph.ops.physical.conv import LanedConv
from cgraph.ops.physical.sliced import SlicedConv
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
    """Direct convolutions with filters in even pieces of at most so many bytes, or of one panel: the same bits."""

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if not (is_direct(node) and node.operands[1].nbytes > most):
            return remade(node, operands)
        filters = node.operands[1].op.array  # type: ignore[attr-defined]
        each = max(most // filters[0].nbytes, 1)
        parts = np.array_split(filters, -(-len(filters) // each))
        slices = [Const(part, copy=False) for part in parts]
        return apply(SlicedConv(node.op, tuple(map(len, parts))), operands[0], *slices, *operands[2:])  # type: ignore[arg-type]

    return rebuild(roots, change)


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
