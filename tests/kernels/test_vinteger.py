"""Integer primitives where processors trap or LLVM defines nothing: zero divisors, ends of ranges, shifts, powers."""

import numpy as np
import pytest

from tests.support.primitives import computed, every_target

SIGNED, UNSIGNED = ["i1", "i4", "i8"], ["u1", "u4", "u8"]


def wrapped(numbers, dtype):
    """Python's integers, wrapped to a dtype."""
    return np.array([n % 2**64 for n in numbers], "u8").astype(dtype)


@every_target
@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_integer_division_traps_nowhere(dtype, target):
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, 0, 1, 2, 3, 7, info.max - 1, info.max] + [-1, -7] * (dtype[0] == "i")
    x, y = (v.ravel() for v in np.meshgrid(np.array(values, dtype), np.array(values, dtype)))
    a, b = x.astype(object), y.astype(object)
    quotient = [abs(i) // abs(j) * (1 if (i < 0) == (j < 0) else -1) if j else 0 for i, j in zip(a, b)]
    rest = [i - j * q if j else 0 for i, j, q in zip(a, b, quotient)]
    np.testing.assert_array_equal(computed("div", target, x, y), wrapped(quotient, dtype))
    np.testing.assert_array_equal(computed("rem", target, x, y), np.array(rest, object).astype(dtype))


@every_target
@pytest.mark.parametrize("dtype", ["i4", "i8", "u1", "u4"])
def test_shifts_and_powers_of_integers(dtype, target):
    x, y = (v.ravel().astype(dtype) for v in np.meshgrid(np.arange(0, 120, 7), np.arange(0, 70)))
    np.testing.assert_array_equal(computed("shl", target, x, y), np.left_shift(x, y))
    np.testing.assert_array_equal(computed("shr", target, x, y), np.right_shift(x, y))
    np.testing.assert_array_equal(computed("pow", target, x, y), np.power(x, y))


@every_target
@pytest.mark.parametrize("dtype", [*SIGNED, "u1", "u2", "u4", "u8"])
def test_common_divisors_with_both_ends_of_the_dtype(dtype, target):
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    ends = np.array([info.min, info.min + 1, 0, 1, 6, 12, 91, info.max - 1, info.max], dtype)
    values = np.concatenate([ends, rng.integers(info.min, info.max, 12, dtype, endpoint=True)])
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    np.testing.assert_array_equal(computed("gcd", target, x, y), np.gcd(x, y))


@every_target
@pytest.mark.parametrize("dtype", SIGNED)
def test_negative_numbers_keep_their_sign_when_they_are_shifted_right_by_anything(dtype, target):
    bits, info = np.iinfo(dtype).bits, np.iinfo(dtype)
    x, y = (np.array(v, dtype) for v in zip(*[(n, s) for n in (info.min, -5, -1, 5) for s in (0, 1, bits - 1, -1)]))
    want = [int(n) >> (int(s) if 0 <= s < bits else bits - 1) for n, s in zip(x, y)]
    np.testing.assert_array_equal(computed("shr", target, x, y), np.array(want, dtype))
    left = [int(n) << int(s) if 0 <= s < bits else 0 for n, s in zip(x, y)]
    np.testing.assert_array_equal(computed("shl", target, x, y), wrapped(left, dtype))
    beyond = np.full_like(x, bits)
    np.testing.assert_array_equal(computed("shr", target, x, beyond), np.where(x < 0, -1, 0))
    np.testing.assert_array_equal(computed("shl", target, x, beyond), np.zeros_like(x))


@every_target
@pytest.mark.parametrize("dtype", SIGNED)
def test_the_magnitude_of_the_least_integer_is_itself(dtype, target):
    info = np.iinfo(dtype)
    x = np.array([info.min, info.min + 1, -1, 0, 1, info.max], dtype)
    np.testing.assert_array_equal(computed("abs", target, x), np.array([info.min, info.max, 1, 0, 1, info.max], dtype))


@every_target
@pytest.mark.parametrize("dtype", UNSIGNED)
def test_large_numbers_without_signs_are_their_own_magnitude_and_are_divided_without_signs(dtype, target):
    top = np.array([np.iinfo(dtype).max, np.iinfo(dtype).max - 1], dtype)
    np.testing.assert_array_equal(computed("abs", target, top), top)
    np.testing.assert_array_equal(computed("div", target, top, top[::-1].copy()), np.array([1, 0], dtype))
    np.testing.assert_array_equal(computed("shr", target, top, np.array([1, 1], dtype)), top >> 1)


@every_target
@pytest.mark.parametrize("dtype", SIGNED)
def test_powers_with_negative_exponents_are_zero_but_for_units(dtype, target):
    info = np.iinfo(dtype)
    rows = [(n, e) for n in (-2, -1, 0, 1, 2, info.min) for e in (-1, -2, info.min, info.min + 1)]
    x, y = (np.array(v, dtype) for v in zip(*rows))
    want = [0 if abs(n) != 1 else n if e % 2 else 1 for n, e in rows]
    np.testing.assert_array_equal(computed("pow", target, x, y), np.array(want, dtype))


@every_target
@pytest.mark.parametrize("dtype", ["i4", "u1", "u8"])
def test_each_lane_has_a_power_of_its_own(dtype, target):
    """The loop of squares goes on until the last lane is done; an exponent may use every bit."""
    most = int(np.iinfo(dtype).max)
    exponents = [0, 1, 2, 3, 5, 8, 13, most - 1, most, *range(32)]
    x, y = np.full(41, 3, dtype), np.array(exponents, dtype)
    want = [pow(3, e, 2**64) for e in exponents]
    np.testing.assert_array_equal(computed("pow", target, x, y), wrapped(want, dtype))
