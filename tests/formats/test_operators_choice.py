"""Compress, NonZero and Unique: constants and operands of a run, axes, order of occurrence, NaN, nothing to choose."""

import numpy as np
import pytest
from onnx import helper

from cgraph.engine.reference import evaluate
from cgraph.formats.onnx.operators.choice import by_first_place, unique
from cgraph.ops.leaf import Const, Var
from tests.support.onnx_context import context, length, ragged, value_of
from tests.support.onnx_models import assert_equal_results

pytest.importorskip("onnxruntime")
X = np.arange(12, dtype="f4").reshape(3, 4)
CONSTANT = pytest.mark.parametrize("constant", [(), (0,), (1,), (0, 1)], ids=["a run", "values", "condition", "both"])


@CONSTANT
@pytest.mark.parametrize(("axis", "n"), [(None, 12), (None, 5), (0, 3), (1, 4), (-1, 4), (-2, 3), (1, 2)])
def test_elements_whose_condition_holds(constant, axis, n):
    condition = np.arange(n) % 3 != 1
    options = {} if axis is None else {"axis": axis}
    assert_equal_results("Compress", [X, condition], constant, **options)
    assert_equal_results("Compress", [X, np.zeros(n, bool)], constant, **options)


@pytest.mark.parametrize("constant", [(), (0,)])
@pytest.mark.parametrize("x", [X % 3, X % 2 == 0, np.zeros((2, 3), "i8"), np.array([[0, 0.0, -0.0, np.nan]], "f4")])
def test_indices_of_what_is_not_zero(constant, x):
    got = assert_equal_results("NonZero", [x], constant)
    np.testing.assert_array_equal(got[0], np.nonzero(x))


UNIQUE = {
    "floats": np.array([2, 1, 1, 3, 4, 3, 2], "f4"),
    "integers": np.array([[7, -1], [7, 5], [-1, 9]], "i8"),
    "equal": np.full(4, 5, "f4"),
    "one": np.array([3], "i8"),
}


@pytest.mark.parametrize("constant", [(), (0,)])
@pytest.mark.parametrize("in_order", [0, 1])
@pytest.mark.parametrize("name", UNIQUE)
def test_different_elements_and_where_they_are(constant, in_order, name):
    assert_equal_results("Unique", [UNIQUE[name]], constant, results=4, sorted=in_order)


@pytest.mark.parametrize("constant", [(), (0,)])
@pytest.mark.parametrize("in_order", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_different_slices(constant, in_order, axis):
    x = np.array([[1, 0, 0], [1, 0, 0], [2, 3, 4]], "f4")
    assert_equal_results("Unique", [x], constant, results=4, sorted=in_order, axis=axis)
    assert_equal_results("Unique", [x[::-1].copy()], constant, results=4, sorted=in_order, axis=axis)
    assert_equal_results("Unique", [x[:, :1].copy()], constant, results=4, sorted=in_order, axis=axis)


@pytest.mark.parametrize("in_order", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_different_slices_of_many_columns_that_a_run_computes(in_order, axis):
    x = np.random.default_rng(2).integers(0, 2, (6, 3, 2)).astype("i8")
    assert_equal_results("Unique", [x], (), results=4, sorted=in_order, axis=axis)


def test_a_slice_with_a_number_that_is_none_differs_from_all_others():
    x = np.array([[1, np.nan], [0, 1], [1, np.nan], [0, 1]], "f4")
    items, _, inverse, counts = assert_equal_results("Unique", [x], (), by="reference", results=4, axis=0)
    np.testing.assert_array_equal(items, [[0, 1], [1, np.nan], [1, np.nan]])
    assert inverse.tolist() == [1, 0, 2, 0] and counts.tolist() == [2, 1, 1]


@pytest.mark.parametrize("in_order", [0, 1])
def test_numbers_that_are_none_are_one(in_order):
    x = np.array([np.nan, 1, np.nan, 0, 1], "f4")
    items, first, inverse, counts = assert_equal_results(
        "Unique", [x], (0,), by="reference", results=4, sorted=in_order
    )
    opened = assert_equal_results("Unique", [x], (), by="reference", results=4, sorted=in_order)
    for a, b in zip((items, first, inverse, counts), opened):
        np.testing.assert_array_equal(a, b)
    assert sorted(counts) == [1, 2, 2]


def test_groups_are_numbered_by_their_first_element():
    group = Const(np.array([2, 0, 2, 1, 0]))
    assert evaluate([by_first_place(group, 5)], {})[0].tolist() == [0, 1, 0, 2, 1]


@pytest.mark.parametrize("axis", [0, 1, 2, -1, None])
@pytest.mark.parametrize("in_order", [0, 1])
@pytest.mark.parametrize("dynamic", [(0,), (1,), (0, 1), (1, 2)])
def test_different_slices_of_an_open_number_and_length(axis, in_order, dynamic):
    """Other axes may be open, too: padding makes no slice different."""
    x = np.random.default_rng(1).integers(0, 2, (5, 2, 2))
    v = Var(x.shape, "int64", "v")
    c = context(v, attributes=[helper.make_attribute("sorted", in_order)] + (
        [] if axis is None else [helper.make_attribute("axis", axis)]))  # fmt: skip
    sizes = {a: length(c, f"n{a}", x.shape[a]) for a in dynamic}
    results = unique(c.reading({0: ragged(v, sizes)}))
    for cut in (0, 1):
        counts = {a: x.shape[a] - cut for a in dynamic}
        part = x[tuple(slice(counts.get(a)) for a in range(3))]
        filled = x.copy()
        filled[tuple(slice(counts.get(a), None) if a == dynamic[0] else slice(None) for a in range(3))] = 77 * cut
        values = {v: filled, **{sizes[a].node: n for a, n in counts.items()}}
        items, first, inverse, count = np.unique(part, True, True, True, axis=axis)
        inverse = inverse.reshape(-1)
        if not in_order:
            order = np.argsort(first, kind="stable")
            items, first, count = np.take(items, order, axis or 0), first[order], count[order]
            inverse = np.argsort(order)[inverse]
        for got, want in zip(results, (items, first, inverse, count), strict=True):
            np.testing.assert_array_equal(value_of(got, values), want)


def test_nothing_has_no_different_elements():
    for shape, axis in (((0,), None), ((0, 3), 0), ((2, 0), 1)):
        v = Var(shape, "int64", "v")
        c = context(v, attributes=[] if axis is None else [helper.make_attribute("axis", axis)])
        items, *others = unique(c)
        assert items.shape == shape and [x.shape for x in others] == [(0,)] * 3
    v = Var((3, 0), "int64", "v")
    items, first, inverse, count = unique(context(v, attributes=[helper.make_attribute("axis", 0)]))
    values = {v: np.zeros((3, 0), np.int64)}
    assert value_of(items, values).shape == (1, 0) and value_of(first, values).tolist() == [0]
    assert value_of(inverse, values).tolist() == [0, 0, 0] and value_of(count, values).tolist() == [3]
