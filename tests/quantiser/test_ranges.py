"""Scales, ranges and weights as whole numbers, beside plain NumPy."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.quantiser.network import network_of, prepare
from cgraph.quantiser.ranges import (
    BINS,
    LEVELS,
    ByteForm,
    Quantum,
    divergence,
    entropy,
    percentile,
    smooth,
    weights_of,
)
from tests.quantiser.nets import Net
from tests.support.tolerance import assert_near


@pytest.mark.parametrize("form", [ByteForm(), ByteForm("int8"), ByteForm("uint8", True), ByteForm("int8", True)])
@pytest.mark.parametrize("limits", [(-1.0, 3.0), (0.5, 2.0), (-7.0, -1.0), (0.0, 1e-30), (-1e30, 1e30)])
def test_a_range_fits_into_the_bytes_and_zero_is_exact(form, limits):
    quantum = form.quantum(limits)
    ends = np.clip(np.rint(np.array([*limits, 0.0]) / quantum.scale) + quantum.zero, *byte_limits(form))
    back = (ends - quantum.zero) * np.float64(quantum.scale)
    assert np.abs(back - [*limits, 0]).max() <= 0.51 * quantum.scale and back[2] == 0
    if form.symmetric:
        assert quantum.zero == (128 if form.dtype == "uint8" else 0)


def byte_limits(form):
    limits = np.iinfo(form.dtype)
    return limits.min, limits.max


def test_a_range_of_nothing_has_the_scale_one():
    assert ByteForm().quantum((0.0, 0.0)) == Quantum(np.float32(1), 0)
    assert ByteForm("int8").quantum((0.0, 1e-45)) == Quantum(np.float32(1), -128)


def test_a_percentile_is_that_of_numpy_within_a_bin():
    x = np.random.default_rng(0).standard_normal(200_000)
    counts, low, high = np.histogram(x, BINS)[0], x.min(), x.max()
    got = percentile(counts, low, high, 99.9)
    assert_near(got, np.percentile(x, [0.05, 99.95]), "bins of a histogram", (high - low) / BINS)


def test_entropy_keeps_all_of_what_is_even_and_cuts_rare_tails():
    rng = np.random.default_rng(0)
    even = rng.uniform(-1, 1, 1_000_000)
    assert entropy(np.histogram(even, BINS, (-1, 1))[0], -1, 1)[1] > 0.97
    far = np.concatenate([rng.standard_normal(1_000_000), [100.0]])
    cut = entropy(np.histogram(far, BINS, (-100, 100))[0], -100, 100)
    assert -cut[0] == cut[1] < 10
    held = np.maximum(far, 0)  # zeros are exact and do not count
    assert 3 < entropy(np.histogram(held, BINS, (-100, 100))[0], -100, 100)[1] < 10


@pytest.mark.parametrize(
    "function",
    [lambda x: percentile(x, -3.0, 3.0), lambda x: entropy(x, -3.0, 3.0), lambda x: divergence(x, 128, 512), smooth],
)
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_a_callers_histogram_stays_as_it_is(function, dtype):
    """Zeros, a peak in the middle, and tails beyond the range: each is moved in a copy."""
    counts = np.random.default_rng(0).integers(0, 5, BINS).astype(dtype)
    counts[BINS // 2] = 1000
    before = counts.copy()
    function(counts)
    np.testing.assert_array_equal(counts, before)
    counts.flags.writeable = False
    function(counts)


def test_weights_are_rounded_by_channel():
    x = cg.Var((1, 6, 5, 5), name="image")
    filters = Net().normal(8, 6, 3, 3)
    filters[3] = 0
    (layer,) = network_of(prepare((cg.conv2d(x, filters) + Net().normal(8, 1, 1),), (x,))).layers
    held = weights_of(layer, Quantum(np.float32(0.02), 3))
    assert held.numbers.dtype == np.int8 and np.abs(held.numbers).max(axis=(1, 2, 3))[:3].tolist() == [127] * 3
    assert np.abs(held.floats - filters).max() <= 0.5001 * held.scale.max()
    np.testing.assert_array_equal(held.unit, np.float32(0.02) * held.scale)
    assert_near(held.bias(layer.bias) * held.unit.astype("f8"), layer.bias, "numbers of a unit", held.unit)


def test_a_bias_that_would_not_fit_makes_weights_coarser():
    x = cg.Var((2, 3), name="x")
    weights = np.full((3, 2), 1e-9, "float32")
    (layer,) = network_of(prepare((x @ weights + np.float32([5, -5]),), (x,))).layers
    held = weights_of(layer, Quantum(np.float32(1e-3), 0))
    assert_near(held.bias(layer.bias) * held.unit.astype("f8"), [5, -5], "float32 formulas")


def test_a_distribution_without_zeros_sums_to_one_and_keeps_its_shares():
    x = np.array([0, 3, 0, 1, 0, 4], "f8")
    found = smooth(x)
    assert_near(found.sum(), 1, "float64 formulas")
    assert (found[x == 0] == 1e-4 / 6).all()
    assert_near(found[x > 0] / found[1], x[x > 0] / 3, "float64 formulas")
    assert_near(smooth(x[x > 0]), x[x > 0] / 8, "float64 formulas")
    assert (smooth(np.zeros(3)) == 0).all()


@pytest.mark.parametrize(("first", "stop"), [(0, 1024), (256, 768), (128, 512), (640, 768)])
def test_the_divergence_is_that_of_a_plain_loop(first, stop):
    """The numbers outside are added to the ends of the first distribution; each step of the second is its mean."""
    counts = np.random.default_rng(first).integers(0, 5, 1024)
    counts[first], counts[stop - 1] = 3, 0
    p = counts[first:stop].astype("f8")
    p[0] += sum(counts[:first])
    p[-1] += sum(counts[stop:])
    q, each = np.zeros(stop - first), (stop - first) // LEVELS
    for at in range(0, stop - first, each):
        there = [i for i in range(at, at + each) if p[i] > 0]
        for i in there:
            q[i] = sum(counts[first + at : first + at + each]) / len(there)
    p, q = smooth(p), smooth(q)
    assert_near(divergence(counts, first, stop), sum(a * np.log(a / b) for a, b in zip(p, q)), "float64 formulas")


@pytest.mark.parametrize("size", [1e-42, 1e-38, 1e-30, 1e-20, 1e-3])
@pytest.mark.parametrize("scale", [1e-37, 1e-30, 1e-20, 1e-10, 1.0])
@pytest.mark.parametrize("bias", [0.0, 1e-3])
def test_scales_and_units_of_weights_are_normal_numbers_and_biases_finite(size, scale, bias):
    """However small weights and values are: their product, the unit of a bias, is divided by."""
    x = cg.Var((2, 3), name="x")
    (layer,) = network_of(prepare((x @ np.full((3, 2), size, "float32") + np.float32([bias, -bias]),), (x,))).layers
    with np.errstate(all="raise", under="ignore"):
        held = weights_of(layer, Quantum(np.float32(scale), 0))
        numbers = held.bias(layer.bias)
    assert (held.unit >= np.finfo("f4").tiny).all() and np.isfinite(held.scale).all()
    assert numbers.tolist() == [-numbers[1], numbers[1]] and np.isfinite(held.floats).all()


@pytest.mark.parametrize(("ends", "want"), [(4, (1.0, 4.0)), (6, (0.0, 5.0))])
def test_a_percentile_leaves_five_of_a_million_out_on_each_side_unless_told_otherwise(ends, want):
    assert percentile(np.array([ends, 2, 10**6 - 4 - 2 * ends, 2, ends]), 0.0, 5.0) == want


def test_entropy_keeps_the_whole_range_of_equal_counts():
    """Every smaller range moves numbers to its ends."""
    assert entropy(np.full(BINS, 10), -3.0, 3.0) == (-3, 3)
