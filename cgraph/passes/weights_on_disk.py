"""Large constants stored in a file: runs read them from there, piece by piece, into a small ring."""

import itertools
from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from cgraph.ir.graph import Node, apply
from cgraph.ir.rewrite import with_new_operands
from cgraph.ir.roots import New, rebuild
from cgraph.ir.traverse import post_order
from cgraph.kernels.depthwise.calls import is_depthwise
from cgraph.kernels.gemm.portions import take_panels
from cgraph.kernels.mapped import Keep, in_c_order
from cgraph.ops.join import concat
from cgraph.ops.leaf import HASHED_NBYTES, Const, ConstOp
from cgraph.ops.linear import Matmul
from cgraph.ops.physical.conv import BlockedConv
from cgraph.ops.physical.matmul import MatmulEpilogue, PackedMatmul
from cgraph.ops.physical.sliced import SlicedConv, SlicedMatmul, slice_filters
from cgraph.ops.shape import Transpose
from cgraph.storage.weight_file import StreamedWeights, arrays_on_disk
from cgraph.system.alignment import ALIGNMENT

SLICE = 4 << 20  # maximum bytes of filters: time to compute while the next ones are read
SLICES = 3  # number of pieces that a ring should hold at least


def slice_nbytes(weights: StreamedWeights, ring: int) -> int:
    """Return the maximum bytes of a slice, for a ring of `ring` bytes."""
    return weights.slice_nbytes or max(min(ring // SLICES, SLICE), 2 * HASHED_NBYTES)


def large_constants(roots: tuple[Node, ...]) -> list[Node]:
    """Return the constants of a graph that are stored in the file, in order: all large ones that are not outputs."""
    order, shown = post_order(roots), set(roots)
    return [x for x in order if isinstance(x.op, ConstOp) and x.nbytes > HASHED_NBYTES and x not in shown]


def weights_on_disk(large: Sequence[Node], weights: StreamedWeights) -> dict[Node, Node]:
    """Replace constants in memory by constants in a file. They have the layout that kernels read."""
    arrays = arrays_on_disk(weights, [x.op.array for x in large])  # type: ignore[attr-defined]
    return {
        x: Const(array, name=x.op.label, copy=False)  # type: ignore[attr-defined]
        for x, array in zip(large, arrays)
    }


def slice_constants(roots: tuple[Node, ...], most: int, keep: Keep) -> tuple[Node, ...]:
    """Cut the constants of convolutions and products into even pieces of at most `most` bytes, or of one panel.

    Results keep their bits, because pieces divide results, not sums. `keep` stores pieces that are not contiguous.
    """

    def change(node: Node, new: New) -> Node | None:
        operands = tuple([new[x] for x in node.operands])
        large = len(operands) > 1 and operands[1].nbytes > most
        cut = next((cut for takes, cut in CUTS if large and takes(node)), None)
        return cut(node, operands, most, keep) if cut else None

    return rebuild(roots, change)


def slice_conv(node: Node, operands: tuple[Node, ...], most: int, keep: Keep) -> Node:
    """Cut a convolution by panels of channels; a slice has at least one."""
    op, filters = node.op, node.operands[1].op.array  # type: ignore[attr-defined]
    parts, panels = slice_filters(op, filters, most)  # type: ignore[arg-type]
    if len(parts) == 1:
        return with_new_operands(node, operands)
    slices = [Const(keep(in_c_order(part)), copy=False) for part in parts]
    return apply(SlicedConv(op, panels), operands[0], *slices, *operands[2:])  # type: ignore[arg-type]


def slice_panels(node: Node, operands: tuple[Node, ...], most: int, keep: Keep) -> Node:
    """Cut a product of several rows by panels of columns; a slice has at least one."""
    op, packed = node.op, node.operands[1].op.array  # type: ignore[attr-defined]
    assert isinstance(op, PackedMatmul)
    count = packed.size // op.k // op.tile.width
    pieces = -(-count // max(most // (packed.nbytes // count), 1))
    if pieces == 1:
        return with_new_operands(node, operands)
    edges = [0, *np.cumsum([len(part) for part in np.array_split(np.arange(count), pieces)]).tolist()]
    slices = [
        Const(keep(take_panels(packed, op.k, op.tile, first, stop)), copy=False)
        for first, stop in itertools.pairwise(edges)
    ]
    columns = tuple(np.diff(np.minimum(np.array(edges) * op.tile.width, op.n)).tolist())
    return apply(SlicedMatmul(op, columns), operands[0], *slices, *operands[2:])


def slice_row(node: Node, operands: tuple[Node, ...], most: int, keep: Keep) -> Node:
    """Cut a product of one row by columns, joined in place; a slice has whole cache lines of them."""
    matrix, columns = operands[1], node.shape[-1]
    constant, turn = (matrix, None) if isinstance(matrix.op, ConstOp) else (matrix.operands[0], matrix.op)
    array = constant.op.array  # type: ignore[attr-defined]
    line = ALIGNMENT // array.itemsize
    each = max(most * columns // array.nbytes // line, 1) * line
    parts = []
    for first in range(0, columns, each):
        some = slice(first, first + each)
        part = Const(keep(in_c_order(array[:, some] if turn is None else array[some])), copy=False)
        part = part if turn is None else apply(turn, part)
        parts.append(apply(node.op, operands[0], part, *(v[..., some] for v in operands[2:])))
    return concat(parts, -1)


def is_laned(node: Node) -> bool:
    """Return True for a convolution of channel-blocked images, not frames, by constant filters, panel after panel, not
    on tiles.
    """
    op = node.op
    return (
        type(op) is BlockedConv
        and op.source is not None
        and not op.pairs
        and op.depth is None
        and op.shape.groups == 1
        and not is_depthwise(op.shape)
        and isinstance(node.operands[1].op, ConstOp)
    )


def is_packed(node: Node) -> bool:
    """Return True for a product of several rows with a constant matrix."""
    return isinstance(node.op, PackedMatmul) and isinstance(node.operands[1].op, ConstOp)


def is_row(node: Node) -> bool:
    """Return True for a product of one row of floats with a constant matrix, transposed or not."""
    if not isinstance(node.op, Matmul | MatmulEpilogue) or node.dtype.kind != "f" or prod(node.shape[:-1]) != 1:
        return False
    matrix = node.operands[1]
    turned = isinstance(matrix.op, Transpose) and matrix.op.axes == (1, 0)
    return matrix.ndim == 2 and isinstance((matrix.operands[0] if turned else matrix).op, ConstOp)


Cut = Callable[[Node, tuple[Node, ...], int, Keep], Node]
CUTS: tuple[tuple[Callable[[Node], bool], Cut], ...] = (
    (is_laned, slice_conv),
    (is_packed, slice_panels),
    (is_row, slice_row),
)
