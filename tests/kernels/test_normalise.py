"""Layer, group, instance and local response normalisation agree with their formulas in float64."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer, contiguous
from cgraph.kernels.normalise.calls import group_norm_calls, layer_norm_calls, local_response_calls, rms_norm_calls
from cgraph.kernels.target import host_target, target_named
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near

every_target = pytest.mark.parametrize("target", TARGETS)
every_dtype = pytest.mark.parametrize("dtype", ["f4", "f8"])


def close(got, want):
    assert_near(got, want, "normalisation")


def normalised(x, axes, epsilon=1e-5):
    x = x.astype("f8")
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon)


@every_target
@every_dtype
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape, axes", [((5, 300), 1), ((2, 3, 7, 5), 2), ((1, 40_000), 1), ((4000, 13), 1)])
def test_layer_norm(target, dtype, order, shape, axes):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) + 3).astype(dtype)
    scale, shift = rng.standard_normal((2, *shape[-axes:])).astype(dtype)
    out = np.full(shape, np.nan, dtype)
    run_calls(
        layer_norm_calls(host_target(), view_of(out), view_of(x), view_of(scale), view_of(shift), axes, 1e-5),
        target_named(target),
        order,
    )
    close(out, normalised(x, tuple(range(-axes, 0))) * scale + shift)


@every_target
@every_dtype
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(target, dtype, groups):
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((3, 6, 5, 7)) * 2 - 1).astype(dtype)
    scale, shift = rng.standard_normal((2, 6)).astype(dtype)
    out = np.full(x.shape, np.nan, dtype)
    run_calls(
        group_norm_calls(host_target(), view_of(out), view_of(x), view_of(scale), view_of(shift), groups, 1e-5),
        target_named(target),
    )
    want = normalised(x.reshape(3, groups, -1), 2).reshape(x.shape) * scale[:, None, None] + shift[:, None, None]
    close(out, want)


@every_target
@pytest.mark.parametrize("shape, groups", [((3, 1, 5, 7), 1), ((2, 4, 1, 1), 1), ((2, 4, 1, 1), 4), ((1, 1, 1, 1), 1)])
def test_group_norm_of_one_channel_or_one_pixel(target, shape, groups):
    """A row with one scale is not one with a scale for each element, though both are a single segment."""
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(shape) * 2 - 1).astype("f4")
    scale, shift = rng.standard_normal((2, shape[1])).astype("f4")
    out = np.full(x.shape, np.nan, "f4")
    views = (view_of(v) for v in (out, x, scale, shift))
    run_calls(group_norm_calls(host_target(), *views, groups, 1e-5), target_named(target))
    want = normalised(x.reshape(shape[0], groups, -1), 2).reshape(shape) * scale[:, None, None] + shift[:, None, None]
    close(out, want)


@every_target
def test_no_scale_and_in_place(target):
    x = np.random.default_rng(2).standard_normal((4, 50)).astype("f4")
    want = normalised(x, 1)
    run_calls(layer_norm_calls(host_target(), view_of(x), view_of(x), None, None, 1, 1e-5), target_named(target))
    close(x, want)


@every_target
@every_dtype
@pytest.mark.parametrize("size, beta", [(5, 0.75), (2, 0.5), (1, 1.0)])
def test_local_response(target, dtype, size, beta):
    x = np.random.default_rng(3).standard_normal((2, 7, 5, 9)).astype(dtype)
    squares = np.zeros(x.shape)
    for c in range(7):
        low, high = max(0, c - (size - 1) // 2), min(6, c + -(-(size - 1) // 2))
        squares[:, c] = (x[:, low : high + 1].astype("f8") ** 2).sum(1)
    out = np.full(x.shape, np.nan, dtype)
    calls = local_response_calls(target_named(target), view_of(out), view_of(x), size, 0.3, beta, 1.5)
    run_calls(calls, target_named(target))
    close(out, x / (1.5 + 0.3 / size * squares) ** beta)


def test_views_with_gaps_are_refused():
    x, out = np.empty((3, 8))[:, ::2], np.empty((3, 4))
    with pytest.raises(ValueError, match="contiguous"):
        layer_norm_calls(host_target(), view_of(out), view_of(x), None, None, 1, 1e-5)


@every_target
@every_dtype
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape, axes", [((5, 300), 1), ((2, 3, 7, 5), 2), ((4000, 13), 1)])
def test_rms_norm(target, dtype, order, shape, axes):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) + 3).astype(dtype)
    scale = rng.standard_normal(shape[-axes:]).astype(dtype)
    out = np.full(shape, np.nan, dtype)
    calls = rms_norm_calls(host_target(), view_of(out), view_of(x), view_of(scale), axes, 1e-5)
    run_calls(calls, target_named(target), order)
    squares = np.square(x.astype("f8")).mean(tuple(range(-axes, 0)), keepdims=True)
    close(out, x / np.sqrt(squares + 1e-5) * scale)


@every_target
@every_dtype
@pytest.mark.parametrize("scales", ["element", "none", "root"])
@pytest.mark.parametrize("length", [4, 7, 8, 9, 17, 48, 128, 129, 197, 256])
def test_short_rows_of_every_length_agree_with_the_formula(target, dtype, scales, length):
    """Seven rows are a block and single rows; `out` is `x`."""
    rng = np.random.default_rng(4)
    x = (rng.standard_normal((7, length)) + 3).astype(dtype)
    scale, shift = rng.standard_normal((2, length)).astype(dtype)
    want = normalised(x, 1)
    if scales == "root":
        want = x / np.sqrt((x.astype("f8") ** 2).mean(1, keepdims=True) + 1e-5)
    want = want if scales == "none" else want * scale + (shift if scales == "element" else 0)
    run_short(target, scales, x, scale, shift)
    close(x, want)


@every_target
@pytest.mark.parametrize("scales", ["element", "root"])
@pytest.mark.parametrize("length", [17, 129, 200])
def test_a_short_row_has_the_same_bits_alone_and_in_a_block(target, scales, length):
    rng = np.random.default_rng(5)
    x, (scale, shift) = rng.standard_normal((9, length)).astype("f4"), rng.standard_normal((2, length)).astype("f4")
    rows = [x[i : i + 1].copy() for i in range(9)]
    for part in (x, *rows):
        run_short(target, scales, part, scale, shift)
    np.testing.assert_array_equal(np.concatenate(rows), x)


def run_short(target, scales, x, scale, shift):
    """Normalise `x` in place."""
    own, (view, *factors) = target_named(target), map(view_of, (x, scale, shift))
    if scales == "root":
        calls = rms_norm_calls(own, view, view, factors[0], 1, 1e-5)
    else:
        calls = layer_norm_calls(own, view, view, *(factors if scales == "element" else (None, None)), 1, 1e-5)
    run_calls(calls, own, "single")


def views(*shapes, dtype="f4"):
    arrays = [None if shape is None else np.zeros(shape, dtype) for shape in shapes]
    return [None if x is None else contiguous(Pointer(x), x.shape, dtype) for x in arrays]


def layer(*shapes, axes=1):
    return layer_norm_calls(host_target(), *views(*shapes), axes, 1e-5)


def grouped(groups, *shapes):
    return group_norm_calls(host_target(), *views(*shapes), groups, 1e-5)


def mixed(first, second):
    """Four views, of which some have another dtype."""
    return layer_norm_calls(host_target(), *views(*first), *views(*second, dtype="f8"), 1, 1e-5)


GAPS = view_of(np.zeros((3, 8), "f4")[:, ::2])
IMAGES = (2, 4, 3), (2, 4, 3)
REFUSED = {
    "a scale without a shift": (lambda: layer((3, 4), (3, 4), 4, None), "come together"),
    "a shift without a scale": (lambda: layer((3, 4), (3, 4), None, 4), "come together"),
    "a longer scale": (lambda: layer((3, 4), (3, 4), 5, 4), r"have 4 elements, not \[5, 4\]"),
    "a shorter shift": (lambda: layer((3, 4), (3, 4), 4, 3), r"have 4 elements, not \[4, 3\]"),
    "a scale of one axis for two": (lambda: layer((3, 4), (3, 4), 4, 4, axes=2), "have 12 elements"),
    "a scale of root means": (
        lambda: rms_norm_calls(host_target(), *views((3, 4), (3, 4), 3), 1, 1e-5),
        "have 4 elements",
    ),
    "a scale of groups": (lambda: grouped(2, *IMAGES, 3, 4), "have 4 elements"),
    "a shift of groups": (lambda: grouped(2, *IMAGES, 4, 2), "have 4 elements"),
    "groups": (lambda: grouped(3, *IMAGES, 4, 4), "3 groups do not divide 4 channels"),
    "another shape": (lambda: layer((4, 3), (3, 4), None, None), "out shaped like x"),
    "an operand of another dtype": (lambda: mixed([(3, 4)], [(3, 4), None, None]), "of one dtype"),
    "a shift of another dtype": (lambda: mixed([(3, 4), (3, 4), 4], [4]), "of one dtype"),
    "a result with gaps": (
        lambda: layer_norm_calls(host_target(), GAPS, *views((3, 4), None, None), 1, 1e-5),
        "takes contiguous views",
    ),
    "responses of another shape": (
        lambda: local_response_calls(host_target(), *views((1, 4, 3), (1, 4, 2)), 3, 1.0, 1.0, 1.0),
        "out shaped like x",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_views_that_do_not_fit_are_refused(name):
    act, text = REFUSED[name]
    with pytest.raises(ValueError, match=text):
        act()


def test_no_elements_need_no_calls():
    empty = (0, 4), (0, 4), 4, 4
    assert layer(*empty) == [] == rms_norm_calls(host_target(), *views(*empty[:3]), 1, 1e-5)
    assert grouped(2, (2, 4, 0), (2, 4, 0), 4, 4) == []
    assert local_response_calls(host_target(), *views((2, 4, 0), (2, 4, 0)), 3, 1.0, 0.5, 1.0) == []


@every_target
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("channels, size", [(700, 5), (130, 4), (9000, 3)])
def test_responses_of_many_channels_in_blocks_of_positions(channels, size, order, target):
    """A block is at least one vector, however many channels there are; two images of several blocks."""
    x = np.random.default_rng(6).standard_normal((2, channels, 7, 11 if channels < 9000 else 3)).astype("f4")
    before = (size - 1) // 2
    padded = np.pad(x.astype("f8") ** 2, ((0, 0), (before, size - 1 - before), (0, 0), (0, 0)))
    squares = np.lib.stride_tricks.sliding_window_view(padded, size, 1).sum(-1)
    out = np.full(x.shape, np.nan, "f4")
    calls = local_response_calls(target_named(target), view_of(out), view_of(x), size, 0.3, 0.75, 1.5)
    run_calls(calls, target_named(target), order)
    close(out, x / (1.5 + 0.3 / size * squares) ** 0.75)


@pytest.mark.parametrize("groups, scales, lanes", [(1, "segment", 0), (3, "segment", 0)])
def test_the_way_is_that_of_the_rows(groups, scales, lanes):
    """Short rows with a number for each element are normalised together; others one by one."""
    made = group_norm_calls(host_target(), *views((2, 6, 5), (2, 6, 5), 6, 6), groups, 1e-5)
    assert [call.kernel.params for call in made] == [("f4", scales)]
    assert [call.kernel.family for call in layer((3, 40), (3, 40), 40, 40)] == ["normalise.block.rows"]
    assert [call.kernel.family for call in layer((3, 1), (3, 1), 1, 1)] == ["normalise.rows"]
    most = 16 * 2 * host_target().lanes_of("f4")  # a chain of vectors of two registers
    for length, family in ((most, "normalise.block.rows"), (most + 1, "normalise.rows")):
        assert [call.kernel.family for call in layer((3, length), (3, length), None, None)] == [family]


@pytest.mark.parametrize(
    ("rows", "length", "tasks"), [(1, 40, 1), (409, 40, 1), (410, 40, 2), (818, 40, 2), (819, 40, 3), (3, 40_000, 3)]
)
def test_a_task_has_rows_of_half_as_many_elements_as_those_of_other_kernels(rows, length, tasks):
    """409 rows of 40 are 16360, the most up to 16384; a row at least. Short rows and long ones alike."""
    for factors in ((None, None), (length, length)):
        [call] = layer((rows, length), (rows, length), *factors)
        assert call.tasks == tasks
    [call] = rms_norm_calls(host_target(), *views((rows, length), (rows, length), length), 1, 1e-5)
    assert call.tasks == tasks
