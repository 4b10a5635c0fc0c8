"""Transposed convolutions whose windows do not overlap: a product for each pixel, whose results are rearranged."""

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ops.conv import Conv2d, ConvTranspose
from cgraph.ops.shape import reshape, transpose

EACH_PIXEL = Conv2d((1, 1), (0, 0, 0, 0), (1, 1), 1)


def is_disjoint(node: Node) -> bool:
    """Return True for a transposed convolution over two axes in which one pixel determines each element of the
    result.
    """
    op = node.op
    if not isinstance(op, ConvTranspose) or node.ndim != 4:
        return False
    x, f = node.operands
    whole = tuple(n * w for n, w in zip(x.shape[2:], f.shape[2:], strict=True))
    return (op.stride, op.shape, any(op.pad), op.dilation, op.groups) == (f.shape[2:], whole, False, (1, 1), 1)


def pixel_filters(filters: np.ndarray) -> np.ndarray:
    """Return filters ``[k, c, r, s]`` as those of a product for each pixel, ``[r * s * c, k, 1, 1]``."""
    return np.ascontiguousarray(filters.transpose(2, 3, 1, 0)).reshape(-1, len(filters), 1, 1)


def depth_to_space(x: Node, window: tuple[int, int]) -> Node:
    """Return images ``[n, r * s * c, h, w]`` as images ``[n, c, h * r, w * s]``."""
    (n, channels, h, w), (r, s) = x.shape, window
    parts = reshape(x, (n, r, s, channels // (r * s), h, w))
    return reshape(transpose(parts, (0, 3, 4, 1, 5, 2)), (n, channels // (r * s), h * r, w * s))
