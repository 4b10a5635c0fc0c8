"""What PTX instructions compute, against Python's integers and fractions: every width, extremes, signs, NaN."""

import math

import numpy as np
import pytest

from cgraph.engine.cuda.simulator import meaning
from cgraph.engine.cuda.simulator.text import Fault

RNG = np.random.default_rng(0)
EXTREMES = [0, 1, 2, 3, -1, -2, -3, 100, -100]
every_width = pytest.mark.parametrize("dtype", ["u2", "i2", "u4", "i4", "u8", "i8"])


def wrapped(x: int, dtype) -> int:
    """The number of this dtype that has the low bits of `x`."""
    info = np.iinfo(dtype)
    return (x - info.min) % (1 << info.bits) + info.min


def numbers(dtype: str) -> np.ndarray:
    """The ends of a dtype, small numbers, and some others."""
    info = np.iinfo(dtype)
    some = [*EXTREMES, info.min, info.min + 1, info.max, info.max - 1, 1 << (info.bits - 1), 1 << (info.bits // 2)]
    return np.array([wrapped(x, dtype) for x in (*some, *RNG.integers(info.min, info.max, 8, dtype).tolist())], dtype)


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Each number with each."""
    x = numbers(dtype)
    return np.repeat(x, len(x)), np.tile(x, len(x))


@every_width
def test_division_truncates_and_the_remainder_has_the_dividends_sign(dtype):
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        got = zip(a.tolist(), b.tolist(), meaning.divide(a, b).tolist(), meaning.remainder(a, b).tolist())
    for x, y, q, r in got:
        if y == 0:
            assert q == wrapped(-1, dtype)
            continue
        want = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        assert q == wrapped(want, dtype) and r == wrapped(x - want * y, dtype), (x, y)


def test_floats_are_divided_as_numpy_divides():
    a, b = np.array([1, -1, 0, 5], "f4"), np.array([0, 0, 0, 3], "f4")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(meaning.divide(a, b), a / b)


@every_width
def test_shifts_by_the_width_or_more_leave_zeros_or_the_sign(dtype):
    bits = np.iinfo(dtype).bits
    for by in (0, 1, bits // 2, bits - 1, bits, bits + 1, 200):
        a = numbers(dtype)
        left, right = (f(a, np.full(len(a), by, "u4")).tolist() for f in (meaning.shift_left, meaning.shift_right))
        assert left == [wrapped(x << by, dtype) for x in a.tolist()], by
        assert right == [x >> by for x in a.tolist()], by


@pytest.mark.parametrize("dtype", ["u4", "i4", "u8", "i8"])
def test_the_upper_half_of_a_product(dtype):
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        got = meaning.high_product(a, b)
    assert got.dtype == a.dtype
    assert got.tolist() == [x * y >> np.iinfo(dtype).bits for x, y in zip(a.tolist(), b.tolist())]


@pytest.mark.parametrize("dtype", ["u2", "i2", "u4", "i4"])
def test_a_wide_product_is_whole(dtype):
    a, b = pairs(dtype)
    got = meaning.wide_product(a, b)
    assert got.dtype.itemsize == 2 * a.dtype.itemsize and got.dtype.kind == a.dtype.kind
    assert got.tolist() == [x * y for x, y in zip(a.tolist(), b.tolist())]


@pytest.mark.parametrize("dtype", ["u4", "i4", "u8", "i8"])
def test_a_field_of_bits_keeps_its_sign_where_numbers_have_one(dtype):
    a, bits = numbers(dtype), np.iinfo(dtype).bits
    for at, count in ((0, bits), (0, 1), (3, 7), (bits - 5, 5), (bits - 1, 1)):
        got = meaning.bit_field(a, np.full(len(a), at, "u4"), np.full(len(a), count, "u4")).tolist()
        fields = [(x >> at) & ((1 << count) - 1) for x in a.tolist()]
        if dtype[0] == "i":
            fields = [x - (1 << count) if x >> (count - 1) else x for x in fields]
        assert got == fields, (at, count)


@pytest.mark.parametrize("dtype", ["u4", "u8"])
def test_zeros_before_the_highest_bit_are_counted(dtype):
    bits = np.iinfo(dtype).bits
    a = np.array([0, *(1 << i for i in range(bits)), *((2 << i) - 1 for i in range(bits))], dtype)
    assert meaning.leading_zeros(a).tolist() == [bits - x.bit_length() for x in a.tolist()]


def test_bytes_of_two_words_are_chosen_by_digits():
    a, b = np.full(3, 0x03020100, "u4"), np.full(3, 0x07060504, "u4")
    selector = np.array([0x3210, 0x7654, 0x0725], "u4")
    assert [hex(x) for x in meaning.permute_bytes(a, b, selector)] == ["0x3020100", "0x7060504", "0x70205"]
    for digit in range(4):
        with pytest.raises(Fault, match="repeats signs"):
            meaning.permute_bytes(a, b, np.full(3, 8 << 4 * digit, "u4"))


@pytest.mark.parametrize("source", ["f4", "f8"])
@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"])
def test_floats_saturate_at_both_ends_of_integers_and_nan_is_zero(dtype, source):
    info = np.iinfo(dtype)
    ends = [float(info.min), float(info.max), float(info.max) + 1, float(info.min) - 1, 2.0 * info.max, -3.0 * info.max]
    x = np.array([*ends, np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, 5.75], source)
    want = [0 if math.isnan(v) else info.max if v > info.max else info.min if v < info.min else int(v) for v in
            x.tolist()]  # fmt: skip
    with np.errstate(all="ignore"):
        assert meaning.convert(x, np.dtype(dtype), "rzi").tolist() == want


@pytest.mark.parametrize(("how", "rounded"), [
    ("rni", [-2, -2, -1, 0, 0, 0, 1, 2, 2]), ("rzi", [-2, -1, -1, 0, 0, 0, 1, 1, 2]),
    ("rmi", [-3, -2, -2, -1, 0, 0, 1, 1, 2]), ("rpi", [-2, -1, -1, 0, 0, 1, 2, 2, 3]),
])  # fmt: skip
@pytest.mark.parametrize("to", ["i4", "f4"])
def test_each_rounding_goes_its_way(how, rounded, to):
    x = np.array([-2.5, -1.5, -1.1, -0.5, 0.0, 0.25, 1.1, 1.5, 2.5], "f4")
    assert meaning.convert(x, np.dtype(to), how).tolist() == rounded


ORDERS = {"eq": (0,), "ne": (-1, 1), "lt": (-1,), "le": (-1, 0), "gt": (1,), "ge": (0, 1)}


@pytest.mark.parametrize("name", ORDERS)
def test_a_comparison_with_nan_is_false_and_its_unordered_form_is_true(name):
    a, b = np.array([1, 2, 2, np.nan, 1, np.nan]), np.array([2, 2, 1, 1, np.nan, np.nan])
    ordered = [order in ORDERS[name] for order in (-1, 0, 1)]
    assert meaning.COMPARE[name](a, b).tolist() == [*ordered, False, False, False]
    assert meaning.COMPARE[f"{name}u"](a, b).tolist() == [*ordered, True, True, True]
    assert meaning.COMPARE["nan"](a, b).tolist() == [False] * 3 + [True] * 3
    assert meaning.COMPARE["num"](a, b).tolist() == [True] * 3 + [False] * 3


def test_classes_minima_and_copied_signs_of_numbers_that_are_special():
    x = np.array([np.inf, -np.inf, np.nan, 0.0, 3.0])
    assert meaning.CLASS["infinite"](x).tolist() == [True, True, False, False, False]
    assert meaning.CLASS["finite"](x).tolist() == [False, False, False, True, True]
    assert meaning.CLASS["notanumber"](x).tolist() == [False, False, True, False, False]
    assert meaning.CLASS["number"](x).tolist() == [True, True, False, True, True]
    assert [meaning.UFUNCS[n](np.nan, 2.0) for n in ("min", "max")] == [2, 2]
    signs = meaning.FUNCTIONS["copysign"](np.array([-0.0, 0.0, -5.0]), np.array([2.0, -2.0, 2.0]))
    assert signs.tolist() == [-2, 2, -2]  # the sign of the first
    assert meaning.FUNCTIONS["rcp"](np.array([4], "f4")).tolist() == [0.25]
    assert meaning.FUNCTIONS["popc"](np.array([0, 255, 2**32 - 1], "u4")).tolist() == [0, 8, 32]
