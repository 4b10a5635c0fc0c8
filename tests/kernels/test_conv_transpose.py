"""Transposed convolution against NumPy in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.activation.calls import RELU
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.conv.transpose_calls import TransposedShape, conv_transpose_calls, pack_transposed
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.window import Window
from tests.support.images import assert_zero_frame, empty_laned, laned, plain
from tests.support.kernels import ORDERS, TARGETS, run_calls
from tests.support.tolerance import assert_near

pytestmark = pytest.mark.usefixtures("cuts")

# n, c, h, w, k, window, more, groups
CASES = {
    "2x2, stride 2": (1, 20, 5, 7, 33, Window((2, 2), (2, 2)), (0, 0), 1),
    "3x3, stride 2, one row and column more": (2, 5, 6, 5, 16, Window((3, 3), (2, 2), (1, 1, 1, 1)), (1, 1), 1),
    "4x4, stride 2": (1, 16, 9, 9, 3, Window((4, 4), (2, 2), (1, 1, 1, 1)), (0, 0), 1),
    "3x3": (1, 17, 8, 16, 18, Window((3, 3), pad=(1, 1, 1, 1)), (0, 0), 1),
    "1x1, stride 3: phases without taps": (1, 4, 4, 5, 6, Window((1, 1), (3, 3)), (1, 2), 1),
    "dilated, uneven": (1, 6, 7, 5, 9, Window((3, 2), (2, 3), (1, 0, 2, 1), (2, 2)), (0, 1), 1),
    "groups": (1, 12, 6, 5, 18, Window((3, 3), (2, 2), (1, 1, 1, 1)), (1, 0), 3),
}


def transposed64(x, filters, shape):
    """The meaning, by scattering every tap."""
    n, g = len(x), shape.groups
    (a, b), (da, db), (r, s) = shape.window.stride, shape.window.dilation, shape.window.kernel
    top, left = shape.window.pad[:2]
    rows, columns = shape.result
    full = np.zeros((n, shape.k, top + rows + a * shape.h + r * da, left + columns + b * shape.w + s * db))
    xs, fs = x.astype("f8").reshape(n, g, -1, shape.h, shape.w), filters.astype("f8").reshape(g, -1, shape.k // g, r, s)
    for i in range(r):
        for j in range(s):
            term = np.einsum("ngchw,gck->ngkhw", xs, fs[..., i, j]).reshape(n, shape.k, shape.h, shape.w)
            full[:, :, i * da :: a, j * db :: b][:, :, : shape.h, : shape.w] += term
    return full[:, :, top : top + rows, left : left + columns]


def run(case, target="host", order="all", dtype="f4"):
    return transposed(case, target_named(target), order, dtype)


def transposed(case, target, order="all", dtype="f4", run=run_calls):
    n, c, h, w, k, window, more, groups = case
    rng = np.random.default_rng(1)
    shape = TransposedShape(c, h, w, k, target, window, more, groups, dtype)
    x = rng.standard_normal((n, c, h, w)).astype(dtype)
    filters = rng.standard_normal((c, k // groups, *window.kernel)).astype(dtype)
    bias = rng.standard_normal(k).astype(dtype)
    packed = pack_transposed(shape, filters)
    assert packed.nbytes == shape.weights_nbytes
    biases = np.pad(bias, (0, -k % shape.lanes))
    out = empty_laned((n, k, *shape.result), shape.lanes, (1, 0, 1, 1), dtype)
    source = laned(x, shape.lanes, shape.halo())
    lowered = conv_transpose_calls(shape, out, source, Pointer(packed), Epilogue(Pointer(biases), activation=RELU))
    run(lowered.calls, target, order)
    assert_zero_frame(out)
    want = np.maximum(transposed64(x, filters, shape) + bias[:, None, None], 0)
    assert_near(plain(out), want, "convolution", c * window.taps)
    return plain(out)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_transposed_conv_is_what_numpy_computes(case, target):
    run(case, target)


def test_transposed_conv_in_float64():
    run(CASES["groups"], dtype="f8")


@settings(max_examples=25)
@given(st.tuples(*[st.integers(1, n) for n in (2, 20, 8, 20, 20, 4, 4, 3, 3, 2, 2)]), st.sampled_from(TARGETS))
def test_transposed_conv_of_any_shape(sizes, target):
    n, c, h, w, k, r, s, *moves = sizes
    window = Window((r, s), tuple(moves[:2]), (r // 2, 0, 0, s // 2), tuple(moves[2:]))
    if min(TransposedShape(c, h, w, k, host_target(), window).result):
        run((n, c, h, w, k, window, (moves[0] - 1, 0), 1), target)


@pytest.mark.parametrize("order", ORDERS)
def test_transposed_conv_does_not_depend_on_the_order_of_tasks(order):
    case = CASES["4x4, stride 2"]
    np.testing.assert_array_equal(run(case), run(case, order=order))


def test_transposed_conv_refuses_a_narrow_halo():
    shape = TransposedShape(16, 4, 4, 16, host_target(), Window((3, 3), pad=(1, 1, 1, 1)))
    x = laned(np.zeros((1, 16, 4, 4), "f4"), shape.lanes)
    with pytest.raises(ValueError, match="halo"):
        conv_transpose_calls(shape, empty_laned((1, 16, 4, 4), shape.lanes), x, Pointer(np.zeros(1, "f4")))
