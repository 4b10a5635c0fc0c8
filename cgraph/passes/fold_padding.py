"""Zeros around an image become the padding of the convolution that reads it."""

from cgraph.ir.graph import Node, apply
from cgraph.ir.rewrite import rewrite
from cgraph.ops.conv import CONV
from cgraph.ops.pad import Pad
from cgraph.record import replace


def fold_padding(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Let convolutions pad with zeros, so that no padded image is computed. Exports of TensorFlow pad separately."""
    return rewrite(outputs, RULES)


def pad_in_conv(node: Node) -> Node | None:
    """conv(pad(x, 0), f) -> conv(x, f) with more padding"""
    image, filters = node.operands
    if not isinstance(image.op, Pad) or image.op.value != 0 or any(map(any, image.op.widths[:2])):
        return None
    before, after = zip(*image.op.widths[2:])
    pad = tuple(a + b for a, b in zip(node.op.pad, (*before, *after)))  # type: ignore[attr-defined]
    return apply(replace(node.op, pad=pad), image.operands[0], filters)


RULES = [(kind, pad_in_conv) for kind in CONV.values()]
