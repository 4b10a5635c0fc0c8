"""Products of bytes and their way back to bytes: forms of dot products, roundings, saturation, stores."""

import numpy as np
import pytest

from cgraph.kernels.llvm import bytes as kernel_bytes
from cgraph.kernels.target import host_target, target_named
from cgraph.record import replace
from tests.support.emitted import applied, every_target, run_emitted

HOST = host_target()
GENERIC = replace(target_named("portable"), architecture="generic")
EXTREMES = np.array([0, 255, 1, 128, 127, 254], "u1")


def dot_products(target, groups, weights, sums):
    """Sums ``[pixels, vectors, lanes]``; groups ``[pixels, 4]`` or ``[pixels, lanes, 4]``."""
    pixels, vectors, lanes = sums.shape
    out = np.zeros_like(sums)

    def write(k, x, w, bias, place):
        of_lanes = groups.ndim == 3
        xs = [x.load(q * lanes, lanes) if of_lanes else x.load(q) for q in range(pixels)]
        ws = [w.load(v * 4 * lanes, 4 * lanes) for v in range(vectors)]
        before = [bias.load(i * lanes, lanes) for i in range(pixels * vectors)]
        for i, y in enumerate(kernel_bytes.dots(k, before, xs, ws)):
            place.store(y, i * lanes)

    run_emitted(write, target, groups.view("i4"), weights, sums, out)
    return out


@every_target
@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("of_lanes", [False, True])
@pytest.mark.parametrize("draw", ["largest", "random"])
def test_dot_products_are_those_of_integers_pixel_by_vector(draw, of_lanes, is_plain, target):
    lanes, pixels, vectors = target.lanes, 2, 3
    rng = np.random.default_rng(0)
    groups = rng.choice(EXTREMES, (pixels, lanes, 4) if of_lanes else (pixels, 4)).astype("u1")
    weights = rng.integers(-128, 128, (vectors, lanes, 4)).astype("i1")
    if draw == "largest":
        groups[:], weights[:] = 255, -128
    sums = rng.integers(-(2**30), 2**30, (pixels, vectors, lanes)).astype("i4")
    got = dot_products(replace(target, dot="plain") if is_plain else target, groups, weights, sums)
    np.testing.assert_array_equal(got, expected_dots(groups, weights, sums))


def expected_dots(groups, weights, sums):
    x = (groups if groups.ndim == 3 else groups[:, None, :]).astype("i4")[:, None]
    return sums + (x * weights.astype("i4")).sum(-1, dtype="i4")


@pytest.mark.parametrize("form", ["across", "halves", "plain"])
@pytest.mark.parametrize("of_lanes", [False, True])
@pytest.mark.parametrize(("pixels", "vectors"), [(1, 1), (1, 3), (3, 1), (2, 3), (3, 2)])
def test_forms_without_an_instruction_add_each_product_to_its_own_sum(pixels, vectors, of_lanes, form):
    rng, lanes = np.random.default_rng(pixels), 4
    groups = rng.integers(0, 256, (pixels, lanes, 4) if of_lanes else (pixels, 4)).astype("u1")
    weights = rng.integers(-128, 128, (vectors, lanes, 4)).astype("i1")
    sums = rng.integers(-1000, 1000, (pixels, vectors, lanes)).astype("i4")
    got = dot_products(replace(GENERIC, dot=form), groups, weights, sums)
    np.testing.assert_array_equal(got, expected_dots(groups, weights, sums))


def rounded_once(x, factor, shift):
    places = 31 - shift
    return (x * factor + (1 << (places - 1))) >> places


def rounded_twice(x, factor, shift):
    """gemmlowp: halves up at 31 bits, then halves away from zero at the shift."""
    high = ((x << max(shift, 0)) * factor + (1 << 30)) >> 31
    right = max(-shift, 0)
    down = (abs(high) + ((1 << right) >> 1)) >> right
    return down if high >= 0 else -down


@every_target
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("lanes", [0, 4])
def test_fixed_products_round_as_they_say(lanes, once, target):
    rows = [
        (x, f, s) for x in (0, 1, 3, -3, 5, -5, 1000, -1001) for f in (2**30, 3 * 2**29, 2**31 - 1) for s in (0, -1)
    ]
    rows += [
        (12345, 2**30, -5),
        (-12345, 2**30, -5),
        (7, 2**30 + 1, 3),
        (-7, 2**30 + 1, 3),
        (2**30, 2**30, -31),
        (3, 2**30, 4),
    ]
    rows += [(-24, 2**30, -3), (24, 2**30, -3)]  # halves at the shift
    x, factor, shift = (np.array(v, "i4") for v in zip(*rows))
    got = applied(lambda k, *v: kernel_bytes.fixed_product(k, *v, once), target, x, factor, shift, lanes=lanes)
    assert got.tolist() == [(rounded_once if once else rounded_twice)(*row) for row in rows]


@every_target
def test_floats_round_to_integers_with_halves_to_even(target):
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 300.5, -301.5], "f4")
    got = applied(kernel_bytes.round_to_integer, target, x)
    np.testing.assert_array_equal(got, np.rint(x))


@every_target
@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize(("zero", "low", "high"), [(0, 0, 255), (128, 0, 255), (3, 10, 200), (255, 0, 255), (-5, 0, 6)])
def test_sums_become_bytes_rounded_shifted_and_clipped_however_far_away_they_are(zero, low, high, is_plain, target):
    lanes = target.lanes
    x = np.random.default_rng(0).uniform(-300, 300, (4, lanes)).astype("f4")
    x[0, :4], x[1, :4], x[2, :4] = [0.5, 1.5, 2.5, -0.5], [3e9, -3e9, 1e30, -1e30], [np.inf, -np.inf, 1024.5, -1024.5]
    out = np.zeros((4, lanes), "u1")
    f = kernel_bytes.plain_bytes if is_plain else kernel_bytes.to_bytes

    def write(k, source, place):
        limits = k.const(zero, "i2"), k.const(low, "u1"), k.const(high, "u1")
        place.store(f(k, [source.load(i * lanes, lanes) for i in range(4)], *limits))

    run_emitted(write, target, x, out)
    want = np.clip(np.rint(np.clip(x.astype("f8"), -1e6, 1e6)) + zero, low, high)
    np.testing.assert_array_equal(out, want.astype("u1"))


@every_target
@pytest.mark.parametrize("pixels", [1, 3, 4, 5, 8])
def test_each_pixel_of_a_block_is_stored_once_and_nothing_behind_the_last(pixels, target):
    lanes = target.lanes
    x = np.arange(pixels * lanes, dtype="f4").reshape(pixels, lanes)
    out = np.full((pixels + 1, lanes), 77, "u1")

    def write(k, source, place):
        limits = k.const(1, "i2"), k.const(0, "u1"), k.const(255, "u1")
        kernel_bytes.store_bytes(k, place, [source.load(i * lanes, lanes) for i in range(pixels)], *limits)

    run_emitted(write, target, x, out)
    np.testing.assert_array_equal(out[:-1], x + 1)
    assert (out[-1] == 77).all()
