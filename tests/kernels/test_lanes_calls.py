"""Transposed convolutions to few channels, phase by phase, against NumPy in float64."""

import pytest

from cgraph.kernels.target import target_named
from cgraph.kernels.views.window import Window
from tests.kernels.test_transpose_calls import run
from tests.support.kernels import TARGETS

pytestmark = pytest.mark.usefixtures("cuts")

WINDOWS = [Window((4, 4), (2, 2), (1, 1, 1, 1)), Window((2, 2), (2, 2)), Window((3, 2), (4, 3), (0, 1, 0, 0))]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("window", WINDOWS, ids=["overlapping", "disjoint", "phases without taps"])
def test_transposed_sums_by_lanes_are_what_numpy_computes(window, target):
    channels = min(3, target_named(target).lanes_of("f4"))
    run((2, 21, 5, 6, channels, window, (1, 0), 1), target, by_lanes=True)
