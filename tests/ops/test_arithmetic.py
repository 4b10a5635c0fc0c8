"""Arithmetic: NumPy's special values, dtypes and refusals; gradients of both operands, shares at ties, casts."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError
from cgraph.ir.graph import apply
from cgraph.ops.arithmetic import Maximum, Minimum, Subtract, between, to_integers
from tests.support.computed import computed, float64, gradients

INF, NAN = np.inf, np.nan
SPECIAL = np.array([-INF, -3.5, -2.0, -0.0, 0.0, 0.5, 2.0, 3.5, INF, NAN])
TWO = [a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL)]
ENDS = np.array([-(2**31), -(2**31) + 1, -7, -1, 0, 1, 7, 2**31 - 1], "int32")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "true_divide", "floor_divide", "remainder",
                                  "maximum", "minimum"])  # fmt: skip
def test_special_values_are_numpys_to_the_sign_of_zero(name):
    x, y = map(cg.Var, TWO)
    got, want = computed(getattr(cg, name)(x, y)), getattr(np, name)(*TWO)
    np.testing.assert_array_equal(got, want)
    signed = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[signed], np.signbit(want)[signed])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["negative", "abs", "sign", "square", "reciprocal"])
def test_special_values_of_one_operand(name):
    np.testing.assert_array_equal(computed(getattr(cg, name)(cg.Var(SPECIAL))), getattr(np, name)(SPECIAL))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "multiply", "maximum"])
def test_ends_of_integers_and_divisors_of_zero_are_numpys(name):
    a, b = (v.ravel() for v in np.meshgrid(ENDS, ENDS))
    is_defined = ~((a == ENDS[0]) & (b == -1)) if "divide" in name or name == "remainder" else np.full(a.shape, True)
    a, b = a[is_defined], b[is_defined]
    np.testing.assert_array_equal(computed(getattr(cg, name)(cg.Var(a), cg.Var(b))), getattr(np, name)(a, b))


def test_bool_has_sums_and_products_and_no_differences():
    x, y = (cg.Var(np.array(v)) for v in ([True, True, False], [True, False, False]))
    assert computed(x + y).tolist() == [True, True, False]
    assert computed(x * y).tolist() == [True, False, False]
    assert (cg.square(x).dtype, cg.floor_divide(x, y).dtype, cg.true_divide(x, y).dtype) == ("int8", "int8", "float64")
    with pytest.raises(DTypeError, match="subtract is not defined for bool; use logical_xor"):
        cg.subtract(x, y)
    with pytest.raises(DTypeError, match="negative is not defined for bool"):
        cg.negative(x)
    with pytest.raises(DTypeError, match="not defined for bool"):
        Subtract().infer(x.spec, y.spec)


def test_gradients_of_the_second_operand():
    x, y, seed = *float64([6.0, 5.0], [4.0, -2.0]), [1, 10]
    np.testing.assert_array_equal(gradients(x - y, x, y, seed=seed), [[1, 10], [-1, -10]])
    np.testing.assert_array_equal(gradients(x * y, x, y, seed=seed), [[4, -20], [6, 50]])
    np.testing.assert_array_equal(gradients(x / y, x, y, seed=seed), [[0.25, -5], [-0.375, -12.5]])
    np.testing.assert_array_equal(gradients(x % y, x, y, seed=seed), [[1, 10], [-1, 30]])  # quotients 1 and -3


def test_gradients_of_one_operand():
    x, seed = float64([-2.0, 0.5]), [1, 10]
    assert gradients(-x, x, seed=seed).tolist() == [-1, -10]
    assert gradients(cg.abs(x), x, seed=seed).tolist() == [-1, 10]
    assert gradients(cg.sign(x), x, seed=seed).tolist() == [0, 0]
    assert gradients(cg.square(x), x, seed=seed).tolist() == [-4, 10]
    assert gradients(cg.reciprocal(x), x, seed=seed).tolist() == [-0.25, -40]


def test_gradients_of_complex_numbers_are_of_the_real_part_along_each_part():
    """dy/da - i dy/db, of a sum of real parts."""
    z = cg.Var(np.array([3 + 4j, 0, -2j]))
    total = {name: cg.sum(cg.real(getattr(cg, name)(z)) * np.array([125.0, 1, 8])) for name in ("abs", "sign")}
    np.testing.assert_array_equal(computed(cg.gradient(total["abs"], z)), [75 - 100j, 0, 8j])
    np.testing.assert_array_equal(computed(cg.gradient(total["sign"], z)), [16 + 12j, 0, 4])
    square = cg.gradient(cg.sum(cg.real(cg.square(z))), z)
    np.testing.assert_array_equal(computed(square), 2 * z.value)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("op, larger", [(Maximum, 1), (Minimum, 0)])
def test_a_tie_gives_the_share_to_the_first_and_the_rest_to_the_second(op, larger, share):
    x, y = float64([1.0, 2.0, 3.0, NAN, 1.0], [2.0, 2.0, 2.0, 1.0, NAN])
    to_x, to_y = gradients(apply(op(share), x, y), x, y)
    np.testing.assert_array_equal(to_x, [1 - larger, share, larger, 1, 1])
    np.testing.assert_array_equal(to_y, [larger, 1 - share, 1 - larger, 1, 1])


def test_maxima_of_two_shares_are_two_nodes():
    x, y = float64([1.0], [1.0])
    assert apply(Maximum(0.5), x, y) is cg.maximum(x, y) is not apply(Maximum(1.0), x, y)


def test_between_has_one_bound_or_the_other():
    x = float64([-2.0, -1.0, 0.0, 1.0, 2.0])
    assert between(x, None, None, 1.0) is x
    assert computed(cg.clip(x, None, 0)).tolist() == [-2, -1, 0, 0, 0]
    assert computed(cg.clip(x, 0)).tolist() == [0, 0, 0, 1, 2]
    assert gradients(between(x, -1, 1, 0.25), x).tolist() == [0, 0.25, 1, 0.25, 0]


def test_signs_of_every_kind_of_number():
    assert computed(cg.sign(cg.Var(np.array([0, 200], "uint8")))).tolist() == [0, 1]
    assert computed(cg.sign(cg.Var(np.array([-(2**63), 0, 5])))).tolist() == [-1, 0, 1]
    np.testing.assert_array_equal(computed(cg.sign(float64([-INF, -0.0, NAN]))), [-1, 0, NAN])
    z = cg.Var(np.array([3 + 4j, 0, -2j]))
    np.testing.assert_array_equal(computed(cg.sign(z)), [0.6 + 0.8j, 0, -1j])
    assert cg.abs(z).dtype == "float64"
    assert computed(cg.abs(cg.Var(np.array([-128, -5], "int8")))).tolist() == [-128, 5]


def test_round_of_decimals_tens_and_bool():
    x = float64([0.125, -2.5, 15.0, 25.0])
    for decimals in (0, 2, -1):
        np.testing.assert_array_equal(computed(cg.round(x, decimals)), np.round(x.value, decimals))
    truth = cg.Var(np.array([True]))
    assert cg.round(truth).dtype == "float32"
    whole = cg.Var((2,), "int16")
    assert cg.round(whole, -1) is whole
    for name in ("floor", "ceil", "trunc"):
        assert getattr(cg, name)(whole).dtype == "int16"
    np.testing.assert_array_equal(
        computed(cg.floor(x), cg.ceil(x), cg.trunc(x), cg.rint(x)), [f(x.value) for f in ROUNDINGS]
    )
    assert gradients(cg.floor(x), x).tolist() == [0] * 4


ROUNDINGS = (np.floor, np.ceil, np.trunc, np.rint)


def test_floats_beyond_an_integer_dtype_become_its_documented_number():
    """The smallest int32 or int64, its low bits, or two halves for uint64."""
    x = np.array([1.9, -1.9, 300.0, 2.0**31, -(2.0**31), NAN, INF])
    assert to_integers(x, np.dtype("int32")).tolist() == [1, -1, 300, -(2**31), -(2**31), -(2**31), -(2**31)]
    assert to_integers(x, np.dtype("uint8")).tolist() == [1, 255, 44, 0, 0, 0, 0]
    assert to_integers(x, np.dtype("uint32"))[[0, 1, 3]].tolist() == [1, 2**32 - 1, 2**31]
    large = np.array([2.0**63, 2.0**63 + 4096, 2.0**64 - 2048, 2.0**62, -1.0])
    assert to_integers(large, np.dtype("uint64")).tolist() == [
        2**63, 2**63 + 4096, 2**64 - 2048, 2**62, 2**64 - 1,
    ]  # fmt: skip
    for dtype in ("int32", "uint8", "uint32", "uint64", "int64"):
        computed(cg.Var(x).astype(dtype), cg.Var(large).astype(dtype))


def test_casts_that_lose_a_part_are_refused_and_gradients_have_the_dtype_of_the_operand():
    z, x = cg.Var(np.array([1 + 2j])), float64([1.5])
    with pytest.raises(DTypeError, match="complex and float64 is real; use np.real, np.imag or np.abs"):
        cg.astype(z, "float64")
    assert computed(z.astype(bool)).tolist() == [True]
    assert cg.astype(x, "float64") is x is cg.positive(x)
    (to_x,) = cg.gradient(cg.sum(cg.real(x.astype("complex128") * (2 + 3j))), [x])
    assert (to_x.dtype, computed(to_x).tolist()) == ("float64", [2])
    assert computed(cg.gradient(cg.sum(x.astype("int32") * 1.0), x)).tolist() == [0]
    assert computed(cg.gradient(cg.sum(x.astype("float16").astype("float32")), x)).dtype == "float64"
