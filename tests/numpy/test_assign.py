"""``x[index] = value`` as a new value is NumPy's assignment: masks, positions, slices, leading axes of one element."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.numpy.assign import with_item
from tests.numpy.evaluated import assert_same, values

X = np.arange(12.0).reshape(3, 4)
MASK = X % 5 < 2


def compare_item(x: np.ndarray, index: object, value: object, node: object = None) -> None:
    """AssertionError unless the node is what the array is after the assignment."""
    want = x.copy()
    want[index] = value
    operand = cg.Var(x.shape, x.dtype).assign(x)
    assert_same(*values([with_item(operand, index if node is None else node, value)]), want)
    assert_same(*values([operand]), x)


@pytest.mark.parametrize("index", [
    0, -1, (1, 2), slice(1, None), (slice(None), slice(None, None, -2)), ..., (..., 1), [2, 0], ([0, 2], [1, 1]),
    [1, 1], (slice(1), [3, 0]), MASK, [True, False, True], (slice(None), np.array([True, False, False, True])), [],
], ids=str)  # fmt: skip
def test_one_value_and_one_for_each_element(index):
    compare_item(X, index, 7.5)
    compare_item(X, index, X[index] * 10)
    compare_item(X.astype("int32"), index, 7)
    if index is not MASK and np.ndim(X[index]):  # a mask takes a row of values, an element one
        compare_item(X, index, (X[index] * 10)[None, None])


@pytest.mark.parametrize("mask", [MASK, MASK[:, 0], np.zeros(3, bool), np.array([True, True, False])], ids=str)
def test_masks_that_are_computed(mask):
    node = cg.Var(mask.shape, "bool").assign(mask)
    compare_item(X, mask, -1.0, node)
    compare_item(X, (mask, ...), -1.0, (node, ...))
    if mask.ndim == 1:
        compare_item(X, mask, np.arange(4.0) * 9, node)


def test_an_array_without_elements_stays():
    compare_item(np.zeros((0, 3)), np.zeros((0, 3), bool), 5.0, cg.Var((0, 3), "bool").assign(np.zeros((0, 3), bool)))
    compare_item(np.zeros((0, 3)), slice(None), 5.0)


def test_what_does_not_fit_is_refused():
    x, mask = cg.Var((3, 4)), cg.Var((3, 4), "bool")
    with pytest.raises(DTypeError, match="np.real"):
        with_item(x, 0, cg.Var((), "complex128"))
    with pytest.raises(ShapeError, match="one value for each True"):
        with_item(x, mask, np.ones(5))
    with pytest.raises(ShapeError, match="with other indices"):
        with_item(x, (mask[:, 0], 1), 0.0)
    with pytest.raises(ShapeError, match="of another shape"):
        with_item(x, cg.Var((4,), "bool"), 0.0)
    with pytest.raises(ShapeError):
        with_item(x, slice(2), np.ones((3, 4)))
    with pytest.raises(ShapeError):
        with_item(x, [0, 1], np.ones((2, 2, 4)))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32", "complex64"])
@pytest.mark.parametrize("value", [
    3, True, 2.75, -1.5, np.float32(2.5), np.array([0.0, 2.5, -3.5, 1.0]), np.array([0, 1, 2, 3]), [True, False, 2, 3],
], ids=repr)  # fmt: skip
def test_values_are_converted_to_the_dtype_of_the_array(dtype, value):
    if isinstance(value, float) and "int" in dtype:
        with pytest.raises(DTypeError, match=f"cannot hold {value}"):
            with_item(cg.Var(X.shape, dtype), 0, value)
        return
    for index in (0, [0, 2], (slice(None), slice(None))):
        compare_item(X.astype(dtype), index, value)
    if np.ndim(value) == 0:
        compare_item(X.astype(dtype), MASK, value, cg.Var(MASK.shape, "bool").assign(MASK))
