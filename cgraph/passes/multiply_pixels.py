"""Transposed convolutions of images of one pixel as products of matrices."""

from math import prod

from cgraph.ir.graph import Node
from cgraph.ir.rewrite import rewrite
from cgraph.ops.conv import ConvTranspose
from cgraph.ops.linear import matmul
from cgraph.ops.pad import pad
from cgraph.ops.shape import reshape


def multiply_pixels(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Replace transposed convolutions of images of one pixel, such as the first layer of a generator, by products.

    Each pixel of the result is the pixel times one tap of the filter; kernels for images multiply the zeros around the
    pixel by the other taps, too. Values change in the last places. Left out: groups and dilations.
    """
    return rewrite(outputs, [(ConvTranspose, product)])


def product(node: Node) -> Node | None:
    """conv_transpose(x[n, c, 1, …], f[c, k, r, …]) -> x @ f, cropped to the result, and padded"""
    op, (x, f) = node.op, node.operands
    assert isinstance(op, ConvTranspose)
    axes = len(op.shape)
    if any(n != 1 for n in x.shape[2:]) or op.groups != 1 or any(d != 1 for d in op.dilation):
        return None
    if not (node.size and x.size and f.size):
        return None
    (n, c), (k, *window) = x.shape[:2], f.shape[1:]
    y = reshape(matmul(reshape(x, (n, c)), reshape(f, (c, k * prod(window)))), (n, k, *window))
    parts = [slice(first, first + count) for first, count in zip(op.pad[:axes], op.shape)]
    y = y[:, :, *parts]
    return pad(y, [(0, 0)] * 2 + [(0, count - m) for count, m in zip(op.shape, y.shape[2:])])
