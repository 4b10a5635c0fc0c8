"""Functions of lists: signatures, numbers beside arrays, order of complex numbers, and what differs from NumPy."""

import inspect

import numpy as np
import pytest

from cgraph import array_api as xp
from cgraph.array_api.array import Array
from cgraph.array_api.functions import FUNCTIONS, ONE, OTHERS, TWO, beside, numbers, one_of_each, ordered
from tests.support.tolerance import assert_near

INF, NAN = np.inf, np.nan
F4, I1 = xp.asarray(np.ones(2, "float32")), xp.asarray(np.ones(2, "int8"))


def test_each_name_has_its_signature():
    rows = one_of_each("all any: x, /\nsum: x, /, *, axis=None\n")
    assert rows == {"all": "x, /", "any": "x, /", "sum": "x, /, *, axis=None"}
    assert (
        str(inspect.signature(FUNCTIONS["sin"])) == "(x, /)"
        and str(inspect.signature(FUNCTIONS["add"])) == "(x1, x2, /)"
    )
    assert str(inspect.signature(FUNCTIONS["std"])) == "(x, /, *, axis=None, correction=0.0, keepdims=False)"
    assert str(inspect.signature(FUNCTIONS["searchsorted"])) == "(x1, x2, /, *, side='left', sorter=None)"
    assert set(FUNCTIONS) == {*ONE.split(), *TWO.split(), *one_of_each(OTHERS)}


def test_a_number_beside_an_array_takes_its_dtype():
    x, two = numbers(F4, 2)
    assert x is F4 and isinstance(two, Array) and (two.dtype, two.shape) == ("float32", ())
    two, x = numbers(True, I1)
    assert x is I1 and two.dtype == "int8"
    assert beside(2.5, I1).dtype == "float64" and beside(2j, F4).dtype == "complex64"
    assert beside(2, 3) == 2 and beside(F4, I1) is F4 and beside(np.float64(2), F4).dtype == "float64"


def test_complex_numbers_have_no_order():
    z = xp.asarray([1j])
    for pair in ((z, F4), (F4, z), (F4, 1j)):
        with pytest.raises(TypeError, match="complex numbers have no order; compare their magnitudes or parts"):
            ordered(*pair)
    for name in ("greater", "less_equal", "maximum", "minimum"):
        with pytest.raises(TypeError, match="no order"):
            FUNCTIONS[name](z, z)
    assert np.asarray(FUNCTIONS["equal"](z, z)).tolist() == [True]
    assert ordered(F4, 3)[1].dtype == "float32"


def test_a_quotient_of_infinities_is_divided_as_the_standard_says():
    x, y = np.array([INF, -INF, INF, 5, -5, 0, 7]), np.array([2.0, 2, INF, INF, INF, -INF, -2])
    got = np.asarray(FUNCTIONS["floor_divide"](xp.asarray(x), xp.asarray(y)))
    np.testing.assert_array_equal(got, [INF, -INF, NAN, 0, -0.0, -0.0, -4])
    assert np.signbit(got[3:6]).tolist() == [False, True, True]
    whole = FUNCTIONS["floor_divide"](xp.asarray([7, -7]), xp.asarray([2, 2]))
    assert whole.dtype == "int64" and np.asarray(whole).tolist() == [3, -4]


def test_tanh_far_above_the_real_axis_is_one_whatever_the_angle():
    z = np.array([complex(INF, 2.0), complex(INF, 100.0), complex(1, 1)])
    got = np.asarray(FUNCTIONS["tanh"](xp.asarray(z)))
    assert got[:2].tolist() == [1, 1] and not np.signbit(got[:2].imag).any()
    assert_near(got[2], np.tanh(1 + 1j), "float64 formulas")
    assert np.asarray(FUNCTIONS["tanh"](xp.asarray([INF, -INF]))).tolist() == [1, -1]


def test_functions_are_lazy_and_keep_their_names():
    y = FUNCTIONS["add"](F4, 3)
    assert y.is_lazy and y.dtype == "float32" and np.asarray(y).tolist() == [4, 4]
    assert FUNCTIONS["add"].__name__ == "add" and FUNCTIONS["cumulative_sum"].__name__ == "cumulative_sum"
    with pytest.raises(TypeError):
        FUNCTIONS["add"](F4)
    with pytest.raises(TypeError):
        FUNCTIONS["sum"](F4, 0)  # axis by name only


def test_tanh_at_infinity_is_numpys_on_the_real_axis_and_below_it():
    """With the sign of the zero."""
    z = np.array([complex(INF, y) for y in (-0.0, 0.0, -1.0, -2.0, -100.0)] + [complex(-INF, 1.0), complex(-INF, -1.0)])
    got, want = np.asarray(FUNCTIONS["tanh"](xp.asarray(z))), np.tanh(z)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got.imag), np.signbit(want.imag))
    above = np.asarray(FUNCTIONS["tanh"](xp.asarray([complex(INF, y) for y in (1e-300, 1.0, 2.0, 1e300)])))
    assert (above == 1).all() and not np.signbit(above.imag).any()
