"""Integer functions: set bits of every width, common divisors at zero and the ends, and what is refused."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError
from cgraph.ir.graph import apply
from cgraph.ops.whole import Gcd
from tests.support.computed import computed

WIDTHS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", WIDTHS)
def test_set_bits_of_the_absolute_value(dtype):
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.min // 2, limits.max, limits.max // 3, 0, 1, 85, 127], dtype)
    got = computed(cg.bitwise_count(cg.Var(values)))
    assert got.dtype == "uint8"
    assert got.tolist() == [abs(int(v)).bit_count() for v in values]


def test_bool_has_its_one_bit_and_floats_have_none():
    assert computed(cg.bitwise_count(cg.Var(np.array([True, False])))).tolist() == [1, 0]
    with pytest.raises(DTypeError, match="bitwise_count needs integers or bool, not float32"):
        cg.bitwise_count(cg.Var((2,)))


def test_common_divisors_are_numpys():
    x, y = (a.ravel() for a in np.meshgrid(np.array([0, 1, -4, 6, 12, 2**62, -9]), np.array([0, -6, 9, 2**61, 8])))
    np.testing.assert_array_equal(computed(cg.gcd(cg.Var(x), cg.Var(y))), np.gcd(x, y))
    assert cg.gcd(cg.Var((2,), "int8"), cg.Var((3, 1), "uint8")).spec == cg.Var((3, 2), "int16").spec


def test_divisors_of_what_is_no_integer_are_refused():
    for x in (cg.Var((2,)), cg.Var((2,), bool)):
        with pytest.raises(DTypeError, match=f"gcd needs integers, not {x.dtype}; convert with astype"):
            apply(Gcd(), x, x)


def test_neither_operand_has_a_gradient():
    x = cg.Var(np.array([4.0]))
    counted = cg.bitwise_count(x.astype("int32")).astype("float64") + cg.gcd(x.astype("int64"), 2).astype("float64")
    assert computed(cg.gradient(cg.sum(counted * x), x)).tolist() == [1 + 2]
