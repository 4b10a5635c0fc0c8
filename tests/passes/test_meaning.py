"""The lowered graph, op by op: its meaning is the logical graph's, and its kernels compute its meaning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import Op
from cgraph.ir.traverse import post_order
from cgraph.kernels.mapped import in_place
from cgraph.kernels.target import target_named
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import to_physical
from cgraph.ops.physical.byte_matmul import ByteMatmul
from cgraph.ops.physical.byte_pool import BytePool
from cgraph.ops.physical.conv import BlockedConv, ConvEpilogue
from cgraph.ops.physical.conv_transpose import BlockedConvTranspose
from cgraph.ops.physical.filters import BlockedConvFilters, FilterGradient, RoundFilters
from cgraph.ops.physical.first_rows import Counted, FirstRows, FirstWrites
from cgraph.ops.physical.frames import FramesConv
from cgraph.ops.physical.in_place import InPlace
from cgraph.ops.physical.integer import (
    BlockedIntegerConv,
    BlockedPixelSum,
    IntegerConv,
    IntegerMatmul,
    PackedIntegerMatmul,
    PixelSum,
)
from cgraph.ops.physical.lanes import BlockedOp, BlockedPoolIndices, JoinedImages, ToPlain
from cgraph.ops.physical.matmul import PanelMatmul
from cgraph.ops.physical.pairs import PairedMatmul
from cgraph.ops.physical.ports import RowSink, RowSource
from cgraph.ops.physical.rerun import Rerun
from cgraph.ops.physical.rounded import RoundedMatmul
from cgraph.ops.physical.rounds import PlannedConditional, Rounds, WhileRounds
from cgraph.ops.physical.sliced import SlicedConv, SlicedMatmul
from cgraph.ops.physical.stream import Stream
from cgraph.ops.physical.structured import PlannedOp
from cgraph.ops.physical.table import ByteTable
from cgraph.ops.physical.tile_attention import TiledAttention
from cgraph.ops.physical.tile_conv import TileConv, TileImages, TileIntegerConv, WideDepthwise
from cgraph.ops.physical.tile_filters import PackTileFilters, PackTileTransposed, TileConvFilters
from cgraph.ops.physical.tile_transposed import TileConvTranspose
from cgraph.ops.physical.tiled import TiledIntegerMatmul, TiledMatmul
from cgraph.passes import rewrite_graph
from cgraph.passes.weights_on_disk import slice_constants
from tests.support.graphs import draw_values, graphs
from tests.support.kernels import TARGETS
from tests.support.networks import POOLED, SMOOTH, networks, normal
from tests.support.tolerance import assert_close

BASES = {BlockedOp, Counted, FilterGradient, PanelMatmul, PlannedOp}
COUNTED = {FirstRows, FirstWrites}  # ops/test_first_rows.py
BYTES = {
    IntegerConv,
    BlockedIntegerConv,
    IntegerMatmul,
    PackedIntegerMatmul,
    PixelSum,
    BlockedPixelSum,
}  # integers/test_compute_integers.py
BYTES |= {ByteMatmul, BytePool, ByteTable}  # integers/test_byte_matmul.py, ops/test_byte_pool.py, test_byte_tables.py
HALVES = {PairedMatmul, RoundedMatmul, RoundFilters}  # test_precision.py, ops/test_rounded.py, ops/test_filters.py
TILED = {TiledIntegerMatmul, TiledMatmul, TiledAttention}  # ops/test_tiled.py, lowering/test_tile_attentions.py
IMAGES_OF_TILES = {TileConv, TileImages, TileIntegerConv, WideDepthwise, JoinedImages}  # ops/test_tile_conv.py
IMAGES_OF_TILES |= {TileConvFilters, PackTileFilters, PackTileTransposed}  # ops/test_tile_filters.py
IMAGES_OF_TILES |= {TileConvTranspose}  # ops/test_tile_transposed.py
PLANNED = {
    InPlace,
    PlannedConditional,
    Rerun,
    Rounds,
    WhileRounds,
    Stream,
    SlicedConv,
    SlicedMatmul,
}  # made after lowering, of ops that are lowered
PORTS = {RowSource, RowSink}  # made where a run is fed by rows: tests/function/test_by_rows.py


def lowered_for(target, outputs):
    return to_physical(rewrite_graph(tuple(outputs)), target_named(target), LoweringOptions())


def values_of(outputs):
    rng = np.random.default_rng(1)
    return {x: normal(rng, x, 1, x.shape) for x in post_order(outputs) if isinstance(x, cg.Var) and not x.is_assigned}


def images_read(node):
    """The operands of a node that lie in lanes, each with its form."""
    if isinstance(node.op, BlockedOp):
        forms = node.op.sources
    elif isinstance(node.op, BlockedConv):
        forms = (node.op.source, None, None, node.op.residual)
    elif isinstance(node.op, BlockedConvFilters):
        forms = (node.op.source, node.op.gradient)
    elif isinstance(node.op, BlockedConvTranspose):
        forms = (node.op.source,)
    else:
        forms = (node.op.form,) if isinstance(node.op, ToPlain) else ()
    return [(x, form) for x, form in zip(node.operands, forms) if form is not None]


def check(target, outputs, scale):
    """The meaning of the lowered graph, and what kernels make of each of its images; those are 0 outside."""
    values, roots = values_of(outputs), lowered_for(target, outputs)
    images = dict(pair for node in post_order(roots) for pair in images_read(node))
    nodes = [*images, *roots]
    meant, wanted = evaluate(nodes, values), evaluate(outputs, values)
    given = [x for x in post_order(nodes) if x in values]
    computed = cg.compile(nodes, given, passes=False, engine=CpuEngine(target=target))(*(values[x] for x in given))
    for want, meaning, got in zip(wanted, meant[len(images) :], computed[len(images) :]):
        assert_close(meaning, want, scale)
        assert_close(got, want, scale)
    for (node, form), meaning, got in zip(images.items(), meant, computed):
        assert_close(form.plain(got), form.plain(meaning), scale)
        np.testing.assert_array_equal(meaning, form.to_blocked(form.plain(meaning)), err_msg=repr(node))
        if not isinstance(node.op, BlockedPoolIndices):  # a lane without a channel has places, too, which nobody reads
            np.testing.assert_array_equal(got, form.to_blocked(form.plain(got)), err_msg=repr(node))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=25)
@given(network=networks())
def test_networks(target, network):
    check(target, network[1], scale=10)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=15)
@given(network=st.sampled_from((SMOOTH, POOLED)).flatmap(networks))
def test_gradients_of_networks(target, network):
    result = network[1][0]
    total = cg.sum(result * normal(np.random.default_rng(2), result, 1, result.shape))
    check(target, cg.gradient(total, [x for x in post_order([result]) if isinstance(x, cg.Var)]), scale=100)


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=15)
@given(network=networks(["conv", "conv", "act", "add", "concat"]), most=st.sampled_from((1, 3000)))
def test_convolutions_in_slices_have_the_same_meaning_and_the_same_bits(target, network, most):
    image, outputs = network
    values, roots = (
        values_of(outputs),
        to_physical(rewrite_graph(tuple(outputs)), target_named(target), LoweringOptions(winograd=False)),
    )
    check_slices(target, roots, values, most)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("most", [1, 20_000])
def test_winograd_and_products_in_slices_have_the_same_meaning_and_the_same_bits(target, most):
    rng = np.random.default_rng(0)
    x, v = cg.Var((1, 64, 12, 12), name="x"), cg.Var((2, 3, 1100), "float64", name="v")
    y = cg.relu(layer(x, 64))
    y, w = layer(y, 128) + layer(y, 128, window=1), normal(rng, v, 0.1, (1100, 70))
    values, roots = values_of([y, v]), lowered_for(target, [y, cg.relu(v @ w + 1.0), v @ w[:, :33]])
    assert {SlicedConv, SlicedMatmul} <= {
        type(node.op) for node in post_order(check_slices(target, roots, values, most))
    }


def check_slices(target, roots, values, most):
    """The graph in slices, which means and computes the same."""
    parts = slice_constants(roots, most, in_place)
    assert slice_constants(parts, most, in_place) == parts
    for got, want in zip(evaluate(parts, values), evaluate(roots, values)):
        np.testing.assert_array_equal(got, want)
    inputs = [x for x in values if isinstance(x, cg.Var)]
    whole, cut = (cg.compile(nodes, inputs, passes=False, engine=CpuEngine(target=target)) for nodes in (roots, parts))
    given = [values[x] for x in inputs]
    for got, want in zip(cut(*given), whole(*given), strict=True):
        np.testing.assert_array_equal(got, want)
    return parts


@settings(max_examples=40)
@given(drawn=graphs(), target=st.sampled_from(TARGETS))
def test_random_graphs(drawn, target):
    values = dict(zip(drawn.leaves, draw_values(drawn.leaves)))
    for got, want in zip(evaluate(lowered_for(target, drawn.outputs), values), evaluate(drawn.outputs, values)):
        assert_close(got, want)


def layer(x, channels=17, window=3, name=None):
    """A convolution with constant filters, or with those of a Var."""
    shape = (channels, x.shape[1], window, window)
    f = normal(np.random.default_rng(0), x, 0.1, shape)
    return cg.conv2d(x, f if name is None else cg.Var(shape, name=name), 1, window // 2)


def boxed(x):
    """What a box sees of an image, which a convolution may read on."""
    boxes, zero = np.array([[1, 1, 9, 9]], "float32"), np.zeros(1, np.int64)
    return cg.roi_align_levels([x], boxes, zero, zero, (6, 6), (1.0,))


def volumes_of_every_kind():
    """Volumes of few channels, which are read plain, and of many, which are blocked."""
    few, four = cg.Var((2, 3, 4, 9, 9), name="few"), cg.Var((2, 4, 4, 9, 9), name="four")
    f, g = (normal(np.random.default_rng(0), few, 0.1, (17, c, 3, 3, 3)) for c in (3, 17))
    y = cg.conv3d(few, f, (1, 2, 2), 1)
    single, point = (normal(np.random.default_rng(0), few, 0.1, s) for s in ((4, 1, 1, 3, 3), (8, 9, 1, 1, 1)))
    plain = cg.conv3d(four, single, 1, (0, 1, 1), groups=4)
    pools = [cg.max_pool3d(v, 3, 2, 1) for v in (cg.relu(y), plain, four)]
    return [cg.conv3d(cg.relu(y), g, 1, 1) + y, *pools, cg.avg_pool3d(cg.abs(y), 2), cg.conv3d(volume(), point)]


def volume():
    return cg.Var((2, 9, 5, 8, 8), name="volume")


def every_op():
    """Small networks that together are lowered to every physical op there is."""
    x, v = cg.Var((2, 17, 12, 12), name="x"), cg.Var((5, 40), name="v")
    y = layer(x)
    joined = cg.concat([y, cg.resize(layer(x), (12, 12), scales=(1.0, 2.0)), y], 1)
    up, little = (cg.conv_transpose2d(y, normal(np.random.default_rng(0), x, 0.1, (17, k, 2, 2)), 2) for k in (9, 3))
    wide = layer(cg.Var((2, 64, 12, 12), name="wide"), 64)  # Winograd
    single = cg.conv2d(y, normal(np.random.default_rng(0), x, 0.1, (17, 1, 3, 3)), 1, 1, 1, 17)  # depthwise
    drawn = cg.conv2d(y, cg.Var((17, 1, 3, 3), name="drawn") * 0.1, 1, 1, 1, 17)  # with filters that are computed
    yield [
        layer(joined, 8),
        layer(up, 8),
        little,
        layer(wide, 64),
        single,
        drawn,
        layer(cg.avg_pool2d(y, 3, 2, 1, ceil=True), 8),
        layer(cg.tanh(wide + 1.0), 8),
        boxed(layer(wide, 64)),
        cg.sum(y, (2, 3)),
    ]
    trained = layer(boxed(cg.max_pool2d(layer(x, 16, name="f"), 2)), 8, name="g")
    yield cg.gradient(cg.sum(cg.square(trained)), [n for n in post_order([trained]) if isinstance(n, cg.Var)])
    w = normal(np.random.default_rng(0), v, 0.1, (40, 24))
    yield volumes_of_every_kind()
    yield [cg.relu(v @ w + 1.0), cg.relu(v @ cg.Var((40, 24), name="w") + 1.0), cg.pad(cg.exp(v[1:-1]), 1)]
    yield [v * 0.6 + cg.concat([-v[:, 20:], v[:, :20]], 1) * 0.8]  # rotary positions


@pytest.mark.parametrize("target", TARGETS)
def test_every_physical_op(target):
    met = set()
    for outputs in every_op():
        check(target, outputs, scale=20)
        met.update(type(node.op) for node in post_order(lowered_for(target, outputs)))
    physical = {op for op in subclasses(Op) if op.__module__.startswith("cgraph.ops.physical")}
    physical -= BASES
    assert physical - met == {
        ConvEpilogue,
        FramesConv,
        *COUNTED,
        *PLANNED,
        *PORTS,
        *BYTES,
        *HALVES,
        *TILED,
        *IMAGES_OF_TILES,
    }  # the first two are lowered
    assert all(op.meaning is not Op.meaning for op in physical)


def subclasses(kind):
    found = set(kind.__subclasses__())
    return found.union(*map(subclasses, found))


def test_an_op_in_place_and_one_computed_again_mean_what_the_op_does():
    x, y = np.ones((2, 2)), np.full((2, 2), 3.0)
    add = (cg.Var((2, 2)) + cg.Var((2, 2))).op
    np.testing.assert_array_equal(InPlace(add, 2, 0).meaning(x, y, y), x + y)
    np.testing.assert_array_equal(Rerun(add).meaning(x, y), x + y)
