"""Sliced convolutions and products: the bits of the whole for slices of unequal size, direct, grouped and Winograd."""

from itertools import pairwise

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.kernels.gemm.portions import take_panels
from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.target import target_named
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import to_physical
from cgraph.ops.leaf import ConstOp
from cgraph.ops.physical.conv import BlockedConv, panel_of
from cgraph.ops.physical.matmul import PackedMatmul
from cgraph.ops.physical.sliced import SlicedConv, SlicedMatmul, columns_of, panel_axis, slice_filters
from cgraph.passes import rewrite_graph
from tests.support.kernels import TARGETS
from tests.support.ops import kernel_result

RNG = np.random.default_rng(0)


def random(*shape):
    return RNG.normal(size=shape).astype("f4")


def lowered(output, target, kind, winograd=True):
    """The node of this kind in the lowered graph, and values of its operands."""
    roots = to_physical(rewrite_graph((output,)), target, LoweringOptions(winograd=winograd))
    node = next(n for n in post_order(roots) if isinstance(n.op, kind))
    xs = [x.op.array if isinstance(x.op, ConstOp) else random(*x.shape) for x in node.operands]
    if isinstance(node.op, BlockedConv) and node.op.source is not None:
        form = node.op.source
        xs[0] = form.to_blocked(form.plain(xs[0]))
        xs[3:] = [node.op.residual.to_blocked(node.op.residual.plain(x)) for x in xs[3:]]
    return node, xs


def results(op, xs, target):
    node = apply(op, *(cg.Var(x.shape, x.dtype) for x in xs))
    return kernel_result(node, list(xs), "all", target=target)[0], op.meaning(*xs), node


def conv(k, c, window, groups=1, residual=False):
    x = cg.Var((1, c, 12, 12))
    y = cg.conv2d(x, random(k, c // groups, *window), 1, window[0] // 2, 1, groups) + random(k, 1, 1)
    return cg.relu(y + cg.Var(y.shape)) if residual else cg.relu(y)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("winograd", [False, True])
@pytest.mark.parametrize("output", [conv(142, 32, (3, 3)), conv(160, 48, (1, 1), residual=True)], ids=["3x3", "1x1"])
def test_slices_of_filters_have_the_bits_of_the_whole(output, winograd, name):
    target = target_named(name)
    node, xs = lowered(output, target, BlockedConv, winograd)
    whole, meant, _ = results(node.op, xs, target)
    axis = panel_axis(node.op)
    assert axis == (1 if node.op.tile else 0)
    count = xs[1].shape[axis]
    parts = np.array_split(xs[1], [1, 3], axis) if count > 3 else np.array_split(xs[1], [1], axis)
    parts = [np.ascontiguousarray(p) for p in parts if p.size]
    op = SlicedConv(node.op, tuple(p.shape[axis] for p in parts))
    got, sliced, one = results(op, [xs[0], *parts, *xs[2:]], target)
    np.testing.assert_array_equal(got, whole)
    np.testing.assert_array_equal(sliced, meant)
    assert one.spec == node.spec and op.name == node.op.name
    assert sum(shape.k for shape in op.shapes) == node.op.shape.k
    width = panel_of(node.op.shape, 1, node.op.tile) * node.op.shape.lanes
    assert [s.k for s in op.shapes[:-1]] == [n * width for n in op.panels[:-1]]
    assert op.multiply_adds(*(x.spec for x in one.operands)) == node.op.multiply_adds()
    assert len(op.winograds) == (len(parts) if node.op.tile else 0)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("blocks", [5, 7, 13])
@pytest.mark.parametrize("pieces", [1, 2, 3, 100])
def test_narrow_panels_stay_together_in_the_last_slice(blocks, pieces, name):
    target = target_named(name)
    node, xs = lowered(conv(blocks * target.channels_of("f4") - 1, 24, (1, 1)), target, BlockedConv, False)
    assert node.op.shape.narrow and xs[1].ndim == 1
    whole, meant, _ = results(node.op, xs, target)
    parts, panels = slice_filters(node.op, xs[1], xs[1].nbytes // pieces)
    op = SlicedConv(node.op, panels)
    got, sliced, _ = results(op, [xs[0], *parts, *xs[2:]], target)
    np.testing.assert_array_equal(got, whole)
    np.testing.assert_array_equal(sliced, meant)
    assert sum(panels) == node.op.shape.panels and panels[-1] >= node.op.shape.narrow
    assert [part.size for part in parts] == [s.weights_nbytes // 4 for s in op.shapes]
    assert (len(parts) == 1) == (pieces == 1)


def test_a_residual_that_may_be_overwritten_stands_behind_all_slices():
    target = target_named(TARGETS[0])
    node, xs = lowered(conv(160, 48, (1, 1), residual=True), target, BlockedConv, False)
    assert node.op.residual is not None
    op = SlicedConv(node.op, (1, 1, 1))
    assert op.split((1, 2, 3, "bias", "residual")) == ((1, 2, 3), ("bias", "residual"))
    assert op.work(target).overwrites == tuple(i + 2 for i in node.op.overwrites)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("rows", [3, 40])
def test_slices_of_columns_have_the_bits_of_the_whole(rows, name):
    target = target_named(name)
    y = cg.Var((rows, 70)) @ random(70, 200) + random(200)
    node, xs = lowered(y, target, PackedMatmul)
    op, tile = node.op, node.op.tile
    whole, meant, _ = results(op, xs, target)
    panels = -(-op.n // tile.width)
    edges = [0, 1, max(panels - 1, 2), panels]
    parts = [take_panels(xs[1], op.k, tile, a, b) for a, b in pairwise(edges) if b > a]
    columns = tuple(min(b * tile.width, op.n) - a * tile.width for a, b in pairwise(edges) if b > a)
    sliced = SlicedMatmul(op, columns)
    got, value, one = results(sliced, [xs[0], *parts, *xs[2:]], target)
    np.testing.assert_array_equal(got, whole)
    np.testing.assert_array_equal(value, meant)
    assert one.shape == (rows, 200) and sliced.multiply_adds(one.operands[0].spec, None) == rows * 70 * 200


def test_columns_of_a_view_begin_at_the_first():
    view = View(Pointer("x", 8), (3, 10), (80, 8), "f8")
    assert columns_of(view, 4, 5) == View(Pointer("x", 40), (3, 5), (80, 8), "f8")
    assert columns_of(view, 0, 10) == view
