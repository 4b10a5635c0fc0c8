"""Conversion of dtypes and arrays: names and codes there and back, one rounding, foreign arrays, odd roundings."""

import numpy as np
import pytest

from cgraph.dtypes.convert import (
    code_of,
    computing_dtype,
    convert,
    dtype_of_code,
    foreign_storage,
    is_storage,
    name_of,
    resolve_array,
    resolve_dtype,
    round_to_odd,
)
from cgraph.dtypes.storage import STORAGE_DTYPES

PLAIN = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64 complex64 complex128".split()
STORED = [row.name for row in STORAGE_DTYPES]
PAIRS = [name for name in STORED if name != "float16"]


@pytest.mark.parametrize("name", [*PLAIN, *STORED])
def test_names_and_codes_lead_back_to_the_dtype(name):
    dtype = resolve_dtype(name)
    assert name_of(dtype) == name and dtype_of_code(code_of(dtype)) == dtype == resolve_dtype(dtype)
    assert is_storage(dtype) == (name in STORED)
    assert computing_dtype(dtype) == ("float32" if name in STORED else dtype)
    assert foreign_storage(dtype) is None


@pytest.mark.parametrize("name", [*PLAIN, *STORED])
def test_a_name_may_be_a_string_of_numpy(name):
    dtype = resolve_dtype(np.array([name])[0])
    assert dtype == resolve_dtype(name) == resolve_dtype(np.str_(code_of(dtype)))


@pytest.mark.parametrize("target", [*PLAIN, *STORED])
@pytest.mark.parametrize("name", [*PLAIN, *STORED])
def test_every_dtype_becomes_every_other_one(name, target):
    """The numbers are exact in all of them, but for True."""
    if "complex" in name and "complex" not in target:
        pytest.skip("NumPy warns of the imaginary parts")
    numbers = np.array([[0, 1, 2], [1, 0, 1]], "float64")
    x = convert(numbers, resolve_dtype(name))
    y = convert(x, resolve_dtype(target))
    assert x.dtype == resolve_dtype(name) and y.dtype == resolve_dtype(target) and y.shape == (2, 3)
    want = numbers.astype(bool).astype("float64") if "bool" in (name, target) else numbers
    np.testing.assert_array_equal(convert(y, np.dtype("complex128")), want)
    assert (y is x) == (x.dtype == y.dtype)


def test_codes_are_numpys_short_ones():
    assert [code_of(np.dtype(n)) for n in ("bool", "uint8", "int64", "float32", "complex128")] == [
        "b1",
        "u1",
        "i8",
        "f4",
        "c16",
    ]
    assert len({code_of(resolve_dtype(n)) for n in (*PLAIN, *STORED)}) == len(PLAIN) + len(STORED)
    for bad in ("nothing", "bfloat17"):
        with pytest.raises(TypeError):
            resolve_dtype(bad)


@pytest.mark.parametrize("name", PAIRS)
def test_arrays_of_ml_dtypes_are_the_same_bits(name):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="the package ml_dtypes is not installed")
    foreign = np.array([1.5, -0.0, 0.25], getattr(ml_dtypes, name))
    assert resolve_dtype(foreign.dtype) == resolve_dtype(name) == foreign_storage(foreign.dtype).dtype
    ours = resolve_array(foreign)
    assert ours.dtype == resolve_dtype(name) and ours.tobytes() == foreign.tobytes() and ours.base is foreign
    assert convert(ours, np.dtype("float64")).tolist() == [1.5, 0, 0.25]
    plain = np.ones(2)
    assert resolve_array(plain) is plain


def test_an_array_of_that_dtype_is_itself():
    for dtype in ("float32", "int8", *STORED):
        x = np.zeros(2, resolve_dtype(dtype))
        assert convert(x, x.dtype) is x


@pytest.mark.parametrize("name", STORED)
def test_whole_numbers_and_arrays_without_axes_go_in_and_out(name):
    dtype = resolve_dtype(name)
    for x in (
        np.array([[0, 1, -2], [8, 4, -16]]),
        np.array(3),
        np.zeros((0, 2), "int8"),
        np.arange(8.0)[::-2].astype("f4"),
    ):
        stored = convert(x, dtype)
        assert stored.dtype == dtype and stored.shape == x.shape
        back = convert(stored, np.dtype("float32"))
        np.testing.assert_array_equal(back, x)
        assert back.dtype == "float32" and convert(stored, np.dtype("int32")).tolist() == x.tolist()
        for other in STORED:
            there = convert(convert(stored, resolve_dtype(other)), np.dtype("float64"))
            np.testing.assert_array_equal(there, x)


def test_bfloat16_rounds_to_nearest_with_ties_to_even():
    unit = 2.0**-7  # of 1
    x = np.array([1 + unit / 2, 1 + 1.5 * unit, 1 + 0.51 * unit, 1 + 0.49 * unit, np.inf, np.nan, -0.0, 3e38, 3.4e38])
    got = convert(convert(x, resolve_dtype("bfloat16")), np.dtype("float64"))
    largest = (2 - unit) * 2.0**127
    np.testing.assert_array_equal(got[:7], [1, 1 + 2 * unit, 1 + unit, 1, np.inf, np.nan, -0.0])
    assert np.signbit(got[6]) and 2.9e38 < got[7] < largest and got[8] == np.inf


def test_float64_is_rounded_once():
    """Through float32 a number just above a tie would become the tie."""
    unit = 2.0**-7
    for sign in (1, -1):
        above, below = sign * (1 + unit / 2 + 2.0**-40), sign * (1 + 1.5 * unit - 2.0**-40)
        got = convert(convert(np.array([above, below]), resolve_dtype("bfloat16")), np.dtype("float64"))
        assert got.tolist() == [sign * (1 + unit)] * 2


def test_whole_numbers_are_rounded_once():
    """In float32, ``2**32 + 2**24 + 1`` would be a tie."""
    x = np.array([2**32 + 2**24 + 1, 2**32 + 3 * 2**24 - 1])
    for given in (x, -x, x.astype("uint64")):
        got = convert(convert(given, resolve_dtype("bfloat16")), np.dtype("float64"))
        assert abs(got).tolist() == [2**32 + 2**25] * 2


def test_odd_roundings_set_the_last_bit_of_what_is_inexact():
    x = np.array([1.0, 1 + 2.0**-30, 1 + 2.0**-23 - 2.0**-40, -(1 + 2.0**-30), np.inf, 1e300, 0.0])
    got = round_to_odd(x)
    next_ = np.nextafter(np.float32(1), np.float32(2))
    assert got[:4].tolist() == [1, next_, next_, -next_] and got.dtype == "float32"
    assert got[4] == np.inf and got[6] == 0 and got[5] == np.finfo("float32").max
    assert np.isnan(round_to_odd(np.array([np.nan]))).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("bits", [0x7F800001, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF, 0x7FC00000])
def test_every_nan_stays_one_with_its_sign(name, bits):
    x = np.array([bits], "uint32").view("float32")
    back = convert(convert(x, resolve_dtype(name)), np.dtype("float32"))
    assert np.isnan(back).all() and np.signbit(back) == np.signbit(x)
    assert np.isnan(convert(convert(x.astype("float64"), resolve_dtype(name)), np.dtype("float32"))).all()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrowed_arrays_lie_in_c_order(name):
    x = np.asfortranarray(np.arange(6, dtype="float32").reshape(2, 3))
    for y in (x, x.astype("float64", order="F"), x[:, ::-1]):
        got = convert(y, resolve_dtype(name))
        assert got.flags.c_contiguous
        np.testing.assert_array_equal(convert(got, np.dtype("float32")), y)
