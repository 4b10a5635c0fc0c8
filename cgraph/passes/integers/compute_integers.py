"""Networks of quantised values computed with integers, from one 8-bit value to the next.

A file contains ``dequantize -> operator -> quantize`` (QDQ). Here such a group becomes one op on bytes: convolutions
and products with their bias and bounds, the sum with a following residual, pools, shape ops, concats, means over
pixels. Groups without a rule stay unchanged, with floats between bytes, and are fused like any pointwise op.

Bytes are unsigned: 128 is added to int8 values of a file and to their zero points, so they represent the same numbers.
Sums are exact where floats would round, and become bytes as in onnxruntime, by one product with ``float32(sx * sw /
sy)``; everything else follows the ONNX specification.

Source: ONNX operators QuantizeLinear and DequantizeLinear; Jacob and others 2018, arXiv:1712.05877.
"""

from collections.abc import Callable, Sequence

import numpy as np

from cgraph.ir.graph import Node, apply
from cgraph.ir.origin import keeps_origin
from cgraph.ir.rewrite import with_new_operands
from cgraph.ir.roots import Roots
from cgraph.ir.spec import Spec
from cgraph.ir.traverse import at_origins
from cgraph.kernels.conv8.calls import Join, Result
from cgraph.kernels.conv8.join_ratios import with_ratios
from cgraph.kernels.pool8.rounding_margin import Mean
from cgraph.ops.arithmetic import Add, Cast
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.bitcast import bitcast
from cgraph.ops.compare import bitwise_xor
from cgraph.ops.conv import Conv2d, ConvTranspose
from cgraph.ops.join import Concat, concat
from cgraph.ops.leaf import Const
from cgraph.ops.linear import Matmul
from cgraph.ops.pad import Pad
from cgraph.ops.physical.byte_matmul import ByteMatmul
from cgraph.ops.physical.byte_pool import BytePool
from cgraph.ops.physical.integer import IntegerConv, IntegerMatmul, PixelSum
from cgraph.ops.physical.table import ByteTable
from cgraph.ops.pool import MaxPool
from cgraph.ops.quantise import Dequantize, Quantize, dequantize, quantize
from cgraph.ops.shape import Reshape, Transpose, reshape
from cgraph.ops.slicing import Slice
from cgraph.ops.take import Take
from cgraph.passes.integers.byte_tables import table_of, table_taken
from cgraph.passes.integers.disjoint_windows import EACH_PIXEL, depth_to_space, pixel_filters
from cgraph.passes.integers.patterns import (
    PIXELS,
    SIGN,
    Bounds,
    Product,
    Scale,
    ValueProduct,
    bounds_of,
    dequantized_bytes,
    mean_of,
    pair_of,
    product_of,
    scale_of,
)
from cgraph.passes.integers.sums import Rights, Sums, byte_sums, sums_of
from cgraph.record import Record

MOST_SCALE = 2.0**50  # scales of values that are requantised: no quotient of theirs overflows
MOVES = (Reshape, Transpose, Slice, MaxPool)  # ops whose result on bytes represents their result on floats


@keeps_origin
def compute_integers(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Replace groups between 8-bit values by ops on bytes: fewer bytes, the same values except for single quanta.

    Runs before constants are folded, which would turn filters into floats. Not replaced: scales or zero points that are
    not constant, or one for each channel of an image; filters with a zero point; a bias with a scale of its own; sums
    of int32 whose two sides are computed.
    """
    graph = Roots.of(outputs)
    if not graph.has(Dequantize, Matmul, Conv2d, Take) or not any(map(may_be_taken, graph.order)):
        return outputs
    context, rewritten = IntegerContext(graph, {node: i for i, node in enumerate(graph.order)}), RewrittenGraph()
    for node in at_origins(graph.order):
        rewritten.add(node, rewrite_node(node, context, rewritten))
    return tuple(rewritten.nodes[x] for x in outputs)


def may_be_taken(node: Node) -> bool:
    """Return True if the graph has a node to which a rule could apply."""
    is_sum = isinstance(node.op, Matmul | Cast) and node.dtype == np.int32
    return isinstance(node.op, Dequantize) or is_sum or table_taken(node) is not None


class IntegerContext(Record, eq=False):
    """The original graph, indexed.

    Fields
        graph: the original graph
        place: position of each node in running order
    """

    graph: Roots
    place: dict[Node, int]

    def is_inner(self, node: Node) -> bool:
        """Return True if only one node reads it and it is not an output."""
        return self.graph.is_inner(node)


class RewrittenGraph:
    """The new graph under construction. Changes: nodes are added in running order.

    Fields
        nodes: the new node of each old one
        rights: constant right sides of sums
    """

    def __init__(self) -> None:
        self.nodes: dict[Node, Node] = {}
        self.rights: Rights = {}
        self._bytes: dict[Node, Node] = {}

    def add(self, node: Node, new: Node) -> None:
        """Return the new node of an old one; an int8 result stored as uint8 is converted back for int8 readers."""
        if isinstance(node.spec, Spec) and new.dtype != node.dtype:  # several results stay unchanged
            self._bytes[node] = new
            new = bitcast(flip_sign(new), node.dtype)
        self.nodes[node] = new

    def bytes(self, node: Node) -> Node:
        """Return the new node of an old 8-bit one, as bytes."""
        if node not in self._bytes:
            new = self.nodes[node]
            self._bytes[node] = new if new.dtype == np.uint8 else flip_sign(bitcast(new, "uint8"))
        return self._bytes[node]


def flip_sign(x: Node) -> Node:
    """Return bytes with another sign: 128 more or less."""
    return bitwise_xor(x, Const(np.asarray(SIGN, "uint8")))


def rewrite_node(node: Node, context: IntegerContext, rewritten: RewrittenGraph) -> Node:
    """Return the new node of an old one."""
    if isinstance(node.op, Quantize) and (scale := scale_of(node)):
        return quantize_node(node, scale, context, rewritten)
    if lookup := table_taken(node):
        return look_up(rewritten.nodes[lookup[0]], lookup[1])
    if isinstance(node.op, Dequantize) and (x := dequantized_bytes(node)):
        return dequantize(rewritten.bytes(x.node), np.float32(x.scale.scale), np.uint8(x.scale.zero))
    if isinstance(node.op, MOVES) and node.dtype == np.int8:
        return apply(node.op, rewritten.bytes(node.operands[0]))
    product, pair = product_of(node, context.is_inner), pair_of(node)
    if product:
        return integer_product(product, Result("f4"), product.factor, rewritten)
    if pair:
        return integer_matmul(pair, Result("f4"), pair.scale, rewritten)
    sums = sums_of(node, rewritten.rights)
    if sums:
        return integer_sums(sums, rewritten)
    return with_new_operands(node, tuple([rewritten.nodes[x] for x in node.operands]))


def quantize_node(node: Node, scale: Scale, context: IntegerContext, rewritten: RewrittenGraph) -> Node:
    """Return the bytes of a Quantize, by a rule, or from floats."""
    inside, bounds = bounds_of(node, scale, context.is_inner)
    for rule in RULES:
        out = rule(inside, scale, bounds, context, rewritten)
        if out is not None:
            return out
    chain = table_of(node, context.place)
    if chain is not None:
        return look_up(rewritten.bytes(chain[0]), chain[1])
    return quantize(rewritten.nodes[node.operands[0]], np.float32(scale.scale), np.uint8(scale.zero))


# -- rules: the operand of a Quantize, as bytes
# --------------------------------------------------------------------------


def from_product(
    node: Node, scale: Scale, bounds: Bounds, context: IntegerContext, rewritten: RewrittenGraph
) -> Node | None:
    """q(bounds(conv(dq, dq) + dq)), the same of a product of matrices"""
    product = product_of(node, context.is_inner) if context.is_inner(node) else None
    if product is None:
        return None
    return integer_product(
        product, Result("u1", scale.zero, *bounds), product.factor / np.float32(scale.scale), rewritten
    )


def from_pair(
    node: Node, scale: Scale, bounds: Bounds, context: IntegerContext, rewritten: RewrittenGraph
) -> Node | None:
    """q(bounds(dq @ dq)), of two computed values"""
    pair = pair_of(node) if context.is_inner(node) else None
    if pair is None:
        return None
    return integer_matmul(pair, Result("u1", scale.zero, *bounds), pair.scale / np.float32(scale.scale), rewritten)


def from_sum(
    node: Node, scale: Scale, bounds: Bounds, context: IntegerContext, rewritten: RewrittenGraph
) -> Node | None:
    """q(bounds(dq(q(conv)) + dq)): the later one of two convolutions adds the result of the other"""
    if not isinstance(node.op, Add) or not context.is_inner(node):
        return None
    parts = sorted(node.operands, key=lambda x: context.place[x], reverse=True)
    for part, other in (parts, parts[::-1]):
        residual = dequantized_bytes(other)
        if residual and part is not other and residual.node.shape == node.shape:
            out = join_residual(part, scale, bounds, residual.scale, context, rewritten, rewritten.bytes(residual.node))
            if out is not None:
                return out
    return None


def from_concat(
    node: Node, scale: Scale, bounds: Bounds, context: IntegerContext, rewritten: RewrittenGraph
) -> Node | None:
    """q(concat(dq, dq ...)): each part with the scale of the whole"""
    parts = [dequantized_bytes(x) for x in node.operands] if isinstance(node.op, Concat) else [None]
    if bounds != (0, 255) or not all(parts):
        return None
    return concat([rescale(x, scale, context, rewritten) for x in node.operands], node.op.axis)  # type: ignore[attr-defined]


def from_move(
    node: Node, scale: Scale, bounds: Bounds, context: IntegerContext, rewritten: RewrittenGraph
) -> Node | None:
    """q(move(dq)), of a shape op that keeps order, or q(pad(dq)) with zeros, perhaps with another scale"""
    op = node.op
    x = (
        dequantized_bytes(node.operands[0])
        if isinstance(op, MOVES) or (isinstance(op, Pad) and op.value == 0)
        else None
    )
    if x is None or bounds != (0, 255):
        return None
    moved = apply(Pad(op.widths, x.scale.zero) if isinstance(op, Pad) else op, rewritten.bytes(x.node))
    return moved if x.scale == scale else requantize(moved, x.scale, scale)


def from_average_pool(
    node: Node, scale: Scale, bounds: Bounds, context: IntegerContext, rewritten: RewrittenGraph
) -> Node | None:
    """q(bounds(average pool(dq))), with the bits of the floats"""
    op = node.op
    if not isinstance(op, AvgPool) or not context.is_inner(node):
        return None
    x = dequantized_bytes(node.operands[0])
    if x is None or len(op.window) != len(PIXELS) or not all(map(is_moderate, (x.scale, scale))):
        return None
    mean = Mean(x.scale.scale, x.scale.zero, scale.scale, scale.zero, *bounds)
    geometry = op.window, op.stride, op.pad, op.dilation, op.ceil, op.count_pad
    return apply(BytePool(*geometry, mean), rewritten.bytes(x.node))


def from_mean(
    node: Node, scale: Scale, bounds: Bounds, context: IntegerContext, rewritten: RewrittenGraph
) -> Node | None:
    """q(mean over pixels(dq)): sums of bytes times one factor, as in onnxruntime"""
    x = mean_of(node)
    if x is None or bounds != (0, 255):
        return None
    count = x.node.shape[2] * x.node.shape[3]
    factor = np.float32(x.scale.scale) / (np.float32(scale.scale) * np.float32(count))
    total = apply(PixelSum(), rewritten.bytes(x.node)) - np.int32(count * x.scale.zero)
    return reshape(quantize(total.astype("float32") * factor, np.float32(1), np.uint8(scale.zero)), node.shape)


Rule = Callable[[Node, Scale, Bounds, IntegerContext, RewrittenGraph], Node | None]
RULES: Sequence[Rule] = (
    from_product,
    from_pair,
    from_sum,
    from_concat,
    from_move,
    from_average_pool,
    from_mean,
)


# -- ops on bytes
# --------------------------------------------------------------------------------------------------------


def integer_product(
    product: Product, result: Result, factor: np.ndarray, rewritten: RewrittenGraph, *residual: Node
) -> Node:
    """Return a product as one op on bytes."""
    numbers = Const(product.bias, copy=False), Const(factor, copy=False)
    x, filters = rewritten.bytes(product.x.node), Const(product.filters, copy=False)
    zero, op = product.x.scale.zero, product.op
    if isinstance(op, ConvTranspose):
        window = product.filters.shape[2:]
        each = (Const(np.tile(y, window[0] * window[1])) for y in (product.bias, factor))
        pixels = IntegerConv(EACH_PIXEL, zero, result)
        return depth_to_space(apply(pixels, x, Const(pixel_filters(product.filters)), *each), window)
    if isinstance(op, Conv2d):
        return apply(IntegerConv(op, zero, result), x, filters, *numbers, *residual)
    return apply(IntegerMatmul(zero, result), x, filters, *numbers)


def integer_matmul(pair: ValueProduct, result: Result, factor: np.floating, rewritten: RewrittenGraph) -> Node:
    """Return a product of two computed values as one op on bytes."""
    zeros = pair.x.scale.zero, pair.y.scale.zero
    return apply(ByteMatmul(zeros, float(factor), result), rewritten.bytes(pair.x.node), rewritten.bytes(pair.y.node))


def integer_sums(sums: Sums, rewritten: RewrittenGraph) -> Node:
    """Return the sums of products with a computed zero point, which is counted from the first byte."""
    sign = np.int32(SIGN if sums.x.dtype == np.int8 else 0)
    zero = None if sums.zero is None else reshape(rewritten.nodes[sums.zero].astype("int32") + sign, ())
    if sums.zero is None and sign:
        zero = Const(sign)
    return byte_sums(sums, rewritten.bytes(sums.x), zero)


def join_residual(
    part: Node,
    scale: Scale,
    bounds: Bounds,
    other: Scale | None,
    context: IntegerContext,
    rewritten: RewrittenGraph,
    *residual: Node,
) -> Node | None:
    """Return a convolution's dequantised bytes, which no other node reads, with another scale and perhaps a
    residual.
    """
    first = dequantized_bytes(part)
    if (
        first is None
        or not isinstance(first.node.op, Quantize)
        or not (context.is_inner(part) and context.is_inner(first.node))
    ):
        return None
    inside, own = bounds_of(first.node, first.scale, context.is_inner)
    product = product_of(inside, context.is_inner) if context.is_inner(inside) else None
    if product is None or not isinstance(product.op, Conv2d):
        return None
    if not all(map(is_moderate, (first.scale, scale, other or scale))):
        return None
    zero, beside = first.scale.zero, (other.scale, other.zero) if other else (0.0, 0)
    join = Join(first.scale.scale, own[0] - zero, own[1] - zero, scale.scale, *beside)
    factor = product.factor / np.float32(first.scale.scale)
    result = with_ratios(Result("u1", scale.zero, *bounds, join))
    return integer_product(product, result, factor, rewritten, *residual)


def is_moderate(scale: Scale) -> bool:
    """Return True if no quotient by it overflows or becomes too small for float32."""
    return 1 / MOST_SCALE < scale.scale < MOST_SCALE


def rescale(part: Node, scale: Scale, context: IntegerContext, rewritten: RewrittenGraph) -> Node:
    """Return dequantised bytes as bytes of another scale, by the convolution that computes them if possible."""
    x = dequantized_bytes(part)
    assert x is not None
    if x.scale == scale:
        return rewritten.bytes(x.node)
    out = join_residual(part, scale, (0, 255), None, context, rewritten)
    return requantize(rewritten.bytes(x.node), x.scale, scale) if out is None else out


def requantize(x: Node, before: Scale, after: Scale) -> Node:
    """Return bytes with another scale."""
    every = np.arange(2 * SIGN, dtype="uint8")
    floats = Dequantize().meaning(every, np.float32(before.scale), np.uint8(before.zero))
    return look_up(x, Quantize(every.dtype).meaning(floats, np.float32(after.scale), np.uint8(after.zero)))


def look_up(x: Node, table: np.ndarray) -> Node:
    """Return the bytes of a table; `x` itself if the table changes none."""
    return x if (table == np.arange(len(table))).all() else apply(ByteTable(), x, Const(table, copy=False))
