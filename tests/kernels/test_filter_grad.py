"""The gradient of a convolution for its filters is what NumPy computes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.filter_grad.calls import FilterGrad, filter_grad_calls
from cgraph.kernels.target import target_named
from cgraph.kernels.views.conv_shape import ConvShape, sums
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.support.images import laned, windows, workspace
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tiles import bfloat16_bits, floats_of
from tests.support.tolerance import assert_near

SAME = Window((3, 3), pad=(1, 1, 1, 1))
# n, c, h, w, k, window, groups
CASES = {
    "3x3": (2, 5, 8, 9, 7, SAME, 1),
    "stride and dilation": (1, 4, 13, 12, 6, Window((3, 2), (2, 3), (2, 1, 0, 1), (2, 1)), 1),
    "groups": (2, 6, 6, 7, 9, SAME, 3),
    "a channel for each group": (1, 5, 6, 7, 5, SAME, 5),
    "several parts": (7, 16, 40, 40, 40, Window((3, 3), (1, 1), (1, 1, 1, 1)), 1),
    "one weight": (3, 1, 4, 5, 1, Window(), 1),
    "one pixel": (3, 8, 1, 1, 30, Window(), 1),
}


def filter_grad64(x, g, window):
    return np.einsum("ncpqrs,nkpq->kcrs", windows(x.astype("f8"), window), g.astype("f8"))


def run(case, target="host", order="all", dtype="f4", is_plain=False):
    return filter_grad(case, target_named(target), order, dtype, is_plain)


def filter_grad(case, target, order="all", dtype="f4", is_plain=False, run=run_calls):
    n, c, h, w, k, window, _ = case
    rng = np.random.default_rng(1)
    shape = ConvShape(c, h, w, k, target, window, 1, is_plain, dtype)
    x = rng.standard_normal((n, c, h, w)).astype(dtype)
    g = rng.standard_normal((n, k, *window.result(h, w))).astype(dtype)
    out = np.full((c, k, *window.kernel), np.nan, dtype).swapaxes(0, 1)
    plan = FilterGrad(shape, n)
    room = workspace(plan.nbytes)
    source = view_of(x) if is_plain else laned(x, shape.lanes, window.halo(h, w))
    given = laned(g, shape.lanes, (1, 0, 0, 1))
    run(filter_grad_calls(plan, view_of(out), source, given, room).calls, target, order)
    assert_near(out, filter_grad64(x, g, window), "gradient of filters", (n * np.prod(g.shape[2:])) ** 0.5)
    return out


def sums_of_pixels(plan, x, g):
    """Sums of rounded numbers over a part's pixels, image by image and row by row, each added in float32."""
    a, b = (floats_of(bfloat16_bits(y)) for y in (x, g))
    a, total = windows(a, plan.shape.window), np.float32(0)
    for first in range(0, len(x), plan.images):
        sums = np.zeros((g.shape[1], x.shape[1], *plan.shape.window.kernel), "f4")
        for image, p, q in np.ndindex(*a[first : first + plan.images].shape[:1], *a.shape[2:4]):
            sums = sums + a[first + image, :, p, q] * b[first + image, :, p, q][:, None, None, None]
        total = total + sums
    return total


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_pairs_have_the_bits_of_sums_in_order_in_any_order_of_tasks(case, target, monkeypatch):
    """A product of two numbers of bfloat16 is exact in float32."""
    monkeypatch.setattr("cgraph.kernels.filter_grad.calls.PART_NBYTES", 3000)
    n, c, h, w, k, window, _ = case if case[0] != 7 else (7, 16, 10, 9, 20, *case[5:])
    target, rng = replace(target_named(target), bf16="emulated"), np.random.default_rng(2)
    shape = ConvShape(c, h, w, k, target, window)
    x, g = (rng.standard_normal(s).astype("f4") for s in ((n, c, h, w), (n, k, *window.result(h, w))))
    plan, wide = FilterGrad(shape, n, pairs=True), tuple(side + 1 for side in window.halo(h, w))
    for order, halo in zip(ORDERS, (window.halo(h, w), wide, wide)):
        out, room = np.full((c, k, *window.kernel), np.nan, "f4").swapaxes(0, 1), workspace(plan.nbytes)
        images = laned(x, shape.lanes, halo), laned(g, shape.lanes, (1, 0, 0, 1))
        run_calls(filter_grad_calls(plan, view_of(out), *images, room).calls, target, order)
        np.testing.assert_array_equal(out, sums_of_pixels(plan, x, g))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_filter_grad_is_what_numpy_computes(case, dtype, target):
    run(case, target, dtype=dtype)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_filter_grad_of_plain_images(case, target):
    run(case, target, is_plain=True)


@settings(max_examples=20)
@given(st.tuples(*[st.integers(1, n) for n in (3, 8, 9, 9, 20, 4, 4, 3, 3, 2, 2)]))
def test_filter_grad_of_any_shape(sizes):
    n, c, h, w, k, r, s, *moves = sizes
    window = Window((r, s), tuple(moves[:2]), (r - 1, s // 2, 1, s), tuple(moves[2:]))
    if min(window.result(h, w)):
        run((n, c, h, w, k, window, 1))


@pytest.mark.parametrize("order", ORDERS)
def test_filter_grad_does_not_depend_on_the_order_of_tasks(order):
    np.testing.assert_array_equal(run(CASES["several parts"]), run(CASES["several parts"], order=order))


def test_the_sums_of_a_tile_are_as_many_as_registers_hold():
    """Against all divisors: filter rows, taps of a row, channels, and one block of filters or two."""
    target = target_named("avx2")
    layers = ((3, 3), 16, 32, False), ((5, 7), 8, 8, False), ((7, 7), 3, 64, True), ((1, 1), 40, 24, False)
    for kernel, c, k, is_plain in layers:
        plan = FilterGrad(ConvShape(c, 30, 30, k, target, Window(kernel), is_plain=is_plain), 4)
        rows, taps, channels, vectors = plan.tile
        room = rows * taps * channels * vectors
        assert kernel[0] % rows == kernel[1] % taps == (c if is_plain else 8) % channels == 0
        assert room <= sums(target) and plan.shape.blocks % vectors == 0
        best = 0
        for a, b, d, e in np.ndindex(kernel[0] + 1, kernel[1] + 1, 9, 3):
            sizes = (kernel[0], a), (kernel[1], b), (c if is_plain else 8, d), (plan.shape.blocks, e)
            if any(not part or whole % part for whole, part in sizes):
                continue
            if is_plain and a * d > 9 or a * b * d * e > sums(target):
                continue
            best = max(best, a * b * d * e)
        assert room == best


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("is_plain", [False, True])
def test_the_bytes_of_each_room(is_plain, pairs):
    window = Window((3, 2), (1, 2), (1, 0, 2, 1))
    shape = ConvShape(5, 9, 12, 21, target_named("avx2"), window, is_plain=is_plain)
    plan = FilterGrad(shape, 7, pairs)
    padded, totals, rest, images, gradients = plan.rooms
    assert padded == (7 * 5 * (9 + 3) * (12 + 1) * 4 if is_plain else 0)
    assert plan.padded_k == 24 and plan.part_size == plan.channel_tiles * plan.tile[2] * 6 * 24
    assert plan.channel_tiles == -(-5 // plan.tile[2]) and totals == plan.parts * plan.part_size * 4
    rows, columns = shape.result
    top, left, bottom, right = window.halo(9, 12)
    assert images == (7 * (9 + top + bottom) * (12 + left + right) * 8 * 4 if pairs else 0)
    assert gradients == (7 * 3 * rows * -(-columns // 2) * 8 * 4 if pairs else 0)
    assert plan.nbytes == sum(-(-room // 64) * 64 for room in plan.rooms) and rest >= 0


def test_parts_stay_in_cache_and_are_no_more_than_their_sums_are_worth(monkeypatch):
    shape = ConvShape(8, 20, 20, 8, target_named("avx2"), Window((3, 3), pad=(1, 1, 1, 1)))
    each = (8 * 400 + 8 * 400) * 4
    for n, nbytes in ((1, 1), (40, 3 * each), (41, 3 * each), (40, each), (40, 40 * each), (40, 39 * each), (40, 1)):
        monkeypatch.setattr("cgraph.kernels.filter_grad.calls.PART_NBYTES", nbytes)
        plan = FilterGrad(shape, n)
        most = max(1, min(-(-n * each // nbytes), n * each // (plan.part_size * 4)))
        assert plan.images == -(-n // most) and plan.parts == -(-n // plan.images) <= n
