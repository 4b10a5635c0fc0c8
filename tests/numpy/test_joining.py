"""Operands joined and cut apart are NumPy's: nested blocks, uneven parts, masks and repeated positions."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, NoMeaningError
from tests.numpy.evaluated import compare, drawn

X = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("function", ["concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"])
def test_operands_one_after_another(function):
    for shape, other in product(((2,), (3, 4), (3, 2), (2, 3, 4), ()), repeat=2):
        compare(f"np.{function}([x, y])", x=drawn(shape), y=drawn(other, "int32", 1))
    if function in ("concatenate", "stack"):
        for axis in (None, 0, 1, 2, -1, -2, -3, 3):
            if function == "concatenate" or axis is not None:
                compare(f"np.{function}([x, y], axis={axis})", x=drawn((3, 4)), y=drawn((3, 4), seed=1))


@pytest.mark.parametrize("function", ["concatenate", "stack", "vstack", "hstack"])
@pytest.mark.parametrize("casting", ["no", "safe", "same_kind", "unsafe"])
def test_casts_are_allowed_or_refused_as_by_numpy(function, casting):
    for dtype in ("float32", "float64", "int32"):
        compare(f"np.{function}([x, y], dtype={dtype!r}, casting={casting!r})", x=X, y=X.astype("float32"))
    with pytest.raises(DTypeError, match="astype first"):
        getattr(np, function)([cg.Const(X)], dtype="int32")


@pytest.mark.parametrize("call", [
    "np.block([x, y])", "np.block([[x], [y]])", "np.block([[x, y], [y, x]])", "np.block([[[x]], [[y]]])",
    "np.block([[s, s], [s, s]])", "np.block(x)", "np.block([[v, v], [v, v]])", "np.block([[x, c], [r, s]])",
    "np.block([[x], y])", "np.block([[C], [C]])", "np.block([])",
])  # fmt: skip
def test_blocks_of_nested_lists(call):
    compare(call, x=X, y=X + 20, s=np.array(7.0), v=np.arange(3.0), c=np.ones((3, 1)), r=np.zeros((1, 4)),
            C=drawn((2, 3, 4)))  # fmt: skip


def test_what_is_appended_lies_behind():
    for axis in (None, 0, 1, -1, 2):
        compare(f"np.append(x, y, axis={axis})", x=X, y=X[:2] + 100)
        compare(f"np.append(x, y, axis={axis})", x=X, y=X[:, :1] + 100)


@pytest.mark.parametrize("function", ["split", "array_split"])
@pytest.mark.parametrize("axis", [0, 1, -1, 2])
def test_parts_of_every_number_and_before_every_position(function, axis):
    for where in (0, 1, 2, 3, 4, 5, 7, -1, [1], [0, 2], [2, 1], [-1], [1, 9], [], [-9, 2]):
        compare(f"np.{function}(x, {where}, axis={axis})", x=X)


@pytest.mark.parametrize("function", ["vsplit", "hsplit", "dsplit"])
def test_parts_along_the_axis_of_a_name(function):
    for shape in ((4,), (2, 4), (2, 4, 6), ()):
        for where in (2, [1, 3], 3):
            compare(f"np.{function}(x, {where})", x=drawn(shape))


def test_unstacked_parts_lose_their_axis():
    for axis in (0, 1, -1, 2):
        compare(f"np.unstack(x, axis={axis})", x=X)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_elements_are_deleted_at_positions_slices_and_masks(axis):
    for at in ("0", "-1", "[1]", "[0, 2, 2]", "[]", "slice(None, None, 2)", "slice(2, 0, -1)", "[-1, 0]", "12"):
        compare(f"np.delete(x, {at}, axis={axis})", x=X)
    n = X.size if axis is None else X.shape[axis]
    compare(f"np.delete(x, np.arange({n}) % 3 == 1, axis={axis})", x=X)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_elements_are_inserted_before_positions_slices_and_masks(axis):
    for at in ("0", "-1", "[1]", "[0, 2, 2]", "[-1, 0]", "slice(0, 2)", "3", "np.array([True, False, True])", "13"):
        compare(f"np.insert(x, {at}, 7, axis={axis})", x=X)
    compare(f"np.insert(x, [2, 0, 2], y, axis={axis})", x=X, y=np.array([1.5, 2.5, 3.5]))
    compare(f"np.insert(x, 1, y, axis={axis})", x=X, y=np.arange(3.0) + 50)
    compare(f"np.insert(x, 2, y, axis={axis})", x=X, y=np.arange(4.0) + 50)
    compare(f"np.insert(x, [2], y, axis={axis})", x=X, y=np.arange(8.0).reshape(2, 4) + 50)
    compare(f"np.insert(x, [1], y, axis={axis})", x=X.astype("int32"), y=np.arange(3.0)[:, None] + 0.5)


def test_positions_without_a_value_are_refused_and_constants_are_not():
    x = cg.Const(X)
    assert np.delete(x, cg.Const(np.array([1])), 0).shape == (2, 4)
    with pytest.raises(NoMeaningError, match="to delete"):
        np.delete(x, cg.Var((1,), "int64"), 0)
    with pytest.raises(NoMeaningError, match="to insert before"):
        np.insert(x, cg.Var((1,), "int64"), 1.0, 0)


@pytest.mark.parametrize("call", [
    "np.append(m, m[:1], 0)", "np.append(m, m, 1)", "np.append(m, m)", "np.append(m, x, 0)", "np.append(m, 5)",
    "np.append(m, m, -2)", "np.delete(m, 1, 0)", "np.delete(m, 1, 1)", "np.delete(m, 1)", "np.insert(m, 1, 9, 0)",
    "np.insert(m, 1, 9)", "np.hsplit(x, 2)", "np.hsplit(m, 2)", "np.vsplit(m, 3)", "np.vsplit(x, 2)", "np.dsplit(m, 2)",
    "np.hsplit(x, [1, 3])", "np.hsplit(m, [1, 3])", "np.dsplit(m.reshape(3, 2, 2), 2)", "np.hstack([x, x[:2]])",
    "np.hstack([m, m])", "np.hstack([x[0], x[1]])", "np.block([[m, m], [x[:4], x[2:]]])", "np.block([x, x])",
    "np.block([[[x]], [[m]]])", "np.block([m.reshape(1, 3, 4), m.reshape(1, 3, 4)])",
])  # fmt: skip
def test_arrays_of_one_axis_and_of_two_are_joined_and_cut(call):
    compare(call, m=drawn((3, 4)), x=drawn((6,)))
