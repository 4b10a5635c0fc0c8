"""Fixed-point factors: both ways to round, at halves of either sign and for shifts of either direction, by Python."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError
from cgraph.ir.graph import apply
from cgraph.ops.fixed import FixedProduct, fixed_products
from tests.support.computed import computed

X = np.array([0, 1, -1, 2, -2, 3, -3, 5, -5, 6, -6, 1000, -1000, 2**30, -(2**30), 2**31 - 1, -(2**31)], "int32")
HALF = Fraction(1, 2)


def once(x, factor, shift):
    """Halves rounded up."""
    return floor(Fraction(x * factor) * Fraction(2) ** (shift - 31) + HALF)


def twice(x, factor, shift):
    """To 32 bits, halves up; then to the right, halves away from zero."""
    high = floor(Fraction((x << max(shift, 0)) * factor, 2**31) + HALF)
    exact = Fraction(high, 2 ** max(-shift, 0))
    return floor(exact + HALF) if exact >= 0 else -floor(-exact + HALF)


@pytest.mark.parametrize("shift", [0, -1, -2, -7, -31])
@pytest.mark.parametrize("factor", [2**30, 2**30 + 1, 2**31 - 1, 1, 0])
def test_right_shifts_are_rounded_as_said(factor, shift):
    factors, shifts = (np.full(X.shape, v, "int32") for v in (factor, shift))
    operands = [cg.Var(v) for v in (X, factors, shifts)]
    assert computed(cg.fixed_product(*operands)).tolist() == [twice(int(x), factor, shift) for x in X]
    assert computed(cg.fixed_product(*operands, once=True)).tolist() == [once(int(x), factor, shift) for x in X]


def test_left_shifts_come_before_the_product():
    x = np.arange(-5, 6, dtype="int32")
    for shift in (1, 3, 20):
        got = computed(cg.fixed_product(cg.Var(x), 2**30 + 7, shift))
        assert got.tolist() == [twice(int(v), 2**30 + 7, shift) for v in x]
        got = computed(cg.fixed_product(cg.Var(x), 2**30 + 7, shift, once=True))
        assert got.tolist() == [once(int(v), 2**30 + 7, shift) for v in x]


def test_both_ways_differ_at_negative_halves():
    x = cg.Var(np.array([-2, 2], "int32"))  # times a quarter
    assert computed(cg.fixed_product(x, 2**30, -1)).tolist() == [-1, 1]
    assert computed(cg.fixed_product(x, 2**30, -1, once=True)).tolist() == [0, 1]
    assert cg.fixed_product(x, 5, 0) is not cg.fixed_product(x, 5, 0, True)


def test_factors_of_channels_broadcast_and_another_dtype_is_refused():
    x, factors = np.array([[4, 8], [-4, -8]], "int32"), np.array([2**30, 2**29], "int32")
    got = computed(cg.fixed_product(cg.Var(x), cg.Var(factors), np.array([[0], [1]], "int32")))
    assert got.tolist() == [[2, 2], [-4, -4]]
    np.testing.assert_array_equal(fixed_products(x, factors, np.zeros((), "int32"), True), [[2, 2], [-2, -2]])
    with pytest.raises(DTypeError, match="operands are int32, int64, int32, but must be int32; use astype"):
        apply(FixedProduct(False), cg.Var((2,), "int32"), cg.Var((2,), "int64"), cg.Var((2,), "int32"))
