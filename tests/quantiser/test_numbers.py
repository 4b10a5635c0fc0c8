"""Ranges, weights and sizes by plain loops: values outside a range, biases that are too large, layers left float."""

from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.quantiser.observe import spread, within
from cgraph.quantiser.quantise import sizes_of_weights
from cgraph.quantiser.ranges import LEVELS, ByteForm, Quantum, divergence, entropy, percentile, weights_of
from tests.support.tolerance import assert_near


def smooth(x):
    """Zeros get 1e-4 of what there is, which the others give."""
    empty = [v == 0 for v in x]
    if all(empty):
        return np.zeros(len(x))
    total, count = sum(x), sum(empty)
    return np.array([1e-4 / len(x) if e else v / total * (1 - 1e-4 * count / len(x)) for v, e in zip(x, empty)])


def wanted_divergence(counts, first, stop):
    inside, width = [float(v) for v in counts[first:stop]], (stop - first) // LEVELS
    p = list(inside)
    p[0] += sum(counts[:first])
    p[-1] += sum(counts[stop:])
    q = []
    for level in range(LEVELS):
        some = range(level * width, (level + 1) * width)
        there = [i for i in some if p[i] > 0]
        share = sum(inside[i] for i in some) / max(len(there), 1)
        q += [share if i in there else 0.0 for i in some]
    p, q = smooth(p), smooth(q)
    return float((p * np.log(p / q)).sum()) if p.sum() and q.sum() else np.inf


@pytest.mark.parametrize("kind", ["left", "right", "both", "middle", "none"])
def test_what_lies_outside_is_added_to_the_nearer_end(kind):
    rng, bins = np.random.default_rng(0), 8 * LEVELS
    counts = rng.integers(0, 20, bins)
    counts[: bins // 4] *= 9 if kind in ("left", "both") else 0
    counts[3 * bins // 4 :] *= 9 if kind in ("right", "both") else 0
    counts = counts * (kind != "none")
    for half in (LEVELS // 2, LEVELS, 3 * LEVELS, bins // 2):
        first, stop = bins // 2 - half, bins // 2 + half
        assert_near(divergence(counts, first, stop), wanted_divergence(counts, first, stop), "float64 conditioned")


@pytest.mark.parametrize("heavy", [0, 1])
def test_the_range_of_least_divergence_leaves_out_a_far_value_on_either_side(heavy):
    rng, bins = np.random.default_rng(1), 16 * LEVELS
    values = np.append(rng.normal(size=200_000) * 0.1, 8.0 if heavy else -8.0)
    counts, _ = np.histogram(values, bins, (-8, 8))
    low, high = entropy(counts, -8.0, 8.0)
    assert low == -high and 0.3 <= high < 4


def test_percentiles_leave_as_many_out_on_each_side():
    counts = np.ones(1000, int)
    low, high = percentile(counts, -1.0, 1.0, 99.0)
    assert_near((low, high), (-0.99, 0.99), "percentiles of a histogram")
    one_sided = percentile(np.array([1000] + [0] * 98 + [1000]), 0.0, 100.0, 90.0)
    assert one_sided == (0.0, 100.0)


@pytest.mark.parametrize("limit", [(-1.0, 2.0), (0.0, 5.0), (-3.0, 0.0), (2.0, 2.0), (0.0, 0.0)])
def test_spans_and_ranges_hold_what_was_seen_and_no_more(limit):
    low, high = spread(limit, "percentile")
    assert low <= limit[0] <= limit[1] <= high and low < high
    low, high = spread(limit, "entropy")
    assert low == -high or limit == (0.0, 0.0)
    assert low <= limit[0] <= limit[1] <= high and low < high
    assert within((-9.0, 9.0), limit) == limit and within(limit, (-9.0, 9.0)) == limit


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("symmetric", [False, True])
def test_a_quantum_holds_its_range_and_nothing_exactly(dtype, symmetric):
    ends = np.iinfo(dtype)
    for low, high in ((-1.0, 3.0), (-3.0, 1.0), (0.5, 2.0), (-2.0, -0.5), (0.0, 0.0), (0.0, 7.0)):
        found = ByteForm(dtype, symmetric).quantum((low, high))
        numbers = [(n - found.zero) * float(found.scale) for n in (ends.min, ends.max)]
        assert numbers[0] <= min(low, 0) + found.scale and max(high, 0) - found.scale <= numbers[1]
        assert ends.min <= found.zero <= ends.max and (
            not symmetric or not high or found.zero in (ends.min + 128, ends.min)
        )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e3, 1e7, 1e9])
def test_weights_stand_for_themselves_and_biases_fit_however_large(axis, size):
    """Where a bias would not fit into int32 its channel's weights have larger steps; the others stay as they are."""
    rng, x = np.random.default_rng(0), Quantum(np.float32(0.01), 3)
    weights = rng.normal(size=(4, 5)).astype("float32")
    weights[(slice(None), 2) if axis else 2] = 0
    bias = rng.normal(size=weights.shape[axis]).astype("float32")
    bias[1] = size
    found = weights_of(SimpleNamespace(weights=weights, bias=bias, axis=axis), x)
    wide = np.expand_dims(found.scale, 1 - axis)
    assert np.abs(found.floats - weights).max() <= 0.51 * wide.max()
    assert (np.abs(found.floats - weights) <= 0.51 * wide).all() and found.numbers.dtype == np.int8
    held = found.bias(bias).astype("float64") * found.unit
    assert_near(held, bias, "biases of int32", found.unit.max())
    plain = np.abs(weights).max(1 - axis) / 127
    others = [i for i in range(len(bias)) if i not in (1, 2)]
    assert_near(found.scale[others], plain[others], "float32 formulas")
    assert_near(found.unit, found.scale * x.scale, "float32 formulas")


def test_bytes_of_weights_count_numbers_biases_and_scales():
    """A float layer has four bytes a number; a quantised one has one, and a float for each channel besides its bias."""
    layers = [
        SimpleNamespace(weights=np.zeros(shape, "float32"), bias=np.zeros(n, "float32"))
        for shape, n in (((8, 3, 3, 3), 8), ((10, 4), 4))
    ]
    floats = [4 * 216 + 4 * 8, 4 * 40 + 4 * 4]
    small = [216 + 8 * 8, 40 + 8 * 4]
    assert sizes_of_weights(layers, []) == (sum(floats), sum(floats))
    assert sizes_of_weights(layers, layers[:1]) == (sum(floats), small[0] + floats[1])
    assert sizes_of_weights(layers, layers) == (sum(floats), sum(small))
