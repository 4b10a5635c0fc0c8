"""Pooling against NumPy, on images in lanes and on plain views."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.ir.spec import Spec
from cgraph.kernels.machines import machine_named
from cgraph.kernels.pool.calls import (
    average_pool_calls,
    inner_columns,
    max_pool_calls,
    power_below,
    tables_of,
    taps_inside,
    volume_pool_calls,
)
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.image_views import planes_of
from cgraph.kernels.views.window import Window
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.pool import MaxPool
from cgraph.record import replace
from tests.support.images import assert_zero_frame, empty_laned, laned, plain, windows
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near

pytestmark = pytest.mark.usefixtures("cuts")

HERE = host_target()

CASES = {
    "3x3, stride 2": (2, 20, 13, 14, Window((3, 3), (2, 2), (1, 1, 1, 1)), (0, 0)),
    "2x2, stride 2": (1, 16, 8, 8, Window((2, 2), (2, 2)), (0, 0)),
    "2x2, stride 2, ceil mode": (1, 5, 7, 9, Window((2, 2), (2, 2)), (1, 1)),
    "3x3, ceil mode, padded": (1, 18, 8, 6, Window((3, 3), (2, 2), (1, 1, 0, 1)), (0, 1)),
    "3x2, dilated": (1, 17, 12, 11, Window((3, 2), (1, 1), (2, 1, 2, 1), (2, 2)), (0, 0)),
    "3x2, other moves down than across": (2, 9, 14, 13, Window((3, 2), (2, 3), (2, 1, 1, 0), (2, 3)), (0, 0)),
    "2x3, other moves across than down": (1, 19, 11, 15, Window((2, 3), (3, 1), (0, 1, 1, 2), (3, 2)), (0, 0)),
    "3x3, side by side": (1, 9, 7, 30, Window((3, 3), (1, 1), (1, 1, 1, 1)), (0, 0)),
    "5x3, side by side, few columns": (1, 3, 9, 7, Window((5, 3), (2, 1), (1, 1, 1, 1)), (0, 0)),
    "3x3, long rows, stride 2": (1, 2, 9, 83, Window((3, 3), (2, 2), (1, 1, 1, 1)), (0, 0)),
    "3x4, stride 3, ceil mode": (1, 2, 9, 97, Window((3, 4), (2, 3), (1, 2, 1, 0)), (0, 1)),
    "4x2, stride 4": (1, 3, 8, 67, Window((4, 2), (4, 4)), (0, 0)),
    "3x3, stride 5": (1, 3, 8, 60, Window((3, 3), (1, 5), (1, 0, 1, 2)), (0, 0)),
    "3x5, dilated, several tiles of columns": (1, 1, 4, 1500, Window((3, 5), (1, 1), (0, 6, 1, 6), (1, 3)), (0, 0)),
    "2x3, several tiles, stride 2": (1, 1, 5, 2600, Window((4, 3), (2, 2), (1, 1, 1, 1)), (0, 0)),
    "a row longer than all stacks": (1, 1, 4, 2100, Window((3, 2), (1, 1), (0, 0, 0, 0), (1, 1100)), (0, 0)),
    "whole rows": (1, 3, 6, 21, Window((5, 21)), (0, 0)),
    "one row": (1, 3, 1, 30, Window((1, 5), (1, 3), (0, 2, 0, 2)), (0, 0)),
}


def values(case, dtype="f4"):
    n, c, h, w, window, more = case
    x = np.random.default_rng(1).standard_normal((n, c, h, w)).astype(dtype) - 3
    p, q = window.result(h, w)
    return x, window, (p + more[0], q + more[1])


def seen(x, window, size, fill):
    """Windows ``[n, c, p, q, r * s]``; what lies beyond the padding is filled as well."""
    top, left, bottom, right = window.pad
    (a, b), (down, across) = window.stride, window.extent
    more = ((size[0] - 1) * a + down - x.shape[2] - top, (size[1] - 1) * b + across - x.shape[3] - left)
    wide = Window(window.kernel, window.stride, (top, left, max(more[0], bottom), max(more[1], right)), window.dilation)
    return windows(x, wide, fill)[:, :, : size[0], : size[1]].reshape(*x.shape[:2], *size, -1)


def both_layouts(calls_of, x, size, target="host", order="all"):
    """The result of the laned kernel, and of the plain one on reversed rows and on rows as they lie: the same bits."""
    return in_both(calls_of, x, size, target_named(target), order)


def in_both(calls_of, x, size, target, order="all", run=run_calls):
    lanes, shape = target.lanes_of(f"f{x.dtype.itemsize}"), (*x.shape[:2], *size)
    out = empty_laned(shape, lanes, (1, 0, 1, 2), f"f{x.dtype.itemsize}")
    run(calls_of(out, laned(x, lanes, (0, 1, 2, 0))).calls, target, order)
    if not np.isnan(x).any():
        assert_zero_frame(out)
    flipped = np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    dense = [np.full(shape, np.nan, x.dtype) for _ in range(2)]
    for room, images in zip(dense, (flipped, np.ascontiguousarray(x))):
        run(calls_of(view_of(room), view_of(images)).calls, target, order)
    np.testing.assert_array_equal(*dense)
    return plain(out), dense[0]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_max_pool_is_what_numpy_computes(case, target):
    x, window, size = values(case)
    want = seen(x, window, size, -np.inf).max(-1)
    for got in both_layouts(lambda out, x: max_pool_calls(HERE, out, x, window), x, size, target):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_average_pool_is_what_numpy_computes(case, target, padded):
    x, window, size = values(case)
    top, left, bottom, right = window.pad
    counted = np.pad(np.ones(x.shape), ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=float(padded))
    count = seen(counted, Window(window.kernel, window.stride, dilation=window.dilation), size, 0.0).sum(-1)
    want = seen(x.astype("f8"), window, size, 0.0).sum(-1) / count
    for got in both_layouts(lambda out, x: average_pool_calls(HERE, out, x, window, padded), x, size, target):
        assert_near(got, want, "float32 sums")


def test_max_pool_keeps_a_nan():
    x, window, size = values(CASES["3x3, stride 2"])
    x[0, 3, 5, 5] = np.nan
    want = seen(x, window, size, -np.inf).max(-1)
    assert np.isnan(want).any()
    for got in both_layouts(lambda out, x: max_pool_calls(HERE, out, x, window), x, size):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", ["max", "mean"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_global_pool_takes_the_whole_image(kind, dtype):
    x = values((2, 21, 7, 9, Window(), (0, 0)), dtype)[0]
    want = getattr(x.astype("f8"), kind)((2, 3), keepdims=True)
    calls = {"max": max_pool_calls, "mean": average_pool_calls}[kind]
    for got in both_layouts(lambda out, x: calls(HERE, out, x, Window((7, 9))), x, (1, 1)):
        assert_near(got, want, "float32 sums")


@pytest.mark.parametrize("dtype", ["i4", "u1", "i8"])
def test_max_pool_of_integers(dtype):
    x = np.random.default_rng(2).integers(0, 100, (1, 3, 9, 8)).astype(dtype)
    window = Window((3, 3), (2, 2), (1, 1, 1, 1))
    out = np.zeros((1, 3, *window.result(9, 8)), dtype)
    run_calls(max_pool_calls(HERE, view_of(out), view_of(x), window).calls)
    np.testing.assert_array_equal(out, windows(x, window, 0).max((-1, -2)))


@settings(max_examples=25)
@given(st.tuples(*[st.integers(1, n) for n in (2, 20, 15, 15, 4, 4, 3, 3, 2, 2)]), st.sampled_from(TARGETS))
def test_max_pool_of_any_shape(sizes, target):
    n, c, h, w, r, s, *moves = sizes
    window = Window((r, s), tuple(moves[:2]), (r - 1, s // 2, r // 2, s - 1), tuple(moves[2:]))
    if min(window.result(h, w)):
        x, _, size = values((n, c, h, w, window, (0, 0)))
        want = seen(x, window, size, -np.inf).max(-1)
        if np.isinf(want).any():
            with pytest.raises(ValueError, match="no tap"):
                max_pool_calls(HERE, view_of(want), view_of(x), window)
            return
        for got in both_layouts(lambda out, x: max_pool_calls(HERE, out, x, window), x, size, target):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("order", ORDERS)
def test_pool_does_not_depend_on_the_order_of_tasks(order):
    x, window, size = values(CASES["2x2, stride 2"])
    want = seen(x, window, size, -np.inf).max(-1)
    for got in both_layouts(lambda out, x: max_pool_calls(HERE, out, x, window), x, size, order=order):
        np.testing.assert_array_equal(got, want)


VOLUMES = {
    "2x2x2, stride 2": ((2, 3, 4, 6, 34), (2, 2, 2), (2, 2, 2), (0,) * 6, (1, 1, 1)),
    "3x3x3, padded": ((1, 2, 4, 5, 37), (3, 3, 3), (1, 1, 1), (1,) * 6, (1, 1, 1)),
    "1x2x2": ((1, 3, 3, 6, 20), (1, 2, 2), (1, 2, 2), (0,) * 6, (1, 1, 1)),
    "3x1x1, few columns": ((1, 3, 7, 2, 3), (3, 1, 1), (2, 1, 1), (1, 0, 0, 1, 0, 0), (1, 1, 1)),
    "2x3x4, dilated, other moves": ((2, 1, 9, 11, 40), (2, 3, 4), (3, 2, 1), (1, 2, 3, 0, 1, 3), (2, 3, 1)),
    "whole volumes": ((2, 5, 2, 7, 7), (2, 7, 7), (1, 1, 1), (0,) * 6, (1, 1, 1)),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind, padded", [("max", False), ("mean", False), ("mean", True)])
@pytest.mark.parametrize("shape, window, stride, pad, dilation", VOLUMES.values(), ids=VOLUMES.keys())
def test_volumes_are_what_the_reference_computes_in_any_order_of_memory(
    shape, window, stride, pad, dilation, kind, padded, order
):
    op = MaxPool if kind == "max" else AvgPool
    op = op(window, stride, pad, dilation, False, *([padded] if kind == "mean" else []))
    x = np.random.default_rng(3).standard_normal(shape).astype("f4") - 3
    want, found = op.meaning(x), []
    for images in (x, np.ascontiguousarray(x[..., ::-1])[..., ::-1], np.asfortranarray(x)):
        for target in TARGETS:
            out = np.full(want.shape, np.nan, "f4")
            windows = op.volume_windows(Spec(shape, x.dtype))
            calls = volume_pool_calls(HERE, view_of(out), view_of(images), windows, kind, padded).calls
            run_calls(calls, target_named(target), order)
            found.append(out)
    assert_near(found[0], want, "float32 sums")
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_a_nan_of_a_volume_wins_in_each_window_that_contains_it():
    op = MaxPool((3, 2, 3), (2, 1, 2), (1, 0, 1, 1, 1, 1), (1, 1, 1), True)
    x = np.random.default_rng(4).standard_normal((1, 2, 5, 6, 41)).astype("f4")
    x[0, 1, 2, 3, [0, 20, 40]] = np.nan
    out = np.zeros(op.meaning(x).shape, "f4")
    windows = op.volume_windows(Spec(x.shape, x.dtype))
    run_calls(volume_pool_calls(HERE, view_of(out), view_of(x), windows, "max", False).calls)
    np.testing.assert_array_equal(out, op.meaning(x))
    assert np.isnan(out).any()


def test_pool_refuses_a_change_of_layout():
    x = np.zeros((1, 16, 4, 4), "f4")
    with pytest.raises(ValueError, match="one layout"):
        max_pool_calls(HERE, view_of(x), laned(x, target_named("host").lanes), Window())


AXES = [
    (4, 7, 3, 2, 1, 1, 2),
    (4, 6, 3, 2, 1, 1, 0),
    (3, 9, 3, 2, 3, 2, 1),
    (9, 9, 1, 1, 1, 0, 0),
    (2, 3, 5, 4, 1, 2, 4),
]


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_taps_along_an_axis_are_those_of_a_plain_loop(axis, padded):
    """The last window of the second one reaches beyond the padding, which is not part of its mean."""
    count, size, taps, stride, dilation, before, after = axis
    table, inner = taps_inside(*axis, padded), []
    for i in range(count):
        at = [i * stride - before + t * dilation for t in range(taps)]
        inside = [t for t, place in enumerate(at) if 0 <= place < size]
        divisor = sum(place < size + after for place in at) if padded else len(inside)
        assert table[i].tolist() == [inside[0], inside[-1] + 1, divisor, at[inside[0]]]
        inner += [i] * (len(inside) == taps)
    window = Window((1, taps))
    assert inner_columns(table, window) == ((inner[0], inner[-1] + 1) if inner else (0, 0))


def test_rows_and_columns_have_tables_with_moves_of_their_own():
    window = Window((3, 2), (2, 1), (1, 0, 2, 1), (1, 3))
    x = np.zeros((1, 1, 6, 9), "f4")[:, :, :, ::2]
    out = np.zeros((1, 1, *window.result(*x.shape[2:])), "f4")
    rows, columns = tables_of(planes_of(view_of(out)), planes_of(view_of(x)), window, True)
    want = taps_inside(out.shape[2], 6, 3, 2, 1, 1, 2, True), taps_inside(out.shape[3], 5, 2, 1, 3, 0, 1, True)
    np.testing.assert_array_equal(rows, want[0] * [1, 1, 1, 9])
    np.testing.assert_array_equal(columns, want[1] * [1, 1, 1, 2])


@pytest.mark.parametrize("pad", [(2, 0, 0, 0), (0, 2, 0, 0), (0, 0, 3, 0), (0, 0, 0, 3)])
def test_a_window_of_padding_alone_is_refused(pad):
    window, x = Window((2, 2), pad=pad), np.zeros((1, 1, 3, 3), "f4")
    out = np.zeros((1, 1, *window.result(3, 3)), "f4")
    for calls in (max_pool_calls, average_pool_calls):
        with pytest.raises(ValueError, match="has no tap inside an image of 3 x 3. Reduce the padding"):
            calls(host_target(), view_of(out), view_of(x), window)


def test_a_power_of_two_is_at_most_the_number():
    assert [power_below(n) for n in (1, 2, 3, 4, 7, 8, 9)] == [1, 2, 2, 4, 4, 8, 8]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_results_whose_columns_lie_apart_are_those_of_neighbours(case, target):
    """And nothing between them is written."""
    x, window, size = values(case)
    for made in (
        lambda out, x: max_pool_calls(target_named(target), out, x, window),
        lambda out, x: average_pool_calls(target_named(target), out, x, window, True),
    ):
        apart, dense = np.full((*x.shape[:2], *size, 2), 77, "f4"), np.full((*x.shape[:2], *size), np.nan, "f4")
        for out in (apart[..., 0], dense):
            run_calls(made(view_of(out), view_of(x)).calls, target_named(target))
        np.testing.assert_array_equal(apart[..., 0], dense)
        assert (apart[..., 1] == 77).all()


@pytest.mark.parametrize("shape", [(0, 3, 9, 9), (2, 0, 9, 9)])
def test_no_images_need_no_call(shape):
    window, x = Window((3, 3), (2, 2)), np.zeros(shape, "f4")
    out = np.zeros((*shape[:2], *window.result(9, 9)), "f4")
    assert max_pool_calls(HERE, view_of(out), view_of(x), window).calls == ()
    assert average_pool_calls(HERE, view_of(out), view_of(x), window).calls == ()
    volumes = np.zeros((*shape[:2], 5, 9, 9), "f4"), np.zeros((*shape[:2], 3, *out.shape[2:]), "f4")
    windows_of = window, Window((3, 1))
    views = view_of(volumes[1]), view_of(volumes[0])
    assert volume_pool_calls(HERE, *views, windows_of, "max", False).calls == ()


def test_a_sweep_gains_from_three_taps_down_and_two_across():
    """On processors with vectors and room on the stack, for neighbouring columns."""

    def is_swept(kernel, target=HERE, columns=30, apart=False):
        x = np.zeros((1, 2, 9, columns, 2), "f4")
        x = x[..., 0] if apart else np.ascontiguousarray(x[..., 0])
        window = Window(kernel)
        out = np.zeros((1, 2, *window.result(9, columns)), "f4")
        [call] = max_pool_calls(target, view_of(out), view_of(x), window).calls
        return call.kernel.family == "pool.sweep"

    assert is_swept((3, 2)) and is_swept((5, 3)) and not is_swept((2, 3)) and not is_swept((3, 1))
    assert not is_swept((3, 3), apart=True)
    assert not is_swept((3, 3), replace(HERE, lanes=1)) and not is_swept((3, 3), machine_named("cortex-m7").target)
