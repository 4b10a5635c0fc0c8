"""Ranges over samples: the extremes of all of them, histograms as NumPy counts, and values that are not finite."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import InputError
from cgraph.quantiser.network import network_of, prepare
from cgraph.quantiser.observe import histograms, limits, ranges_of, spread, within
from cgraph.quantiser.ranges import BINS
from tests.quantiser.nets import Net

X = cg.Var((4,), name="x")
SAMPLES = [(np.array(row, "f4"),) for row in ([1, 2, 3, 0], [-4, 0, 2, 1], [0.5, 5, 0, 0])]


def silent(*args) -> None:
    """Tell nobody."""


def test_limits_are_those_of_all_samples_and_of_each_value():
    y = X * -2
    assert limits([X, y], [X], SAMPLES, silent) == {X: (-4, 5), y: (-10, 8)}
    assert limits([X], [X], SAMPLES[:1], silent) == {X: (0, 3)}
    beyond = [(np.array([2, 5, 3, 4], "f4"),)]  # on one side of 0
    assert limits([X, y], [X], beyond, silent) == {X: (2, 5), y: (-10, -4)}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named(bad):
    samples = [*SAMPLES, (np.array([0, bad, 0, 0], "f4"),)]
    with pytest.raises(InputError, match=r"make x float32\[4\] \(made at .*\) reach from .* Leave out"):
        limits([X], [X], samples, silent)


def test_histograms_count_every_number_of_every_sample_once():
    rng = np.random.default_rng(0)
    x = cg.Var((100, 7), name="x")
    samples = [(rng.uniform(-1, 3, (100, 7)).astype("f4"),) for _ in range(3)]
    counts = histograms({x: (-1.0, 3.0)}, [x], samples, silent)[x]
    whole = np.concatenate([s.ravel() for (s,) in samples])
    assert counts.shape == (BINS,) and counts.sum() == whole.size
    expected = np.histogram(whole, BINS, (-1, 3))[0]
    assert np.abs(np.cumsum(counts) - np.cumsum(expected)).max() <= 2, "a number at the edge of a bin"


def test_numbers_at_both_ends_are_in_the_first_and_the_last_bin():
    samples = [(np.array([-1, 3, 3, 1], "f4"),)]
    counts = histograms({X: (-1.0, 3.0)}, [X], samples, silent)[X]
    assert (counts[0], counts[BINS - 1], counts[BINS // 2], counts.sum()) == (1, 2, 1, 4)


def test_the_range_of_a_histogram_is_never_empty_and_even_for_entropy():
    assert spread((-1.0, 3.0), "percentile") == (-1, 3) and spread((2.0, 2.0), "percentile") == (1, 3)
    assert spread((-1.0, 3.0), "entropy") == (-3, 3) and spread((-4.0, 3.0), "entropy") == (-4, 4)
    assert spread((0.0, 0.0), "entropy") == (-1, 1)
    assert within((-5.0, 2.0), (-4.0, 3.0)) == (-4, 2) and within((-1.0, 9.0), (-4.0, 3.0)) == (-1, 3)


@pytest.mark.parametrize("method", ["minmax", "percentile", "entropy"])
def test_every_value_with_a_scale_of_its_own_has_a_range_within_its_limits(method):
    net = Net()
    x = cg.Var((1, 3, 8, 8), name="image")
    network = network_of(prepare((net.conv(cg.relu(net.conv(x, 8)), 4),), (x,)))
    samples = [(np.random.default_rng(i).standard_normal(x.shape).astype("f4"),) for i in range(3)]
    nodes = set(network.bytes.values())
    extremes = limits(list(nodes), [x], samples, silent)
    ranges = ranges_of(network, [x], samples, method, silent)
    assert set(ranges) == nodes and len(nodes) >= 2
    for node, (low, high) in ranges.items():
        assert extremes[node][0] <= low <= high <= extremes[node][1]
    if method == "minmax":
        assert ranges == extremes


@pytest.mark.parametrize("sign", [1, -1])
def test_a_rare_number_on_one_side_cuts_no_range_on_the_other(sign):
    """A histogram for entropy reaches as far on both sides; the numbers of one side end long before."""
    x = cg.Var((1, 20, 32, 32), name="image")
    image = np.clip(np.random.default_rng(0).standard_normal(x.shape), -2, 2).astype("f4")
    image[0, 0, 0, 0] = 100
    network = network_of(prepare((Net().conv(x, 4),), (x,)))
    near, far = sorted(ranges_of(network, [x], [(sign * image,)], "entropy", silent)[x], key=abs)
    assert near == -2 * sign and 2 < sign * far < 10
