"""Long sums of products of a matrix and a vector: parts that follow from their length alone."""

import numpy as np
import pytest

from cgraph.kernels.activation.calls import BoundedActivation
from cgraph.kernels.gemm.gemv_calls import LONG, MOST_PARTS, PART, parts_of, results_of
from cgraph.kernels.gemm.gemv_signature import ROW
from cgraph.kernels.gemm.matmul_calls import matmul_calls, matmul_nbytes
from cgraph.kernels.target import host_target, target_named
from cgraph.system.alignment import round_up
from tests.support.images import activated, workspace
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of

LENGTHS = [LONG - 1, LONG, LONG + 5, MOST_PARTS * PART, MOST_PARTS * PART + 1, 3 * MOST_PARTS * PART - 1]
every_target = pytest.mark.parametrize("name", TARGETS)


def calls_of(out, a, b, name="host", **more):
    """The calls of a product, in a workspace of NaN."""
    views, target = [view_of(x) for x in (out, a, b)], target_named(name)
    return matmul_calls(target, *views, workspace=workspace(matmul_nbytes(target, *views)), **more)


def sides(length, lines, dtype, whole=True):
    """A matrix and a vector; whole numbers have exact sums of products."""
    rng = np.random.default_rng(length)
    x, y = rng.standard_normal((lines, length)), rng.standard_normal((length, 1))
    return [(np.rint(4 * v) if whole else v).astype(dtype) for v in (x, y)]


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("lines", [1, 5])
def test_long_sums_are_those_of_numpy(lines, length, dtype, name):
    """As a column of dot products and as a row of sums, into results of any step."""
    x, y = sides(length, lines, dtype)
    columns, row = np.full((lines, 2), 77, dtype)[:, :1], np.zeros((1, lines), dtype)
    run_calls(calls_of(columns, x, y, name), target_named(name))
    run_calls(calls_of(row, y.T, np.ascontiguousarray(x.T), name), target_named(name))
    np.testing.assert_array_equal(columns, x @ y)
    np.testing.assert_array_equal(row, (x @ y).T)
    assert (columns.base[:, 1] == 77).all()


@every_target
@pytest.mark.parametrize("length", LENGTHS)
def test_the_bits_depend_neither_on_tasks_nor_on_the_other_lines(length, name):
    x, y = sides(length, 40, "f4", whole=False)
    results = []
    for order in ORDERS:
        out = np.zeros((1, 40), "f4")
        run_calls(calls_of(out, y.T, np.ascontiguousarray(x.T), name), target_named(name), order)
        results.append(out.tobytes())
    assert len(set(results)) == 1
    part = np.zeros((1, 7), "f4")
    run_calls(calls_of(part, y.T, np.ascontiguousarray(x[9:16].T), name), target_named(name))
    assert part.tobytes() == out[:, 9:16].tobytes()


@pytest.mark.parametrize("count", [2, MOST_PARTS + 1])
@pytest.mark.parametrize("which", ["dot", "row"])
def test_bias_and_activation_follow_the_whole_sum(which, count):
    """Fewer matrices than parts, and more. Parts exceed the activation's bounds."""
    rng = np.random.default_rng(3)
    a = rng.integers(-1, 2, (count, 1, LONG + 5)).astype("f4")
    b, bias = rng.integers(-1, 2, (count, LONG + 5, 6)).astype("f4"), rng.integers(-9, 10, (count, 1, 6)).astype("f4")
    out = np.zeros((count, 1, 6), "f4")
    if which == "row":
        views = [view_of(x) for x in (out, a, b, bias)]
    else:
        columns = np.ascontiguousarray(np.swapaxes(b, 1, 2))
        views = [view_of(x) for x in (out.swapaxes(1, 2), columns, a.swapaxes(1, 2), bias.swapaxes(1, 2))]
    room, activation = workspace(matmul_nbytes(host_target(), *views)), BoundedActivation(-30.0, 30.0, 0.5)
    run_calls(matmul_calls(host_target(), *views, activation=activation, workspace=room))
    np.testing.assert_array_equal(out, activated(a @ b + bias, activation))
    assert (np.abs(a @ b) > 30).any()


def test_only_long_sums_have_parts():
    def tasks(length):
        x, y = sides(length, 5, "f4")
        return [call.tasks for call in calls_of(np.zeros((5, 1), "f4"), x, y)]

    assert [len(tasks(n)) for n in (LONG - 1, LONG, LONG + 1)] == [1, 2, 3]


def test_parts_are_tasks_that_threads_share():
    x, y = sides(LONG, 4, "f8")
    row = np.zeros((1, 4))
    first = calls_of(row, y.T, np.ascontiguousarray(x.T))[0]
    assert first.tasks == LONG // PART


def test_a_workspace_that_is_too_small_is_refused():
    x, y = sides(LONG, 5, "f4")
    views = [view_of(v) for v in (np.zeros((5, 1), "f4"), x, y)]
    nbytes = matmul_nbytes(host_target(), *views)
    assert nbytes == LONG // PART * 5 * 4
    with pytest.raises(ValueError, match=f"these calls need {nbytes}"):
        matmul_calls(host_target(), *views, workspace=workspace(nbytes - 1))


@every_target
@pytest.mark.parametrize("count", [1, LONG // PART, LONG // PART + 1])
def test_long_sums_of_sides_whose_terms_lie_apart(count, name):
    """As many matrices as parts, fewer and more; a row of every second element, a matrix with gaps between its rows."""
    rng = np.random.default_rng(count)
    a = rng.integers(-4, 5, (count, 1, 2 * (LONG + 3))).astype("f4")[..., ::2]
    b = rng.integers(-4, 5, (count, LONG + 3, 9)).astype("f4")[..., :5]
    out = np.full((count, 1, 5), np.nan, "f4")
    run_calls(calls_of(out, a, b, name), target_named(name))
    np.testing.assert_array_equal(out, a @ b)


def test_the_calls_of_long_sums_of_few_and_of_many_matrices():
    """A call for all parts of each of a few matrices, or for each part of all; the rest; and the sum."""
    for count, calls in ((1, 1), (3, 3), (8, 8), (9, 8), (20, 8)):
        for more in (0, 3):
            a, b = np.zeros((count, 1, LONG + more), "f4"), np.zeros((count, LONG + more, 4), "f4")
            made = calls_of(np.zeros((count, 1, 4), "f4"), a, b)
            assert len(made) == calls + (more > 0) + 1
            assert {call.kernel.family for call in made} == {"gemm.gemv.row"}


@pytest.mark.parametrize(
    ("k", "parts", "results"),
    [(1, 1, 1), (8191, 1, 1), (8192, 8, 8), (8193, 8, 9), (9215, 8, 9), (9216, 9, 9), (16384, 16, 16),
     (10**6, 16, 16), (10**6 + 1, 16, 17)],
)  # fmt: skip
def test_parts_have_at_least_1024_terms_and_are_at_most_16(k, parts, results):
    assert (parts_of(k), results_of(k)) == (parts, results)


def test_tasks_of_a_row_have_half_a_thousand_columns_or_twice_that():
    """Evenly, in whole vectors."""
    lanes = host_target().lanes_of("f4")
    for n, most in (
        (2, 512),
        (512, 512),
        (513, 512),
        (8 * 512 - 1, 512),
        (8 * 512, 1024),
        (8 * 512 + 1, 1024),
        (9999, 1024),
    ):
        [call] = calls_of(np.zeros((1, n), "f4"), np.zeros((1, 3), "f4"), np.zeros((3, n), "f4"))
        tasks = -(-n // most)
        width = round_up(-(-n // tasks), lanes)
        assert call.tasks == -(-n // width) <= tasks
        assert call.args[list(ROW.args).index("width")] == width


@pytest.mark.parametrize(("m", "panels"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_tasks_of_columns_have_four_rows(m, panels):
    [call] = calls_of(np.zeros((3, m, 1), "f4"), np.zeros((3, m, 7), "f4"), np.zeros((3, 7, 1), "f4"))
    assert call.tasks == 3 * panels


def test_the_bytes_of_parts_are_those_of_their_results():
    for count, m, n, k, results in ((3, 5, 1, LONG + 1, 9), (3, 1, 7, LONG, 8), (1, 1, 1, 20 * LONG, 16)):
        for dtype, size in (("f4", 4), ("f8", 8)):
            shapes = (count, m, n), (count, m, k), (count, k, n)
            assert matmul_nbytes(host_target(), *(view_of(np.zeros(x, dtype)) for x in shapes)) == (
                count * m * n * results * size
            )
