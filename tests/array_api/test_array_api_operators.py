"""Operators of arrays: both sides, in place, numbers that a dtype cannot hold, and what is no operand."""

import operator

import numpy as np
import pytest

from cgraph import array_api as xp
from cgraph.array_api.operators import ONE, TWO, fits

X, Y = np.array([[7, 2], [5, 3]]), np.array([[2, 3], [1, 2]])
NAMES = [*TWO, "lt", "le", "gt", "ge", "eq", "ne"]


def python(name):
    return getattr(operator, f"{name}_" if name in ("and", "or") else name)


@pytest.mark.parametrize("name", NAMES)
def test_operators_of_two_are_numpys_on_both_sides(name):
    f = python(name)
    x, y = (X.astype(float), Y.astype(float)) if name == "truediv" else (X, Y)
    np.testing.assert_array_equal(f(xp.asarray(x), xp.asarray(y)), f(x, y))
    if name != "matmul":
        np.testing.assert_array_equal(f(xp.asarray(x), 2), f(x, 2))
        np.testing.assert_array_equal(f(3, xp.asarray(y)), f(3, y))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("eq", "ne")])
def test_what_is_no_operand_is_left_to_python(name):
    with pytest.raises(TypeError, match="unsupported operand|not supported between"):
        python(name)(xp.asarray(X), object())
    assert (xp.asarray(X) == "text") is False and (xp.asarray(X) != "text") is True


@pytest.mark.parametrize("name", [name for name in TWO if name not in ("truediv", "matmul")])
def test_operators_in_place_change_the_array_and_no_other(name):
    f = getattr(operator, f"i{name}")
    x = xp.asarray(X)
    same, before = x, x + 0
    want = X.copy()
    want = f(want, Y)
    got = f(x, xp.asarray(Y))
    assert got is same
    np.testing.assert_array_equal(same, want)
    np.testing.assert_array_equal(before, X)


def test_an_operator_in_place_keeps_dtype_and_shape():
    x = xp.asarray(np.ones(2, "int8"))
    with pytest.raises(TypeError, match=r"int64\[2\] does not fit into int8\[2\]. Use x = x op y"):
        x += xp.asarray([1, 2])
    with pytest.raises(TypeError, match=r"int8\[3,? ?2\] does not fit into int8\[2\]"):
        x += xp.asarray(np.ones((3, 2), "int8"))
    with pytest.raises(TypeError, match="does not fit into int64"):
        y = xp.asarray(X)
        y /= xp.asarray(X)
    assert np.asarray(x).tolist() == [1, 1]


def test_operators_of_one():
    x = xp.asarray(X)
    for name in ONE:
        f = getattr(operator, name)
        np.testing.assert_array_equal(f(x), f(X))
    np.testing.assert_array_equal(x.T, X.T)
    stack = np.arange(12).reshape(2, 3, 2)
    np.testing.assert_array_equal(xp.asarray(stack).mT, stack.swapaxes(1, 2))


ARRAYS = {d: xp.asarray(np.ones(1, d)) for d in ("bool", "uint8", "int64", "float32", "complex64")}


@pytest.mark.parametrize("number, holds", [
    (True, ["bool"]), (3, ["uint8", "int64", "float32", "complex64"]), (1.5, ["float32", "complex64"]),
    (2j, ["float32", "complex64"]),
])  # fmt: skip
def test_numbers_combine_with_dtypes_of_their_kind(number, holds):
    for dtype, x in ARRAYS.items():
        if dtype in holds:
            assert fits(x, number)
        else:
            with pytest.raises(TypeError, match=rf"{dtype} cannot hold .*. Convert the array first, as with xp.astype"):
                fits(x, number)
    assert fits(ARRAYS["bool"], ARRAYS["float32"]) and not fits(ARRAYS["int64"], "a")
    assert not fits(ARRAYS["int64"], np.int64(3))


def test_the_namespace_of_an_array():
    x = xp.asarray(X)
    assert x.__array_namespace__() is xp is x.__array_namespace__(api_version="2024.12")
    with pytest.raises(ValueError, match="there is no version '1999' here; use '2024.12'"):
        x.__array_namespace__(api_version="1999")
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)], ids=str)
def test_only_a_matrix_has_a_transpose(shape):
    with pytest.raises(ValueError):
        np.asarray(xp.asarray(np.zeros(shape)).T)
    assert xp.asarray(np.zeros((2, 3))).T.shape == (3, 2)


@pytest.mark.parametrize("version", [None, "2021.12", "2022.12", "2023.12", "2024.12"])
def test_every_version_of_the_standard_up_to_this_one_is_the_namespace(version):
    assert xp.asarray(1).__array_namespace__(api_version=version) is xp and xp.__array_api_version__ == "2024.12"
