"""Reading and writing at positions in blocks of threads: NumPy's results, updates in order, positions outside."""

import numpy as np
import pytest

from cgraph.kernels.index.calls import (
    ScatterRule,
    nonzero_calls,
    put_along_axis_calls,
    scatter_calls,
    scatter_nbytes,
    take_along_axis_calls,
    take_calls,
    triangle_calls,
)
from cgraph.kernels.kernel import STOP, Pointer
from cgraph.kernels.target import host_target
from tests.kernels.test_index import HOW
from tests.support.gpu import BLOCKS, run_on_gpu
from tests.support.kernels import STOP_WORD, view_of

every_how = pytest.mark.parametrize("how", [*HOW, "set"])
rng = np.random.default_rng(0)


def in_blocks(calls):
    assert all(call.kernel.is_block for call in calls)
    run_on_gpu(calls)
    return [call.kernel.family for call in calls]


@pytest.fixture
def outside():
    """Whether a position was outside."""
    STOP_WORD[:] = 0
    yield lambda: bool(STOP_WORD.any())
    STOP_WORD[:] = 0


@pytest.mark.parametrize("dtype", ["u1", "f4", "c8", "f8"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_take(axis, dtype):
    x = (rng.random((6, 5, 7)) * 9).astype(dtype).transpose(2, 0, 1)[::-1]
    indices = rng.integers(-x.shape[axis], x.shape[axis], (3, 2)).astype("i4")
    want = np.take(x, indices, axis)
    out = np.zeros_like(want)
    in_blocks(take_calls(BLOCKS, view_of(out), view_of(x), view_of(indices), axis))
    np.testing.assert_array_equal(out, want)


def test_take_along_an_axis():
    x, indices = rng.random((4, 300), "f4"), rng.integers(-300, 300, (4, 9))
    out = np.zeros((4, 9), "f4")
    in_blocks(take_along_axis_calls(BLOCKS, view_of(out), view_of(x), view_of(indices), 1))
    np.testing.assert_array_equal(out, np.take_along_axis(x, indices, 1))


def test_positions_outside_read_the_nearest_element_and_write_nothing(outside):
    x, indices, out = np.arange(10.0), np.array([3, 10, -11, -1]), np.zeros(4)
    in_blocks(take_calls(BLOCKS, view_of(out), view_of(x), view_of(indices), 0, Pointer(STOP)))
    assert out.tolist() == [3, 9, 0, 9] and outside()
    STOP_WORD[:] = 0
    in_blocks(scatter_calls(BLOCKS, view_of(x), view_of(indices), view_of(out), ScatterRule(0, "add", Pointer(STOP))))
    assert x.tolist() == [0, 1, 2, 6, 4, 5, 6, 7, 8, 18] and outside()


def updated(x, indices, updates, how):
    """What happens one update after the other, along axis 0."""
    want = x.copy()
    for i, update in zip(indices, updates):
        want[i] = HOW[how](want[i], update) if how != "set" else update
    return want


def written(x, indices, updates, how, is_sorted):
    """The writes, in blocks of threads; those that sort the positions first where `is_sorted`."""
    nbytes = scatter_nbytes(BLOCKS, x.shape, 0, indices.size, len(indices))
    assert (nbytes > 0) == is_sorted
    scratch = view_of(np.zeros(nbytes, "u1")) if nbytes else None
    given = view_of(x), view_of(indices), view_of(updates), ScatterRule(0, how, Pointer(STOP)), scratch
    families = in_blocks((put_along_axis_calls if indices.ndim == x.ndim else scatter_calls)(BLOCKS, *given))
    assert ("index.gpu.segments" in families) == is_sorted
    return x


@every_how
@pytest.mark.parametrize("dtype", ["f4", "i4", "f8"])
@pytest.mark.parametrize("count", [7, 200])
def test_updates_of_one_place_are_done_in_order(count, dtype, how, outside):
    x, updates = ((rng.random(shape) * 4 - 2).astype(dtype) for shape in ((5, 6), (count, 6)))
    indices = rng.integers(-5, 5, count)
    want = updated(x, indices, updates, how)
    assert written(x, indices, updates, how, count > 64).tobytes() == want.tobytes() and not outside()


def test_sorted_updates_outside_are_left_out(outside):
    x, updates, indices = np.zeros(9, "f4"), rng.random(70, "f4"), rng.integers(-12, 12, 70)
    inside = (indices >= -9) & (indices < 9)
    want = updated(x, indices[inside], updates[inside], "add")
    np.testing.assert_array_equal(written(x, indices, updates, "add", True), want)
    assert outside()


@every_how
def test_each_column_has_positions_of_its_own(how):
    for count in (3, 90):
        x, updates = rng.random((8, 6), "f4"), rng.random((count, 6), "f4")
        indices = rng.integers(-8, 8, (count, 6))
        want = np.stack([updated(*columns, how) for columns in zip(x.T, indices.T, updates.T)], 1)
        np.testing.assert_array_equal(written(x, indices, updates, how, count > 64), want)


@pytest.mark.parametrize("upper", [False, True])
def test_triangles(upper):
    x = rng.random((2, 9, 70), "f4")[:, ::-1]
    for diagonal in (-3, 0, 66):
        out = np.full(x.shape, np.nan, "f4")
        in_blocks(triangle_calls(BLOCKS, view_of(out), view_of(x), diagonal, upper))
        np.testing.assert_array_equal(out, (np.triu if upper else np.tril)(x, diagonal))


@pytest.mark.parametrize("most", [3, 400])
def test_places_of_what_is_not_zero(most):
    x = rng.integers(0, 2, (3, 7, 35)).astype("f4")
    out, count = np.full((3, most), -5), np.zeros((), np.int64)
    calls = nonzero_calls(BLOCKS, view_of(out), view_of(count), view_of(x), fill=-1)
    in_blocks(calls)
    want = np.stack(np.nonzero(x))
    np.testing.assert_array_equal(out[:, : want.shape[1]], want[:, :most])
    assert count == want.shape[1] and (out[:, want.shape[1] :] == -1).all()


@pytest.mark.parametrize(("rank", "is_sorted"), [(3, True), (4, False)])
def test_updates_of_places_of_many_axes_are_done_one_after_the_other(rank, is_sorted, outside):
    """Sorted updates are walked with one axis more."""
    x = rng.random((9, *(3,) * rank), "f4")[(slice(None), *(slice(None, None, 2),) * rank)]
    updates, indices = rng.random((90, *x.shape[1:]), "f4"), rng.integers(-9, 9, 90)
    want = updated(x, indices, updates, "add")
    room = np.zeros(scatter_nbytes(BLOCKS, x.shape, 0, 90, 90), "u1")
    given = view_of(x), view_of(indices), view_of(updates), ScatterRule(0, "add", Pointer(STOP)), view_of(room)
    families = in_blocks(scatter_calls(BLOCKS, *given))
    assert ("index.gpu.segments" in families) == is_sorted and not outside()
    np.testing.assert_array_equal(x, want)


def test_the_bytes_of_sorted_updates():
    """Positions, their numbers and twice both for rows that one block does not sort; none for few updates or many
    places.
    """
    nbytes = lambda columns, lines, n: scatter_nbytes(BLOCKS, (columns, 7), 1, lines * n, n)  # noqa: E731
    line = lambda size: -(-size // 64) * 64  # noqa: E731
    assert nbytes(5, 1, 64) == 0 and nbytes(5, 1, 65) == 2 * line(65 * 4)
    assert nbytes(5, 3, 100) == 2 * line(3 * 100 * 4) and nbytes(5, 3, 0) == 0
    assert nbytes((1 << 15) - 1, 1, 65) > 0 and nbytes(1 << 15, 1, 65) == 0
    assert nbytes(5, 2, 4096) == 2 * line(2 * 4096 * 4) and nbytes(5, 2, 4097) == 6 * line(2 * 4097 * 4)
    assert scatter_nbytes(host_target(), (5, 7), 1, 100, 100) == 0


def test_without_a_workspace_each_thread_reads_all_updates(outside):
    x, updates, indices = rng.random((8, 6), "f4"), rng.random((90, 6), "f4"), rng.integers(-8, 8, 90)
    want = updated(x, indices, updates, "mul")
    rule = ScatterRule(0, "mul", Pointer(STOP))
    assert in_blocks(scatter_calls(BLOCKS, view_of(x), view_of(indices), view_of(updates), rule)) == [
        "index.gpu.scatter"
    ]
    np.testing.assert_array_equal(x, want)
    assert not outside()
