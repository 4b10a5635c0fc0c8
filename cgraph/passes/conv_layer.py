"""What a convolution's kernels need to know of its node."""

from cgraph.ir.graph import Node
from cgraph.kernels.calls.conv_shape import ConvShape
from cgraph.kernels.calls.window import Window
from cgraph.kernels.expression import code_of
from cgraph.kernels.target import Target
from cgraph.ops.physical.conv import ConvEpilogue

PLAIN_CHANNELS = 4  # images of so few channels are read as they are: in blocks most lanes would be empty


def layer_of(node: Node, target: Target, is_plain: bool = False) -> ConvShape:
    """The geometry of a ConvEpilogue."""
    assert isinstance(node.op, ConvEpilogue)
    conv, (x, f) = node.op.conv, node.operands[:2]
    window = Window(f.shape[2:], conv.stride, conv.pad, conv.dilation)  # type: ignore[arg-type]
    c, h, w = x.shape[1:]
    return ConvShape(c, h, w, node.shape[1], window, conv.groups, is_plain, target, code_of(x.dtype))


def reads_plain(node: Node) -> bool:
    """The layer reads images that do not lie in blocks."""
    return node.operands[0].shape[1] <= PLAIN_CHANNELS and node.op.conv.groups == 1  # type: ignore[attr-defined]
