"""Winograd convolution against NumPy in float64, and how exact it is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.activation.calls import NONE, RELU
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.llvm.winograd_matrices import winograd_matrices
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.pack import pack_bias
from cgraph.kernels.views.window import Window
from cgraph.kernels.winograd.calls import Winograd, pack_winograd, winograd_calls
from tests.support.images import activated, assert_zero_frame, conv64, empty_laned, laned, plain, workspace
from tests.support.kernels import ORDERS, TARGETS, run_calls
from tests.support.tolerance import assert_near

pytestmark = pytest.mark.usefixtures("cuts")

# largest error relative to the standard deviation of the result, from measurements on layers of 64 to 512 channels
ERROR = {2: 4e-6, 4: 2e-5}


def run(case, m, target="host", order="all", pad=(1, 1, 1, 1), in_halo=(1, 1, 1, 1), dilation=(1, 1), **epilogue):
    activation, residual = epilogue.get("activation", NONE), epilogue.get("residual", False)
    n, c, h, w, k = case
    target, rng = target_named(target), np.random.default_rng(sum(case))
    shape = ConvShape(c, h, w, k, target, Window((3, 3), pad=pad, dilation=dilation))
    plan = Winograd(shape, n, m)
    x = np.maximum(rng.standard_normal((n, c, h, w)), 0).astype("f4")
    filters = (rng.standard_normal((k, c, 3, 3)) * (2 / (9 * c)) ** 0.5).astype("f4")
    bias = rng.standard_normal(k).astype("f4")
    out = empty_laned((n, k, *shape.result), shape.lanes, (1, 0, 2, 1))
    add = rng.standard_normal((n, k, *shape.result)).astype("f4") if residual else np.zeros(1, "f4")
    packed = pack_winograd(plan, filters)
    assert packed.nbytes == plan.weights_nbytes
    room = workspace(plan.nbytes)
    lowered = winograd_calls(
        plan, out, laned(x, shape.lanes, in_halo), Pointer(packed),
        Epilogue(Pointer(pack_bias(shape, bias)), laned(add, shape.lanes) if residual else None, activation), room,
    )  # fmt: skip
    run_calls(lowered.calls, target, order)
    assert_zero_frame(out)
    want = activated(conv64(x, filters, shape.window) + bias[:, None, None] + add, activation)
    return plain(out), want


def assert_close(got, want, m):
    assert np.abs(got - want).max() <= ERROR[m] * max(want.std(), 1.0)


CASES = [(1, 64, 14, 14, 64), (2, 21, 7, 9, 33), (1, 3, 13, 17, 5), (3, 16, 2, 1, 48), (1, 40, 1, 30, 24)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_winograd_is_what_numpy_computes(case, m, target):
    got, want = run(case, m, target, activation=RELU, residual=True)
    assert_close(got, want, m)


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("halo", [(0, 0, 0, 0), (1, 0, 1, 0), (2, 3, 4, 5), (3, 0, 0, 1), (0, 3, 1, 0)], ids=str)
def test_winograd_needs_no_halo(halo, m):
    got, want = run((2, 17, 11, 10, 20), m, in_halo=halo)
    assert_close(got, want, m)


@settings(max_examples=30)
@given(
    case=st.tuples(*[st.integers(1, n) for n in (2, 35, 20, 20, 40)]),
    pad=st.tuples(*[st.integers(0, 5)] * 4),
    halo=st.tuples(*[st.integers(0, 5)] * 4),
    dilation=st.sampled_from([(1, 1), (1, 1), (2, 2), (1, 3), (4, 2), (6, 6)]),
    m=st.sampled_from([2, 4]),
    target=st.sampled_from(TARGETS),
)
def test_winograd_of_any_shape_padding_halo_and_dilation(case, pad, halo, dilation, m, target):
    if case[2] + pad[0] + pad[2] <= 2 * dilation[0] or case[3] + pad[1] + pad[3] <= 2 * dilation[1]:
        return
    got, want = run(case, m, target, pad=pad, in_halo=halo, dilation=dilation)
    assert_close(got, want, m)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("dilation", [(2, 2), (3, 5), (12, 12)], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_winograd_with_dilation(case, dilation, m, target):
    pad = (*dilation, *dilation)
    for halo in (pad, (0, 0, 0, 0)):
        got, want = run(case, m, target, pad=pad, in_halo=halo, dilation=dilation, activation=RELU, residual=True)
        assert_close(got, want, m)


@pytest.mark.parametrize("m", [2, 4])
def test_winograd_in_several_blocks_of_tiles(m):
    got, want = run((1, 96, 100, 100, 160), m, residual=True)
    assert_close(got, want, m)


@pytest.mark.parametrize("order", ORDERS)
def test_winograd_does_not_depend_on_the_order_of_tasks(order):
    first, _ = run(CASES[1], 4)
    other, _ = run(CASES[1], 4, order=order)
    np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("m", [2, 4])
def test_matrices_compute_a_correlation(m):
    at, g, bt = winograd_matrices(m)
    rng = np.random.default_rng(1)
    d, f = rng.standard_normal(m + 2), rng.standard_normal(3)
    assert_near(at @ ((g @ f) * (bt @ d)), np.correlate(d, f), "float64 formulas near zero")


@pytest.mark.parametrize("m", [2, 4])
def test_error_of_winograd_on_a_wide_layer(m):
    got, want = run((1, 256, 14, 14, 128), m)
    error = np.abs(got - want)
    assert error.max() <= ERROR[m] * want.std()
    assert np.sqrt((error**2).mean()) <= ERROR[m] / 5 * want.std()


def test_winograd_refuses_other_filters():
    with pytest.raises(ValueError, match="3 x 3"):
        Winograd(ConvShape(16, 8, 8, 16, host_target(), Window((3, 3), (2, 2))), 1, 2)
