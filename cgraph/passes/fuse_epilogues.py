"""Fusion of a convolution with the ops after it: per-channel factors and sums, a residual, an activation."""

from collections.abc import Callable

import numpy as np

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.ops.activation import Relu
from cgraph.ops.arithmetic import Add, Maximum, Minimum, Multiply, Subtract, TrueDivide
from cgraph.ops.conv import Conv2d, ConvTranspose
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.ops.physical.conv_layer import PLAIN_CHANNELS, has_few_products
from cgraph.ops.physical.frames import FramesConv
from cgraph.ops.physical.ports import RowSource
from cgraph.ops.shape import BroadcastTo
from cgraph.passes.fold_constants import is_widened
from cgraph.record import Record, replace

KINDS = (Conv2d, ConvTranspose, FramesConv)
LEAST_CHANNELS = 4  # in or out; fewer gain nothing from blocks, except that images streamed by rows run in bands
LEAST_DEPTHWISE = 2  # channels of a depthwise one: products of one row for each channel cost more than empty lanes
LEAST_PIXELS = 1024  # of its result; smaller ones gain less time than the empty lanes take memory
PACKED_CHANNELS = 8  # with fewer, packing filters and converting images in each run costs more than it saves


class Chain(Record):
    """A convolution with the ops that it absorbs.

    Fields
        conv: the convolution's node; last: the last absorbed node
        scale, shift: per channel, None if there is none
        residual: the node that is added
        activation: bounds
    """

    conv: Node
    last: Node
    scale: np.ndarray | None = None
    shift: np.ndarray | None = None
    residual: Node | None = None
    activation: BoundedActivation = NONE

    @property
    def is_open(self) -> bool:
        """Return True if a further factor or sum may be absorbed: none of the absorbed ops comes before it."""
        return self.residual is None and self.activation == NONE


def fuse_epilogues(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Fuse convolutions of images with the ops after them, if no other node reads the values in between.

    Values change in the last places: a factor is multiplied into constant filters. Not fused: activations other than
    relu and bounds around 0, and residuals of depthwise and transposed convolutions, whose kernels cannot add one.
    """
    graph = Roots.of(outputs)
    least = 1 if graph.has(RowSource) else LEAST_CHANNELS
    fusible = [node for node in graph.order if is_fusible(node, least)] if graph.has(*KINDS) else []
    if not fusible:
        return outputs
    chains: dict[Node, Chain] = {}
    inside: set[Node] = set()
    for node in fusible:
        chain, absorbed = Chain(node, node), []
        while chain.last not in graph.ends and (reader := graph.readers.get(chain.last)) is not None:
            longer = extend(chain, reader)
            if longer is None or longer.last in chains or longer.last in inside:
                break
            absorbed.append(chain.last)
            chain = longer
        chains[chain.last] = chain
        inside.update(absorbed)

    def change(node: Node, new: New) -> Node | None:
        if node in chains:
            return build_epilogue(chains[node], new)
        return node if node in inside else None

    return rebuild(graph, change)


def is_fusible(node: Node, least: int) -> bool:
    """Return True for a convolution of images with enough channels for blocks; filters that are not constant are packed
    in each run.
    """
    op = node.op
    if not isinstance(op, KINDS) or len(op.stride) != 2 or node.size == 0:
        return False
    if isinstance(op, FramesConv):
        return True
    k, c = node.shape[1], node.operands[0].shape[1]
    if op.groups == k == c and node.shape[2] * node.shape[3] >= LEAST_PIXELS:
        least = min(least, LEAST_DEPTHWISE)
    if isinstance(op, ConvTranspose) and has_few_products(op, k, node.operands[1].shape[2:]):
        least = 1  # generic kernels multiply the zeros between pixels, too
    if node.dtype.kind != "f" or max(k, c) < least:
        return False
    is_packed = op.groups == 1 or (isinstance(op, Conv2d) and op.groups == k == c)
    packed = is_packed and k >= PACKED_CHANNELS and (c >= PACKED_CHANNELS or c <= PLAIN_CHANNELS)
    return packed or has_constant_filters(node)


def has_constant_filters(node: Node) -> bool:
    return isinstance(node.operands[1].op, ConstOp) or is_widened(node.operands[1])


def extend(chain: Chain, user: Node) -> Chain | None:
    """Return the chain with its only user, or None if that op is not part of an epilogue."""
    rule = RULES.get(type(user.op))
    longer = rule(chain, user) if rule else None
    return None if longer is None else replace(longer, last=user)


def take_factor(chain: Chain, user: Node) -> Chain | None:
    """conv * s -> conv with filters * s; conv / s likewise, if all factors are finite"""
    if not chain.is_open or not has_constant_filters(chain.conv):
        return None
    first = user.operands[0] is chain.last
    values = channel_values(user.operands[1] if first else user.operands[0], chain.conv.shape[1])
    if values is None or user.operands[0] is user.operands[1]:
        return None
    if isinstance(user.op, TrueDivide):
        if not first:
            return None
        with np.errstate(divide="ignore", over="ignore"):
            values = 1 / values
    if not np.isfinite(values).all():  # a filter would become NaN where the result is infinite
        return None
    scale = values if chain.scale is None else chain.scale * values
    return replace(chain, scale=scale, shift=None if chain.shift is None else chain.shift * values)


def take_sum(chain: Chain, user: Node) -> Chain | None:
    """conv + b -> conv with a bias; conv + y -> conv with a residual"""
    if not chain.is_open or user.operands[0] is user.operands[1]:
        return None
    first = user.operands[0] is chain.last
    other = user.operands[1] if first else user.operands[0]
    values = channel_values(other, chain.conv.shape[1])
    if isinstance(user.op, Subtract):
        if not first or values is None:
            return None
        values = -values
    if values is not None:
        return replace(chain, shift=values if chain.shift is None else chain.shift + values)
    op = chain.conv.op
    if isinstance(op, ConvTranspose):
        return None
    depthwise = op.groups == chain.conv.shape[1] == chain.conv.operands[0].shape[1]  # type: ignore[attr-defined]
    broadcast = isinstance(other.op, BroadcastTo | ConstOp)
    return None if depthwise and op.groups > 1 or broadcast else replace(chain, residual=other)  # type: ignore[attr-defined]


def take_relu(chain: Chain, user: Node) -> Chain | None:
    """relu(conv) -> conv with the lower bound 0"""
    return replace(chain, activation=replace(chain.activation, low=max(0.0, chain.activation.low)))


def take_bound(chain: Chain, user: Node) -> Chain | None:
    """max(conv, low), min(conv, high) -> conv with bounds around 0"""
    other = user.operands[1] if user.operands[0] is chain.last else user.operands[0]
    values = channel_values(other, 1)
    if values is None:
        return None
    value, a = float(values[0]), chain.activation
    if isinstance(user.op, Maximum) and value <= 0 and a.high == np.inf:
        return replace(chain, activation=replace(a, low=max(a.low, value)))
    if isinstance(user.op, Minimum) and value >= 0:
        return replace(chain, activation=replace(a, high=min(a.high, value)))
    return None


RULES: dict[type, Callable[[Chain, Node], Chain | None]] = {
    Multiply: take_factor,
    TrueDivide: take_factor,
    Add: take_sum,
    Subtract: take_sum,
    Relu: take_relu,
    Maximum: take_bound,
    Minimum: take_bound,
}


def channel_values(node: Node, channels: int) -> np.ndarray | None:
    """Return a constant ``[channels]`` that is broadcast over ``[n, channels, h, w]``; None for other nodes."""
    shape = node.shape
    while isinstance(node.op, BroadcastTo):
        node = node.operands[0]
    if not isinstance(node.op, ConstOp) or len(shape) != 4:
        return None
    array = node.op.array
    full = (1,) * (4 - array.ndim) + array.shape
    if any(n != 1 for i, n in enumerate(full) if i != 1) or full[1] not in (1, channels):
        return None
    return np.broadcast_to(array.reshape(-1), (channels,))


def build_epilogue(chain: Chain, new: New) -> Node:
    """Return the chain as one node."""
    x, f = chain.conv.operands
    operands = [new[x], new[f]]
    operands += [Const(v.astype(chain.conv.dtype)) for v in (chain.scale, chain.shift) if v is not None]
    if chain.residual is not None:
        operands.append(new[chain.residual])
    has = (chain.scale is not None, chain.shift is not None, chain.residual is not None)
    return apply(ConvEpilogue(chain.conv.op, *has, chain.activation), *operands)  # type: ignore[arg-type]
