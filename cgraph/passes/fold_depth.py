"""Volumes as frames: convolution and pooling over three axes as ops on images, one for each depth."""

from collections.abc import Callable

import numpy as np

from cgraph.ir.graph import Node, Op, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.conv import Conv2d, Conv3d
from cgraph.ops.family import Pointwise
from cgraph.ops.join import Concat
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.physical.frames import Depth, FramesConv, FromFrames, PadFrames, PoolFrames, ToFrames
from cgraph.ops.pool import MaxPool
from cgraph.ops.shape import BroadcastTo, broadcast_to, reshape
from cgraph.passes.fuse_epilogues import LEAST_CHANNELS

AXES = 5  # of volumes [n, c, d, h, w]


def fold_depth(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Replace convolutions of volumes by those of frames ``[n * d, c, h, w]``, with the pooling, pointwise ops and
    concats of channels between them.

    Values change in the last places. May increase bytes: padding of the depth becomes frames of zeros. Filters with
    groups or with dilation along the depth become a sum of one convolution of images for each depth. Not folded:
    filters that are not constant, and pooling of volumes that are not frames already, whose conversion would take
    longer than the pooling.
    """
    graph = Roots.of(outputs)
    if not graph.has(Conv3d):
        return outputs
    folded = FoldedVolumes()

    def change(node: Node, new: New) -> Node | None:
        rule = RULES.get(Pointwise if isinstance(node.op, Pointwise) else type(node.op))
        frames = rule(folded, node, new) if rule and node.ndim == AXES and node.size else None
        if frames is None:
            return None
        folded.frames[node] = frames
        return apply(FromFrames(node.shape[0]), frames)

    return rebuild(graph, change)


class FoldedVolumes:
    """The volumes that are frames so far. Changes: nodes are added in running order.

    Fields
        frames: from a node of the graph to its frames
    """

    def __init__(self) -> None:
        self.frames: dict[Node, Node] = {}

    def of(self, x: Node, new: New) -> Node:
        """Return the frames of a node of the graph."""
        if x not in self.frames:
            self.frames[x] = apply(ToFrames(), new[x])
        return self.frames[x]


def fold_conv(folded: FoldedVolumes, node: Node, new: New) -> Node | None:
    """conv3d(x, f) -> conv of frames; of a single depth, a convolution of images"""
    op, (x, f) = node.op, node.operands
    assert isinstance(op, Conv3d)
    few = max(node.shape[1], x.shape[1]) < LEAST_CHANNELS
    if few or node.dtype.kind != "f" or not isinstance(f.op, ConstOp) or f.dtype != node.dtype:
        return None
    frames = pad_frames(folded.of(x, new), x.shape[0], op.pad[0], op.pad[3])
    fields = op.stride[1:], (*op.pad[1:3], *op.pad[4:]), op.dilation[1:], op.groups
    taps = f.shape[2]
    if taps > 1 and op.groups == op.dilation[0] == 1:
        return apply(FramesConv(*fields, Depth(x.shape[0], taps, op.stride[0])), frames, f)
    total = None
    for tap in range(taps):
        here = frames
        if taps > 1 or op.stride[0] > 1:
            first = tap * op.dilation[0]
            here = apply(PoolFrames(x.shape[0], node.shape[2], "max", 1, op.stride[0], (-first, 0), 1), frames)
        part = apply(Conv2d(*fields), here, Const(np.ascontiguousarray(f.op.array[:, :, tap]), copy=False))
        total = part if total is None else total + part
    return total


def pad_frames(x: Node, volumes: int, before: int, after: int) -> Node:
    return apply(PadFrames(volumes, before, after), x) if before or after else x


def fold_pool(folded: FoldedVolumes, node: Node, new: New) -> Node | None:
    """pool3d(x) -> pool of each frame, then along the depth"""
    op, (x,) = node.op, node.operands
    assert isinstance(op, MaxPool | AvgPool)
    if node.dtype.kind != "f" or x not in folded.frames:
        return None
    frames = folded.frames[x]
    depth, pad = (op.pad[0], op.pad[3]), (*op.pad[1:3], *op.pad[4:])
    is_mean = isinstance(op, AvgPool)
    counts = (op.count_pad,) if isinstance(op, AvgPool) else ()
    each = type(op)(op.window[1:], op.stride[1:], pad, op.dilation[1:], op.ceil, *counts)
    if prod_of(each.window) > 1 or prod_of(each.stride) > 1 or any(pad):
        frames = apply(each, frames)
    if op.window[0] == op.stride[0] == 1 and depth == (0, 0):
        return frames
    along = op.window[0], op.stride[0], depth, op.dilation[0], *counts
    return apply(PoolFrames(x.shape[0], node.shape[2], "mean" if is_mean else "max", *along), frames)


def prod_of(sizes: tuple[int, ...]) -> int:
    return int(np.prod(sizes))


def fold_pointwise(folded: FoldedVolumes, node: Node, new: New) -> Node | None:
    """f(x, y) -> f of frames, if one operand is frames and the others are frames or broadcast over pixels"""
    if not any(x in folded.frames for x in node.operands):
        return None
    frames = next(folded.frames[x] for x in node.operands if x in folded.frames)
    if frames.shape[0] != node.shape[0] * node.shape[2] or node.shape[1:2] + node.shape[3:] != frames.shape[1:]:
        return None
    operands = [folded.frames[x] if x in folded.frames else spread(x, frames.shape, new) for x in node.operands]
    alike = [x for x in operands if x is not None and x.shape == frames.shape]
    return apply(node.op, *alike) if len(alike) == len(operands) else None


def spread(x: Node, shape: tuple[int, ...], new: New) -> Node | None:
    """Return a value that is broadcast over depth and pixels, for frames; None for others."""
    if not isinstance(x.op, BroadcastTo):
        return None
    source = x.operands[0]
    n, c, *rest = (1,) * (AXES - source.ndim) + source.shape
    if n != 1 or any(size != 1 for size in rest):
        return None
    return broadcast_to(reshape(new[source], (c, 1, 1)), shape)


def fold_concat(folded: FoldedVolumes, node: Node, new: New) -> Node | None:
    """concat(x, y) of channels -> concat of frames"""
    assert isinstance(node.op, Concat)
    if node.op.axis != 1 or any(x not in folded.frames for x in node.operands):
        return None
    return apply(node.op, *(folded.frames[x] for x in node.operands))


Rule = Callable[[FoldedVolumes, Node, New], Node | None]
RULES: dict[type[Op], Rule] = {
    Conv3d: fold_conv,
    MaxPool: fold_pool,
    AvgPool: fold_pool,
    Pointwise: fold_pointwise,
    Concat: fold_concat,
}
