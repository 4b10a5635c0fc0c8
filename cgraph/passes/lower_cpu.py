"""Logical ops → physical ops for the CPU: which images lie in blocks, with which frame, and who converts.

A convolution, transposed or not, and the gradient for its filters work on blocks; pools, resizes, pointwise ops,
concats, features of boxes and sums over pixels that read such a value stay in blocks, so conversions are made only
where a value enters or leaves a run of these ops. What a pointwise op or a concat reads and writes has one frame
(halo), the widest that any convolution behind it reads.
"""

from cgraph.ir.graph import Node
from cgraph.ir.traverse import located, post_order, users_of
from cgraph.kernels.expression import code_of
from cgraph.kernels.target import Target, host_target
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.family import Pointwise
from cgraph.ops.join import Concat
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.ops.physical.form import NO_HALO, Form, Halo
from cgraph.ops.pool import MaxPool, MaxPoolPlaces, SpreadToPlaces
from cgraph.ops.reduce import Sum
from cgraph.ops.regions import RoiAlign, RoiAlignGrad
from cgraph.ops.resize import Resize
from cgraph.ops.shape import BroadcastTo
from cgraph.passes.blocks import Builder, is_finite_beyond
from cgraph.passes.conv_layer import halo_read, is_filter_grad
from cgraph.passes.rewrite import remade

PIXELS = ((2, 3), (0, 2, 3))


def lower_cpu(outputs: tuple[Node, ...], target: Target | None = None, winograd: bool = True) -> tuple[Node, ...]:
    """Replace what has a faster layout: same values up to rounding, more nodes, constants packed.

    May worsen: bytes, by unused lanes of odd channel counts, frames and workspaces; all of them are in the plan.
    `winograd=False` computes every convolution directly, which is the more exact.
    """
    order = post_order(outputs)
    if not any(isinstance(n.op, ConvEpilogue) or is_filter_grad(n) for n in order):
        return outputs
    target = target or host_target()
    blocked = blocked_nodes(order, target, outputs)
    builder = Builder(halos(order, blocked, target), target, winograd)
    for node in located(order):
        if node in blocked:
            builder.add_blocked(node)
        elif isinstance(node.op, Sum) and node.op.axes in PIXELS and node.operands[0] in blocked:
            builder.add_pixel_sum(node)
        elif is_filter_grad(node):
            builder.add_filter_grad(node)
        else:
            builder.add_plain(node, remade(node, tuple(builder.plain(x) for x in node.operands)))
    return tuple(builder.plain(x) for x in outputs)


def blocked_nodes(order: list[Node], target: Target, outputs: tuple[Node, ...]) -> set[Node]:
    """Nodes whose value lies in blocks; places of largest elements where none but pooling's gradient reads them."""
    found: set[Node] = set()
    users = users_of(order)
    shown = set(outputs)
    for node in order:
        if isinstance(node.op, MaxPoolPlaces):
            inner = node not in shown and all(isinstance(u.op, SpreadToPlaces) for u in users[node])
            stays = inner and node.operands[0] in found and len(node.op.window) == 2
        else:
            stays = isinstance(node.op, ConvEpilogue) or (bool(node.operands) and stays_blocked(node, found, target))
        if stays:
            found.add(node)
    return found


def stays_blocked(node: Node, blocked: set[Node], target: Target) -> bool:
    """The op reads blocks and can write them."""
    op, x = node.op, node.operands[0]
    if isinstance(op, MaxPool | AvgPool) and type(op) in (MaxPool, AvgPool):
        return x in blocked and len(op.window) == 2
    if isinstance(op, Resize | SpreadToPlaces):
        return x in blocked
    if isinstance(op, RoiAlign | RoiAlignGrad):
        return all(x in blocked for x in node.operands[3:])
    if isinstance(op, Concat):
        return op.axis == 1 and all(x in blocked for x in node.operands)
    if not isinstance(op, Pointwise) or node.ndim != 4:
        return False
    if any(x.dtype != node.dtype for x in node.operands) or not any(x in blocked for x in node.operands):
        return False
    whole = node.shape[1] % target.lanes_of(code_of(node.dtype)) == 0
    return all(fits(x, blocked) for x in node.operands) and (whole or is_finite_beyond(node))


def fits(x: Node, blocked: set[Node]) -> bool:
    """An operand of a pointwise op that is in blocks, or spread over pixels, or small enough to convert."""
    if x in blocked or not isinstance(x.op, BroadcastTo):
        return True
    source = x.operands[0]
    return ((1,) * (4 - source.ndim) + source.shape)[2:] == (1, 1)


def halos(order: list[Node], blocked: set[Node], target: Target) -> dict[Node, Form]:
    """The form of every blocked node."""
    group: dict[Node, Node] = {}

    def root(n: Node) -> Node:
        while group.setdefault(n, n) is not n:
            group[n] = group[group[n]]
            n = group[n]
        return n

    need: dict[Node, Halo] = {}
    for node in order:
        if node not in blocked:
            continue
        if isinstance(node.op, Pointwise | Concat):
            for x in node.operands:
                if x in blocked and x.shape[2:] == node.shape[2:]:
                    group[root(x)] = root(node)
    for node in order:
        if (isinstance(node.op, ConvEpilogue) or is_filter_grad(node)) and node.operands[0] in blocked:
            top = root(node.operands[0])
            need[top] = widest(need.get(top, NO_HALO), halo_read(node, target))
    for x in blocked:
        need.setdefault(root(x), NO_HALO)
    wide = {x: need[root(x)] for x in blocked}
    return {
        x: Form(*x.shape, lanes_of(x, target), code_of(x.dtype), halo)  # type: ignore[call-arg,arg-type]
        for x, halo in wide.items()
    }


def lanes_of(x: Node, target: Target) -> int:
    """Channels in a block; places of elements lie as the elements do."""
    return target.lanes_of(code_of((x.operands[0] if isinstance(x.op, MaxPoolPlaces) else x).dtype))


def widest(a: Halo, b: Halo) -> Halo:
    return tuple(max(x, y) for x, y in zip(a, b))  # type: ignore[return-value]
