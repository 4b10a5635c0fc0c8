"""Building blocks of the vector mathematics: exact pairs, exponents, one rounding of subnormals, rare branches."""

from fractions import Fraction

import numpy as np
import pytest

from cgraph.kernels.llvm import vfloat
from cgraph.kernels.llvm.values import Val
from tests.support.emitted import applied, every_target
from tests.support.primitives import every_float

every_width = pytest.mark.parametrize("lanes", [0, 16])


def integer_of(dtype):
    return {"f4": "i4", "f8": "i8"}[dtype]


def normal(dtype, seed=0, n=64):
    rng = np.random.default_rng(seed)
    return (rng.choice([-1, 1], n) * 2.0 ** rng.uniform(-20, 20, n)).astype(dtype)


@every_target
@every_float
@every_width
def test_sums_and_products_are_exact_with_their_errors(lanes, dtype, target):
    x, y = normal(dtype), normal(dtype, 1)
    large, small = np.maximum(np.abs(x), np.abs(y)), np.minimum(np.abs(x), np.abs(y)) * np.sign(y)
    pairs = (
        (lambda k, a, b: vfloat.two_sum(a, b), x, y, np.add),
        (lambda k, a, b: vfloat.fast_two_sum(a, b), large, small, np.add),
        (vfloat.two_mul, x, y, np.multiply),
    )
    for write, a, b, f in pairs:
        rounded, error = applied(write, target, a, b, dtypes=(dtype, dtype), lanes=lanes)
        np.testing.assert_array_equal(rounded, f(a, b))
        exact = [f(Fraction(float(i)), Fraction(float(j))) for i, j in zip(a, b)]
        assert [Fraction(float(i)) + Fraction(float(j)) for i, j in zip(rounded, error)] == exact
        assert error.any()


@every_target
@every_float
def test_halves_have_half_the_bits_and_sum_to_the_number(dtype, target):
    x = normal(dtype)
    high, low = applied(lambda k, a: vfloat.halves(a), target, x, dtypes=(dtype, dtype))
    np.testing.assert_array_equal(high + low, x)
    for half in (high, low):
        assert all(Fraction(float(h)) ** 2 == Fraction(float(h * h)) for h in half)


@every_target
@every_float
@every_width
@pytest.mark.parametrize("f", [vfloat.horner, vfloat.estrin])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_a_polynomial_has_its_coefficients_from_the_lowest_up(count, f, lanes, dtype, target):
    x = np.arange(-8, 8).astype(dtype)
    coefficients = [2.0, -3.0, 5.0, 7.0, -1.0, 1.0, 3.0, -2.0][:count]  # small integers: no rounding
    want = sum(c * x.astype("f8") ** i for i, c in enumerate(coefficients))
    got = applied(lambda k, v: f(k, v, coefficients), target, x, lanes=lanes)
    np.testing.assert_array_equal(got, np.broadcast_to(want, x.shape).astype(dtype))


@every_target
@every_float
def test_nearest_rounds_halves_to_even_as_a_float_and_as_an_integer(dtype, target):
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.49, -3.51, 0, 1e6, -1e6, 7, 0.25, -0.75, 100.5, 101.5], dtype)
    whole, n = applied(vfloat.nearest, target, x, dtypes=(dtype, integer_of(dtype)))
    np.testing.assert_array_equal(whole, np.rint(x))
    np.testing.assert_array_equal(n, np.rint(x).astype(n.dtype))


@every_target
@every_float
def test_signs_are_read_and_flipped_also_of_zeros_infinities_and_nan(dtype, target):
    x = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 5], dtype)
    signs = applied(vfloat.sign_bit, target, x, dtypes=(integer_of(dtype),))
    np.testing.assert_array_equal(signs, np.where(np.signbit(x), np.iinfo(signs.dtype).min, 0))
    y = applied(lambda k, a, b: vfloat.flip_sign(k, a, vfloat.sign_bit(k, b)), target, x, x[::-1].copy())
    np.testing.assert_array_equal(np.signbit(y), np.signbit(x) ^ np.signbit(x[::-1]))
    np.testing.assert_array_equal(np.abs(y), np.abs(x))
    np.testing.assert_array_equal(applied(vfloat.magnitude, target, x), np.abs(x))


@every_target
@every_float
def test_powers_of_two_and_small_integers_of_every_size(dtype, target):
    bias, whole = (127, integer_of(dtype)) if dtype == "f4" else (1023, integer_of(dtype))
    n = np.array([1 - bias, -bias + 2, -1, 0, 1, 7, bias - 1, bias], whole)
    got = applied(lambda k, m: vfloat.power_of_two(k, m, dtype), target, n, dtypes=(dtype,))
    np.testing.assert_array_equal(got, np.ldexp(np.ones(8, dtype), n))
    n = np.array([0, 1, -1, 1074, -1074, 2**21, -(2**21), 12345], whole)
    np.testing.assert_array_equal(
        applied(lambda k, m: vfloat.int_to_float(k, m, dtype), target, n, dtypes=(dtype,)), n.astype(dtype)
    )


@every_target
@every_float
@pytest.mark.parametrize("lanes", [0, 8, 16, 32])
def test_scale_rounds_once_also_into_subnormal_numbers_and_beyond_the_range(lanes, dtype, target):
    bits, bias = (23, 127) if dtype == "f4" else (52, 1023)
    x = (1 + np.random.default_rng(0).uniform(-0.3, 0.4, 64)).astype(dtype)
    ends = [1 - bias - bits, -bias - bits, -bias, 1 - bias, -bias - 3, 0, 5, bias, bias + 1, -bias - bits - 1]
    n = np.resize(np.array(ends, integer_of(dtype)), 64)
    with np.errstate(over="ignore"):
        want = np.ldexp(x, n)
    np.testing.assert_array_equal(applied(vfloat.scale, target, x, n, dtypes=(dtype,), lanes=lanes), want)


@every_target
@every_float
def test_the_mantissa_is_next_to_1_whatever_the_exponent(dtype, target):
    info = np.finfo(dtype)
    tiny = info.smallest_subnormal
    ends = [1, 2, 0.70710677, 0.7071069, 1.4142135, 1.4142137, info.max, info.tiny, tiny, 3 * tiny, info.tiny / 2, 7e5]
    x = np.array([*ends, 0.1, 10, 1e-30, 1e30], dtype)
    m, e = applied(vfloat.split_exponent, target, x, dtypes=(dtype, dtype))
    np.testing.assert_array_equal(np.ldexp(m.astype(np.longdouble), e.astype(int)), x.astype(np.longdouble))
    assert (m >= dtype_root(dtype, 0.5)).all() and (m < dtype_root(dtype, 2) * (1 + info.eps)).all()


def dtype_root(dtype, x):
    return np.sqrt(np.array(x, dtype))


@every_target
@every_width
def test_the_rare_value_is_in_the_rare_lanes_alone(lanes, target):
    x = np.arange(64, dtype="f4")
    for rare in ((), (5,), (0, 63), range(64)):
        flags = np.isin(np.arange(64), list(rare))

        def write(k, a, flag):
            return vfloat.rarely(k, flag != 0, a * 2.0, lambda: a + 100.0)

        got = applied(write, target, x, flags.astype("u1"), lanes=lanes)
        np.testing.assert_array_equal(got, np.where(flags, x + 100, x * 2))


@every_target
@every_width
def test_a_scalar_function_meets_the_operands_of_its_lane_in_their_order(lanes, target):
    x, y = np.arange(64, dtype="f8"), np.arange(64, dtype="f8") ** 2

    def scalars(k, a, b):
        def f(u: Val, v: Val) -> Val:
            assert not u.lanes and not v.lanes
            return u * 100.0 - v

        return vfloat.lane_by_lane(k, f, a, b)

    np.testing.assert_array_equal(applied(scalars, target, x, y, lanes=lanes), x * 100 - y)


@every_target
def test_the_c_librarys_function_of_float32_is_that_of_float64_rounded_once(target):
    x = np.linspace(0.1, 3, 16).astype("f4")
    got = applied(lambda k, a: vfloat.libm(k, "sin", a), target, x)
    np.testing.assert_array_equal(got, np.sin(x.astype("f8")).astype("f4"))
