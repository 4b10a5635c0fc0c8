"""Depthwise convolution against NumPy in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.activation.calls import RELU6
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.depthwise.calls import MANY_PIXELS, depthwise_calls, kernel_of, pack_depthwise, pixels_of
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.pack import pack_bias
from cgraph.kernels.views.window import Window
from cgraph.record import replace
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


@pytest.mark.parametrize(
    ("kernel", "family", "params"),
    [((3, 3), "small", (3, 3, 2, 3)), ((1, 9), "small", (1, 9, 2, 3)), ((2, 5), "lines", (5, 2, 3)),
     ((9, 7), "lines", (7, 2, 3)), ((2, 8), "taps", (2,)), ((10, 1), "lines", (1, 2, 3))],
)  # fmt: skip
def test_weights_stay_in_registers_where_they_fit(kernel, family, params):
    """All of a small filter, or those of a row; on processors of few registers, none of larger ones."""
    shape = ConvShape(8, 40, 90, 8, target_named("avx2"), Window(kernel, (1, 2), dilation=(1, 3)), 8)
    found, pixels, given = kernel_of(shape, 40)
    assert (found.family, given) == (f"depthwise.{family}", params)
    few = replace(shape, target=replace(shape.target, registers=15))
    assert kernel_of(few, 40)[0].family == ("depthwise.small" if family == "small" else "depthwise.taps")
    assert pixels == pixels_of(40, shape.target, MANY_PIXELS if family == "lines" else (4, 2, 1))


def test_tiles_are_as_wide_as_repeats_fewest_pixels():
    """Against all choices: pixels of all tiles, and one more for each."""
    avx2, avx512 = target_named("avx2"), replace(target_named("avx2"), registers=32)
    for target, choices in ((avx2, (4, 2, 1)), (avx512, (14, 8, 7, 4, 2, 1))):
        for columns in range(1, 60):
            costs = {q: -(-columns // q) * (q + 1) for q in choices if q <= columns}
            assert pixels_of(columns, target) == next(q for q in choices if costs.get(q) == min(costs.values()))
    assert [pixels_of(n, avx2, MANY_PIXELS) for n in (5, 7, 10, 14)] == [5, 7, 5, 7]


@pytest.mark.parametrize("images", [(3, 8, 7, 9), (2, 9, 7, 9), (2, 8, 6, 9), (2, 8, 7, 8)])
def test_images_of_other_sizes_and_narrow_halos_are_refused(images):
    target, window = host_target(), Window((3, 3), pad=(1, 1, 1, 1))
    shape = ConvShape(8, 7, 9, 8, target, window, 8)
    out, at = empty_laned((2, 8, 7, 9), shape.lanes), Pointer(None)
    with pytest.raises(ValueError, match="are not those of"):
        depthwise_calls(shape, out, empty_laned(images, shape.lanes, (1, 1, 1, 1)), at)
    with pytest.raises(ValueError, match="is narrower than"):
        depthwise_calls(shape, out, empty_laned((2, 8, 7, 9), shape.lanes, (1, 1, 1, 0)), at)
    none = replace(out, n=0), replace(empty_laned((2, 8, 7, 9), shape.lanes, (1, 1, 1, 1)), n=0)
    assert depthwise_calls(shape, *none, at).calls == ()


def test_a_convolution_without_a_bias_adds_zeros():
    target, rng, window = host_target(), np.random.default_rng(0), Window((3, 3), pad=(1, 1, 1, 1))
    x, filters = rng.standard_normal((2, 21, 7, 9)).astype("f4"), rng.standard_normal((21, 1, 3, 3)).astype("f4")
    shape = ConvShape(21, 7, 9, 21, target, window, 21)
    out = empty_laned(x.shape, shape.lanes)
    weights = Pointer(pack_depthwise(shape, filters))
    run_calls(depthwise_calls(shape, out, laned(x, shape.lanes, (1, 1, 1, 1)), weights).calls)
    assert_near(plain(out), conv64(x, filters, window, 21), "depthwise convolution", 1)
