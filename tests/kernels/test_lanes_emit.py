"""Convolutions to few channels, whose sums have input channels in their lanes, against NumPy in float64."""

import numpy as np
import pytest

from cgraph.kernels.activation.calls import NONE, leaky
from cgraph.kernels.target import target_named
from cgraph.kernels.views.window import Window
from tests.kernels.test_conv import check
from tests.support.kernels import TARGETS

pytestmark = pytest.mark.usefixtures("cuts")

# n, c, h, w, k, window, groups
CASES = {
    "one channel": (1, 40, 7, 29, 1, Window((3, 3), pad=(1, 1, 1, 1)), 1),
    "two channels, stride, dilation": (2, 19, 9, 11, 2, Window((2, 3), (2, 1), (1, 2, 0, 1), (1, 2)), 1),
    "three channels, point": (1, 33, 3, 5, 3, Window(), 1),
    "four channels, few pixels": (1, 8, 4, 3, 4, Window((4, 1)), 1),
    "more channels than the rule takes": (1, 20, 5, 6, 7, Window((3, 3), pad=(1, 1, 1, 1)), 1),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_sums_by_lanes_are_what_numpy_computes(case, target):
    target = target_named(target)
    case = (*case[:4], min(case[4], target.lanes_of("f4")), *case[5:])
    check(np.random.default_rng(1), case, target, out_halo=(1, 0, 2, 1), by_lanes=True)


@pytest.mark.parametrize(
    "options", [{"dtype": "f8"}, {"activation": NONE}, {"activation": leaky(0.1)}, {"order": "single"}], ids=str
)
def test_sums_by_lanes_take_the_options_of_other_convolutions(options):
    case = CASES["two channels, stride, dilation"]
    check(np.random.default_rng(2), case, target_named("avx2"), by_lanes=True, **options)
