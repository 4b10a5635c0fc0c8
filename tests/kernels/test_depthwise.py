"""Depthwise convolution against NumPy in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.activation.calls import RELU6
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.depthwise.calls import depthwise_calls, pack_depthwise
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.pack import pack_bias
from cgraph.kernels.views.window import Window
from tests.support.images import activated, assert_zero_frame, conv64, empty_laned, laned, plain
from tests.support.kernels import ORDERS, TARGETS, run_calls
from tests.support.tolerance import assert_near

pytestmark = pytest.mark.usefixtures("cuts")

CASES = {
    "3x3": (1, 33, 15, 17, Window((3, 3), pad=(1, 1, 1, 1))),
    "3x3, stride 2": (2, 16, 14, 14, Window((3, 3), (2, 2), (1, 1, 1, 1))),
    "3x3, stride 2, padded on one side": (1, 24, 9, 30, Window((3, 3), (2, 2), (0, 0, 1, 1))),
    "3x3, dilated": (1, 20, 20, 21, Window((3, 3), (1, 1), (2, 2, 2, 2), (2, 2))),
    "5x5": (1, 40, 8, 3, Window((5, 5), pad=(2, 2, 2, 2))),
    "5x5, dilated, two tiles of five pixels": (1, 17, 10, 10, Window((5, 5), (1, 1), (4, 4, 4, 4), (2, 2))),
    "4x6, other moves": (2, 9, 12, 29, Window((4, 6), (2, 1), (1, 3, 2, 2), (1, 3))),
    "9x9": (1, 8, 11, 13, Window((9, 9), pad=(4, 4, 4, 4))),
    "7x7, stride 2": (1, 5, 20, 65, Window((7, 7), (2, 2), (3, 3, 3, 3))),
    "3x2, other moves down than across": (2, 19, 13, 16, Window((3, 2), (1, 3), (2, 1, 1, 2), (3, 2))),
    "one pixel": (1, 3, 1, 1, Window((3, 3), pad=(1, 1, 1, 1))),
    "one row": (3, 18, 1, 40, Window((1, 9), (1, 1), (0, 4, 0, 4))),
}


def run(case, target="host", order="all", dtype="f4"):
    return depthwise(case, target_named(target), order, dtype)


def depthwise(case, target, order="all", dtype="f4", run=run_calls):
    n, c, h, w, window = case
    rng = np.random.default_rng(1)
    shape = ConvShape(c, h, w, c, target, window, c, dtype=dtype)
    x, filters = (
        rng.standard_normal((n, c, h, w)).astype(dtype),
        rng.standard_normal((c, 1, *window.kernel)).astype(dtype),
    )
    bias = rng.standard_normal(c).astype(dtype)
    out = empty_laned((n, c, *shape.result), shape.lanes, (1, 1, 1, 2), dtype)
    source = laned(x, shape.lanes, window.halo(h, w))
    packed, biases = Pointer(pack_depthwise(shape, filters)), Pointer(pack_bias(shape, bias))
    run(depthwise_calls(shape, out, source, packed, Epilogue(biases, activation=RELU6)).calls, target, order)
    assert_zero_frame(out)
    want = activated(conv64(x, filters, window, c) + bias[:, None, None], RELU6)
    assert_near(plain(out), want, "depthwise convolution", 1)
    return plain(out)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_depthwise_is_what_numpy_computes(case, target):
    run(case, target)


def test_depthwise_in_float64():
    run(CASES["3x3"], dtype="f8")


@settings(max_examples=20)
@given(st.tuples(*[st.integers(1, n) for n in (2, 35, 20, 30, 4, 4, 3, 3, 2, 2)]), st.sampled_from(TARGETS))
def test_depthwise_of_any_shape(sizes, target):
    n, c, h, w, r, s, *moves = sizes
    window = Window((r, s), tuple(moves[:2]), (r - 1, s // 2, 1, s), tuple(moves[2:]))
    if min(window.result(h, w)):
        run((n, c, h, w, window), target)


@pytest.mark.parametrize("order", ORDERS)
def test_depthwise_does_not_depend_on_the_order_of_tasks(order):
    np.testing.assert_array_equal(run(CASES["3x3"]), run(CASES["3x3"], order=order))


def test_depthwise_refuses_groups_of_channels():
    shape = ConvShape(16, 8, 8, 16, host_target(), Window((3, 3), pad=(1, 1, 1, 1)), 4)
    x = laned(np.zeros((1, 16, 8, 8), "f4"), shape.lanes, (1, 1, 1, 1))
    with pytest.raises(ValueError, match="depthwise"):
        depthwise_calls(shape, empty_laned((1, 16, 8, 8), shape.lanes), x, Pointer(np.zeros(144, "f4")))
