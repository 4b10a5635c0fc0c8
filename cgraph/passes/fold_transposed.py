"""Transposed convolutions of volumes as those of frames, summed along the depth."""

from cgraph.ir.graph import Node, apply
from cgraph.ir.rewrite import rewrite
from cgraph.ops.conv import ConvTranspose
from cgraph.ops.fold import fold_axis
from cgraph.ops.shape import reshape, transpose

AXES = 5  # of volumes [n, c, d, h, w]


def fold_transposed(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Replace transposed convolutions of volumes by those of frames ``[n * d, c, h, w]`` and sums along the depth.

    The convolution of frames has a result for each depth of the filter.
    Kernels for images multiply no zeros between the elements. Values change in the last places. These results take the
    bytes of the volume times the depth of the filter over the stride.
    """
    return rewrite(outputs, [(ConvTranspose, frames)])


def frames(node: Node) -> Node | None:
    """conv_transpose3d(x, f) -> sum over r of conv_transpose2d(frames of x, f[:, :, r]), shifted by r"""
    op, (x, f) = node.op, node.operands
    assert isinstance(op, ConvTranspose)
    if node.ndim != AXES or node.dtype.kind != "f" or not (node.size and x.size and f.size):
        return None
    (n, c, d), (k, r) = x.shape[:3], f.shape[1:3]
    fields = (op.stride[1:], (*op.pad[1:3], *op.pad[4:]), op.dilation[1:], op.groups, op.shape[1:])
    images = reshape(transpose(x, (0, 2, 1, 3, 4)), (n * d, c, *x.shape[3:]))
    y = apply(ConvTranspose(*fields), images, reshape(f, (c, k * r, *f.shape[3:])))
    parts = transpose(reshape(y, (n, d, k * op.groups, r, *op.shape[1:])), (0, 2, 3, 1, 4, 5))
    return fold_axis(parts, 3, (op.shape[0], op.pad[0]), op.stride[0], op.dilation[0])
