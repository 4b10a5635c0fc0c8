"""Python numbers in traced functions: promotion by kind, comparison by value, arithmetic among themselves."""

import itertools
import operator

import numpy as np
import pytest

import cgraph as cg
from cgraph.transforms.weak import SAMPLES, is_weak, python_arithmetic, weak_type, with_strong_dtypes
from tests.support.tolerance import assert_near

NUMBERS = (True, 3, 1.5, 2j)
ARRAYS = [np.array([1, 2], d) for d in ("bool", "int8", "uint8", "int64", "float32", "float64", "complex64")]


def dtype_inside(f, *args):
    return cg.jit(f)(*args).dtype


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: str(a.dtype))
def test_a_number_beside_an_array_promotes_by_its_kind(array):
    for number in NUMBERS:
        want = (array * number).dtype
        for f in (operator.mul, lambda a, b: b * a, np.multiply, lambda a, b: np.where(a != 0, a, b)):
            got = dtype_inside(f, array, number)
            assert got == ("float32" if want == np.float16 else want), (array.dtype, number)


def test_integers_are_compared_by_value_whatever_the_dtype():
    small = np.array([-128, 127], "int8")
    for number in (300, -300, 127):
        for f in (operator.lt, operator.eq, operator.ge):
            np.testing.assert_array_equal(cg.jit(f)(small, number), f(small, number))
    assert cg.jit(operator.eq)(np.array([0.1], "float32"), 0.1).tolist() == [True]  # as float32


@pytest.mark.parametrize("f", [np.true_divide, np.hypot, np.arctan2, np.copysign, np.logaddexp, np.float_power])
def test_an_integer_that_is_read_as_a_float_need_not_fit_the_dtype(f):
    for dtype, number in (("uint8", 300), ("int8", 300), ("uint16", -1)):
        array = np.array([4, 5], dtype)
        for a, b in ((array, number), (number, array)):
            got = cg.jit(f)(a, b)
            assert got.dtype == np.result_type(f(a, b), "float32")
            assert_near(got, f(np.float64(a), np.float64(b)), "float32 formulas")
    assert cg.jit(operator.truediv)(array, -1).tolist() == [-4, -5]


@pytest.mark.parametrize("f", [
    lambda x, s: x.clip(s, 3), lambda x, s: x.clip(max=s), lambda x, s: np.clip(x, a_min=s, a_max=None),
    lambda x, s: np.clip(x, max=s), lambda x, s: np.select([x > 1], [x], s), lambda x, s: np.select([x > 1], [s], x),
    lambda x, s: np.select([x > 1, x < 0], [x, s], default=0), lambda x, s: np.quantile(x, s / 10),
    lambda x, s: np.percentile(x, q=s), lambda x, s: np.trapezoid(x, dx=s), lambda x, s: x * round(s, 1),
    lambda x, s: x * round(s), lambda x, s: x * round(s > 1), lambda x, s: x[round(s)],
    lambda x, s: x * (s - s % 1 + 1) ** -1,
])  # fmt: skip
@pytest.mark.parametrize("number", [2, 1.5])
def test_a_number_promotes_by_its_kind_however_it_is_passed(f, number):
    for array in (np.array([1.5, -2, 4], "float32"), np.array([1, 2, 3], "int32")):
        want, got = np.asarray(f(array, number)), cg.jit(f)(array, number)
        assert got.dtype == want.dtype, array.dtype
        assert_near(got, want, "float32 formulas")


@pytest.mark.parametrize("f", [
    lambda x, y, s: np.clip(x, y, s), lambda x, y, s: np.clip(x, s, y), lambda x, y, s: x.clip(max=s, min=y),
    lambda x, y, s: np.select([x > 1, y > 1], [x, y], s), lambda x, y, s: np.select([x > 1, y > 1], [s, y], x),
])  # fmt: skip
@pytest.mark.parametrize("number", [2, 1.5])
def test_a_number_beside_several_arrays_promotes_with_all_of_them(f, number):
    arrays = [np.array([1, 2, 4], d) for d in ("uint8", "int32", "float32", "float64")]
    for x, y in itertools.permutations(arrays, 2):
        want, got = f(x, y, number), cg.jit(f, engine="reference")(x, y, number)
        assert got.dtype == want.dtype, (x.dtype, y.dtype)
        assert_near(got, want, "float32 formulas")


def test_python_numbers_among_themselves_are_pythons():
    for f in (operator.add, operator.mul, operator.sub):
        for a in NUMBERS:
            for b in NUMBERS:
                got, want = cg.jit(f)(a, b), f(a, b)
                assert got == want and type(got.item()) is type(want), (a, b)
    assert cg.jit(operator.and_)(True, False).dtype == bool and cg.jit(operator.lt)(1, 2.5).dtype == bool
    assert cg.jit(lambda a: a + True)(True) == 2


def test_the_result_of_python_numbers_stays_weak():
    small = np.array([1], "float32")
    assert dtype_inside(lambda x, a, b: x * (a + b), small, 1.5, 2) == "float32"
    assert dtype_inside(lambda x, a: x * (a < 2), np.array([1], "int8"), 1.5) == "int8"


def test_what_is_weak():
    assert all(map(is_weak, NUMBERS)) and not any(map(is_weak, (np.float64(1), np.ones(1), "a", None)))
    seen = []
    cg.jit(lambda a, b: seen.extend(map(is_weak, (a, b))))(1.5, np.ones(1))
    assert seen == [True, False] and set(SAMPLES) == {bool, int, float, complex}


def test_operands_get_the_dtype_that_numpy_computes_with():
    seen = []

    def f(x, i, a):
        seen.append([getattr(v, "dtype", None) for v in with_strong_dtypes("add", (x, i))])
        seen.append([getattr(v, "dtype", None) for v in with_strong_dtypes("add", (i, a))])
        seen.append([v.dtype for v in with_strong_dtypes("less", (x, i))])
        seen.append([v.dtype for v in with_strong_dtypes("where", (a, x, i))])
        seen.append(with_strong_dtypes("add", (x, 7))[1])
        seen.append([v.dtype for v in python_arithmetic("add", (x > 0, a > 0))])
        return x

    cg.jit(f)(np.array([1], "int8"), 3, True)
    assert seen[0] == ["int8", "int8"]
    assert seen[1] == ["int64", "bool"]  # no array among them
    assert seen[2] == ["int8", "int64"]  # compared by value
    assert seen[3] == ["bool", "int8", "int8"]  # the condition is no operand
    assert seen[4] == 7


def test_true_counts_as_one_in_arithmetic_and_not_in_logic():
    seen = []

    def f(p, n):
        for name in ("add", "bitwise_and", "less"):
            seen.append([v.dtype.name for v in python_arithmetic(name, (p, n))])
        return p

    cg.jit(f)(True, 2)
    assert seen == [["int64", "int64"], ["bool", "int64"], ["bool", "int64"]]


def test_types_of_results():
    assert [weak_type(cg.Var((), d)) for d in ("bool", "int64", "float64", "complex128", "uint8")] == [
        bool, int, float, complex, None,
    ]  # fmt: skip


def test_the_counter_of_fori_promotes_as_a_python_integer():
    for dtype in ("float32", "int8", "complex64"):
        x, n = np.ones(3, dtype), np.int32(3)
        for bounds in ((0, 3), (0, n)):
            got = cg.jit(lambda x, a, b: cg.fori(a, b, lambda i, s: s * i + x[i], x), static_argnums=1)(x, *bounds)
            assert got.dtype == dtype and got.tolist() == [5, 5, 5]


def test_numbers_passed_to_a_branch_promote_by_their_kind():
    def branch(x, number):
        return cg.cond(x[0] > 0, lambda x, s: x * s["by"], lambda x, s: x - s["by"], x, {"by": number})

    x = np.array([2, -1], "float32")
    for got in (
        cg.jit(branch)(x, 2.5),
        cg.jit(lambda x: branch(x, 2.5))(x),
        cg.jit(lambda x, s: branch(x, s + 1))(x, 1.5),
    ):
        assert got.dtype == "float32" and got.tolist() == [5, -2.5]


@pytest.mark.parametrize("number", [2, 0.5, 0, 1])
def test_other_options_beside_a_number_stay_as_they_are(number):
    x = np.array([[1.5, -2, 4], [0, 8, 3]], "float32")
    for f in (
        lambda x, s: np.quantile(x, q=s / 2, axis=1, keepdims=True, method="lower"),
        lambda x, s: np.percentile(x, axis=0, q=s * 50, method="higher"),
        lambda x, s: np.trapezoid(x, dx=s, axis=0),
        lambda x, s: np.clip(x, max=s, min=None),
        lambda x, s: np.multiply(x, s, dtype="float64"),
    ):
        want, got = f(x, number), cg.jit(f)(x, number)
        assert got.dtype == want.dtype and got.shape == want.shape
        assert_near(got, want, "float32 formulas")


@pytest.mark.parametrize("f", [divmod, np.divmod, lambda a, b: divmod(b, a), np.ldexp, np.floor_divide, np.heaviside])
def test_functions_of_two_operands_and_several_results_read_the_number_as_numpy(f):
    for dtype, number in (("int8", 3), ("uint8", 3), ("int32", 3), ("float32", 3), ("float32", 2.5)):
        if f is np.ldexp and type(number) is float:
            continue
        x = np.array([-7, 7, 5], "int8").astype(dtype)
        got, want = cg.jit(f)(x, number), f(x, number)
        for a, b in zip(*((y if isinstance(y, tuple) else (y,)) for y in (got, want)), strict=True):
            assert a.dtype == (np.float32 if b.dtype == np.float16 else b.dtype), (dtype, number)
            np.testing.assert_array_equal(a, b)


def test_powers_of_python_integers_are_integers_from_zero_on():
    for exponent in (-2, -1, 0, 1, 2):
        for base in (3, -2, 1.5, True):
            got, want = cg.jit(lambda n: n**exponent)(base), base**exponent  # noqa: B023
            assert got == want and type(got.item()) is type(want), (base, exponent)
