"""Volumes are blocked frames between convolutions: one conversion at each end, frames with the halo that is read."""

import numpy as np

import cgraph as cg
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import host_target
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import to_physical
from cgraph.ops.physical.blocked_frames import BlockedFrames, ToBlockedFrames, ToPlainFrames
from cgraph.ops.physical.conv import BlockedConv
from cgraph.passes import rewrite_graph

RNG = np.random.default_rng(0)


def nodes_of(output):
    return post_order(to_physical(rewrite_graph((output,)), host_target(), LoweringOptions()))


def conv(x, k, *window):
    f = RNG.normal(size=(k, x.shape[1], *window)).astype("float32")
    return cg.conv3d(x, f, 1, tuple(n // 2 for n in window))


def test_one_conversion_at_each_end():
    x = cg.Var((1, 16, 4, 12, 12))
    y = cg.relu(conv(x, 32, 3, 3, 3))
    nodes = nodes_of(conv(cg.max_pool3d(y, 3, 1, 1), 16, 1, 3, 3) + x)
    kinds = [type(n.op) for n in nodes]
    assert kinds.count(ToBlockedFrames) >= 1 and kinds.count(ToPlainFrames) == 1
    assert kinds.count(BlockedConv) == 2 and kinds.count(BlockedFrames) == 2  # frames of zeros, a pool


def test_a_convolution_of_several_depths_reads_them_as_channels():
    nodes = nodes_of(conv(cg.Var((2, 16, 4, 12, 12)), 32, 3, 3, 3))
    (node,) = (n for n in nodes if isinstance(n.op, BlockedConv))
    assert node.op.depth.volumes == 2 and node.op.n == 4 and node.op.shape.c == 3 * 16
    assert node.op.multiply_adds() == 2 * 4 * 12 * 12 * 32 * 3 * 9 * 16


def test_volumes_of_few_channels_are_read_plain():
    nodes = nodes_of(conv(cg.Var((1, 3, 4, 12, 12)), 32, 3, 3, 3))
    (node,) = (n for n in nodes if isinstance(n.op, BlockedConv))
    assert node.op.source is None and node.op.shape.is_plain and node.op.shape.c == 9
