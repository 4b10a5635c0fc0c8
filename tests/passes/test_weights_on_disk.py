"""Products of one row are cut into slices, each with its own part of what is added; which layers are cut at all."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.kernels.activation.calls import NONE
from cgraph.kernels.mapped import in_place
from cgraph.kernels.target import host_target
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import to_physical
from cgraph.ops.leaf import HASHED_NBYTES
from cgraph.ops.linear import Matmul
from cgraph.ops.physical.matmul import MatmulEpilogue
from cgraph.ops.physical.sliced import SlicedConv
from cgraph.passes import rewrite_graph
from cgraph.passes.weights_on_disk import SLICE, is_row, large_constants, slice_constants, slice_nbytes
from cgraph.storage.weight_file import StreamedWeights
from tests.support.emulated import TilesEngine
from tests.support.rewrites import assert_same_values
from tests.support.tolerance import assert_near

K = 5


@pytest.mark.parametrize("most", [64, 1000, 4 * K * 64, 4 * K * 150])
@pytest.mark.parametrize("columns", [16, 33, 150])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("added", ["nothing", "constant", "computed"])
def test_a_sliced_product_of_one_row_adds_to_each_slice_its_own_part(most, columns, turned, added):
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((columns, K) if turned else (K, columns)).astype("f4")
    x, b = cg.Var((1, K), name="x"), cg.Var((1, columns), name="b")
    addend = rng.standard_normal((1, columns)).astype("f4")
    y = cg.transpose(cg.Const(matrix)) if turned else cg.Const(matrix)
    given = {"nothing": (), "constant": (cg.Const(addend),), "computed": (b * 2.0,)}[added]
    op = MatmulEpilogue(True, NONE) if given else Matmul()
    node = apply(op, x, y, *given)
    (cut,) = slice_constants((node,), most, in_place)
    assert (cut is node) is (matrix.nbytes <= most or columns == 16)  # a slice has a cache line at least
    value = rng.standard_normal((1, K)).astype("f4")
    want, got = (cg.compile(root, [x, b], engine="reference")(value, addend) for root in (node, cut))
    assert_near(got, want, "float32 formulas near zero")


RNG = np.random.default_rng(0)
IMAGE, VOLUME = cg.Var((1, 64, 6, 6), name="x"), cg.Var((1, 64, 3, 6, 6), name="x")


def constant(*shape):
    return RNG.standard_normal(shape).astype("f4")


LAYERS = {
    "all channels": (cg.conv2d(IMAGE, constant(64, 64, 3, 3), 1, 1), 1),
    "points": (cg.conv2d(IMAGE, constant(64, 64, 1, 1)), 1),
    "two groups": (cg.conv2d(IMAGE, constant(64, 32, 3, 3), 1, 1, groups=2), 0),
    "a group of each channel": (cg.conv2d(IMAGE, constant(64, 1, 3, 3), 1, 1, groups=64), 0),
    "filters of a Var": (cg.conv2d(IMAGE, cg.Var((64, 64, 3, 3), name="f"), 1, 1), 0),
    "volumes": (cg.conv3d(VOLUME, constant(64, 64, 3, 3, 3), 1, 1), 0),
    "few channels, which are read plain": (cg.conv2d(IMAGE[:, :3], constant(64, 3, 3, 3), 1, 1), 0),
}


@pytest.mark.parametrize("name", LAYERS)
def test_filters_are_cut_only_where_panels_of_them_give_channels_of_the_result(name):
    node, count = LAYERS[name]
    roots = to_physical(rewrite_graph((cg.relu(node),)), host_target(), LoweringOptions(winograd=False))
    cut = slice_constants(roots, 64, in_place)
    assert sum(isinstance(x.op, SlicedConv) for x in post_order(cut)) == count
    assert_same_values(lambda outputs: slice_constants(outputs, 64, in_place), *roots)


@pytest.mark.parametrize(
    ("own", "ring", "want"),
    [
        (None, 3 * SLICE, SLICE), (None, 30 * SLICE, SLICE), (None, 3 * SLICE - 3, SLICE - 1),
        (None, 6 * HASHED_NBYTES, 2 * HASHED_NBYTES), (None, 0, 2 * HASHED_NBYTES), (1000, 30 * SLICE, 1000),
        (10 * SLICE, 3, 10 * SLICE),
    ],
)  # fmt: skip
def test_a_slice_is_a_third_of_the_ring_within_bounds_unless_it_is_said(own, ring, want):
    assert slice_nbytes(StreamedWeights("w", slice=own), ring) == want


def test_large_constants_are_those_in_running_order_that_are_no_outputs():
    limit = HASHED_NBYTES // 4
    small, first, shown, last = (cg.Const(constant(n)) for n in (limit, limit + 1, limit + 2, limit + 3))
    x = cg.Var((), name="x")
    roots = (x * first + cg.sum(small) * cg.sum(last), shown, cg.sin(shown))
    assert large_constants(roots) == [first, last]


def test_a_convolution_on_tiles_reads_its_filters_as_a_whole(tmp_path):
    rng = np.random.default_rng(0)
    x, f = cg.Var((1, 96, 12, 10), name="x"), rng.normal(size=(160, 96, 3, 3)).astype("f4") / 10
    y, value = cg.relu(cg.conv2d(x, f, pad=1)), rng.normal(size=(1, 96, 12, 10)).astype("f4")
    weights = StreamedWeights(str(tmp_path / "w"), ring=1 << 21, slice=1 << 16)
    options = {"engine": TilesEngine(), "precision": "bf16"}
    streamed, whole = cg.compile(y, x, weights=weights, **options), cg.compile(y, x, **options)
    assert "to_tiles" in str(streamed.report().steps)
    np.testing.assert_array_equal(streamed(value), whole(value))


def test_products_of_one_row_of_floats_with_a_constant_matrix_are_cut_by_columns():
    x, w = cg.Var((1, 4), name="x"), cg.Const(np.ones((4, 6), "f4"))
    rows = [x @ w, x @ cg.Const(np.ones((6, 4), "f4")).T, cg.Var((4,), name="v") @ w, cg.Var((1, 1, 4), name="y") @ w]
    others = [
        cg.Var((2, 4), name="two") @ w, x @ cg.Var((4, 6), name="m"), x @ cg.Var((6, 4), name="m").T, cg.exp(x),
        cg.Var((1, 4), "int32", "n") @ np.ones((4, 6), "int32"), x @ cg.Const(np.ones((1, 4, 6), "f4")),
        x @ cg.exp(w), x @ cg.transpose(cg.Const(np.ones((1, 6, 4), "f4")), (0, 2, 1)),
    ]  # fmt: skip
    assert [is_row(node) for node in rows] == [True, True, False, False] and not any(map(is_row, others))
