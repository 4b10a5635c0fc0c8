"""Convolutions to few channels, whose sums have input channels in their lanes, against NumPy in float64."""

import numpy as np
import pytest

from cgraph.kernels.activation.calls import NONE, leaky
from cgraph.kernels.conv.calls import conv_calls
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import target_named
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.pack import pack_conv
from cgraph.kernels.views.window import Window
from tests.kernels.test_conv import check
from tests.support.images import assert_zero_frame, conv64, empty_laned, laned, plain
from tests.support.kernels import TARGETS, run_calls
from tests.support.tolerance import assert_near

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


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("residual", [False, True])
def test_sums_by_lanes_without_a_bias(residual, target):
    """With a residual, and without one."""
    target, rng = target_named(target), np.random.default_rng(3)
    n, c, h, w, k, window, _ = CASES["two channels, stride, dilation"]
    shape = ConvShape(c, h, w, k, target, window, by_lanes=True)
    x, filters = rng.standard_normal((n, c, h, w)).astype("f4"), rng.standard_normal((k, c, 2, 3)).astype("f4")
    out, add = empty_laned((n, k, *shape.result), shape.lanes), rng.standard_normal((n, k, *shape.result)).astype("f4")
    epilogue = Epilogue(residual=laned(add, shape.lanes, (1, 0, 0, 2)) if residual else None)
    source = laned(x, shape.lanes, window.halo(h, w))
    run_calls(conv_calls(shape, out, source, Pointer(pack_conv(shape, filters)), epilogue).calls, target)
    want = conv64(x, filters, window) + (add if residual else 0)
    assert_near(plain(out), want, "convolution", filters[0].size)
    assert_zero_frame(out)
