"""Sums of products of any views against NumPy: kinds of axes, copies of what does not merge, pieces, workspaces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.gemm import contraction
from cgraph.kernels.gemm.contraction import AxisKinds, Contraction, is_even, merge_axes, slice_axis
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import host_target
from tests.support.images import workspace
from tests.support.kernels import run_calls, view_of

TARGET = host_target()


def plan_of(x, y, axes, out=None):
    sizes = [n for i, n in enumerate(x.shape) if i not in axes]
    out = np.full(sizes, np.nan, x.dtype) if out is None else out
    return Contraction(TARGET, view_of(out), view_of(x), view_of(y), tuple(axes)), out


def check(x, y, axes, out=None):
    """The sum is exact, in a workspace as large as promised and full of NaN; a smaller one is refused."""
    plan, out = plan_of(x, y, axes, out)
    room = workspace(plan.nbytes)
    run_calls(plan.calls(room), TARGET)
    np.testing.assert_array_equal(out, (x * y).sum(tuple(axes)))
    if plan.nbytes:
        with pytest.raises(ValueError, match="the workspace has"):
            plan.calls(workspace(plan.nbytes - 1))
    return plan


def whole(seed, *shape, dtype="f4"):
    """Small whole numbers, whose sums of products are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


@st.composite
def cases(draw):
    """Two views of one shape, each constant along some axes, with their axes in some order in memory."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    sides = []
    for seed in range(2):
        own = [n if draw(st.booleans()) else 1 for n in shape]
        order = draw(st.permutations(range(len(shape))))
        x = whole(seed, *(own[i] for i in order)).transpose(np.argsort(order))
        x = x[tuple(slice(None, None, draw(st.sampled_from([1, 1, -1]))) for _ in shape)]
        sides.append(np.broadcast_to(x, shape))
    axes = [i for i in range(len(shape)) if draw(st.booleans())]
    order = draw(st.permutations(range(len(shape) - len(axes))))
    return *sides, axes, order


@settings(max_examples=80)
@given(cases(), st.sampled_from([1, 64, 8 << 20]))
def test_any_views_in_pieces_of_any_size(case, most):
    x, y, axes, order = case
    sizes = [n for i, n in enumerate(x.shape) if i not in axes]
    out = np.full([sizes[i] for i in order], np.nan, "f4").transpose(np.argsort(order))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contraction, "MOST_COPIED", most)
        check(x, y, axes, out)


def spread(x, *axes):
    """The same numbers, repeated along these axes."""
    shape = list(x.shape)
    for axis, n in axes:
        shape[axis] = n
    return np.broadcast_to(x, shape)


def test_axes_are_summed_of_one_side_or_of_both():
    """[batch, m, k, n]: `x` repeats along m, `y` along n."""
    x, y = spread(whole(0, 3, 1, 5, 6), (1, 4)), spread(whole(1, 3, 4, 5, 1), (3, 6))
    plan, _ = plan_of(x, y, (2,))
    assert plan.sides == AxisKinds((2,), (1,), (3,), (0,)) and plan.result_axes == (0, 1, 3)
    plan = check(y, x, (2,))
    assert plan.sides == AxisKinds((2,), (3,), (1,), (0,))


def test_an_axis_of_one_element_belongs_to_both_sides():
    plan, _ = plan_of(whole(0, 1, 5, 4), whole(1, 1, 5, 4), (1,))
    assert plan.sides == AxisKinds((1,), (), (), (0, 2))


def test_rows_of_the_result_that_do_not_merge_are_a_batch():
    """Of two axes of one side only the last is even in a result whose rows are apart."""
    x, y = spread(whole(0, 3, 4, 5, 1), (3, 6)), spread(whole(1, 1, 1, 5, 6), (0, 3), (1, 4))
    assert check(x, y, (2,)).sides == AxisKinds((2,), (3,), (0, 1), ())
    out = np.full((3, 8, 6), np.nan, "f4")[:, ::2]
    assert check(x, y, (2,), out).sides == AxisKinds((2,), (3,), (1,), (0,)) or out.strides[0] == 4 * out.strides[1]
    out = np.full((3, 9, 6), np.nan, "f4")[:, :4]
    assert check(x, y, (2,), out).sides == AxisKinds((2,), (3,), (1,), (0,))


def test_what_does_not_merge_is_copied_and_nothing_else():
    """Windows of an image, [pixels, taps, filters]: the copy has all pixels and taps, once."""
    image, filters = whole(0, 20), whole(1, 3, 7)
    windows = np.lib.stride_tricks.sliding_window_view(image, 3)  # [18, 3]
    x, y = spread(windows[:, :, None], (2, 7)), spread(filters[None], (0, 18))
    assert check(x, y, (1,)).copied == (0, 0)  # one axis of each kind is even
    plane = whole(2, 8, 9)
    windows = np.lib.stride_tricks.sliding_window_view(plane, (2, 3))  # [7, 7, 2, 3]
    x, y = spread(windows[..., None], (4, 5)), spread(whole(3, 1, 1, 2, 3, 5), (0, 7), (1, 7))
    plan = check(x, y, (2, 3))
    assert plan.copied == (1216, 0)  # 7 * 7 * 2 * 3 * 4 bytes up to whole lines
    assert check(y, x, (2, 3)).copied == (0, 1216)


def large(monkeypatch, most):
    monkeypatch.setattr(contraction, "MOST_COPIED", most)


def windows_of(n, c, size):
    planes = whole(0, n, c, size, size)
    seen = np.lib.stride_tricks.sliding_window_view(planes, (2, 2), (2, 3))[..., None]  # n, c, p, q, r, s, 1
    return spread(seen, (6, 3)), spread(whole(1, 1, c, 1, 1, 2, 2, 3), (0, n), (2, size - 1), (3, size - 1))


def test_a_large_batch_is_copied_in_pieces_of_its_first_axis(monkeypatch):
    """Filters of their own for each image."""
    x, _ = windows_of(5, 2, 12)
    y = spread(whole(1, 5, 2, 1, 1, 2, 2, 3), (2, 11), (3, 11))
    one = check(x, y, (1, 4, 5))
    whole_nbytes = one.nbytes
    assert one.pieces == 1 and one.cut_axis is None
    large(monkeypatch, sum(one.copied) // 3)
    cut = check(x, y, (1, 4, 5))
    assert cut.cut_axis == 0 and 3 <= cut.pieces <= 4 and cut.nbytes < whole_nbytes


def test_a_long_sum_is_added_up_from_parts(monkeypatch):
    """No axis of the result has both sides; the first summed one with more than one element is cut."""
    x, y = windows_of(1, 6, 3)
    x, y = x[0], y[0]  # c, p, q, r, s, 1
    one = check(x, y, (0, 3, 4))
    large(monkeypatch, sum(one.copied) // 4)
    cut = check(x, y, (0, 3, 4))
    assert cut.pieces > 1 and cut.cut_axis == 0
    np.testing.assert_array_equal(cut.pieces, min(6, -(-sum(one.copied) // contraction.MOST_COPIED)))


def test_a_piece_is_no_smaller_than_one_element_of_its_axis(monkeypatch):
    large(monkeypatch, 1)
    x, y = windows_of(2, 3, 3)
    assert check(x, y, (1, 4, 5)).pieces <= 7


@pytest.mark.parametrize("dtype", ["f8", "i4", "i8"])
def test_other_dtypes(dtype):
    x, y = (np.moveaxis(whole(i, 3, 4, 5, 2, dtype=dtype), i, 0) for i in (1, 2))
    x, y = x[:2, :2, :2], y[:2, :2, :2]
    out = np.zeros((2, 2), dtype)
    check(x, y, (0, 2), out)


def test_empty_views_need_no_workspace():
    plan, _ = plan_of(np.zeros((3, 0, 2), "f4"), np.zeros((3, 0, 2), "f4"), (1,))
    assert plan.is_empty and plan.nbytes == 0


def test_axes_merge_and_slices_begin_where_they_are_said_to():
    view = view_of(np.zeros((2, 3, 4, 5), "f4"))
    assert is_even(view, (2, 3)) and is_even(view, (1,)) and is_even(view, ()) and not is_even(view, (1, 3))
    matrix = merge_axes(view, (2, 3), (1,), (0,))
    assert (matrix.shape, matrix.strides) == ((2, 20, 3), (240, 4, 80))
    assert merge_axes(view, (), (0, 1), (2, 3)).shape == (4, 5, 1, 6)
    part = slice_axis(view, 1, 1, 3)
    assert part.shape == (2, 2, 4, 5) and part.at.offset == view.at.offset + 80 and part.strides == view.strides
    assert isinstance(part.at, Pointer) and part.at.base is view.at.base


@pytest.mark.parametrize("more, pieces", [(0, 1), (-1, 2)])
def test_copies_that_just_fit_are_made_at_once(more, pieces, monkeypatch):
    x, y = windows_of(3, 2, 12)
    one, _ = plan_of(x, y, (1, 4, 5))
    large(monkeypatch, sum(one.copied) + more)
    cut = check(x, y, (1, 4, 5))
    assert cut.pieces == pieces and (cut.cut_axis is None) == (pieces == 1)


def test_axes_of_one_element_and_those_along_which_nothing_varies_are_not_cut(monkeypatch):
    """The first axis of the result that can be cut: one of both sides or of `y` alone, whose rows lie apart."""
    large(monkeypatch, 1)
    x, y = windows_of(1, 2, 5)  # n, c, p, q, r, s, k
    assert check(x, y, (0, 1, 4, 5)).cut_axis == check(x, y, (1, 4, 5)).cut_axis == 1
    x, y = windows_of(3, 2, 5)
    assert check(x, y, (0, 1, 4, 5)).cut_axis == 0 and check(x, y, (1, 4, 5)).cut_axis == 1
    out = np.full((3, 5, 4, 3), np.nan, "f4")[:, :4].transpose(0, 2, 1, 3)
    plane = whole(0, 3, 4, 4, 2, 8)[..., :6:2]  # summed: 2 and 3, which do not merge
    x = np.broadcast_to(plane, (3, 4, 4, 2, 3))[..., None]
    y = spread(whole(1, 1, 1, 1, 2, 3, 3), (0, 3), (1, 4), (2, 4))
    plan = check(y, spread(x, (5, 3)), (3, 4), out)
    assert plan.cut_axis == 0 and not plan.x.strides[0] and plan.y.strides[0] and plan.pieces == 3


def test_partial_sums_of_many_pieces_are_added_in_parts(monkeypatch):
    """More of them than a task adds: they need a workspace of their own."""
    k, m, n = 130, 16, 32
    memory = whole(0, k, 3, m + 1)[:, :2, :m]  # of which k and 2 do not merge
    x = spread(np.moveaxis(memory, 2, 1)[..., None], (3, n))  # k, m, 2, n
    y = spread(whole(1, k, 2, n)[:, None], (1, m))
    room = contraction.reduce_nbytes("sum", "f4", (k, m, n), (0,))
    large(monkeypatch, 1)
    plan = check(x[:, ::-1], y[:, ::-1], (0, 2))
    assert room > 0 and plan.cut_axis == 0 and plan.pieces == k
    parts = -(-k * m * n * 4 // 64) * 64
    assert plan.nbytes >= parts + room
