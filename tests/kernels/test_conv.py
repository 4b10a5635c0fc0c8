"""Direct convolution against NumPy in float64."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.activation.calls import NONE, RELU, RELU6, clip, leaky
from cgraph.kernels.conv import emit
from cgraph.kernels.conv.calls import conv_calls, conv_nbytes, conv_overwrites_residual
from cgraph.kernels.conv.clipped import halo_read
from cgraph.kernels.conv.epilogue import Epilogue
from cgraph.kernels.interpret.atomics import call
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.llvm.build import INDEX
from cgraph.kernels.target import target_named
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.pack import pack_bias, pack_conv
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.support.emitted import compiled
from tests.support.images import (
    activated,
    assert_zero_frame,
    conv64,
    empty_laned,
    laned,
    plain,
    workspace,
)
from tests.support.kernels import KERNEL, ORDERS, TARGETS, argument, run_calls, view_of
from tests.support.tolerance import assert_near

pytestmark = pytest.mark.usefixtures("cuts")

PAGE = 4096
SAME = Window((3, 3), pad=(1, 1, 1, 1))
# n, c, h, w, k, window, groups
CASES = {
    "one pixel": (1, 3, 1, 1, 1, Window(), 1),
    "point, few pixels, many channels": (2, 40, 1, 2, 96, Window(), 1),
    "point, flattened": (1, 32, 7, 9, 64, Window(), 1),
    "point with stride": (2, 21, 9, 7, 24, Window(stride=(2, 2)), 1),
    "3x3, odd channels": (1, 21, 13, 17, 85, SAME, 1),
    "3x3, width 65": (1, 5, 3, 65, 18, SAME, 1),
    "3x3 with stride and uneven padding": (1, 24, 11, 12, 33, Window((3, 3), (2, 2), (0, 0, 1, 1)), 1),
    "5x3, dilated": (1, 17, 14, 15, 16, Window((5, 3), (1, 2), (4, 3, 4, 3), (2, 3)), 1),
    "one row": (1, 20, 1, 50, 48, Window((1, 5), (1, 2), (0, 2, 0, 2)), 1),
    "one column": (2, 20, 50, 1, 48, Window((5, 1), (2, 1), (2, 0, 2, 0)), 1),
    "a window as wide as the image": (1, 20, 30, 6, 40, Window((3, 6), (1, 1), (1, 0, 1, 0)), 1),
    "one column of groups": (1, 48, 20, 1, 96, Window((3, 1), pad=(1, 0, 1, 0)), 3),
    "groups of whole blocks": (1, 64, 6, 7, 96, SAME, 2),
    "groups of 4 to 6 channels": (1, 24, 5, 6, 36, SAME, 6),
    "groups that straddle blocks": (2, 15, 5, 6, 50, SAME, 5),
    "a channel for each group": (1, 19, 6, 6, 38, SAME, 19),
}


def draw_conv(rng, case, target, dtype="f4", is_plain=False):
    n, c, h, w, k, window, groups = case
    shape = ConvShape(c, h, w, k, target, window, groups, is_plain, dtype)
    x = rng.standard_normal((n, c, h, w)).astype(dtype)
    filters = rng.standard_normal((k, c // groups, *window.kernel)).astype(dtype)
    bias = rng.standard_normal(k).astype(dtype)
    return shape, x, filters, bias


def check(
    rng, case, target, dtype="f4", is_plain=False, activation=RELU, order="all", out_halo=(0, 0, 0, 0), wide=0,
    run=run_calls, reads_halo=True, **fields,
):  # fmt: skip
    shape, x, filters, bias = draw_conv(rng, case, target, dtype, is_plain)
    shape = replace(shape, **fields)
    n, window = x.shape[0], shape.window
    want = conv64(x, filters, window, shape.groups) + bias[:, None, None]
    residual = rng.standard_normal(want.shape).astype(dtype)
    halo = tuple(v + wide for v in (window.halo(*x.shape[2:]) if reads_halo else halo_read(shape)))
    source = view_of(x) if is_plain else laned(x, shape.lanes, halo)
    out = empty_laned((n, shape.k, *shape.result), shape.lanes, out_halo, dtype)
    packed = pack_conv(shape, filters)
    assert packed.nbytes == shape.weights_nbytes
    lowered = conv_calls(
        shape, out, source, Pointer(packed),
        Epilogue(Pointer(pack_bias(shape, bias)), laned(residual, shape.lanes, (0, 1, 1, 2)), activation),
        workspace(conv_nbytes(shape, n)),
    )  # fmt: skip
    run(lowered.calls, target, order)
    assert_near(plain(out), activated(want + residual, activation), "convolution", filters[0].size)
    assert_zero_frame(out)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_conv_is_what_numpy_computes(case, target):
    check(np.random.default_rng(1), case, target_named(target), out_halo=(1, 2, 0, 1))


@pytest.mark.parametrize("case", list(CASES.values())[:8], ids=list(CASES)[:8])
def test_conv_reads_plain_images(case):
    check(np.random.default_rng(2), case, target_named("host"), is_plain=True)


@pytest.mark.parametrize("target", TARGETS)
def test_conv_in_float64(target):
    check(np.random.default_rng(3), CASES["3x3, odd channels"], target_named(target), "f8")


@pytest.mark.parametrize("activation", [NONE, RELU, RELU6, leaky(0.1), clip(-0.5, 0.25)], ids=str)
def test_conv_applies_activations(activation):
    check(np.random.default_rng(4), CASES["3x3, width 65"], target_named("host"), activation=activation)


@pytest.mark.parametrize("order", ORDERS)
def test_conv_does_not_depend_on_the_order_of_tasks(order):
    check(np.random.default_rng(5), CASES["point with stride"], target_named("host"), order=order)


@settings(max_examples=25)
@given(
    st.tuples(*[st.integers(1, n) for n in (2, 40, 20, 20, 40, 3, 3, 2, 2, 2)]), st.booleans(), st.sampled_from(TARGETS)
)
def test_conv_of_any_shape(sizes, is_plain, target):
    n, c, h, w, k, r, s, down, across, spread = sizes
    window = Window((r, s), (down, across), (r - 1, s // 2, 1, s), (1, spread))
    if min(window.result(h, w)) == 0:
        return
    check(np.random.default_rng(6), (n, c, h, w, k, window, 1), target_named(target), is_plain=is_plain, wide=1)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("residual_halo", [None, (1, 0, 2, 0), (0, 1, 0, 2)])
def test_a_column_has_the_bits_of_the_row(target, is_plain, residual_halo):
    """Also with a residual whose pixels are further apart, which no tile of the column takes together."""
    rng = np.random.default_rng(12)
    case = (2, 19, 23, 1, 53, Window((4, 1), (2, 1), (1, 0, 2, 0), (2, 1)), 1)
    shape, x, filters, bias = draw_conv(rng, case, target_named(target), is_plain=is_plain)
    row = replace(shape, h=1, w=shape.h, window=Window((1, 4), (1, 2), (0, 1, 0, 2), (1, 2)))
    beside = rng.standard_normal((2, shape.k, *shape.result)).astype("f4")
    results = []
    for layer, turn in ((shape, lambda v: v), (row, lambda v: np.ascontiguousarray(np.swapaxes(v, 2, 3)))):
        n, images = x.shape[0], turn(x)
        source = view_of(images) if is_plain else laned(images, layer.lanes, layer.window.halo(*images.shape[2:]))
        out = empty_laned((n, layer.k, *layer.result), layer.lanes, (0, 1, 0, 0))
        residual = None if residual_halo is None else laned(turn(beside), layer.lanes, residual_halo)
        packed = pack_conv(layer, turn(filters))
        epilogue = Epilogue(Pointer(pack_bias(layer, bias)), residual, RELU)
        room = workspace(conv_nbytes(layer, n))
        run_calls(conv_calls(layer, out, source, Pointer(packed), epilogue, room).calls, layer.target)
        assert_zero_frame(out)
        results.append(turn(plain(out)))
    np.testing.assert_array_equal(*results)


def test_a_tile_of_a_column_takes_as_many_pixels_as_one_of_a_row():
    target = target_named("host")
    column = ConvShape(32, 100, 1, 64, target, Window((5, 1)))
    row = replace(column, h=1, w=100, window=Window((1, 5)))
    assert column.is_column and not row.is_column
    assert column.vectors == row.vectors
    for shape, one in ((column, row), (replace(column, w=4, window=Window((5, 4))), row)):
        out, source = (
            empty_laned((1, 64, *shape.result), shape.lanes),
            empty_laned((1, 32, shape.h, shape.w), shape.lanes),
        )
        (call_,) = conv_calls(shape, out, source, Pointer(np.zeros(shape.weights_nbytes // 4, "f4"))).calls
        assert call_.tasks == tasks_of(one)


def tasks_of(shape):
    out, source = empty_laned((1, shape.k, *shape.result), shape.lanes), empty_laned((1, shape.c, 1, 100), shape.lanes)
    (call_,) = conv_calls(shape, out, source, Pointer(np.zeros(shape.weights_nbytes // 4, "f4"))).calls
    return call_.tasks


def test_conv_without_bias_or_residual():
    rng = np.random.default_rng(7)
    shape, x, filters, _ = draw_conv(rng, CASES["point, flattened"], target_named("host"))
    out = empty_laned((1, shape.k, *shape.result), shape.lanes)
    lowered = conv_calls(shape, out, laned(x, shape.lanes), Pointer(pack_conv(shape, filters)))
    run_calls(lowered.calls)
    assert_near(plain(out), conv64(x, filters, shape.window), "convolution", filters[0].size)


@pytest.mark.parametrize("has_residual", [False, True])
def test_conv_prefetches_near_its_arrays(has_residual, monkeypatch):
    """An address without a page costs a walk of the page tables at each prefetch."""
    rng, addresses = np.random.default_rng(9), []
    record = KERNEL(lambda address, *_: addresses.append(address or 0))
    callback = ctypes.cast(record, ctypes.c_void_p).value

    def recorded(k, at, **options):
        zero = k.const(0, "i8")
        call(k, k.const(callback, "i8"), k.wrap(k.b.ptrtoint(at.v, INDEX), "i8"), zero, zero)

    monkeypatch.setattr(emit, "prefetch", recorded)
    shape, x, filters, _ = draw_conv(rng, CASES["point, flattened"], target_named("host"))
    out, images = empty_laned((1, shape.k, *shape.result), shape.lanes), laned(x, shape.lanes)
    packed = pack_conv(shape, filters)
    residual = laned(rng.standard_normal((1, shape.k, *shape.result)).astype("f4"), shape.lanes)
    epilogue = Epilogue(residual=residual if has_residual else None)
    (lowered,) = conv_calls(shape, out, images, Pointer(packed), epilogue).calls
    memory, kernel = compiled(emit.tile, lowered.kernel, shape.target)
    kernel(np.array([argument(a) for a in lowered.args]).ctypes.data, 0, lowered.tasks)
    arrays = [images.at.base, out.at.base, residual.at.base, packed]
    ends = [(x.ctypes.data, x.ctypes.data + x.nbytes + PAGE) for x in arrays]
    assert memory.size and addresses
    assert all(any(first <= address < last for first, last in ends) for address in addresses)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("blocks", [5, 7, 13])
@pytest.mark.parametrize("order", ORDERS)
def test_narrow_panels_keep_every_bit(target, blocks, order):
    rng, results = np.random.default_rng(10), []
    k = blocks * target_named(target).channels_of("f4") - 3
    shape, x, filters, bias = draw_conv(rng, (2, 21, 6, 9, k, SAME, 1), target_named(target))
    residual = laned(rng.standard_normal((2, k, 6, 9)).astype("f4"), shape.lanes)
    for is_mixed in (False, True):
        layer = replace(shape, is_mixed=is_mixed)
        out = empty_laned((2, k, 6, 9), shape.lanes)
        source, packed = laned(x, shape.lanes, (1, 1, 1, 1)), pack_conv(layer, filters)
        assert packed.nbytes == layer.weights_nbytes == shape.weights_nbytes
        epilogue = Epilogue(Pointer(pack_bias(layer, bias)), residual, RELU)
        run_calls(conv_calls(layer, out, source, Pointer(packed), epilogue).calls, shape.target, order)
        results.append(plain(out))
    assert layer.narrow and layer.panels < shape.panels
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("target", TARGETS)
def test_conv_adds_to_its_own_bytes_where_every_pixel_is_written_once(target):
    rng = np.random.default_rng(8)
    pixels = draw_conv(rng, (1, 32, 14, 14, 32, Window(), 1), target_named(target))[0].pixels(196)
    shape, x, filters, _ = draw_conv(rng, (1, 32, 2, pixels, 32, Window(), 1), target_named(target))
    before = rng.standard_normal((1, 32, 2, pixels)).astype("f4")
    out = laned(before, shape.lanes)
    assert conv_overwrites_residual(shape, has_halo=False)
    packed = Pointer(pack_conv(shape, filters))
    run_calls(conv_calls(shape, out, laned(x, shape.lanes), packed, Epilogue(residual=out)).calls, shape.target)
    assert_near(plain(out), conv64(x, filters, shape.window) + before, "convolution", filters[0].size)


def test_conv_refuses_a_narrow_halo():
    shape, x, filters, _ = draw_conv(np.random.default_rng(9), CASES["3x3, odd channels"], target_named("host"))
    out = empty_laned((1, shape.k, *shape.result), shape.lanes)
    with pytest.raises(ValueError, match="halo"):
        conv_calls(shape, out, laned(x, shape.lanes, (1, 1, 1, 0)), Pointer(pack_conv(shape, filters)))


def test_conv_refuses_to_write_the_block_of_another_value():
    shape, x, filters, _ = draw_conv(np.random.default_rng(9), CASES["point with stride"], target_named("host"))
    out = empty_laned((2, 3 * shape.k, *shape.result), shape.lanes).part(0, shape.k - 1)
    with pytest.raises(ValueError, match="whole blocks"):
        conv_calls(shape, out, laned(x, shape.lanes), Pointer(pack_conv(shape, filters)))


def test_conv_writes_a_part_of_a_buffer():
    rng = np.random.default_rng(11)
    target = target_named("host")
    shape, x, filters, _ = draw_conv(rng, (2, 2 * target.lanes, 6, 5, target.lanes, Window(), 1), target)
    whole = laned(rng.standard_normal((2, 3 * target.lanes, 6, 5)).astype("f4"), target.lanes, (1, 1, 0, 0))
    before, out = plain(whole).copy(), whole.part(target.lanes, target.lanes)
    run_calls(conv_calls(shape, out, laned(x, shape.lanes), Pointer(pack_conv(shape, filters))).calls)
    assert_near(plain(out), conv64(x, filters, shape.window), "convolution", filters[0].size)
    np.testing.assert_array_equal(plain(whole)[:, : target.lanes], before[:, : target.lanes])
    np.testing.assert_array_equal(plain(whole)[:, 2 * target.lanes :], before[:, 2 * target.lanes :])


def test_conv_keeps_a_nan():
    shape, x, filters, _ = draw_conv(np.random.default_rng(10), CASES["point, flattened"], target_named("host"))
    x[0, 3, 2, 4] = np.nan
    out = empty_laned((1, shape.k, *shape.result), shape.lanes)
    lowered = conv_calls(
        shape, out, laned(x, shape.lanes), Pointer(pack_conv(shape, filters)), Epilogue(activation=clip(-1.0, 1.0))
    )
    run_calls(lowered.calls)
    assert (np.isnan(plain(out)).sum(axis=(2, 3)) == 1).all()
