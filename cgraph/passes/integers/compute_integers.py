"""Networks of quantized values computed with whole numbers, from one byte to the next.

A file says ``dequantize -> operator -> quantize`` (QDQ). Here such a group becomes one op on bytes: convolutions and
products with their bias and bounds, the sum with a residual behind them, pools, moves, concats, means over pixels. What
no rule takes stays as it is written, floats between bytes, and is fused as any pointwise op.

Bytes are unsigned: what a file holds as int8 is kept 128 larger, its zero point too, which is the same number. Sums
are exact where floats round, and become bytes as onnxruntime makes them, by one product with
``float32(sx * sw / sy)``; all else is what ONNX says.

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
from cgraph.ops.arithmetic import Add
from cgraph.ops.bitcast import bitcast
from cgraph.ops.compare import bitwise_xor
from cgraph.ops.conv import Conv2d, ConvTranspose
from cgraph.ops.join import Concat, concat
from cgraph.ops.leaf import Const
from cgraph.ops.linear import Matmul
from cgraph.ops.pad import Pad
from cgraph.ops.physical.byte_matmul import ByteMatmul
from cgraph.ops.physical.integer import IntegerConv, IntegerMatmul, PixelSum
from cgraph.ops.physical.table import ByteTable
from cgraph.ops.pool import MaxPool
from cgraph.ops.quantise import Dequantize, Quantize, dequantize, quantize
from cgraph.ops.shape import Reshape, Transpose, reshape
from cgraph.ops.slicing import Slice
from cgraph.ops.take import Take
from cgraph.passes.integers.byte_tables import table_of, table_taken
from cgraph.passes.integers.disjoint_windows import EACH_PIXEL, moved_apart, pixel_filters
from cgraph.passes.integers.patterns import (
    SIGN,
    Bounds,
    Pair,
    Product,
    Scale,
    Sums,
    bounds_of,
    dequantized,
    mean_of,
    pair_of,
    product_of,
    scale_of,
    sums_of,
)
from cgraph.record import Record

MOST_SCALE = 2.0**50  # of bytes that are made a second time: no quotient of theirs overflows
MOVES = (Reshape, Transpose, Slice, MaxPool)  # the same on bytes as on the floats that they stand for


@keeps_origin
def integers(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Groups between bytes as ops on bytes: fewer bytes, the same values but for single quanta.

    Runs before constants are folded, which would make floats of filters. Not taken: scales or zero points that are no
    constants, one for each channel of an image; filters with a zero point; a bias with a scale of its own; sums
    of int32 whose two sides are computed.
    """
    graph = Roots.of(outputs)
    if not graph.has(Dequantize, Matmul, Take) or not any(map(may_be_taken, graph.order)):
        return outputs
    seen, made = Seen(graph, {node: i for i, node in enumerate(graph.order)}), Made()
    for node in at_origins(graph.order):
        made.add(node, changed(node, seen, made))
    return tuple(made.nodes[x] for x in outputs)


def may_be_taken(node: Node) -> bool:
    """Where no node is such a one, there is nothing to do."""
    is_product = isinstance(node.op, Matmul) and node.dtype == np.int32
    return isinstance(node.op, Dequantize) or is_product or table_taken(node) is not None


class Seen(Record, eq=False):
    """What is known of the graph.

    Fields
        graph: as it is written
        place: of each node in running order
    """

    graph: Roots
    place: dict[Node, int]

    def is_inner(self, node: Node) -> bool:
        """One node reads it, and nobody else sees it."""
        return self.graph.is_inner(node)


class Made:
    """The new graph under construction. Changes: nodes are added in running order.

    Fields
        nodes: the new node of each old one
    """

    def __init__(self) -> None:
        self.nodes: dict[Node, Node] = {}
        self._bytes: dict[Node, Node] = {}

    def add(self, node: Node, made: Node) -> None:
        """The new node of an old one; bytes for int8 become those numbers for who reads them as such."""
        if isinstance(node.spec, Spec) and made.dtype != node.dtype:  # several results stay what they are
            self._bytes[node] = made
            made = bitcast(flipped(made), node.dtype)
        self.nodes[node] = made

    def bytes(self, node: Node) -> Node:
        """The new node of an old one of 8 bits, as bytes."""
        if node not in self._bytes:
            made = self.nodes[node]
            self._bytes[node] = made if made.dtype == np.uint8 else flipped(bitcast(made, "uint8"))
        return self._bytes[node]


def flipped(x: Node) -> Node:
    """Bytes with another sign: 128 more or less."""
    return bitwise_xor(x, Const(np.asarray(SIGN, "uint8")))


def changed(node: Node, seen: Seen, made: Made) -> Node:
    """The new node of an old one."""
    if isinstance(node.op, Quantize) and (scale := scale_of(node)):
        return quantized(node, scale, seen, made)
    if taken := table_taken(node):
        return looked_up(made.nodes[taken[0]], taken[1])
    if isinstance(node.op, Dequantize) and (x := dequantized(node)):
        return dequantize(made.bytes(x.node), np.float32(x.scale.scale), np.uint8(x.scale.zero))
    if isinstance(node.op, MOVES) and node.dtype == np.int8:
        return apply(node.op, made.bytes(node.operands[0]))
    product, pair = product_of(node, seen.is_inner), pair_of(node)
    if product:
        return computed(product, Result("f4"), product.factor, made)
    if pair:
        return multiplied(pair, Result("f4"), pair.scale, made)
    found = sums_of(node)
    if found:
        return summed(found, made)
    return with_new_operands(node, tuple([made.nodes[x] for x in node.operands]))


def quantized(node: Node, scale: Scale, seen: Seen, made: Made) -> Node:
    """Bytes of what a rule takes, or of floats."""
    inside, bounds = bounds_of(node, scale, seen.is_inner)
    for rule in RULES:
        found = rule(inside, scale, bounds, seen, made)
        if found is not None:
            return found
    chain = table_of(node, seen.place)
    if chain is not None:
        return looked_up(made.bytes(chain[0]), chain[1])
    return quantize(made.nodes[node.operands[0]], np.float32(scale.scale), np.uint8(scale.zero))


# -- rules: what a Quantize reads, as bytes ----------------------------------------------------------------------------


def from_product(node: Node, scale: Scale, bounds: Bounds, seen: Seen, made: Made) -> Node | None:
    """q(bounds(conv(dq, dq) + dq)), the same of a product of matrices"""
    product = product_of(node, seen.is_inner) if seen.is_inner(node) else None
    if product is None:
        return None
    return computed(product, Result("u1", scale.zero, *bounds), product.factor / np.float32(scale.scale), made)


def from_pair(node: Node, scale: Scale, bounds: Bounds, seen: Seen, made: Made) -> Node | None:
    """q(bounds(dq @ dq)), of two computed values"""
    pair = pair_of(node) if seen.is_inner(node) else None
    if pair is None:
        return None
    return multiplied(pair, Result("u1", scale.zero, *bounds), pair.scale / np.float32(scale.scale), made)


def from_sum(node: Node, scale: Scale, bounds: Bounds, seen: Seen, made: Made) -> Node | None:
    """q(bounds(dq(q(conv)) + dq)): the later one of two convolutions adds what the other has made"""
    if not isinstance(node.op, Add) or not seen.is_inner(node):
        return None
    parts = sorted(node.operands, key=lambda x: seen.place[x], reverse=True)
    for part, other in (parts, parts[::-1]):
        residual = dequantized(other)
        if residual and part is not other and residual.node.shape == node.shape:
            found = joined(part, scale, bounds, residual.scale, seen, made, made.bytes(residual.node))
            if found is not None:
                return found
    return None


def from_concat(node: Node, scale: Scale, bounds: Bounds, seen: Seen, made: Made) -> Node | None:
    """q(concat(dq, dq ...)): each part with the scale of the whole"""
    parts = [dequantized(x) for x in node.operands] if isinstance(node.op, Concat) else [None]
    if bounds != (0, 255) or not all(parts):
        return None
    return concat([rescaled(x, scale, seen, made) for x in node.operands], node.op.axis)  # type: ignore[attr-defined]


def from_move(node: Node, scale: Scale, bounds: Bounds, seen: Seen, made: Made) -> Node | None:
    """q(move(dq)), of a move that keeps order, or q(pad(dq)) with zeros: as large, and perhaps with another scale"""
    op = node.op
    x = dequantized(node.operands[0]) if isinstance(op, MOVES) or (isinstance(op, Pad) and op.value == 0) else None
    if x is None or bounds != (0, 255):
        return None
    moved = apply(Pad(op.widths, x.scale.zero) if isinstance(op, Pad) else op, made.bytes(x.node))
    return moved if x.scale == scale else requantized(moved, x.scale, scale)


def from_mean(node: Node, scale: Scale, bounds: Bounds, seen: Seen, made: Made) -> Node | None:
    """q(mean over pixels(dq)): sums of bytes times one factor, as onnxruntime has it"""
    x = mean_of(node)
    if x is None or bounds != (0, 255):
        return None
    count = x.node.shape[2] * x.node.shape[3]
    factor = np.float32(x.scale.scale) / (np.float32(scale.scale) * np.float32(count))
    total = apply(PixelSum(), made.bytes(x.node)) - np.int32(count * x.scale.zero)
    return reshape(quantize(total.astype("float32") * factor, np.float32(1), np.uint8(scale.zero)), node.shape)


Rule = Callable[[Node, Scale, Bounds, Seen, Made], Node | None]
RULES: Sequence[Rule] = (from_product, from_pair, from_sum, from_concat, from_move, from_mean)


# -- what they are made of ---------------------------------------------------------------------------------------------


def computed(product: Product, result: Result, factor: np.ndarray, made: Made, *residual: Node) -> Node:
    """A product as one op on bytes."""
    numbers = Const(product.bias, copy=False), Const(factor, copy=False)
    x, filters = made.bytes(product.x.node), Const(product.filters, copy=False)
    zero, op = product.x.scale.zero, product.op
    if isinstance(op, ConvTranspose):
        window = product.filters.shape[2:]
        each = (Const(np.tile(y, window[0] * window[1])) for y in (product.bias, factor))
        pixels = IntegerConv(EACH_PIXEL, zero, result)
        return moved_apart(apply(pixels, x, Const(pixel_filters(product.filters)), *each), window)
    if isinstance(op, Conv2d):
        return apply(IntegerConv(op, zero, result), x, filters, *numbers, *residual)
    return apply(IntegerMatmul(zero, result), x, filters, *numbers)


def multiplied(pair: Pair, result: Result, factor: np.floating, made: Made) -> Node:
    """A product of two values as one op on bytes."""
    zeros = pair.x.scale.zero, pair.y.scale.zero
    return apply(ByteMatmul(zeros, float(factor), result), made.bytes(pair.x.node), made.bytes(pair.y.node))


def summed(found: Sums, made: Made) -> Node:
    """``(x - zero) @ y`` as int32, of a zero point that the run computes: a product of bytes, less what it adds."""
    count = found.y.shape[1]
    nothing, ones = Const(np.zeros(count, "int32")), Const(np.ones(count, "float32"))
    total = apply(IntegerMatmul(0, Result("i4")), made.bytes(found.x), Const(found.y, copy=False), nothing, ones)
    zero = made.nodes[found.zero].astype("int32") + np.int32(SIGN if found.x.dtype == np.int8 else 0)
    return total - zero * Const(found.y.sum(0, dtype="int32"))


def joined(
    part: Node, scale: Scale, bounds: Bounds, other: Scale | None, seen: Seen, made: Made, *residual: Node
) -> Node | None:
    """A convolution's dequantized bytes, that nobody else reads, with another scale and perhaps a residual."""
    first = dequantized(part)
    if (
        first is None
        or not isinstance(first.node.op, Quantize)
        or not (seen.is_inner(part) and seen.is_inner(first.node))
    ):
        return None
    inside, own = bounds_of(first.node, first.scale, seen.is_inner)
    product = product_of(inside, seen.is_inner) if seen.is_inner(inside) else None
    if product is None or not isinstance(product.op, Conv2d):
        return None
    if not all(1 / MOST_SCALE < x.scale < MOST_SCALE for x in (first.scale, scale, other or scale)):
        return None
    zero, beside = first.scale.zero, (other.scale, other.zero) if other else (0.0, 0)
    join = Join(first.scale.scale, own[0] - zero, own[1] - zero, scale.scale, *beside)
    factor = product.factor / np.float32(first.scale.scale)
    return computed(product, Result("u1", scale.zero, *bounds, join), factor, made, *residual)


def rescaled(part: Node, scale: Scale, seen: Seen, made: Made) -> Node:
    """Dequantized bytes as bytes of another scale, by the convolution that makes them where it can."""
    x = dequantized(part)
    assert x is not None
    if x.scale == scale:
        return made.bytes(x.node)
    found = joined(part, scale, (0, 255), None, seen, made)
    return requantized(made.bytes(x.node), x.scale, scale) if found is None else found


def requantized(x: Node, before: Scale, after: Scale) -> Node:
    """Bytes with another scale."""
    every = np.arange(2 * SIGN, dtype="uint8")
    floats = Dequantize().meaning(every, np.float32(before.scale), np.uint8(before.zero))
    return looked_up(x, Quantize(every.dtype).meaning(floats, np.float32(after.scale), np.uint8(after.zero)))


def looked_up(x: Node, table: np.ndarray) -> Node:
    """Bytes for bytes; those that stay are `x` itself."""
    return x if (table == np.arange(len(table))).all() else apply(ByteTable(), x, Const(table, copy=False))
