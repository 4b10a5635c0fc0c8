"""Resizing against NumPy, on images in lanes and on plain views."""

import math

import numpy as np
import pytest

from cgraph.kernels.resize.calls import (
    COORDINATES,
    ROUNDINGS,
    Strip,
    exact_count,
    linear_calls,
    nearest_calls,
    positions,
    weighted_calls,
)
from cgraph.kernels.target import host_target, target_named
from tests.support.images import assert_zero_frame, empty_laned, laned, plain
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near, near

HERE = host_target()
SIZES = [((1, 20, 5, 7), (10, 14)), ((2, 3, 8, 9), (5, 4)), ((1, 17, 1, 6), (1, 13)), ((1, 5, 4, 4), (1, 1))]


def position(i, count, size, coordinates):
    """Where result `i` of `count` lies in `size` pixels, as ONNX says."""
    if coordinates == "align_corners":
        return i * (size - 1) / (count - 1) if count > 1 else 0
    if coordinates == "asymmetric":
        return i * size / count
    if coordinates == "pytorch_half_pixel" and count == 1:
        return 0
    return (i + 0.5) * size / count - 0.5


def whole(at, rounding):
    if rounding == "floor":
        return math.floor(at)
    if rounding == "ceil":
        return math.ceil(at)
    half = at - math.floor(at) == 0.5
    if half:
        return math.floor(at) if rounding == "round_prefer_floor" else math.ceil(at)
    return round(at)


def nearest64(x, size, coordinates, rounding):
    rows, columns = (
        [min(max(whole(position(i, n, m, coordinates), rounding), 0), m - 1) for i in range(n)]
        for n, m in zip(size, x.shape[2:])
    )
    return x[:, :, rows][:, :, :, columns]


def linear64(x, size, coordinates):
    result = x.astype("f8")
    for axis, count in zip((2, 3), size):
        m = x.shape[axis]
        at = [min(max(position(i, count, m, coordinates), 0), m - 1) for i in range(count)]
        parts = []
        for p in at:
            low = math.floor(p)
            first, second = result.take(low, axis), result.take(min(low + 1, m - 1), axis)
            parts.append(first * (1 - (p - low)) + second * (p - low))
        result = np.stack(parts, axis)
    return result


def both_layouts(calls_of, x, size, target="host", order="all"):
    target = target_named(target)
    lanes, shape, dtype = target.lanes_of(f"f{x.dtype.itemsize}"), (*x.shape[:2], *size), f"f{x.dtype.itemsize}"
    out = empty_laned(shape, lanes, (0, 1, 1, 0), dtype)
    run_calls(calls_of(out, laned(x, lanes, (1, 0, 0, 2))).calls, target, order)
    assert_zero_frame(out)
    dense = np.full(shape, np.nan, x.dtype)
    turned = np.ascontiguousarray(x.swapaxes(2, 3)).swapaxes(2, 3)
    run_calls(calls_of(view_of(dense), view_of(turned)).calls, target, order)
    return plain(out), dense


def images(shape, dtype="f4"):
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(("shape", "size"), SIZES, ids=str)
def test_nearest_takes_the_nearest_pixel(shape, size, coordinates, rounding):
    x = images(shape)
    for got in both_layouts(lambda out, x: nearest_calls(HERE, out, x, coordinates, rounding), x, size):
        np.testing.assert_array_equal(got, nearest64(x, size, coordinates, rounding))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(("shape", "size"), SIZES, ids=str)
def test_linear_weighs_four_pixels(shape, size, coordinates, dtype):
    x = images(shape, dtype)
    for got in both_layouts(lambda out, x: linear_calls(HERE, out, x, coordinates), x, size):
        assert_near(got, linear64(x, size, coordinates), "float32 products")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("order", ORDERS)
def test_resize_on_every_target_in_any_order(target, order):
    x, size = images((2, 20, 5, 6)), (11, 9)
    for got in both_layouts(lambda out, x: linear_calls(HERE, out, x), x, size, target, order):
        assert_near(got, linear64(x, size, "half_pixel"), "float32 products")
    for got in both_layouts(lambda out, x: nearest_calls(HERE, out, x), x, size, target, order):
        np.testing.assert_array_equal(got, nearest64(x, size, "half_pixel", "round_prefer_floor"))


def test_nearest_of_integers():
    x = np.arange(12, dtype="u1").reshape(1, 1, 3, 4)
    out = np.zeros((1, 1, 6, 8), "u1")
    run_calls(nearest_calls(HERE, view_of(out), view_of(x), "asymmetric", "floor").calls)
    np.testing.assert_array_equal(out, x.repeat(2, 2).repeat(2, 3))


def test_resize_refuses_other_channels():
    with pytest.raises(ValueError, match="planes"):
        nearest_calls(HERE, view_of(np.zeros((1, 3, 4, 4))), view_of(np.zeros((1, 4, 2, 2))))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("order", "dtype"), list(zip(ORDERS, ("f4", "f8", "f4"))))
@pytest.mark.parametrize("width", [1, 9, 150])
def test_rows_are_weighted_sums_of_neighbours(width, order, dtype, target):
    rng = np.random.default_rng(3)
    x, first = images((2, 6, width), dtype), np.array([0, 3, 2, 1, 0], "i8")
    weights, out = rng.standard_normal((5, 3)).astype(dtype), np.full((2, 5, width), np.nan, dtype)
    run_calls(weighted_calls(*map(view_of, (out, x, first, weights))), target_named(target), order)
    want = np.einsum("it,pitw->piw", weights.astype("f8"), x.astype("f8")[:, first[:, None] + np.arange(3)])
    assert_near(out, want, "float32 products")


@pytest.mark.parametrize("scales", [(1.5, 2.0), (2.0, 1.25), (0.75, 3.0)])
def test_scales_of_rows_and_columns_replace_those_of_the_sizes(scales):
    """Results beyond the image have its last pixels."""
    x, size = images((1, 3, 5, 6)), (8, 9)
    at = [np.arange(n) / scale for n, scale in zip(size, scales)]
    rows, columns = (np.minimum(np.floor(p).astype(int), n - 1) for p, n in zip(at, x.shape[2:]))
    for got in both_layouts(lambda out, x: nearest_calls(HERE, out, x, "asymmetric", "floor", scales), x, size):
        np.testing.assert_array_equal(got, x[:, :, rows][:, :, :, columns])
    result = x.astype("f8")
    for axis, (p, n) in zip((2, 3), zip(at, x.shape[2:])):
        p = np.minimum(p, n - 1)
        low = np.floor(p).astype(int)
        share = (p - low).reshape([-1 if a == axis else 1 for a in range(4)])
        result = result.take(low, axis) * (1 - share) + result.take(np.minimum(low + 1, n - 1), axis) * share
    for got in both_layouts(lambda out, x: linear_calls(HERE, out, x, "asymmetric", scales), x, size):
        assert_near(got, result, "float32 products")


@pytest.mark.parametrize("scales", [None, (2.25, 1.5)])
@pytest.mark.parametrize("resize", [nearest_calls, linear_calls])
def test_a_strip_has_the_rows_of_the_whole_result_from_the_rows_that_there_are(resize, scales):
    """Rows 6 to 10 of 20, from the image without its first row and its last two."""
    x, whole = images((2, 3, 9, 5)), np.full((2, 3, 20, 7), np.nan, "f4")
    run_calls(resize(HERE, view_of(whole), view_of(x), scales=scales).calls)
    for first, count, begin, stop in ((6, 5, 1, 7), (0, 3, 0, 3), (14, 6, 5, 9)):
        out = np.full((2, 3, count, 7), np.nan, "f4")
        views = view_of(out), view_of(np.ascontiguousarray(x[:, :, begin:stop]))
        run_calls(resize(HERE, *views, scales=scales, strip=Strip(first, 20, begin, 9)).calls)
        np.testing.assert_array_equal(out, whole[:, :, first : first + count])


@pytest.mark.parametrize(("count", "scale", "exact"), [
    (7, 2.5, 7.5), (7, 7 / 3, 7), (7, 2.7, 7), (7, 2.2, 7), (8, np.float64(np.float32(8 / 3)), 8), (7, 8 / 3, 7),
])  # fmt: skip
def test_corners_that_are_aligned_lie_as_far_apart_as_the_exact_size_says(count, scale, exact):
    """Of three pixels: the exact size counts if it is the result's, rounded down, and more than rounding's error."""
    assert exact_count(count, 3, scale) == near(exact, "float64 formulas")
    at = positions(count, 3, "align_corners", scale)
    assert_near(at, np.arange(count) * 2 / (exact - 1), "float64 formulas")


def test_coordinates_that_there_are_not_are_refused_with_those_there_are():
    with pytest.raises(
        ValueError, match="there are no coordinates 'corners'. Choose one of half_pixel, .*align_corners"
    ):
        positions(3, 4, "corners", 1.0)
    assert positions(1, 9, "align_corners", 0.1).tolist() == [0] == positions(1, 9, "pytorch_half_pixel", 0.1).tolist()


@pytest.mark.parametrize("shape", [(0, 3, 4, 4), (2, 0, 4, 4)])
def test_no_images_need_no_call(shape):
    out, x = (view_of(np.zeros((*shape[:2], side, side), "f4")) for side in (6, 4))
    assert nearest_calls(HERE, out, x).calls == () and linear_calls(HERE, out, x).calls == ()


@pytest.mark.parametrize("size", [(2, 3, 0), (0, 3, 5), (2, 0, 5)])
def test_rows_without_elements_need_no_call(size):
    planes, rows, width = size
    x, out = np.zeros((planes, 4, width), "f4"), np.zeros(size, "f4")
    first, weights = np.zeros(rows, "i8"), np.zeros((rows, 2), "f4")
    assert weighted_calls(*map(view_of, (out, x, first, weights))) == []


@pytest.mark.parametrize("calls", [nearest_calls, linear_calls])
def test_results_and_images_whose_columns_lie_apart(calls):
    x, room = images((2, 3, 5, 14))[..., ::2], np.full((2, 3, 9, 22), 77, "f4")
    run_calls(calls(HERE, view_of(room[..., ::2]), view_of(x)).calls)
    dense = np.full((2, 3, 9, 11), np.nan, "f4")
    run_calls(calls(HERE, view_of(dense), view_of(np.ascontiguousarray(x))).calls)
    np.testing.assert_array_equal(room[..., ::2], dense)
    assert (room[..., 1::2] == 77).all() and not np.isnan(dense).any()
