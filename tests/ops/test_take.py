"""Reading and writing at positions: any axis, repeated and negative positions, every way to combine, gradients."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, PositionError, ShapeError
from cgraph.ir.graph import apply
from cgraph.ops.take import (
    PutAlongAxis,
    Scatter,
    Take,
    TakeAlongAxis,
    check_inside,
    check_writing,
    positions,
    with_length,
)
from tests.support.computed import computed, gradients

X = np.arange(12.0).reshape(3, 4)
UFUNCS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


@pytest.mark.parametrize("indices", [1, [2, 0, -1], [[0, 0], [-3, 1]], np.zeros((0,), int)])
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_take_and_its_gradient(indices, axis):
    x, want = cg.Var(X), np.take(X, indices, axis)
    got = cg.take(x, indices, axis)
    np.testing.assert_array_equal(computed(got), want)
    seed = np.arange(1.0, want.size + 1).reshape(want.shape)
    back = np.zeros(12)
    np.add.at(back, np.take(np.arange(12).reshape(3, 4), indices, axis), seed)
    np.testing.assert_array_equal(gradients(got, x, seed=seed), back.reshape(3, 4))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("how", ["set", *UFUNCS])
def test_scatter_writes_in_the_order_of_the_positions(how, axis):
    indices = np.array([[1, 0], [1, -1]])
    updates = -np.take(X, indices, axis) + np.arange(4).reshape((2, 2, 1) if axis == 0 else (1, 2, 2))
    want = X.copy()
    for i in np.ndindex(2, 2):
        place = (indices[i],) if axis == 0 else (slice(None), indices[i])
        update = updates[i] if axis == 0 else updates[(slice(None), *i)]
        want[place] = update if how == "set" else UFUNCS[how](want[place], update)
    np.testing.assert_array_equal(computed(cg.scatter(cg.Var(X), indices, cg.Var(updates), how, axis)), want)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("how", ["set", *UFUNCS])
def test_put_along_axis_writes_one_element_for_each_index(how, axis):
    indices = np.array([[1, 0, -1, 1], [1, 2, 0, 0]]) if axis == 0 else np.array([[1, 1], [-1, 0], [3, 2]])
    updates = np.arange(indices.size).reshape(indices.shape) - 3.0
    want = X.copy()
    for i in np.ndindex(indices.shape):
        place = (indices[i], i[1]) if axis == 0 else (i[0], indices[i])
        want[place] = updates[i] if how == "set" else UFUNCS[how](want[place], updates[i])
    np.testing.assert_array_equal(computed(cg.put_along_axis(cg.Var(X), indices, cg.Var(updates), axis, how)), want)
    read = cg.take_along_axis(cg.Var(X), indices, axis)
    np.testing.assert_array_equal(computed(read), np.take_along_axis(X, indices, axis))


def test_gradients_of_writing_at_one_position_twice():
    """The last one that is set wins, sums pass on, products divide, and equal extremes share."""
    x, u, at = cg.Var(np.array([2.0, 5.0, 4.0])), cg.Var(np.array([3.0, 6.0, 4.0])), [0, 0, 2]
    seed = [1, 10, 100]
    want = {
        "set": ([0, 10, 0], [0, 1, 100]),
        "add": ([1, 10, 100], [1, 1, 100]),
        "multiply": ([18, 10, 400], [12, 6, 400]),
        "max": ([0, 10, 50], [0, 1, 50]),
        "min": ([1, 10, 50], [0, 0, 50]),
    }
    for how, (to_x, to_u) in want.items():
        for node in (cg.scatter(x, at, u, how), cg.put_along_axis(x, at, u, 0, how)):
            got = gradients(node, x, u, seed=seed)
            assert [g.tolist() for g in got] == [to_x, to_u], how


def test_the_last_one_of_a_row_wins_in_each_column():
    x, at = cg.Var(np.zeros((2, 2))), [[0, 1], [0, 0]]
    u = cg.Var(np.array([[1.0, 2.0], [3.0, 4.0]]))
    node = cg.put_along_axis(x, at, u, 0)
    assert computed(node).tolist() == [[3, 4], [0, 2]]
    assert gradients(node, u, seed=[[1, 10], [100, 1000]]).tolist() == [[0, 1000], [1, 10]]


def test_the_other_axes_broadcast():
    x = cg.Var(X)
    assert computed(cg.take_along_axis(x, [[1]], 1)).tolist() == [[1], [5], [9]]
    assert computed(cg.take_along_axis(x, [2, 0], None)).tolist() == [2, 0]
    assert computed(cg.take_along_axis(cg.Var(X[:1]), [[1], [2]], 1)).tolist() == [[1], [2]]
    assert computed(cg.put_along_axis(x, [[1]], -1.0))[:, 1].tolist() == [-1, -1, -1]
    assert computed(cg.scatter_add(x, [0, 0], 1.5))[0].tolist() == [3, 4, 5, 6]


def test_positions_are_integers_of_32_or_64_bits():
    assert positions([1, 2]).dtype == "int64" and positions(np.array([1], "int32")).dtype == "int32"
    assert positions(np.array([1], "uint8")).dtype == "int64" and positions(np.zeros(0)).dtype == "int64"
    with pytest.raises(DTypeError, match="positions must be integers, not .* float64"):
        positions([0.5])
    with pytest.raises(DTypeError, match="must be int32 or int64"):
        apply(Take(0), cg.Var((3,)), cg.Var((1,), "int16"))


def test_a_position_outside_is_named_at_both_ends():
    check_inside(np.array([-3, 2]), 3)
    check_inside(np.zeros(0, int), 0)
    for at, bad in (([0, 3, 5], 3), ([2, -4], -4)):
        with pytest.raises(PositionError, match=f"position {bad} is outside an axis of 3; pass positions from -3 to 2"):
            check_inside(np.array(at), 3)
        with pytest.raises(PositionError):
            cg.take(cg.Var(X), at, 0).eval()
    with pytest.raises(PositionError, match=r"axis 0 of float32\[0,2\] has no element to take"):
        cg.take(cg.Var((0, 2)), [0], 0)


def test_what_does_not_fit_is_refused():
    x, at, u = cg.Var((3, 4), name="x"), cg.Var((2,), "int64"), cg.Var((2, 4))
    with pytest.raises(ShapeError, match="how='sum' is unknown; use set, add, multiply, min, max"):
        cg.scatter(x, at, u, "sum")
    with pytest.raises(ShapeError, match=r"must have the shape \[2, 4\] of take\(x, indices\); broadcast them"):
        apply(Scatter(0, "set"), x, at, cg.Var((4, 2)))
    for pair in ((x.spec, u.astype("float64").spec), (cg.Var((1,), bool).spec,) * 2):
        with pytest.raises(DTypeError, match="need one dtype, and numbers unless how='set'"):
            check_writing("add", *pair)
    check_writing("set", *(cg.Var((1,), bool).spec,) * 2)
    wide = cg.Var((2, 3), "int64")
    for op, operands in ((TakeAlongAxis(0), (x, wide)), (PutAlongAxis(0, "set"), (x, wide, cg.Var((2, 3)))),
                         (PutAlongAxis(1, "set"), (x, cg.Var((3, 2), "int64"), cg.Var((3, 1))))):  # fmt: skip
        with pytest.raises(ShapeError, match="except|other than"):
            apply(op, *operands)
    for function in (lambda: cg.take_along_axis(x, at, 0), lambda: cg.put_along_axis(x, at, 1.0)):
        with pytest.raises(ShapeError, match="differ in rank; use expand_dims"):
            function()
    with pytest.raises(ShapeError, match="do not fit; use equal lengths or 1"):
        cg.take_along_axis(x, wide, 0)
    assert with_length(1, (2, 3, 4), 9) == (2, 9, 4)


def test_elements_of_a_storage_dtype_are_taken_as_they_are_and_writing_needs_the_operands_dtype():
    half = cg.Var(np.array([1.5, 2.5, -1.0], "float16"))
    got = apply(Take(0), half, cg.Const([2, 0]))
    assert got.dtype == "float16" and computed(got.astype("float32")).tolist() == [-1, 1.5]
    x, at = cg.Var((3,)), cg.Var((3,), "int64")
    with pytest.raises(DTypeError, match="x float32 and updates float64 need one dtype"):
        apply(PutAlongAxis(0, "set"), x, at, cg.Var((3,), "float64"))
    with pytest.raises(ShapeError):
        apply(TakeAlongAxis(0), cg.Var((1, 1)), cg.Var((1,), "int64"))


def test_reasons_to_fail_and_keys_of_nodes():
    x, y, at = cg.Var((3, 4)), cg.Var((3, 4)), cg.Var((2,), "int64")
    a, b, other = cg.take(x, at, 0), cg.take(y, at, 0), cg.take(x, at, 1)
    assert a.op.reason(a) == b.op.reason(b) != other.op.reason(other)
    u = cg.Var((2, 4))
    assert cg.scatter(x, at, u) is not cg.scatter(x, at, u, "add")
    assert not Scatter(0, "max").takes_complex and all(Scatter(0, h).takes_complex for h in ("set", "add", "multiply"))
