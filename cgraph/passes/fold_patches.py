"""Convolutions of patches side by side, as vision transformers begin, as products of matrices."""

from cgraph.ir.graph import Node
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.arithmetic import Add
from cgraph.ops.conv import Conv2d
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.linear import matmul
from cgraph.ops.shape import Reshape, Transpose, broadcast_to, reshape, swapaxes, transpose, unbroadcast

MOST_CHANNELS = 4  # of images whose channels are apart: others lie in blocks, which patches would take apart
LEAST_PRODUCTS = 512  # of a sum: shorter ones do not pay for the copy of the patches
MOST_COLUMNS = 16  # of the result: the tiles of a direct convolution fill longer rows as well


def fold_patches(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """conv(x, f) -> patches of x @ f, where windows are side by side, rows of the result short, and tokens read it.

    The tiles of a product contain pixels of several rows, so filters are read less often. Values change in the last
    places. May increase bytes, by a copy of the images. Not folded: filters that are not constant.
    """
    graph = Roots.of(outputs)
    if not graph.has(Conv2d):
        return outputs

    def change(node: Node, new: New) -> Node | None:
        reader = graph.readers.get(node)
        if reader is None or node in graph.ends or not isinstance(reader.op, Reshape | Transpose):
            return None
        conv, bias = with_bias(node, graph)
        return product(conv, bias, new) if is_of_patches(conv) else None

    return rebuild(graph, change)


def with_bias(node: Node, graph: Roots) -> tuple[Node, Node | None]:
    """Return a convolution and what is added to its channels; the node itself and None if nothing is."""
    if not isinstance(node.op, Add):
        return node, None
    for conv, other in (node.operands, node.operands[::-1]):
        bias = unbroadcast(other)
        if isinstance(conv.op, Conv2d) and graph.is_inner(conv) and is_bias(bias.shape, conv.shape[1]):
            return conv, bias
    return node, None


def is_bias(shape: tuple[int, ...], channels: int) -> bool:
    """Return True for the shape of a number for each channel, the same for all images."""
    return shape[-3:] == (channels, 1, 1) and set(shape[:-3]) <= {1}


def is_of_patches(conv: Node) -> bool:
    """Return True for a convolution that is folded."""
    op = conv.op
    if not isinstance(op, Conv2d) or not isinstance(conv.operands[1].op, ConstOp) or op.groups != 1:
        return False
    images, filters = conv.operands
    window = filters.shape[2:]
    meets = op.stride == window and images.shape[2] % window[0] == images.shape[3] % window[1] == 0
    meets = meets and not any(op.pad) and max(op.dilation) == 1
    is_long = filters.size // max(filters.shape[0], 1) >= LEAST_PRODUCTS
    return meets and is_long and images.shape[1] <= MOST_CHANNELS and conv.shape[3] <= MOST_COLUMNS


def product(conv: Node, bias: Node | None, new: New) -> Node:
    """Return the result of a convolution as a product."""
    images, filters = new[conv.operands[0]], conv.operands[1]
    (n, k, rows, columns), (_, c, down, across) = conv.shape, filters.shape
    split = reshape(images, (n, c, rows, down, columns, across))
    patches = reshape(transpose(split, (0, 2, 4, 1, 3, 5)), (n, rows * columns, c * down * across))
    weights = Const(filters.op.array.reshape(k, -1), name=filters.name, copy=False)  # type: ignore[attr-defined]
    y = matmul(patches, swapaxes(weights, 0, 1))
    if bias is not None:
        y = y + broadcast_to(reshape(new[bias], (k,)), y.shape)
    return reshape(swapaxes(y, 1, 2), conv.shape)
