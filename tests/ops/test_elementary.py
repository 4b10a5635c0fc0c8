"""Exponential, trigonometric and error functions: values by Python's math, slopes by hand, ends and special values."""

import math

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.ops.elementary import Sqrt, complex_expm1, root_of_one_less_square, root_of_squares
from tests.support.computed import computed, float64, gradients
from tests.support.tolerance import assert_near

INF, NAN = math.inf, math.nan
ROOT_OF_PI = math.sqrt(math.pi)
CALCULUS = {  # the function in Python's math, its slope, and where both are known
    "exp": (math.exp, math.exp, (-2.0, 0.0, 1.5)),
    "exp2": (lambda x: 2.0**x, lambda x: math.log(2) * 2.0**x, (-2.0, 0.0, 1.5)),
    "expm1": (math.expm1, math.exp, (-2.0, 1e-9, 1.5)),
    "log": (math.log, lambda x: 1 / x, (0.25, 3.0)),
    "log2": (math.log2, lambda x: 1 / (x * math.log(2)), (0.25, 3.0)),
    "log10": (math.log10, lambda x: 1 / (x * math.log(10)), (0.25, 3.0)),
    "log1p": (math.log1p, lambda x: 1 / (1 + x), (-0.5, 1e-9, 3.0)),
    "sqrt": (math.sqrt, lambda x: 0.5 / math.sqrt(x), (0.25, 3.0)),
    "cbrt": (lambda x: math.copysign(abs(x) ** (1 / 3), x), lambda x: abs(x) ** (-2 / 3) / 3, (-8.0, 0.25, 3.0)),
    "sin": (math.sin, math.cos, (-2.0, 0.5)),
    "cos": (math.cos, lambda x: -math.sin(x), (-2.0, 0.5)),
    "tan": (math.tan, lambda x: 1 / math.cos(x) ** 2, (-2.0, 0.5)),
    "arcsin": (math.asin, lambda x: 1 / math.sqrt(1 - x * x), (-0.75, 0.5)),
    "arccos": (math.acos, lambda x: -1 / math.sqrt(1 - x * x), (-0.75, 0.5)),
    "arctan": (math.atan, lambda x: 1 / (1 + x * x), (-2.0, 0.5)),
    "sinh": (math.sinh, math.cosh, (-2.0, 0.5)),
    "cosh": (math.cosh, math.sinh, (-2.0, 0.5)),
    "tanh": (math.tanh, lambda x: 1 - math.tanh(x) ** 2, (-2.0, 0.5)),
    "arcsinh": (math.asinh, lambda x: 1 / math.sqrt(x * x + 1), (-2.0, 0.5)),
    "arccosh": (math.acosh, lambda x: 1 / math.sqrt(x * x - 1), (1.5, 3.0)),
    "arctanh": (math.atanh, lambda x: 1 / (1 - x * x), (-0.75, 0.5)),
    "erf": (math.erf, lambda x: 2 / ROOT_OF_PI * math.exp(-x * x), (-2.0, 0.5)),
    "erfc": (math.erfc, lambda x: -2 / ROOT_OF_PI * math.exp(-x * x), (-2.0, 0.5, 5.0)),
}


@pytest.mark.parametrize("name", CALCULUS)
def test_values_and_slopes_are_those_of_calculus(name):
    function, slope, points = CALCULUS[name]
    x = float64(list(points))
    y = getattr(cg, name)(x)
    assert_near(computed(y), [function(p) for p in points], "float64 formulas")
    assert_near(gradients(y, x), [slope(p) for p in points], "float64 formulas")


ENDS = {
    "exp": [0, INF, 1], "log": [NAN, INF, -INF], "sqrt": [NAN, INF, 0], "cbrt": [-INF, INF, 0], "tanh": [-1, 1, 0],
    "arctan": [-math.pi / 2, math.pi / 2, 0], "erf": [-1, 1, 0], "erfc": [2, 0, 1], "sin": [NAN, NAN, 0],
    "log1p": [NAN, INF, 0], "expm1": [-1, INF, 0], "arccosh": [NAN, INF, NAN], "exp2": [0, INF, 1],
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_infinities_and_zero(name):
    np.testing.assert_array_equal(computed(getattr(cg, name)(float64([-INF, INF, 0.0]))), ENDS[name])
    assert np.isnan(computed(getattr(cg, name)(float64([NAN])))).all()


@pytest.mark.parametrize("name", CALCULUS)
def test_integers_are_computed_in_a_float_of_their_width(name):
    function = getattr(cg, name)
    dtypes = {"bool": "float32", "int8": "float32", "uint16": "float32", "int32": "float64", "int64": "float64"}
    assert {d: str(function(cg.Var((2,), d)).dtype) for d in dtypes} == dtypes
    assert function(cg.Var((0, 2), "float16")).spec == cg.Var((0, 2), "float32").spec


def test_two_operands_are_not_exchanged():
    y, x = float64([3.0, -1.0, 0.0], [4.0, -1.0, 0.0])
    assert_near(computed(cg.arctan2(y, x)), [math.atan2(3, 4), -0.75 * math.pi, 0], "float64 formulas")
    to_y, to_x = gradients(cg.arctan2(y, x), y, x)
    assert_near(to_y, [4 / 25, -0.5, 0], "float64 formulas")
    assert_near(to_x, [-3 / 25, 0.5, 0], "float64 formulas")
    to_y, to_x = gradients(cg.hypot(y, x), y, x)
    assert_near(to_y, [0.6, -math.sqrt(0.5), 0], "float64 formulas")
    assert_near(to_x, [0.8, -math.sqrt(0.5), 0], "float64 formulas")
    assert_near(computed(cg.hypot(float64([3e200]), float64([4e200]))), [5e200], "float64 formulas")


def test_remainders_have_the_sign_of_the_first_operand():
    x, y = float64([7.5, -7.5, 7.5], [2.0, 2.0, -2.0])
    assert computed(cg.fmod(x, y)).tolist() == [1.5, -1.5, 1.5]
    assert [g.tolist() for g in gradients(cg.fmod(x, y), x, y)] == [[1, 1, 1], [-3, 3, 3]]
    whole = cg.fmod(cg.Var(np.array([7, -7, 5])), cg.Var(np.array([3, 3, 0])))
    assert computed(whole).tolist() == [1, -1, 0]
    assert cg.fmod(cg.Var((1,), bool), cg.Var((1,), bool)).dtype == "int8"


def test_the_sign_of_the_second_operand_is_copied():
    x, y = float64([1.5, -1.5, 0.0], [-0.0, 2.0, -3.0])
    got = computed(cg.copysign(x, y))
    assert got.tolist() == [-1.5, 1.5, 0] and np.signbit(got[2])
    assert [g.tolist() for g in gradients(cg.copysign(x, y), x, y, seed=[1, 10, 0])] == [[-1, -10, 0], [0, 0, 0]]


def test_a_flat_root_has_no_slope_at_zero_and_another_has_an_infinite_one():
    x = float64([0.0, 4.0])
    assert gradients(root_of_squares(x), x).tolist() == [0, 0.25]
    assert gradients(cg.sqrt(x), x).tolist() == [INF, 0.25]
    assert cg.sqrt(x) is apply(Sqrt(False), x) is not root_of_squares(x)


@pytest.mark.parametrize("name", "exp expm1 log sqrt sin cos tanh arcsin arccosh".split())
def test_complex_slopes_are_difference_quotients(name):
    z, step = cg.Var(np.array([0.5 + 0.25j, -0.75 - 0.5j, 2 + 1j])), 1e-5
    y = getattr(cg, name)(z)
    total = cg.real(cg.sum(y))
    got = computed(cg.gradient(total, z))
    at = z.value
    function = getattr(np, name)
    assert_near(computed(y), function(at), "float64 formulas")
    assert_near(got, (function(at + step) - function(at - step)) / (2 * step), "central differences of a sum")


def test_roots_beside_a_branch_cut_keep_the_sign_of_zero():
    above, below = complex(2, 0.0), complex(2, -0.0)
    z = cg.Var(np.array([above, below]))
    got = computed(root_of_one_less_square(z))
    assert_near(got * got, [-3, -3], "float64 formulas near zero")
    assert got[0].imag == -got[1].imag != 0
    assert_near(computed(root_of_one_less_square(float64([0.6]))), [0.8], "float64 formulas")


def test_expm1_of_small_complex_numbers_does_not_cancel():
    z = np.array([1e-12 + 1e-12j, 1e-12, complex(40, 1), complex(-INF, 0)])
    got = complex_expm1(z)
    assert_near(got[:2], z[:2] + z[:2] ** 2 / 2, "float64 formulas")
    assert_near(got[2], np.exp(z[2]) - 1, "float64 formulas")
    assert got[3] == -1
