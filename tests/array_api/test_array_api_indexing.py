"""Indexing, sorting, clipping: lazy where the graph can say it, values elsewhere, other arrays left as they were."""

import numpy as np
import pytest

from cgraph import array_api as xp
from cgraph.array_api.calls import COUNTS
from cgraph.array_api.indexing import (
    eager_places,
    eager_sort,
    is_basic,
    is_other_kind,
    parts_of,
    plain_key,
    replace_item,
)

X = np.arange(12.0).reshape(3, 4)


def lazy(values):
    """An array that has no value yet."""
    x = xp.asarray(values) + 0
    assert x.is_lazy
    return x


def counted(name, action):
    """How often the function ran lazily and eagerly."""
    before = COUNTS[name, "lazy"], COUNTS[name, "eager"]
    action()
    return COUNTS[name, "lazy"] - before[0], COUNTS[name, "eager"] - before[1]


@pytest.mark.parametrize("key", [0, -1, slice(1, None), (slice(None), 2), (1, slice(None, None, -2)), ..., (..., 1),
                                 None, (None, 1), ()], ids=str)  # fmt: skip
def test_basic_indices_stay_lazy_for_what_is_lazy_and_are_values_of_what_is_not(key):
    there = xp.asarray(X)
    np.testing.assert_array_equal(there[key], X[key])
    y = lazy(X)
    assert counted("getitem", lambda: y[key]) == (1, 0) and y.is_lazy
    np.testing.assert_array_equal(y[key], X[key])
    z = lazy(X)
    z[key] = 7.0
    want = X.copy()
    want[key] = 7
    assert z.is_lazy
    np.testing.assert_array_equal(z, want)


def test_arrays_of_positions_and_masks():
    at, mask = xp.asarray([2, 0]), xp.asarray(X > 4)
    np.testing.assert_array_equal(lazy(X)[at], X[[2, 0]])
    np.testing.assert_array_equal(lazy(X)[at, xp.asarray([1, 3])], X[[2, 0], [1, 3]])
    np.testing.assert_array_equal(lazy(X)[mask], X[X > 4])
    np.testing.assert_array_equal(lazy(X)[[True, False, True]], X[[0, 2]])
    assert counted("getitem", lambda: lazy(X)[mask]) == (0, 1)


BESIDE = [(), (0,), (slice(1, None),), (..., 1), (None,), ([1],)]


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("beside", BESIDE, ids=str)
@pytest.mark.parametrize("first", [True, False])
def test_a_bool_of_numpy_is_an_index_as_pythons_is(flag, beside, first):
    for one in (flag, np.bool_(flag), np.array(flag), xp.asarray(flag)):
        key, of_numpy = ((x, *beside) if first else (*beside, x) for x in (one, flag))
        for x in (xp.asarray(X), lazy(X)):
            found = x[key]
            np.testing.assert_array_equal(found, X[of_numpy], strict=True)
            want = X.copy()
            x[key] = 7.0
            want[of_numpy] = 7.0
            np.testing.assert_array_equal(x, want)


def test_what_is_no_index_is_refused():
    for key in ("a", 1.5, (0, "a")):
        with pytest.raises(IndexError, match="is not an index. Use integers, slices, None, ... or arrays"):
            xp.asarray(X)[key]
    assert parts_of((0, 1)) == (0, 1) and parts_of(0) == (0,)
    assert [is_basic(p) for p in (None, ..., 1, np.int8(1), slice(1), True, np.True_)] == [True] * 7
    assert not is_basic([1]) and not is_basic(np.ones(1))
    assert plain_key((xp.asarray(3), 1)) == (3, 1)


def test_values_that_do_not_fit_are_refused_and_leave_the_array():
    x = xp.asarray(np.arange(3, dtype="int8"))
    with pytest.raises(TypeError, match="float64 does not fit into int8. Use astype first"):
        x[0] = xp.asarray(1.5)
    with pytest.raises(TypeError, match="int64 does not fit into int8"):
        x[0] = xp.asarray([5])
    x[0] = xp.asarray(9, dtype=xp.int8)
    x[1:] = 7
    assert np.asarray(x).tolist() == [9, 7, 7]
    assert is_other_kind("a") and is_other_kind([1]) and not is_other_kind(2j) and not is_other_kind(x)


def test_assignment_changes_this_array_alone():
    values = X.copy()
    replaced = replace_item(values, (0, 1), 99)
    assert replaced[0, 1] == 99 and values[0, 1] == 1
    assert replace_item(np.float64(3), (), 5) == 5
    y = lazy(X)
    before = y * 1
    y[0] = xp.asarray([1.0, 2, 3, 4])
    y[xp.asarray(X > 10)] = -1.0
    np.testing.assert_array_equal(before, X)
    np.testing.assert_array_equal(y, np.where(X > 10, -1, np.vstack([[1, 2, 3, 4], X[1:]])))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_equal_elements_keep_their_order_in_both_directions(axis, descending, dtype):
    x = np.array([[3, 1, 2, 1], [1, 1, 0, 3], [2, 3, 2, 2]]).astype(dtype)
    signed = -x if descending else x
    want = np.argsort(signed, axis, stable=True)
    got = xp.argsort(xp.asarray(x), axis=axis, descending=descending)
    np.testing.assert_array_equal(got, want)
    got = xp.sort(xp.asarray(x), axis=axis, descending=descending)
    np.testing.assert_array_equal(got, np.take_along_axis(x, want, axis))


def test_clip_takes_bounds_in_the_operands_dtype():
    x = xp.asarray(np.array([-100, 0, 100], "int8"))
    rows = [((-5, 5), [-5, 0, 5]), ((None, 5), [-100, 0, 5]), ((-5,), [-5, 0, 100]), ((-999, 999), [-100, 0, 100])]
    rows += [((xp.asarray([-1, 1, 1], dtype=xp.int8), None), [-1, 1, 100])]
    for args, want in rows:
        got = xp.clip(x, *args)
        assert got.dtype == "int8" and np.asarray(got).tolist() == want
    assert xp.clip(xp.asarray(np.ones(2, "float32")), 0, 0.5).dtype == "float32"


def test_indices_of_what_is_not_zero():
    got = xp.nonzero(xp.asarray([[0, 3], [4, 0]]))
    assert [np.asarray(g).tolist() for g in got] == [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match=r"an array of rank 0 has no indices. Use reshape\(x, \(1,\)\)"):
        xp.nonzero(xp.asarray(3))


def test_choices_and_broadcast_arrays():
    mask = xp.asarray([True, False])
    assert np.asarray(xp.where(mask, 1.5, xp.asarray([3.0, 4.0]))).tolist() == [1.5, 4]
    assert xp.where(mask, xp.asarray(np.ones(2, "float32")), 2.5).dtype == "float32"
    a, b = xp.broadcast_arrays(xp.asarray([1, 2]), xp.asarray([[3], [4]]))
    assert np.asarray(a).tolist() == [[1, 2]] * 2 and np.asarray(b).tolist() == [[3, 3], [4, 4]]


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("value", [[5.0, 6.0], (1, 2), np.array([5, 6], "int8"), np.float32(7), 2, True], ids=repr)
@pytest.mark.parametrize("key", [slice(1, 3), (0, slice(0, 2)), np.array([0, 2])], ids=str)
def test_numbers_lists_and_arrays_of_numpy_are_set_as_numpy_sets_them(key, value, is_lazy):
    want = X[:, :2].copy()
    x = lazy(want) if is_lazy else xp.asarray(want)
    before = x * 1
    x[xp.asarray(key) if isinstance(key, np.ndarray) else key] = value
    np.testing.assert_array_equal(before, want)
    want[key] = value
    np.testing.assert_array_equal(x, want)
    assert x.dtype == want.dtype


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "int64", "bool", "complex128", "uint8"])
def test_lazy_and_eager_orders_are_the_same(dtype, descending, stable):
    """Whichever computes them: equal elements keep their order in both."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (5, 6)).astype(dtype)
    for axis in (0, 1, -2):
        options = {"axis": axis, "descending": descending, "stable": stable}
        numbers = x.astype("int64") if dtype in ("bool", "uint8") else x
        places = np.argsort(-numbers if descending else numbers, axis, stable=True)
        want = np.take_along_axis(x, places, axis)
        for given in (xp.asarray(x), xp.flip(xp.flip(xp.asarray(x)))):
            np.testing.assert_array_equal(xp.sort(given, **options), want)
            np.testing.assert_array_equal(xp.argsort(given, **options), places)
        np.testing.assert_array_equal(eager_sort(x, axis, descending), want)
        np.testing.assert_array_equal(eager_places(x, axis, descending), places)
