"""Complex numbers in registers: parts and joins in order, products and differences, one number or several at a time."""

import numpy as np
import pytest

from cgraph.kernels.llvm.vcomplex import arithmetic, imag, join_parts, pair, parts, real, shuffle_lanes
from tests.support.emitted import applied, every_target

every_dtype = pytest.mark.parametrize("dtype", ["c8", "c16"])
every_width = pytest.mark.parametrize("lanes", [0, 1, 2, 8])


def numbers(dtype, seed=0):
    x = np.random.default_rng(seed).standard_normal((16, 2)).view("c16").ravel().astype(dtype)
    x[:2] = complex(-0.0, np.inf), complex(np.nan, -0.0)
    return x


@every_target
@every_dtype
@every_width
def test_a_number_is_its_parts_in_order(lanes, dtype, target):
    x = numbers(dtype)
    part = x.real.dtype.str[1:]
    got = applied(lambda k, z: (real(k, z), imag(k, z)), target, x, dtypes=(part, part), lanes=lanes)
    np.testing.assert_array_equal(got[0].view("u1"), x.real.copy().view("u1"))
    np.testing.assert_array_equal(got[1].view("u1"), x.imag.copy().view("u1"))
    both = applied(pair, target, x.imag.copy(), x.real.copy(), dtypes=(dtype,), lanes=lanes)
    np.testing.assert_array_equal(both.imag.copy().view("u1"), x.real.copy().view("u1"))
    np.testing.assert_array_equal(both.real.copy().view("u1"), x.imag.copy().view("u1"))


@every_target
@every_dtype
@every_width
def test_alternating_parts_join_to_the_same_numbers(lanes, dtype, target):
    x = numbers(dtype)
    got = applied(lambda k, z: join_parts(k, parts(k, z), z.lanes), target, x, lanes=lanes)
    np.testing.assert_array_equal(got.view("u1"), x.view("u1"))


@every_target
@every_dtype
@every_width
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_arithmetic_is_numpys_to_the_bit(name, lanes, dtype, target):
    x, y = numbers(dtype)[2:10].copy(), numbers(dtype, 1)[2:10].copy()
    want = {"add": x + y, "sub": x - y}.get(name)
    if want is None:
        want = np.empty_like(x)
        want.real, want.imag = x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real
    got = applied(lambda k, a, b: arithmetic(k, name, a, b), target, x, y, lanes=lanes)
    np.testing.assert_array_equal(got, want)


@every_target
def test_lanes_are_shuffled_from_both_sides(target):
    x, y = np.arange(4, dtype="i4"), np.arange(10, 14, dtype="i4")
    got = applied(lambda k, a, b: shuffle_lanes(k, a, b, [7, 0, 4, 3]), target, x, y, lanes=4)
    assert got.tolist() == [13, 0, 10, 3]
