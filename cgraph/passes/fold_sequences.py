"""Sequences as images of one row: convolutions over one axis become convolutions of images."""

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.conv import Conv1d, Conv2d, ConvTranspose
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.shape import reshape
from cgraph.passes.fuse_epilogues import LEAST_CHANNELS

AXES = 3  # of sequences [n, c, w]


def fold_sequences(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Replace convolutions of sequences by those of images ``[n, c, 1, w]``.

    Kernels for images read windows in place, without a copy of each, and a transposed convolution multiplies no zeros
    between its elements. Values change in the last places. Not folded: filters that are not constant, few channels, a
    filter for each channel, and windows of one element, which are plain products. Ops between convolutions stay ops on
    sequences, since blocks gain nothing there and cost time where a sequence has less channels than a block.
    """
    graph = Roots.of(outputs)
    if not graph.has(Conv1d, ConvTranspose):
        return outputs
    return rebuild(graph, fold)


def fold(node: Node, new: New) -> Node | None:
    """conv1d(x, f) -> conv2d of images of one row; likewise transposed"""
    op = node.op
    if not isinstance(op, Conv1d | ConvTranspose) or not gains(op, node):
        return None
    x, f = node.operands
    assert isinstance(f.op, ConstOp)
    fields = (1, *op.stride), (0, op.pad[0], 0, op.pad[1]), (1, *op.dilation), op.groups
    conv = ConvTranspose(*fields, (1, *op.shape)) if isinstance(op, ConvTranspose) else Conv2d(*fields)
    filters = Const(f.op.array.reshape(with_row(f)), name=f.op.label, copy=False)
    return reshape(apply(conv, reshape(new[x], with_row(x)), filters), node.shape)


def with_row(x: Node) -> tuple[int, ...]:
    """Return the shape of a sequence as an image of one row."""
    n, c, w = x.shape
    return n, c, 1, w


def gains(op: Conv1d | ConvTranspose, node: Node) -> bool:
    """Return True for sequences of floats of some channels with constant filters of several elements that mix them."""
    x, f = node.operands
    if node.ndim != AXES or node.dtype.kind != "f" or not node.size:
        return False
    if not isinstance(f.op, ConstOp) or f.dtype != node.dtype or f.shape[2] == 1:
        return False
    return max(node.shape[1], x.shape[1]) >= LEAST_CHANNELS and (op.groups == 1 or f.shape[1] > 1)
