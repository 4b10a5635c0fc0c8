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
from cgraph.kernels.winograd.calls import FEW_CHANNELS, Winograd, is_winograd, pack_winograd, winograd_calls
from cgraph.record import replace
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


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("residual", [False, True])
def test_winograd_without_a_bias(residual, m):
    n, c, h, w, k = 2, 21, 7, 9, 33
    rng, target = np.random.default_rng(0), host_target()
    shape = ConvShape(c, h, w, k, target, Window((3, 3), pad=(1, 1, 1, 1)))
    plan = Winograd(shape, n, m)
    x, filters = rng.standard_normal((n, c, h, w)).astype("f4"), rng.standard_normal((k, c, 3, 3)).astype("f4") / 14
    add = rng.standard_normal((n, k, h, w)).astype("f4")
    out, beside = empty_laned((n, k, h, w), shape.lanes), laned(add, shape.lanes, (0, 0, 1, 0)) if residual else None
    room, packed = workspace(plan.nbytes), Pointer(pack_winograd(plan, filters))
    lowered = winograd_calls(plan, out, laned(x, shape.lanes), packed, Epilogue(residual=beside), room)
    run_calls(lowered.calls)
    assert_zero_frame(out)
    assert_close(plain(out), conv64(x, filters, shape.window) + (add if residual else 0), m)


def test_sums_of_more_channels_than_a_chain_are_added_in_chains():
    """Of 16 products for few channels, 32 for more; all in a row where tiles have two pixels."""

    def chain(c, m):
        return Winograd(ConvShape(c, 14, 14, 64, host_target(), Window((3, 3), pad=(1, 1, 1, 1))), 1, m).chain

    assert [chain(c, 2) for c in (8, 500)] == [8, 500]
    assert [chain(c, 4) for c in (8, 16, 17, FEW_CHANNELS, FEW_CHANNELS + 1)] == [8, 16, 16, 16, 32]


def test_the_tiles_of_a_layer():
    """Of four by four pixels of each phase; the last ones reach beyond."""
    window = Window((3, 3), pad=(2, 3, 2, 3), dilation=(2, 3))
    plan = Winograd(ConvShape(8, 13, 17, 8, host_target(), window), 5, 4)
    assert plan.shape.result == (13, 17) and plan.dilation == (2, 3) and plan.is_dilated
    assert (plan.across, plan.per_phase, plan.per_image, plan.tiles) == (2, 4, 24, 120)
    plain_plan = Winograd(ConvShape(8, 13, 17, 8, host_target(), Window((3, 3), pad=(1, 1, 1, 1))), 5, 2)
    assert (plain_plan.across, plain_plan.per_image, plain_plan.is_dilated) == (9, 63, False)
    for each in (plan, plain_plan):
        assert each.v_step % (2 * each.shape.lanes) == each.shape.lanes == each.m_step % (2 * each.shape.lanes)
        assert each.v_step >= each.block * 8 and each.nbytes == each.v_nbytes + each.m_nbytes
        assert each.m_nbytes == each.points * each.m_step * 4 and each.v_nbytes % 64 == 0


@pytest.mark.parametrize(
    ("change", "is_one"),
    [({}, True), ({"window": Window((3, 3), (1, 2))}, False), ({"window": Window((3, 1))}, False),
     ({"window": Window((3, 3), dilation=(2, 2))}, True), ({"groups": 2}, False), ({"is_plain": True}, False)],
)  # fmt: skip
def test_filters_of_three_by_three_without_a_stride_are_winograds(change, is_one):
    assert is_winograd(replace(ConvShape(8, 13, 17, 8, host_target(), Window((3, 3))), **change)) == is_one


@pytest.mark.parametrize("images", [(2, 9, 7, 9), (3, 8, 7, 9), (2, 8, 6, 9), (2, 8, 7, 8)])
def test_images_that_do_not_fit_the_plan_are_refused(images):
    plan = Winograd(ConvShape(8, 7, 9, 8, host_target(), Window((3, 3), pad=(1, 1, 1, 1))), 2, 2)
    out, x = empty_laned((2, 8, 7, 9), plan.shape.lanes), empty_laned(images, plan.shape.lanes)
    with pytest.raises(ValueError, match="do not fit"):
        winograd_calls(plan, out, x, Pointer(None), workspace=workspace(plan.nbytes))
