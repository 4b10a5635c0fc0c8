"""Powers: special values as NumPy's, integers that wrap, which exponents are rewritten, both gradients at zero."""

import math

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.ops.arithmetic import Square
from cgraph.ops.elementary import Sqrt
from cgraph.ops.power import MOST_FACTORS, IntegerPower, Power, has_log, multiply_out
from tests.autodiff.differences import check_first
from tests.support.computed import computed, float64, gradients
from tests.support.tolerance import assert_near

SPECIAL = np.array([-np.inf, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0, np.inf, np.nan])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values_are_numpys():
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    np.testing.assert_array_equal(computed(cg.power(cg.Var(x), cg.Var(y))), np.power(x, y))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_integers_wrap_and_negative_exponents_give_zero(dtype):
    x, y = (a.ravel() for a in np.meshgrid(np.array([0, 1, 2, 3, 7, 100]), np.array([0, 1, 2, 5, 63, 127])))
    bits = 8 * np.dtype(dtype).itemsize
    want = [pow(int(a), int(b), 2**bits) for a, b in zip(x, y)]
    got = computed(cg.power(cg.Var(x.astype(dtype)), cg.Var(y.astype(dtype))))
    assert got.astype(f"u{bits // 8}").tolist() == want and got.dtype == dtype
    x, y = (a.ravel() for a in np.meshgrid([2, 3, 4], [2**n for n in range(bits - (dtype[0] == "i"))]))
    got = computed(cg.power(cg.Var(x.astype(dtype)), cg.Var(y.astype(dtype))))  # one bit of the exponent at a time
    assert got.astype(f"u{bits // 8}").tolist() == [pow(int(a), int(b), 2**bits) for a, b in zip(x, y)]
    if dtype[0] == "i":
        low = cg.Var(np.array([-1, 1, 2, -3], dtype))
        assert computed(cg.power(low, cg.Var(np.array([-1, -1, -2, 3], dtype)))).tolist() == [0, 0, 0, -27]


def test_python_exponents_that_need_no_power():
    x, z = cg.Var((2,)), cg.Var((2,), "complex64")
    assert x**1 is x and z**1.0 is z
    assert isinstance((x**2).op, Square) and isinstance((x**0.5).op, Sqrt)
    assert isinstance((x**3).op, Power) and isinstance((x**True).op, Power)
    whole = cg.Var((2,), "int32")
    assert whole**1 is whole and isinstance((whole**2).op, Square) and isinstance((whole**3).op, IntegerPower)
    assert (whole**1.0).dtype == (whole**2.0).dtype == (whole**0.5).dtype == "float64"
    truth = cg.Var(np.array([True, False]))
    assert (truth**1).dtype == "int64" and computed(cg.power(truth, truth)).tolist() == [1, 1]
    assert cg.power(truth, truth).dtype == "int8"


def test_complex_numbers_to_integer_powers_are_multiplied_out():
    z = cg.Var(np.array([1 + 2j, -0.5j]))
    for n in (0, 1, 3, 5, 6, -1, -3):
        assert_near(computed(z**n), z.value**n, "float64 formulas")
        assert not isinstance((z**n).op, Power)
    assert isinstance((z ** (MOST_FACTORS + 1)).op, Power) and not isinstance((z**MOST_FACTORS).op, Power)
    assert isinstance((z**1.5).op, Power)
    assert computed(multiply_out(float64([3.0]), 11)).tolist() == [3.0**11]
    assert computed(multiply_out(float64([3.0]), 0)).tolist() == [1]


def test_both_gradients_by_hand():
    x, y = float64([2.0, 3.0], [3.0, -1.0])
    to_x, to_y = gradients(cg.power(x, y), x, y, seed=[1, 10])
    assert_near(to_x, [12, -10 / 9], "float64 formulas")
    assert_near(to_y, [8 * math.log(2), 10 / 3 * math.log(3)], "float64 formulas")
    check_first(cg.power, [np.array([0.5, 2.0, 3.0]), np.array([-1.5, 0.3, 2.0])])


def test_nothing_is_nan_at_a_base_of_zero():
    x, y = float64([0.0, 0.0, 0.0, -2.0], [0.0, 1.0, 2.0, 2.0])
    to_x, to_y = gradients(cg.power(x, y), x, y)
    assert (to_x.tolist(), to_y.tolist()) == ([0, 1, 0, -4], [0, 0, 0, 0])
    assert gradients(cg.power(x, 3.0), x).tolist() == [0, 0, 0, 12]
    assert gradients(cg.power(x, cg.Const(np.zeros(4))), x).tolist() == [0, 0, 0, 0]
    assert computed(has_log(float64([-1.0, 0.0, 2.0]))).tolist() == [False, False, True]
    assert computed(has_log(cg.Var(np.array([-1j, 0])))).tolist() == [True, False]


def test_a_scalar_exponent_broadcasts_and_the_base_may_be_a_number():
    x = float64([1.0, 2.0, 3.0])
    assert computed(cg.power(2.0, x)).tolist() == [2, 4, 8]
    assert apply(Power(), x, x) is cg.power(x, x)
