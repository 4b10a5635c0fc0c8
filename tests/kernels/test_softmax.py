"""Softmax and its relatives agree with their formulas in float64, along any axis of any layout."""

import numpy as np
import pytest

from cgraph.kernels.softmax.calls import softmax_calls
from cgraph.kernels.softmax.signature import MOST_COLUMNS
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.layout import block_columns
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near

every_target = pytest.mark.parametrize("target", TARGETS)
every_kind = pytest.mark.parametrize("kind", ["softmax", "log_softmax", "logsumexp"])


def formula(kind, x, axis):
    x = x.astype("f8")
    most = x.max(axis, keepdims=True)
    total = np.exp(x - most).sum(axis, keepdims=True)
    if kind == "logsumexp":
        return np.squeeze(most + np.log(total), axis)
    return np.exp(x - most) / total if kind == "softmax" else x - most - np.log(total)


SHAPES = [((5, 7), 1), ((3, 1000), 1), ((21, 700), 0), ((4, 85, 35), 1), ((2, 3, 4), 0), ((1, 1), 1), ((6,), 0)]


@every_target
@every_kind
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape, axis", SHAPES)
def test_every_axis_agrees_with_the_formula(target, kind, dtype, shape, axis):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype) * 20
    want = formula(kind, x, axis)
    for order in ORDERS:
        out = np.full(want.shape, np.nan, dtype)
        run_calls(
            softmax_calls(target_named(target), kind, view_of(out), view_of(x), axis),
            target_named(target),
            order,
        )
        assert_near(out, want, "softmax", np.abs(x).max())


@every_target
@every_kind
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("length", [4, 7, 8, 9, 15, 16, 31, 33, 48, 49, 100, 128, 129, 197, 256, 257, 300, 600])
def test_rows_of_every_length_agree_with_the_formula(target, kind, dtype, length):
    x = np.random.default_rng(3).standard_normal((7, length)).astype(dtype) * 20
    out = np.full(7 if kind == "logsumexp" else x.shape, np.nan, dtype)
    calls = softmax_calls(target_named(target), kind, view_of(out), view_of(x), 1)
    run_calls(calls, target_named(target), "single")
    assert_near(out, formula(kind, x, 1), "softmax", np.abs(x).max())


@every_target
@every_kind
@pytest.mark.parametrize("length", [9, 49, 200, 300])
def test_a_row_has_the_same_bits_alone_and_in_a_block(target, kind, length):
    x = np.random.default_rng(4).standard_normal((9, length)).astype("f4") * 20
    want = run(target, kind, x)
    alone = np.concatenate([run(target, kind, x[i : i + 1]) for i in range(9)])
    assert alone.tobytes() == want.tobytes()


@every_target
@pytest.mark.parametrize("length", [5, 48, 197, 300])
def test_extreme_rows(target, length):
    x = np.zeros((6, length), "f4")
    x[0, 1:] = -100.0  # shares below the smallest normal number
    x[1, 1:] = -104.0  # zero after rounding
    x[2, ::2] = -np.inf
    x[3, length - 1] = np.nan
    x[4] = -np.inf
    x[5] = -3e38
    x[5, 2] = 3e38
    got = run(target, "softmax", x)
    assert got[0, 0] == 1 and (got[0, 1:] == np.float32(np.exp(-100.0))).all()
    assert not got[1, 1:].any() and not got[2, ::2].any()
    assert_near(got[2, 1::2], 1 / (length // 2), "float32 formulas")
    assert np.isnan(got[3:5]).all()
    assert got[5, 2] == 1 and got[5].sum() == 1


@every_target
@pytest.mark.parametrize("bits", [0x7FC00001, 0x7FC001FF, 0xFFC00123])
@pytest.mark.parametrize("length", [5, 48, 300])
def test_a_nan_of_any_bits_makes_its_row_nan(target, length, bits):
    x = np.zeros((3, length), "f4")
    x.view("u4")[1, 2] = bits
    got = run(target, "softmax", x)
    assert np.isnan(got[1]).all() and not np.isnan(got[::2]).any()


def run(target, kind, x):
    """Return the result along the last axis."""
    out = np.full(x.shape[:1] if kind == "logsumexp" else x.shape, np.nan, x.dtype)
    run_calls(softmax_calls(target_named(target), kind, view_of(out), view_of(x), 1), target_named(target))
    return out


@every_target
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["softmax", "log_softmax"])
def test_out_may_be_x(target, axis, kind):
    x = np.random.default_rng(1).standard_normal((77, 45)).astype("f4")
    want = formula(kind, x, axis)
    run_calls(softmax_calls(target_named(target), kind, view_of(x), view_of(x), axis), target_named(target))
    assert_near(x, want, "float32 sums near zero")


@every_target
def test_strided_views_of_both_sides(target):
    x = np.random.default_rng(2).standard_normal((40, 60)).astype("f4")[::2, ::-3]
    out = np.full((20, 40), np.nan, "f4")[:, ::2]
    for axis in (0, 1):
        run_calls(
            softmax_calls(target_named(target), "softmax", view_of(out), view_of(x), axis),
            target_named(target),
        )
        assert_near(out, formula("softmax", x, axis), "float32 normalised")


@every_target
@pytest.mark.parametrize("axis", [0, 1])
def test_logsumexp_of_infinities(target, axis):
    x = np.zeros((30, 30), "f4")
    x[:, 3] = x[3, :] = -np.inf
    x[0, 0], x[1, 1] = np.inf, np.nan
    out = np.zeros(30, "f4")
    run_calls(
        softmax_calls(target_named(target), "logsumexp", view_of(out), view_of(x), axis),
        target_named(target),
    )
    assert out[0] == np.inf and np.isnan(out[1]) and out[3] == -np.inf
    assert_near(out[4:], np.log(29), "float32 formulas")


def test_an_output_of_another_shape_is_refused():
    x, out = np.empty((3, 4), "f4"), np.empty((3, 5), "f4")
    with pytest.raises(ValueError, match="does not fit"):
        softmax_calls(host_target(), "softmax", view_of(out), view_of(x), 1)


@every_target
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_logsumexp_may_keep_its_axis(axis, target):
    x = np.random.default_rng(5).standard_normal((5, 3, 21)).astype("f4")
    out = np.full([1 if a == axis else n for a, n in enumerate(x.shape)], np.nan, "f4")
    run_calls(softmax_calls(target_named(target), "logsumexp", view_of(out), view_of(x), axis), target_named(target))
    assert_near(out, np.expand_dims(formula("logsumexp", x, axis), axis), "softmax")


@pytest.mark.parametrize(
    ("kind", "shape", "dtype", "text"),
    [
        ("softmin", (3, 4), "f4", "there is no function 'softmin'.*softmax, log_softmax, logsumexp"),
        ("softmax", (3, 4), "f8", r"softmax of f4\(3, 4\) does not fit f8\(3, 4\)"),
        ("log_softmax", (4, 3), "f4", "does not fit"),
        ("softmax", (3,), "f4", "does not fit"),
        ("logsumexp", (4,), "f4", "does not fit"),
    ],
)
def test_other_functions_dtypes_and_shapes_are_refused(kind, shape, dtype, text):
    with pytest.raises(ValueError, match=text):
        softmax_calls(host_target(), kind, view_of(np.zeros(shape, dtype)), view_of(np.zeros((3, 4), "f4")), 1)


@every_kind
def test_no_elements_need_no_calls(kind):
    for shape, axis in (((0, 4), 1), ((0, 4), 0), ((3, 0), 0)):
        x = np.zeros(shape, "f4")
        out = np.zeros(np.delete(shape, axis) if kind == "logsumexp" else shape, "f4")
        assert softmax_calls(host_target(), kind, view_of(out), view_of(x), axis) == []


@every_target
@every_kind
@pytest.mark.parametrize("length", [4, 9, 48, 300])
def test_contiguous_rows_into_results_whose_elements_lie_apart(length, kind, target):
    x = np.random.default_rng(6).standard_normal((7, length)).astype("f4")
    want = formula(kind, x, 1)
    room = np.full((*want.shape, 2), 77, "f4")
    run_calls(softmax_calls(target_named(target), kind, view_of(room[..., 0]), view_of(x), 1), target_named(target))
    assert_near(room[..., 0], want, "softmax", np.abs(x).max())
    assert (room[..., 1] == 77).all()


def test_the_way_is_that_of_length_and_strides():
    """Vectors across neighbouring columns, along some contiguous rows together, or along one row."""
    lanes = host_target().lanes_of("f4")

    def family(x, out, axis):
        [call] = softmax_calls(host_target(), "softmax", view_of(out), view_of(x), axis)
        return call.kernel.family

    wide = np.zeros((lanes, 2 * lanes), "f4")
    assert family(wide, wide, 0) == "softmax.columns" and family(wide, wide, 1) == "softmax.block.rows"
    assert family(wide[:, : lanes - 1], wide[:, : lanes - 1], 0) == "softmax.rows"
    assert family(wide[:, :lanes], wide[:, :lanes], 0) == "softmax.columns"
    apart = np.zeros((lanes, 2 * lanes, 2), "f4")[..., 0]
    assert family(wide, apart, 1) == "softmax.rows"
    short = np.zeros((4 * lanes, 3), "f4")  # rows of fewer than four elements
    assert family(short, short, 1) == "softmax.columns"
    assert family(short[: lanes - 1], short[: lanes - 1], 1) == "softmax.rows"
    turned = np.zeros((5, 4 * lanes), "f4").T
    assert family(turned, turned, 1) == "softmax.columns"


@pytest.mark.parametrize(("rows", "length"), [(1, 40), (409, 40), (410, 40), (2000, 40), (3, 40_000), (70, 300)])
def test_a_task_has_rows_of_half_as_many_elements_as_those_of_other_kernels(rows, length):
    """Along rows, contiguous or not; across columns a task is one block of them."""
    each = max(1, host_target().task_elements // (2 * length))
    x = np.zeros((rows, length), "f4")
    [call] = softmax_calls(host_target(), "softmax", view_of(x), view_of(x), 1)
    assert call.tasks == -(-rows // each)
    apart = np.zeros((rows, length, 2), "f4")[..., 0]
    [call] = softmax_calls(host_target(), "logsumexp", view_of(np.zeros(rows, "f4")), view_of(apart), 1)
    columns = call.kernel.family == "softmax.columns"
    assert call.tasks == (-(-rows // block_columns(rows, host_target(), MOST_COLUMNS)) if columns else -(-rows // each))
