"""Elementwise functions are NumPy's: signed zeros, NaN, infinities, integers, tens and hundreds."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, NoMeaningError
from tests.numpy.evaluated import FLOATS, compare, drawn
from tests.support.tolerance import assert_near

ENDS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -3.5, 1e30, -1e30, np.inf, -np.inf, np.nan]


def pairs(dtype: str) -> dict[str, np.ndarray]:
    """Every pair of ends."""
    x, y = np.meshgrid(np.array(ENDS, dtype), np.array(ENDS, dtype))
    return {"x": x.ravel(), "y": y.ravel()}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [
    "fmax", "fmin", "logaddexp", "logaddexp2", "heaviside", "isclose", "copysign", "arctan2", "float_power",
])  # fmt: skip
def test_functions_of_two_at_every_pair_of_ends(name, dtype):
    compare(f"np.{name}(x, y)", dtype, **pairs(dtype))


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint8", "bool"])
@pytest.mark.parametrize("name", [
    "fabs", "absolute", "fix", "degrees", "radians", "deg2rad", "rad2deg", "modf", "nan_to_num", "sinc", "angle",
    "isreal", "iscomplex", "isposinf", "isneginf", "conjugate", "reciprocal", "real", "imag", "real_if_close",
])  # fmt: skip
def test_functions_of_one_at_its_ends(name, dtype):
    x = np.array(ENDS if dtype in FLOATS else [0, 1, 2, 7, 100, *([-1, -5] if dtype == "int32" else [])]).astype(dtype)
    if name == "reciprocal":
        x = x[x != 0]  # of an integer 0 it depends on the machine
    compare(f"np.{name}(x)", dtype, x=x)


@pytest.mark.parametrize("decimals", [-3, -2, -1, 0, 1, 2])
@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint8", "complex128"])
def test_rounding_to_places_on_either_side_of_the_point(decimals, dtype):
    x = np.array([0, 5, 15, 25, 35, 49, 50, 51, 149, 150, 151, 250]).astype(dtype)
    x = x if dtype in ("int32", "uint8") else np.concatenate([x, -x, x / 8])
    compare(f"np.round(x, {decimals}), np.around(x, decimals={decimals})", dtype, x=x)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "float64"])
def test_quotients_and_remainders_of_every_sign(dtype):
    some = [v for v in (-7, -3, -1, 1, 2, 3, 7) if v > 0 or dtype != "uint8"]
    x, y = (a.ravel() for a in np.meshgrid(np.array([*some, 0], dtype), np.array(some, dtype)))
    compare("np.divmod(x, y)", dtype, x=x, y=y)


@pytest.mark.parametrize("dtype", ["float64", "int32", "complex128"])
def test_powers_of_numbers_and_of_arrays(dtype):
    x = drawn((5,), dtype) + 1
    for power in (0, 1, 2, 3, 0.5, -1, -2):
        compare(f"np.float_power(x, {power})", dtype, x=x)
        if dtype != "int32" or power >= 0:
            compare(f"np.power(x, {power})", dtype, x=x)
    with pytest.raises(DTypeError, match="np.float_power"):
        np.power(cg.Var((2,), "int32"), np.array([1, -1]))


def test_what_replaces_nan_and_infinities():
    z = np.array([complex(a, b) for a, b in product((1.0, np.nan, np.inf, -np.inf), repeat=2)])
    for how in ("", ", nan=3", ", posinf=4", ", neginf=-5", ", nan=1.5, posinf=2, neginf=3", ", True, 1, 2, 3"):
        compare(f"np.nan_to_num(x{how})", x=np.array(ENDS))
        compare(f"np.nan_to_num(x{how})", x=z)


def test_angles_in_every_quarter_and_in_degrees():
    z = np.array([1, 1 + 1j, 1j, -1 + 1j, -1, -1 - 1j, -1j, 1 - 1j, 0])
    compare("np.angle(x), np.angle(x, True), np.angle(x, deg=True)", x=z)
    compare("np.angle(x, True)", x=np.array(ENDS))
    with pytest.raises(NoMeaningError, match="np.real"):
        np.real_if_close(cg.Var((2,), "complex64"))


@pytest.mark.parametrize("how", ["", ", rtol=0.1", ", atol=0.5", ", 0, 0", ", equal_nan=True", ", 0.5, 0, True"])
def test_closeness_is_relative_to_the_second_operand(how):
    x = np.array([1.0, 1.00001, 1.1, 10.0, 0.0, 1e-9, np.inf, np.inf, np.nan, -np.inf, 2.0])
    y = np.array([1.00001, 1.0, 1.0, 11.0, 1e-8, 0.0, np.inf, -np.inf, np.nan, 1.0, 1.0])
    compare(f"np.isclose(x, y{how}), np.isclose(y, x{how})", x=x, y=y)
    compare(f"np.allclose(x[:6], y[:6]{how}), np.allclose(x, y{how})", x=x, y=y)


def test_equality_of_shapes_and_of_all_elements():
    x, y = np.array([[1.0, np.nan], [3.0, 4.0]]), np.array([1.0, np.nan])
    for equal_nan in (False, True):
        compare(f"np.array_equal(x, x, {equal_nan}), np.array_equal(x, y, {equal_nan})", x=x, y=y)
        compare(f"np.array_equal(x, y, {equal_nan})", x=x[1:], y=y)
    compare("np.array_equiv(x, y), np.array_equiv(y, x), np.array_equiv(x, x)", x=np.ones((2, 2)), y=np.ones(2))
    compare("np.array_equiv(x, y)", x=np.ones((2, 2)), y=np.ones(3))
    compare("np.array_equal(x, y), np.array_equiv(x, y)", x=np.ones((0, 2)), y=np.ones((0, 2)))


@pytest.mark.parametrize("name", ["arctan2", "copysign", "heaviside", "hypot", "logaddexp", "logaddexp2", "nextafter"])
def test_small_integers_of_either_sign_are_computed_in_float32(name):
    for kinds in (
        ("int8", "uint16"),
        ("uint16", "int16"),
        ("int16", "int32"),
        ("int16", "float32"),
        ("bool", "uint16"),
    ):
        x, y = (np.array([1, 2, 3], kind) for kind in kinds)
        assert getattr(np, name)(cg.Var(x), cg.Var(y)).dtype == getattr(np, name)(x, y).dtype


@pytest.mark.parametrize("call", [
    "np.astype(x, 'float32', copy=False)", "np.astype(x, 'float64', copy=False)", "np.real_if_close(x, tol=1)",
    "np.power(i, True)", "np.power(i, False)", "np.power(x, True)", "np.power(i, 0)",
    "np.power(i, np.array([2, 0, 1]))",
    "np.power(i, -1)", "np.power(i, np.array([2, -1, 1]))", "np.power(x, -1)", "np.power(True, abs(i))",
])  # fmt: skip
def test_options_and_exponents_of_other_kinds(call):
    compare(call, "float32" if "float32" in call else "float64", x=np.array([1.5, -2.0, 0.25]), i=np.array([3, -2, 0]))


def test_the_slope_of_sinc_at_0_is_0():
    x = cg.Var((3,), "float64").assign(np.array([0.0, 0.5, 1.0]))
    slope = cg.gradient(cg.sum(np.sinc(x)), x).eval()
    assert slope[0] == 0
    assert_near(slope[1:], [-4 / np.pi, -1.0], "float64 formulas")
