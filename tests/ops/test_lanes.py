"""Ops on channel-blocked images: the plain op's values, zeros around them, the same bits in bands, what is refused."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.kernels.target import host_target, target_named
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.join import Concat
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.lanes import (
    BlockedConcat,
    BlockedPool,
    BlockedPoolIndices,
    BlockedResize,
    BlockedRoiAlign,
    BlockedScatter,
    ClearHalo,
    ColumnSum,
    PlainRoiAlign,
    ToBlocked,
    ToPlain,
    require,
    window_of,
)
from cgraph.ops.pool import MaxPool, MaxPoolIndices, ScatterToIndices
from tests.support.cuts import assert_bands
from tests.support.kernels import TARGETS
from tests.support.ops import kernel_result
from tests.support.tolerance import assert_close

TARGET = host_target()
LANES = TARGET.channels_of("f4")
RNG = np.random.default_rng(0)
HALO = (1, 2, 3, 1)


def form(c=5, h=6, w=7, halo=HALO, n=2, dtype="f4"):
    return Form(n, c, h, w, LANES, dtype, halo)


def image(of):
    return RNG.integers(-9, 10, of.logical).astype(of.dtype)


def run(op, *xs):
    """The kernels' result, which must be that of the meaning."""
    node = apply(op, *(cg.Var(x.shape, x.dtype) for x in xs))
    (got,) = kernel_result(node, list(xs), "all", target=TARGET)
    assert_close(got, op.meaning(*xs))
    return got


@pytest.mark.parametrize("name", TARGETS)
def test_images_go_to_blocks_and_back_on_every_target(name):
    target = target_named(name)
    of = Form(2, 5, 3, 4, target.channels_of("f4"), "f4", HALO)
    x = image(of)
    (blocked,) = kernel_result(apply(ToBlocked(of), cg.Var(x.shape)), [x], "all", target=target)
    np.testing.assert_array_equal(blocked, of.to_blocked(x))
    (plain,) = kernel_result(apply(ToPlain(of), cg.Var(of.shape)), [blocked], "all", target=target)
    np.testing.assert_array_equal(plain, x)


def test_conversions_in_bands():
    of = form()
    x = image(of)
    for op in (ToBlocked(of), ClearHalo(of)):
        cut = op.cut(of.spec if isinstance(op, ClearHalo) else cg.Var(x.shape).spec)
        assert (cut.above, cut.below) == (1, 3)
    for op, value in ((ToBlocked(of), x), (ToPlain(of), of.to_blocked(x)), (ClearHalo(of), of.to_blocked(x) + 1)):
        assert_bands(op, [value], [1, 2, 4])


def test_a_halo_is_cleared_and_the_image_is_not():
    of = form()
    clean = of.to_blocked(image(of))
    dirty = np.full(of.shape, 9, "f4")
    dirty[:, :, 1:-3, 2:-1] = clean[:, :, 1:-3, 2:-1]
    got = run(ClearHalo(of), dirty)
    np.testing.assert_array_equal(got, clean)
    assert ClearHalo(of).work(TARGET, of.spec).overwrites == (0,)


def test_columns_are_summed_halo_rows_included():
    of = form(halo=(1, 0, 2, 0))
    x = of.to_blocked(image(of))
    got = run(ColumnSum(of), x)
    np.testing.assert_array_equal(got, x.sum(3))
    assert ColumnSum(of).infer(of.spec).shape == (2, of.shape[1], 9, LANES)
    cut = ColumnSum(of).cut(of.spec)
    np.testing.assert_array_equal(cut.band(2, 5).meaning(x[:, :, 2:5]), got[:, :, 2:5])


MOVES = (2, 3), (2, 1), (1, 0, 1, 2), (2, 1)  # window, stride, pad, dilation: all unequal


@pytest.mark.parametrize("op", [MaxPool(*MOVES, False), AvgPool(*MOVES, False, False), AvgPool(*MOVES, False, True)],
                         ids=["max", "mean", "mean with padding"])  # fmt: skip
def test_pools_of_unequal_axes_and_their_bands(op):
    of = form(h=9, halo=(2, 1, 1, 3))
    x = image(of)
    plain = op.meaning(x)
    result = form(h=plain.shape[2], w=plain.shape[3])
    blocked = BlockedPool(op, (of,), result)
    got = run(blocked, of.to_blocked(x))
    assert_close(result.plain(got), plain)
    np.testing.assert_array_equal(got, result.to_blocked(result.plain(got)))
    assert_bands(blocked, [of.to_blocked(x)], [1, 2])
    window = window_of(op)
    assert (window.kernel, window.stride, window.pad, window.dilation) == MOVES and blocked.name == op.name


def test_the_gradient_of_a_pool_goes_to_the_places_of_the_largest():
    of = form(halo=(0, 0, 0, 0))
    x = image(of)
    fields = (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), False
    places = MaxPoolIndices(*fields).meaning(x)
    small = form(h=3, w=3, halo=(0, 0, 0, 0))
    index = Form(2, 5, 3, 3, LANES, "i4")
    got = run(BlockedPoolIndices(MaxPoolIndices(*fields), (of,), index), of.to_blocked(x))
    np.testing.assert_array_equal(index.plain(got), places)
    g, back = image(small), form()
    scatter = ScatterToIndices(*fields, (6, 7))
    got = run(BlockedScatter(scatter, (index, small), back), index.to_blocked(places), small.to_blocked(g))
    np.testing.assert_array_equal(back.plain(got), scatter.meaning(places, g))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("shape", [(12, 7), (4, 9), (6, 14)])
def test_images_of_other_sizes_and_their_bands(shape, mode):
    of = form(halo=(0, 0, 0, 0))
    op = cg.resize(cg.Var(of.logical), shape, mode).op
    result = form(h=shape[0], w=shape[1])
    blocked = BlockedResize(op, (of,), result)
    x = image(of)
    got = run(blocked, of.to_blocked(x))
    assert_close(result.plain(got), op.meaning(x))
    assert_bands(blocked, [of.to_blocked(x)], [1, 3], meant=False)  # a strip has kernels only


def test_channels_are_joined_inside_a_block():
    forms = [form(c=c, halo=(1, 1, 1, 1)) for c in (3, 5, LANES)]
    xs = [image(f) for f in forms]
    result = form(c=8 + LANES, halo=(1, 1, 1, 1))
    op = BlockedConcat(Concat(1), tuple(forms), result)
    got = run(op, *(f.to_blocked(x) for f, x in zip(forms, xs)))
    np.testing.assert_array_equal(result.plain(got), np.concatenate(xs, 1))
    assert_bands(op, [f.to_blocked(x) for f, x in zip(forms, xs)], [2])


def test_features_of_boxes_read_blocked_images_of_several_sizes():
    forms = (form(c=5, h=8, w=9), form(c=5, h=4, w=5, halo=(0, 0, 0, 0)))
    xs = [RNG.normal(size=f.logical).astype("f4") for f in forms]
    boxes = np.array([[1, 1, 6, 7], [0, 2, 3, 3]], "f4")
    batch, level = np.array([1, 0]), np.array([0, 1])
    node = cg.roi_align_levels([cg.Var(x.shape) for x in xs], boxes, batch, level, (3, 2), (1.0, 0.5))
    op, want = node.op, node.op.meaning(boxes, batch, level, *xs)
    blocks = [f.to_blocked(x) for f, x in zip(forms, xs)]
    assert_close(run(PlainRoiAlign(op, forms), boxes, batch, level, *blocks), want)
    result = Form(2, 5, 3, 2, LANES, "f4", (1, 0, 1, 0))
    blocked = BlockedRoiAlign(op, (None, None, None, *forms), result)
    assert_close(result.plain(run(blocked, boxes, batch, level, *blocks)), want)
    assert PlainRoiAlign(op, forms).name == op.name == blocked.name and blocked.can_fail


def test_values_of_another_form_are_refused():
    of, other = form(), form(halo=(0, 0, 0, 0))
    require(of.spec, of)
    with pytest.raises(ShapeError, match="is not of the form float32.*; convert it with ToBlocked"):
        require(other.spec, of)
    for op in (ToPlain(of), ClearHalo(of), ColumnSum(of), BlockedPool(MaxPool(*MOVES, False), (of,), other)):
        with pytest.raises(ShapeError, match="is not of the form"):
            op.infer(other.spec)
    with pytest.raises(ShapeError, match=r"images float32\[2,5,6,6\] are not \[2, 5, 6, 7\]; pass images of that"):
        ToBlocked(of).infer(cg.Var((2, 5, 6, 6)).spec)
