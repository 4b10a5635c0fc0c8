"""Resizing against NumPy, on images in lanes and on plain views."""

import math

import numpy as np
import pytest

from cgraph.kernels.resize.calls import COORDINATES, ROUNDINGS, linear_calls, nearest_calls, weighted_calls
from cgraph.kernels.target import host_target, target_named
from tests.support.images import assert_zero_frame, empty_laned, laned, plain
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near

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
