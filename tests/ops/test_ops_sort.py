"""Sorting, largest elements, insertion and distinct values as NumPy has them: each dtype, NaN, ties, limits."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float32", "float64", "complex128")
ENGINES = pytest.mark.parametrize("engine", ["reference", "cpu"])


def drawn(dtype, shape=(4, 9)):
    """Few different elements, of floats some NaN, infinite and of both zeros."""
    rng = np.random.default_rng(3)
    few = np.array([2, 0, 1, 1, 3])
    if np.dtype(dtype).kind in "fc":
        few = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.0])
    x = rng.choice(few, shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        x.imag = rng.choice(few, shape)
    return x


def run(function, *values, engine):
    xs = [cg.Var(v.shape, v.dtype, f"x{i}") for i, v in enumerate(values)]
    made = function(*xs)
    made = list(made) if isinstance(made, tuple) else [made]
    return cg.compile(made, xs, engine=engine)(*values)


def same(got, want):
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@ENGINES
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sorts_are_stable_and_those_of_numpy(dtype, axis, engine):
    x = drawn(dtype)
    got, places = run(lambda v: (cg.sort(v, axis), cg.argsort(v, axis)), x, engine=engine)
    same(got, np.sort(x, axis, kind="stable"))
    same(places, np.argsort(x, axis, kind="stable"))


@ENGINES
@pytest.mark.parametrize("dtype", DTYPES)
def test_falling_sorts_keep_the_order_of_equal_elements_and_have_nan_last(dtype, engine):
    x = drawn(dtype)
    falling, places = run(
        lambda v: (cg.sort(v, 1, descending=True), cg.argsort(v, 1, descending=True)), x, engine=engine
    )
    same(falling, np.take_along_axis(x, places, 1))
    for row, order in zip(x, places):
        lost = np.isnan(row[order])
        assert not np.diff(lost.astype(int)).min() < 0
        numbers = row[order][~lost]
        assert numbers.tolist() == sorted(numbers.tolist(), key=lambda v: (-v.real, -v.imag))
        ties = row[order][1:] == row[order][:-1]
        assert (np.diff(order)[ties] > 0).all()


@ENGINES
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [0, 1, 4, 9])
def test_as_many_largest_or_smallest_as_are_asked_for(k, largest, engine):
    x = drawn("int32")
    values, places = run(lambda v: cg.top_k(v, k, 1, largest), x, engine=engine)
    order = np.argsort(-x if largest else x, 1, kind="stable")[:, :k]
    same(places, order)
    same(values, np.take_along_axis(x, order, 1))
    first, _ = run(lambda v: cg.top_k(v, min(k, 4), 0), x, engine=engine)
    same(first, -np.sort(-x, 0)[: min(k, 4)])


@pytest.mark.parametrize("k", [-1, 5])
def test_more_elements_than_there_are_or_a_number_below_zero_are_refused(k):
    with pytest.raises(ShapeError, match=f"k={k} of 4 elements along axis 0; pass k within that length"):
        cg.top_k(cg.Var((4, 9)), k, 0)


@ENGINES
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    "dtypes", [("float64", "float64"), ("int32", "int32"), ("int64", "float32"), ("uint8", "int8")]
)
def test_places_in_a_row_are_those_of_numpy_in_a_common_dtype(dtypes, side, engine):
    row = np.array([0, 1, 1, 3, 7]).astype(dtypes[0])
    values = np.array([[0, 1, 2], [3, 7, 9]]).astype(dtypes[1])
    if values.dtype.kind == "f":
        values += np.array([[-0.5], [0.25]], values.dtype)
        values[0, 0] = np.nan
    same(
        run(lambda r, v: cg.searchsorted(r, v, side), row, values, engine=engine)[0], np.searchsorted(row, values, side)
    )
    right = side == "right"
    bins = row[[0, 1, 3, 4]]
    same(run(lambda v, b: cg.digitize(v, b, right), values, bins, engine=engine)[0], np.digitize(values, bins, right))
    assert not run(lambda r, v: cg.searchsorted(r, v, side), row[:0], values, engine=engine)[0].any()


def test_elements_are_put_before_equal_ones_unless_told_and_sides_have_two_names():
    assert cg.searchsorted(np.array([1.0, 2, 2, 3]), np.array([2.0])).eval().tolist() == [1]
    assert cg.digitize(np.array([2.0]), np.array([1.0, 2, 3])).eval().tolist() == [2]
    with pytest.raises(ShapeError, match="side='middle' is unknown; use 'left' or 'right'"):
        cg.searchsorted(np.array([1.0]), np.array([2.0]), "middle")


@ENGINES
@pytest.mark.parametrize("size", [0, 2, 4, 6])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float64"])
def test_distinct_elements_are_cut_or_filled_and_all_are_counted(dtype, size, engine):
    x = np.array([[3, 1, 3], [0, 1, 7]]).astype(dtype)
    values, count = run(lambda v: cg.unique(v, size, 9), x, engine=engine)
    same(values, np.array([0, 1, 3, 7, 9, 9]).astype(dtype)[:size])
    assert count == 4 and count.dtype == np.int64
    values, count = run(lambda v: cg.unique(v, 2), x[:0], engine=engine)
    assert values.tolist() == [0, 0] and count == 0


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["sort", "falling", "top_k"])
def test_the_slope_goes_to_the_element_that_came_to_the_place(name, axis):
    x = cg.Var((4, 5), "float64", "x")
    value = np.random.default_rng(1).permutation(20).reshape(4, 5).astype("float64")
    functions = {
        "sort": lambda v: cg.sort(v, axis),
        "falling": lambda v: cg.sort(v, axis, descending=True),
        "top_k": lambda v: cg.top_k(v, 3, axis)[0],
    }
    y = functions[name](x)
    weights = np.arange(1.0, 1 + y.size).reshape(y.shape)
    got, placed = cg.compile([cg.gradient(cg.sum(y * weights), x), y], [x], engine="reference")(value)
    want = np.zeros((4, 5))
    for at in np.ndindex(y.shape):
        want[value == placed[at]] = weights[at]
    np.testing.assert_array_equal(got, want)
