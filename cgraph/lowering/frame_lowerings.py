"""Builders of physical ops on frames of volumes."""

from cgraph.ir.graph import Node, apply
from cgraph.lowering.image_builder import ImageBuilder
from cgraph.ops.physical.blocked_frames import BlockedFrames, ToBlockedFrames, ToPlainFrames
from cgraph.ops.physical.frames import PadFrames, PoolFrames
from cgraph.record import replace


def frames_of(b: ImageBuilder, node: Node) -> Node:
    """Return blocked frames of plain volumes."""
    (x,) = node.operands
    return apply(ToBlockedFrames(b.forms[node], x.shape[0]), b.plain(x))


def volumes_of_frames(b: ImageBuilder, node: Node) -> Node:
    (x,) = node.operands
    return apply(ToPlainFrames(b.forms[x], node.shape[0]), b.laned(x))


def frame_by_frame(b: ImageBuilder, node: Node) -> Node:
    """Return the op on whole frames, halo included: those read have the halo of the result."""
    (x,), op = node.operands, node.op
    assert isinstance(op, PadFrames | PoolFrames)
    source = replace(b.forms[node], n=x.shape[0])
    return apply(BlockedFrames(op, (source,), b.forms[node]), b.in_form(x, source))
