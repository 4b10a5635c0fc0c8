"""Products of a matrix and a vector: the ends of vectors and of tasks, activations, one order of sums."""

import numpy as np
import pytest

from cgraph.kernels.activation.calls import NONE, RELU6, BoundedActivation
from cgraph.kernels.gemm.gemv_calls import DOT_ROWS, ROW_UNROLL
from cgraph.kernels.gemm.matmul_calls import matmul_calls
from cgraph.kernels.target import target_named
from tests.support.images import activated
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of

every_target = pytest.mark.parametrize("name", TARGETS)
ACTIVATIONS = [NONE, RELU6, BoundedActivation(-3.0, 5.0, 0.5)]


def computed(out, a, b, bias=None, activation=NONE, name="host", order="all"):
    target = target_named(name)
    (call,) = matmul_calls(target, *map(view_of, (out, a, b)), None if bias is None else view_of(bias), activation)
    run_calls([call], target, order)
    return call.kernel.family


def whole(seed, *shape, dtype="f4"):
    """Small whole numbers, whose sums of products are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_dot_products_of_rows(activation, dtype, name):
    """Rows around those of a task, sums around two vectors; what lies behind the last element is no number."""
    lanes = target_named(name).lanes_of(dtype)
    for m in (2, DOT_ROWS, 2 * DOT_ROWS + 1):
        for k in (0, 1, lanes - 1, lanes, 2 * lanes, 2 * lanes + 1, 5 * lanes - 1):
            a, b, bias = whole(0, 2, m, k, dtype=dtype), whole(1, 2, k, 1, dtype=dtype), whole(2, 2, m, 1, dtype=dtype)
            wide, long = np.full((2, m, k + 2 * lanes), np.nan, dtype), np.full((2, k + 2 * lanes, 1), np.nan, dtype)
            wide[..., :k], long[:, :k] = a, b
            room = np.full((2, m + 1, 1), 77, dtype)
            family = computed(room[:, :m], wide[..., :k], long[:, :k], bias, activation, name)
            assert family == "gemm.gemv.dot"
            np.testing.assert_array_equal(room[:, :m], activated(a @ b + bias, activation))
            assert (room[:, m:] == 77).all()


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_sums_of_rows(activation, dtype, name):
    """Columns around vectors and around a task, sums around the rows that are read at a time."""
    lanes = target_named(name).lanes_of(dtype)
    for n in (2, lanes - 1, lanes, lanes + 1, 512, 513, 1025):
        for k in (1, ROW_UNROLL - 1, ROW_UNROLL, 2 * ROW_UNROLL + 3):
            a, b, bias = whole(3, 2, 1, k, dtype=dtype), whole(4, 2, k, n, dtype=dtype), whole(5, 2, 1, n, dtype=dtype)
            wide, room = np.full((2, k, n + lanes), np.nan, dtype), np.full((2, 1, n + 3), 77, dtype)
            wide[..., :n] = b
            spread = np.zeros((2, 1, 2 * k), dtype)[..., ::2]
            spread[...] = a
            family = computed(room[..., :n], spread, wide[..., :n], bias, activation, name)
            assert family == "gemm.gemv.row"
            np.testing.assert_array_equal(room[..., :n], activated(a @ b + bias, activation))
            assert (room[..., n:] == 77).all()


@every_target
@pytest.mark.parametrize("order", ORDERS)
def test_the_bits_of_an_element_do_not_depend_on_its_neighbours_or_its_task(order, name):
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((1, 100)).astype("f4"), rng.standard_normal((100, 1400)).astype("f4")
    rows, columns = np.zeros((1, 1400), "f4"), np.zeros((1400, 1), "f4")
    computed(rows, a, b, name=name, order=order)
    computed(columns, np.ascontiguousarray(b.T), a.T, name=name, order=order)
    for first in (1, 511, 700, 1399):
        part, few = np.zeros((1, 1400 - first), "f4"), np.zeros((1400 - first, 1), "f4")
        assert computed(part, a, b[:, first:], name=name) in ("gemm.gemv.row", "gemm.gemv.dot")
        computed(few, np.ascontiguousarray(b.T[first:]), a.T, name=name)
        assert part.tobytes() == rows[:, first:].tobytes() or first == 1399  # one column is a dot product
        assert few.tobytes() == columns[first:].tobytes()


@pytest.mark.parametrize("which", ["dot", "row"])
def test_nans_and_infinities_stay_where_they_are(which):
    a, b = whole(7, 1, 21), whole(8, 21, 40)
    b[3, 5], b[4, 39], a[0, :5] = np.nan, np.inf, 1
    b[4, :39] = 0
    out = np.zeros((1, 40), "f4")
    if which == "row":
        computed(out, a, b)
    else:
        computed(out.T, np.ascontiguousarray(b.T), a.T)
    want = a @ b
    np.testing.assert_array_equal(out, want)
    assert np.isnan(out[0, 5]) and np.isposinf(out[0, 39]) and np.isfinite(np.delete(out, [5, 39])).all()
