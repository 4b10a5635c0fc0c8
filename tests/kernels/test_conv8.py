"""Convolution of bytes against its meaning in int64: exact, on every form of every target."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.conv8.calls import ByteShape, ByteWeights, Join, MatrixRows, Result, conv8_calls, is_depthwise8
from cgraph.kernels.conv8.packed_weights import pack_conv8, pack_numbers, pack_scale, pack_start
from cgraph.kernels.depthwise8.calls import depthwise8_calls, halo8, pack_depthwise8
from cgraph.kernels.host import host
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import target_named
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.support.images import buffer, conv64, empty_laned, interior, laned, plain
from tests.support.kernels import ORDERS, run_calls

pytestmark = pytest.mark.usefixtures("cuts")

SAME = Window((3, 3), pad=(1, 1, 1, 1))
# n, c, h, w, k, window, groups
CASES = {
    "one pixel": (1, 3, 1, 1, 1, Window(), 1),
    "point, few pixels, many channels": (2, 40, 1, 2, 96, Window(), 1),
    "point, flattened": (1, 32, 7, 9, 64, Window(), 1),
    "point with stride": (2, 21, 9, 7, 24, Window(stride=(2, 2)), 1),
    "3x3, 24 channels": (1, 24, 13, 17, 85, SAME, 1),
    "3x3, width 65": (1, 5, 3, 65, 18, SAME, 1),
    "3x3 with stride and uneven padding": (1, 24, 11, 12, 33, Window((3, 3), (2, 2), (0, 0, 1, 1)), 1),
    "5x3, dilated": (1, 17, 14, 15, 16, Window((5, 3), (1, 2), (4, 3, 4, 3), (2, 3)), 1),
    "groups of whole blocks": (1, 64, 6, 7, 96, SAME, 2),
    "groups that straddle blocks": (2, 15, 5, 6, 50, SAME, 5),
}
RESULT = Result("u1", 120)
FORMS = ("host", "512 bits by pairs", "256 bits by one instruction", "avx2", "portable", "plain", "halves", "across")


def form(name):
    """A target, or one of this machine's that adds up products in another way."""
    machine = target_named("host")
    if name == "512 bits by pairs" and machine.lanes == 16:
        return replace(machine, dot="pairs")
    if name == "256 bits by one instruction" and host().has("avx512vnni", "avx512vl"):
        return replace(machine, name="avx2", lanes=8, dot="mixed")
    if name == "plain":
        return replace(target_named("portable"), dot="plain", architecture="generic")
    if name in ("halves", "across"):
        return replace(target_named("portable"), dot=name, registers=4, architecture="generic")
    if name in ("host", "avx2", "portable"):
        return target_named(name)
    pytest.skip("the machine has no such instructions")


def meaning(sums, scale, result, residual=None):
    """What sums become, by NumPy in float32: ``[n, k, p, q]``."""
    sums = sums.astype("i4")
    if result.dtype == "i4":
        return sums
    if result.fixed:
        return np.clip(whole(sums, *scale, result.fixed) + result.zero, result.low, result.high).astype("u1")
    y = sums.astype("f4") * scale[:, None, None]
    if result.dtype == "f4":
        return y
    if result.join:
        j = result.join
        y = np.clip(np.rint(y), j.low, j.high).astype("f4") * np.float32(j.first)
        if residual is not None:
            y = y + (residual.astype("f4") - np.float32(j.r_zero)) * np.float32(j.beside)
        y = y / np.float32(j.last)
    return np.clip(np.rint(y) + result.zero, result.low, result.high).astype("u1")


def whole(sums, factor, shift, rounding):
    """TFLite's two ways to scale sums: halves upwards once, or then, away from zero, a second time."""
    factor, shift = (y.astype("i8")[:, None, None] for y in (factor, shift))
    if rounding == "once":
        return sums.astype("i8") * factor + (1 << (30 - shift)) >> (31 - shift)
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    high = (sums.astype("i8") << left) * factor + (1 << 30) >> 31
    return np.sign(high) * (np.abs(high) + (1 << right >> 1) >> right)


def scales_of(rng, k, size, result):
    """A scale for each channel, or factors and shifts; about the 5000th part of what `size` products add up to."""
    scale = rng.uniform(0.5, 2, k) / np.sqrt(size) / 5000
    if not result.fixed:
        return scale.astype("f4")
    fraction, shift = np.frexp(scale)
    return np.stack([np.rint(fraction * 2.0**31).clip(0, 2**31 - 1), shift]).astype("i4")


def framed(x, lanes, halo, zero):
    """Images in lanes in a frame of their zero point; noise in lanes without a channel."""
    made = laned(x, lanes, halo)
    inside = interior(made).copy()
    buffer(made)[...] = zero
    interior(made)[...] = inside
    used = x.shape[1] % lanes
    if used:
        interior(made)[:, -1, :, :, used:] = 77
    return made


def check(case, target, result=RESULT, zero=131, is_plain=False, order="all", extreme=False, added=False):
    rng = np.random.default_rng(1)
    result = replace(result, joins_places=result.joins_places and target.dot == "halves")  # other kernels read shifts
    n, c, h, w, k, window, groups = case
    shape = ByteShape(c, h, w, k, target, window, groups, is_plain)
    x = rng.integers(0, 256, (n, c, h, w)).astype("u1")
    f = rng.integers(-128, 128, (k, c // groups, *window.kernel)).astype("i1")
    if extreme:
        x[:], f[:] = 255, -128
    bias = rng.integers(-1000, 1000, k).astype("i4")
    scale = scales_of(rng, k, f[0].size, result)
    scale = np.repeat(scale[:, :1], k, 1) if result.has_one_scale else scale
    sums = conv64(x.astype("i8") - zero, f, window, groups).astype("i8") + bias[:, None, None]
    residual = rng.integers(0, 256, sums.shape).astype("u1") if added else None
    start = (bias - (zero - shape.middle) * f.astype("i8").sum((1, 2, 3))).astype("i4")
    out = empty_laned_of(sums.shape, shape.lanes, result.dtype, (1, 0, 2, 1))
    before = buffer(out).copy()
    calls, pack = (depthwise8_calls, pack_depthwise8) if is_depthwise8(shape) else (conv8_calls, pack_conv8)
    arrays = pack(shape, f), pack_start(shape, start, scale, result), pack_scale(shape, scale, result)
    lowered = calls(
        shape, out, framed(x, shape.source_lanes, halo8(shape, window), zero),
        ByteWeights(*map(Pointer, arrays)), result,
        laned(residual, shape.lanes, (0, 1, 1, 2)) if added else None,
    )  # fmt: skip
    run_calls(lowered.calls, target, order)
    np.testing.assert_array_equal(plain(out), meaning(sums, scale, result, residual))
    interior(out)[...] = interior_of(before, out)
    np.testing.assert_array_equal(buffer(out), before)  # the frame is as it was


def empty_laned_of(shape, lanes, dtype, halo):
    made = empty_laned(shape, lanes, halo, "f4" if dtype == "f4" else "u1" if dtype == "u1" else "i4")
    buffer(made)[...] = 99
    return made


def interior_of(array, x):
    top, left = x.halo[:2]
    return array[:, :, top : top + x.h, left : left + x.w]


RESULTS = {
    "bytes": Result("u1", 120),
    "bounded": Result("u1", 20, 20, 90),
    "floats": Result("f4"),
    "sums": Result("i4"),
    "twice": Result("u1", 7, 7, 255, Join(0.031, -90, 165, 0.0473)),
    "whole numbers rounded once": Result("u1", 20, 20, 240, fixed="once"),
    "whole numbers rounded twice": Result("u1", 20, 20, 240, fixed="twice"),
    "bounded, rounded once": Result("u1", 20, 20, 240, fixed="once", bounded=True),
    "bounded, rounded twice, to any byte": Result("u1", 120, fixed="twice", bounded=True),
    "bounded, places in sums": Result("u1", 120, fixed="twice", bounded=True, joins_places=True),
    "bounded, places in sums, rounded once": Result("u1", 120, fixed="once", bounded=True, joins_places=True),
    "bounded, one scale": Result("u1", 120, fixed="twice", bounded=True, has_one_scale=True),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_sums_are_those_of_int64(case, name):
    check(case, form(name))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
def test_results(result, name):
    check(CASES["3x3, 24 channels"], form(name), result)


JOINS = {
    "any scales": Join(0.031, -90, 165, 0.0473, 0.029, 140),
    "many halves": Join(1.0, -128, 127, 2.0, 1.0, 128),
    "large and small": Join(1e-9, -90, 165, 3e-9, 7e8, 3),
}


@pytest.mark.parametrize("bounded", (False, True))
@pytest.mark.parametrize("rounding", ("once", "twice"))
@pytest.mark.parametrize("name", FORMS)
def test_whole_numbers_at_their_limits(name, rounding, bounded):
    """Sums that lie on halves, and those of any size; shifts to both sides, or those of a bounded result."""
    c, k, target, rng = 4, 64, form(name), np.random.default_rng(5)
    shape = ByteShape(c, 1, 40, k, target)
    f = np.zeros((k, c, 1, 1), "i1")
    f[:, 0], f[:, 1] = 1, -1
    x = rng.integers(0, 256, (1, c, 1, 40)).astype("u1")
    bias = np.where(np.arange(k) % 3, rng.integers(-(2**20), 2**20, k), rng.integers(-40, 40, k)).astype("i4")
    shift = rng.integers(-20, -1, k).astype("i4") if bounded else rng.integers(-22, 3, k).astype("i4")
    if bounded:
        bias[::5] = rng.choice([-1, 1], len(bias[::5])) * (2**30 - 256)
    factor = np.where(np.arange(k) % 2, 1 << 30, rng.integers(1 << 30, 1 << 31, k)).astype("i4")
    out, scale = empty_laned_of((1, k, 1, 40), shape.lanes, "u1", (0, 0, 0, 0)), np.stack([factor, shift])
    result = Result("u1", 128, fixed=rounding, bounded=bounded)
    run_calls(conv8_calls(
        shape, out, framed(x, shape.lanes, (0, 0, 0, 0), 0),
        ByteWeights(*map(Pointer, (pack_conv8(shape, f), pack_numbers(shape, bias), pack_scale(shape, scale, result)))),
        result,
    ).calls, target)  # fmt: skip
    sums = conv64(x.astype("i8"), f, Window(), 1).astype("i8") + bias[:, None, None]
    np.testing.assert_array_equal(plain(out), meaning(sums, scale, result))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS.keys())
def test_a_residual(join, name):
    check(CASES["3x3, width 65"], form(name), Result("u1", 7, 0, 255, join), added=True)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("window", (SAME, Window((7, 7), (2, 2), (3, 3, 3, 3))), ids=str)
def test_first_layers(window, name):
    for c in (1, 3, 4):
        check((1, c, 20, 19, 34, window, 1), form(name), is_plain=True)


@pytest.mark.parametrize("name", FORMS)
def test_images_of_one_channel_have_a_byte_for_each_pixel_where_a_word_is_four_taps(name):
    """The taps are neighbours: the window has at least two columns and no dilation along rows."""
    target = form(name)
    for c, columns, step, is_plain in product((1, 2, 3), (1, 2, 3, 7), (1, 2), (False, True)):
        window = Window((3, columns), dilation=(2, step))
        shape = ByteShape(c, 20, 20, 8, target, window, 1, is_plain)
        by_taps = is_plain and name == "halves" and c == 1 and columns > 1 and step == 1
        assert shape.source_lanes == (1 if by_taps else 4 if is_plain else target.lanes)
        words = -(-columns // 4) if by_taps else columns
        assert shape.row_taps == (words, 4 if by_taps else step * shape.source_lanes)


@pytest.mark.parametrize("name", FORMS)
def test_the_largest_products_do_not_saturate(name):
    check((1, 64, 3, 5, 32, SAME, 1), form(name), Result("i4"), 0, extreme=True)


@pytest.mark.parametrize("order", ORDERS)
def test_any_order_of_tasks(order):
    check(CASES["point with stride"], target_named("host"), order=order)


@settings(max_examples=25, deadline=None)
@given(st.tuples(*[st.integers(1, n) for n in (2, 40, 20, 20, 40, 3, 3, 2, 2, 2)]), st.sampled_from(FORMS))
def test_any_shape(sizes, name):
    n, c, h, w, k, r, s, down, across, apart = sizes
    window = Window((r, s), (down, across), (r - 1, s // 2, 1, s), (1, apart))
    if min(window.result(h, w)):
        check((n, c, h, w, k, window, 1), form(name))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(("dtype", "fixed"), (("u1", False), ("u1", True), ("f4", False), ("i4", False)))
@pytest.mark.parametrize("n", (5, 32, 37))
def test_rows_of_a_matrix(n, dtype, fixed, name):
    target, rng, m, k = form(name), np.random.default_rng(2), 9, 44
    shape = ByteShape(k, 1, m, n, target)
    x, w = rng.integers(0, 256, (m, k)).astype("u1"), rng.integers(-128, 128, (k, n)).astype("i1")
    result = Result(dtype, 120, fixed="once" if fixed else "")
    scale, starts = scales_of(rng, n, k, result), (shape.middle * w.sum(0, dtype="i4")).astype("i4")
    out = np.full((m, n + 3), 9, dtype)
    run_calls(conv8_calls(
        shape, MatrixRows(Pointer(out), 0, n + 3), framed(x.T.reshape(1, k, 1, m), shape.lanes, (0, 0, 0, 0), 0),
        ByteWeights(*map(Pointer, (
            pack_conv8(shape, w.T.reshape(n, k, 1, 1)), pack_numbers(shape, starts), pack_numbers(shape, scale)
        ))), result,
    ).calls, target)  # fmt: skip
    want = meaning((x.astype("i8") @ w.astype("i8")).T[None, :, None], scale, result)[0, :, 0].T
    np.testing.assert_array_equal(out[:, :n], want)
    assert (out[:, n:] == 9).all()
