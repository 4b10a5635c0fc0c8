"""Networks of floats, of bytes and of volumes whose axes and sides differ, and what lowering makes of them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import cgraph as cg
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import Target, host_target, target_named
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import to_physical
from cgraph.ops.leaf import Var
from cgraph.passes import rewrite_graph
from cgraph.passes.integers.compute_integers import compute_integers
from cgraph.record import Record, replace
from tests.support.emulated import emulate_tiles

Weights = Callable[..., np.ndarray]
PORTABLE, PAIRS = target_named("portable"), replace(host_target(), bf16="emulated", tiles="")


class Lowered(Record, eq=False):
    """A network.

    Fields
        outputs: the logical graph; of bytes, the ops on bytes
        roots: the physical graph
        values: of the inputs
    """

    outputs: tuple[Node, ...]
    roots: tuple[Node, ...]
    values: dict[Node, np.ndarray]
    target: Target


@cache
def lowered(name: str) -> Lowered:
    """One of the networks of the table."""
    make, target = LOWERED[name]
    rng = np.random.default_rng(2)
    outputs = compute_integers(make(lambda *shape: rng.normal(size=shape).astype("f4") / 10))
    roots = to_physical(rewrite_graph(outputs), target, LoweringOptions(pairs=name in ROUNDED))
    inputs = [x for x in post_order(outputs) if isinstance(x, Var)]
    return Lowered(outputs, tuple(roots), {x: rng.standard_normal(x.shape).astype("f4") for x in inputs}, target)


def floats(weights: Weights) -> tuple[Node, ...]:
    x, u, v = Var((2, 32, 14, 15), name="x"), Var((2, 4, 14, 15), name="u"), Var((3, 40, 64), name="v")
    y = cg.relu(cg.conv2d(x, weights(64, 32, 3, 2), (1, 2), (2, 0, 3, 1), (2, 1)) + weights(64, 1, 1))
    z = cg.max_pool2d(cg.relu(y + cg.conv2d(y, weights(64, 64, 3, 3), 1, 1)), (3, 2), (2, 1), (1, 0, 0, 1))
    apart = cg.conv2d(z, weights(64, 1, 3, 2), (2, 1), (1, 0, 2, 1), groups=64)
    up = cg.conv_transpose2d(z, weights(64, 32, 3, 2), (2, 3), (1, 0, 2, 1), output_pad=(1, 2))
    products = cg.relu(v @ weights(64, 48) + weights(48)), v @ cg.swapaxes(v, 1, 2)
    few = cg.relu(cg.conv2d(u, weights(4, 1, 3, 2), (1, 2), (2, 0, 1, 1), (1, 2), 4) + weights(4, 1, 1))
    pixels = cg.conv_transpose2d(u[:, 1:], weights(3, 2, 3, 2), (2, 3), (1, 0, 2, 1), output_pad=(1, 2))
    return up, cg.tanh(apart), cg.mean(z, (2, 3)), few, pixels + weights(2, 1, 1), *products


def volumes(weights: Weights) -> tuple[Node, ...]:
    x = Var((2, 9, 4, 9, 8), name="x")
    y = cg.relu(cg.conv3d(x, weights(17, 9, 3, 3, 2), (1, 2, 1), (1, 0, 2, 1, 1, 0)))
    z = cg.conv3d(y, weights(17, 17, 2, 1, 3), (2, 1, 1), (1, 0, 1, 0, 0, 1)) + np.float32(1)
    pooled = cg.max_pool3d(y, (2, 3, 2), (1, 2, 1), (1, 0, 1, 0, 1, 0))
    return z, cg.conv3d(pooled, weights(8, 17, 1, 2, 2)), cg.avg_pool3d(y, (2, 1, 2), (2, 1, 3))


def bytes_of(kind: str, weights: Weights) -> tuple[Node, ...]:
    low = np.iinfo(kind).min

    def held(x: Node, scale: float, zero: int) -> Node:
        return cg.dequantize(cg.quantize(x, np.float32(scale), low + zero, kind), np.float32(scale), low + zero)

    def conv(x: Node, *shape: int, **moves: Any) -> Node:
        filters = np.rint(weights(*shape) * 400).astype("i1")
        return cg.conv2d(x, cg.dequantize(filters, np.float32(0.004)), **moves)

    x = held(Var((2, 6, 11, 12), name="x"), 0.02, 120)
    first = held(cg.relu(conv(x, 24, 6, 3, 2, stride=(1, 2), pad=(2, 0, 1, 1))), 0.01, 7)
    deep = held(conv(first, 24, 1, 3, 2, stride=(2, 1), pad=(0, 1, 2, 0), groups=24), 0.008, 130)
    wide = held(conv(first, 24, 24, 2, 3, stride=(2, 1), pad=(1, 0, 0, 3), dilation=(1, 2)), 0.02, 110)
    pooled = held(cg.max_pool2d(first, (3, 2), (2, 1), (1, 0, 0, 1)), 0.01, 7)
    joined = held(cg.concat([wide, pooled[:, :, : wide.shape[2], : wide.shape[3]]], 1), 0.02, 110)
    mean = held(cg.mean(deep, (2, 3), keepdims=True), 0.004, 100)
    curved = held(cg.sigmoid(joined), 1 / 256, 0)
    smooth = held(cg.avg_pool2d(first, (3, 2), (1, 2), (1, 0, 1, 1), count_pad=True), 0.01, 9)
    inner = held(cg.avg_pool2d(first, (2, 3), (2, 1), (0, 2, 1, 1)), 0.01, 9)
    return conv(curved, 7, 48, 1, 1), mean, smooth, inner, deep


LOWERED: dict[str, tuple[Callable[[Weights], tuple[Node, ...]], Target]] = {
    "floats": (floats, host_target()),
    "floats one by one": (floats, PORTABLE),
    "volumes": (volumes, host_target()),
    "uint8": (lambda weights: bytes_of("uint8", weights), host_target()),
    "int8": (lambda weights: bytes_of("int8", weights), host_target()),
    "tiles": (floats, emulate_tiles(host_target())),
    "pairs": (floats, PAIRS),
}
"""Makers and targets."""
ROUNDED = ("tiles", "pairs")
