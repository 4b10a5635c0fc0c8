"""Small matrices on the stack: solutions, inverses, determinants, factors; exchanges of rows; what ends a run."""

import numpy as np
import pytest

from cgraph.kernels.control import NOT_POSITIVE, SINGULAR
from cgraph.kernels.matrices.calls import cholesky_calls, determinant_calls, solve_calls
from cgraph.kernels.matrices.signature import MOST
from tests.support.kernels import ORDERS, STOP_WORD, run_calls, view_of
from tests.support.tolerance import assert_near

every_float = pytest.mark.parametrize("dtype", ["f4", "f8"])
KINDS = {"f4": "float32 products", "f8": "float64 conditioned"}


@pytest.fixture(autouse=True)
def no_stop():
    STOP_WORD[:] = 0
    yield
    STOP_WORD[:] = 0


def drawn(count, n, dtype="f8", more=0):
    """Matrices of small condition whose largest element of a column is not on the diagonal."""
    x = np.random.default_rng(n).uniform(-1, 1, (count, n, n)) / n
    return (np.roll(np.eye(n), 1, 0) * -2 + x).astype(dtype)


def solved(a, b=None, order="all"):
    out = np.full(a.shape if b is None else b.shape, np.nan, a.dtype)
    before = a.copy()
    run_calls(solve_calls(view_of(out), view_of(a), None if b is None else view_of(b)), order=order)
    np.testing.assert_array_equal(a, before)
    return out


def determinants(a):
    out = np.full(a.shape[:-2], np.nan, a.dtype)
    run_calls(determinant_calls(view_of(out), view_of(a)))
    return out


def factors(a, order="all"):
    out = np.full(a.shape, np.nan, a.dtype)
    run_calls(cholesky_calls(view_of(out), view_of(a)), order=order)
    return out


@every_float
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [1, 2, 3, MOST])
@pytest.mark.parametrize("columns", [1, 2, MOST + 3])
def test_solutions_are_numpys(n, columns, order, dtype):
    a, b = drawn(5, n, dtype), np.random.default_rng(0).standard_normal((5, n, columns)).astype(dtype)
    right = b.copy()
    assert_near(solved(a, b, order), np.linalg.solve(a.astype("f8"), b), KINDS[dtype])
    np.testing.assert_array_equal(b, right)
    assert not STOP_WORD.any()


@every_float
@pytest.mark.parametrize("n", [1, 2, 5, MOST])
def test_inverses_and_determinants_are_numpys(n, dtype):
    a = drawn(4, n, dtype)
    assert_near(solved(a), np.linalg.inv(a.astype("f8")), KINDS[dtype])
    assert_near(determinants(a), np.linalg.det(a.astype("f8")), KINDS[dtype])


def test_the_pivot_is_the_largest_in_magnitude():
    """1 / 2**-30 would swallow what is added to it in float32: the rows are exchanged, for a negative pivot too."""
    for sign in (1, -1):
        a, b = np.array([[[2.0**-30, 1], [sign, 1]]], "f4"), np.array([[[1], [2]]], "f4")
        np.testing.assert_array_equal(solved(a, b)[0, :, 0], [sign, 1])


@pytest.mark.parametrize("places, sign", [((0, 1, 2), 1), ((1, 0, 2), -1), ((1, 2, 0), 1), ((2, 1, 0), -1)])
def test_every_exchange_of_rows_changes_the_sign(places, sign):
    a = np.diag([2.0, 3.0, 5.0])[list(places)]
    assert determinants(a[None]) == [sign * 30]
    np.testing.assert_array_equal(solved(a[None])[0], np.linalg.inv(a))


def test_determinants_of_matrices_that_have_no_inverse_are_zero():
    a = np.array([[[0, 1], [0, 2]], [[1, 2], [2, 4]], [[0, 0], [0, 0]], [[1, 0], [0, 1]]], "f8")
    assert determinants(a).tolist() == [0, 0, 0, 1]
    assert not STOP_WORD.any()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_matrix_without_an_inverse_ends_the_run(place):
    a = np.stack([np.eye(3)] * 3)
    a[place, 2] = a[place, 1]
    solved(a)
    assert STOP_WORD[0] == SINGULAR


def test_nans_are_no_zero_pivots():
    assert np.isnan(solved(np.full((1, 2, 2), np.nan))).all() and not STOP_WORD.any()
    assert np.isnan(determinants(np.full((1, 2, 2), np.nan))).all()


@every_float
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [1, 2, MOST])
def test_factors_are_numpys_and_read_the_lower_triangle_alone(n, order, dtype):
    x = drawn(3, n, "f8")
    a = (x @ x.swapaxes(1, 2)).astype(dtype)
    want = np.linalg.cholesky(a.astype("f8"))
    a[:, *np.triu_indices(n, 1)] = np.nan
    got = factors(a, order)
    assert_near(got, want, KINDS[dtype])
    assert not got[:, *np.triu_indices(n, 1)].any() and not STOP_WORD.any()


@pytest.mark.parametrize("corner, ends", [(-1.0, True), (0.0, True), (1.0, True), (1.5, False), (np.nan, False)])
def test_a_matrix_that_is_not_positive_ends_the_run_and_a_nan_does_not(corner, ends):
    """The last pivot is the corner less 1."""
    factors(np.array([[[1, 0], [1, corner]]]))
    assert STOP_WORD[0] == (NOT_POSITIVE if ends else 0)


def test_threads_take_some_small_matrices_at_a_time():
    for n, chunk in ((1, 256), (2, 64), (3, 28), (8, 4)):
        a = view_of(np.zeros((2, 3, n, n)))
        for (call,) in (solve_calls(a, a), cholesky_calls(a, a), determinant_calls(view_of(np.zeros((2, 3))), a)):
            assert (call.tasks, call.chunk) == (6, chunk)
