"""Transposed convolution against NumPy in float64: its geometry, its phases, its bands of rows, its kernel."""

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


def run(case, target="host", order="all", dtype="f4", by_lanes=False):
    return transposed(case, target_named(target), order, dtype, by_lanes=by_lanes)


def transposed(case, target, order="all", dtype="f4", run=run_calls, by_lanes=False):
    n, c, h, w, k, window, more, groups = case
    rng = np.random.default_rng(1)
    shape = TransposedShape(c, h, w, k, target, window, more, groups, dtype, by_lanes)
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


@pytest.mark.parametrize("wrong", ["rows of the result", "columns of the image", "number of images", "residual"])
def test_transposed_conv_refuses_values_of_other_shapes(wrong):
    shape = TransposedShape(16, 4, 5, 16, host_target())
    images, results, residual = [1, 16, 4, 5], [1, 16, 4, 5], None
    if wrong == "residual":
        residual = laned(np.zeros((1, 16, 4, 5), "f4"), shape.lanes)
    else:
        side, axis = {"rows": (results, 2), "columns": (images, 3), "number": (images, 0)}[wrong.split()[0]]
        side[axis] += 1
    x, out = (empty_laned(tuple(size), shape.lanes) for size in (images, results))
    with pytest.raises(ValueError, match="adds no residual" if residual else "are not those of"):
        conv_transpose_calls(shape, out, x, Pointer(np.zeros(256, "f4")), Epilogue(residual=residual))


def geometry(h, w, window, more=(0, 0)):
    return TransposedShape(1, h, w, 1, host_target(), window, more)


def test_the_size_of_the_result_is_that_of_onnx():
    """ONNX: stride * (input - 1) + output_padding + (kernel - 1) * dilation + 1 - pads, along each axis."""
    uneven = Window((3, 2), (2, 3), (1, 0, 2, 1), (2, 1))
    assert geometry(5, 7, uneven, (1, 2)).result == (2 * 4 + 1 + 2 * 2 + 1 - 1 - 2, 3 * 6 + 2 + 1 + 1 - 1)
    assert geometry(1, 1, Window((2, 2), pad=(1, 3, 1, 0))).result == (0, 0)


def test_which_taps_meet_which_phase():
    shape = geometry(4, 4, Window((3, 2), (2, 3), (1, 1, 0, 0), (1, 2)))
    assert [shape.taps(0, phase) for phase in range(2)] == [((1, 0),), ((0, 1), (2, 0))]
    assert [shape.taps(1, phase) for phase in range(3)] == [(), ((1, 0),), ((0, 1),)]


axes = st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.integers(1, 3))


def rows_read(shape, axis):
    """The rows (or columns) of the images by each row of the result: those that a tap scatters to it."""
    stride, pad, dilation = shape.window.stride[axis], shape.window.pad[axis], shape.window.dilation[axis]
    return [
        [(row + pad - tap * dilation) // stride for tap in range(shape.window.kernel[axis])
         if (row + pad - tap * dilation) % stride == 0]
        for row in range(shape.result[axis])
    ]  # fmt: skip


def drawn(down, across, more=(0, 0)):
    (h, r, a, top, tall), (w, s, b, left, wide) = down, across
    return geometry(h, w, Window((r, s), (a, b), (top, left, top // 2, left), (tall, wide)), more)


@given(axes, axes, st.integers(0, 2))
def test_the_halo_is_what_taps_read_beyond_the_images(down, across, more):
    shape = drawn(down, across, (more, 0))
    want = []
    for axis, size in ((0, shape.h), (1, shape.w)):
        places = [at for row in rows_read(shape, axis) for at in row]
        want.append((max(0, -min(places, default=0)), max(0, max(places, default=0) + 1 - size)))
    result = shape.result
    if min(result):
        assert shape.halo() == (want[0][0], want[1][0], want[0][1], want[1][1])


@given(axes, axes)
def test_phases_write_every_pixel_once_and_their_weights_follow_one_another(down, across):
    shape = drawn(down, across)
    written, end = np.zeros(shape.result, int), 0
    for phase in shape.phases():
        assert phase.start == end
        end += phase.shape.weights_nbytes
        part = written[phase.row :: shape.window.stride[0], phase.column :: shape.window.stride[1]]
        assert part.shape == (phase.grid.rows, phase.grid.columns)
        part += 1
    assert (written == 1).all() and shape.weights_nbytes == end


@given(axes, axes, st.integers(0, 3), st.integers(1, 9))
def test_bands_of_the_result_are_those_of_the_whole(down, across, band, count):
    """A band of the result from the rows of the images that `reach` names, of which some lie beyond them."""
    shape = drawn(down, across, (1, 1))
    stride, (low, high), (rows, _) = shape.window.stride[0], shape.reach, shape.result
    first = band * stride
    count = min(count, rows - first)
    if count < 1:
        return
    rng = np.random.default_rng(0)
    x, filters = rng.integers(-3, 4, (1, 1, shape.h, shape.w)), rng.integers(-3, 4, (1, 1, *shape.window.kernel))
    begin, end = band + low, (first + count - 1) // stride + high + 1
    around = np.pad(x, ((0, 0), (0, 0), (max(0, -begin), max(0, end - shape.h)), (0, 0)))
    part = around[:, :, begin + max(0, -begin) :][:, :, : end - begin]
    strip = shape.strip(first, count, begin, end - begin)
    assert strip.result == (count, shape.result[1])
    for own, whole in zip(strip.phases(), shape.phases()):  # the same packed weights
        assert own.start == whole.start and [r for r, _ in own.row_taps] == [r for r, _ in whole.row_taps]
    want = transposed64(x, filters, shape)[:, :, first : first + count]
    np.testing.assert_array_equal(transposed64(part, filters, strip), want)


def test_a_row_reaches_as_far_as_its_taps():
    assert geometry(4, 4, Window((3, 1), (2, 1), (1, 0, 1, 0))).reach == (0, 1)
    assert geometry(4, 4, Window((3, 1), dilation=(2, 1))).reach == (-4, 0)


def test_a_scale_is_that_of_the_results_channel():
    shape = TransposedShape(4, 3, 3, 6, host_target(), Window((2, 3), (2, 1)), groups=2)
    filters = np.random.default_rng(0).integers(-9, 9, (4, 3, 2, 3)).astype("f4")
    scale = np.array([1, 2, 4, 8, 16, 32], "f4")
    by_group = filters.reshape(2, 2, 3, 2, 3) * scale.reshape(2, 1, 3, 1, 1)
    want = pack_transposed(shape, by_group.reshape(filters.shape))
    np.testing.assert_array_equal(pack_transposed(shape, filters.copy(), scale), want)
    assert (
        pack_transposed(
            TransposedShape(1, 1, 1, 1, host_target(), Window(pad=(1, 0, 1, 0))), filters[:1, :1, :1, :1]
        ).size
        == 0
    )
