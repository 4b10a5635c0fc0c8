"""Formulas of complex functions, called on arrays: identities of parts, branch cuts, orders, what may not overflow."""

import mpmath
import numpy as np
import pytest

from cgraph.kernels.complex_math import FORMULAS
from cgraph.kernels.expression import Trace
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import host_target
from tests.support.kernels import run_calls, view_of
from tests.support.tolerance import assert_near

INF, NAN = np.inf, np.nan
every_dtype = pytest.mark.parametrize("dtype", ["c8", "c16"])
NUMPY = {
    "add": np.add, "sub": np.subtract, "neg": np.negative, "rint": np.rint, "mul": np.multiply, "div": np.divide,
    "reciprocal": np.reciprocal, "abs": np.abs, "sign": np.sign, "is_nan": np.isnan, "eq": np.equal,
    "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "min": np.minimum, "max": np.maximum, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "pow": np.power, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip
TWO = "add sub mul div eq ne lt le gt ge min max pow".split()


def computed(name, *xs):
    """What a kernel of one formula computes."""
    m = Trace()
    result = FORMULAS[name](m, *(m.load(i, x.dtype.str[1:]) for i, x in enumerate(xs)))
    out = np.zeros(xs[0].shape, "?" if result.dtype == "b1" else result.dtype)
    run_calls(pointwise_calls(host_target(), m.program(result), view_of(out), *map(view_of, xs)))
    return out


def array(dtype, *values):
    return np.array(values, dtype)


@every_dtype
@pytest.mark.parametrize("name", FORMULAS)
def test_each_formula_is_numpys_function_in_all_quadrants(name, dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(0.2, 2.5, (2, 64)) * rng.choice([-1, 1], (2, 64)) for _ in range(2))
    z, w = (v[0] + 1j * v[1] for v in (x, y))
    xs = [z.astype(dtype), w.astype(dtype)][: 1 + (name in TWO)]
    got, want = computed(name, *xs), NUMPY[name](*(v.astype("c16") for v in xs))
    if want.dtype == bool:
        np.testing.assert_array_equal(got, want)
        return
    assert got.dtype == (dtype if want.dtype.kind == "c" else np.zeros(0, dtype).real.dtype)
    assert_near(got, want.astype(got.dtype), "complex parts", terms=np.abs(want))


def test_there_is_a_numpy_function_beside_each_formula():
    assert NUMPY.keys() == FORMULAS.keys()


@every_dtype
def test_numbers_are_ordered_by_real_and_then_imaginary_parts_and_beside_a_nan_not_at_all(dtype):
    z = array(dtype, 1 + 2j, 1 + 2j, 1 + 2j, 2 - 9j, complex(NAN, 1), complex(1, NAN), 1 + 2j, complex(1, NAN), 1, 2)
    unordered = (complex(2, NAN), complex(1, NAN))
    w = array(dtype, 1 + 3j, 1 + 2j, 1 + 1j, 1 + 9j, 1 + 1j, 1 + 5j, complex(NAN, 0), complex(2, 0), *unordered)
    for name in ("lt", "le", "gt", "ge", "min", "max"):
        with np.errstate(invalid="ignore"):
            want = NUMPY[name](z, w)
        np.testing.assert_array_equal(computed(name, z, w), want)
    assert computed("eq", z, w).tolist() == [False, True, *[False] * 8]
    assert computed("ne", z, w).tolist() == [True, False, *[True] * 8]


@every_dtype
def test_quotients_neither_overflow_nor_vanish_between(dtype):
    big = 1e38 if dtype == "c8" else 1e300
    z = array(dtype, complex(big, big), complex(1 / big, 1 / big), 1 + 1j, complex(big, -big))
    w = array(dtype, complex(big, big), complex(1 / big, -1 / big), 3j, complex(-big, big))
    assert_near(computed("div", z, w), array(dtype, 1, 1j, (1 - 1j) / 3, -1), "complex parts", terms=1)
    assert_near(computed("reciprocal", w[2:3]), array(dtype, -1j / 3), "complex parts", terms=1)


@every_dtype
def test_division_by_zero_is_that_of_each_part(dtype):
    got = computed("div", array(dtype, 1 - 2j, 0, -1), array(dtype, 0, 0, 0))
    np.testing.assert_array_equal(got.real, [INF, NAN, -INF])
    np.testing.assert_array_equal(got.imag, [-INF, NAN, NAN])


@every_dtype
def test_the_side_of_a_cut_is_that_of_the_sign_of_zero(dtype):
    """C99, Annex G: square roots and logarithms are cut along the negative axis, inverse sines beyond 1."""
    above, below = array(dtype, complex(-4, 0.0)), array(dtype, complex(-4, -0.0))
    assert computed("sqrt", above).imag == 2 and computed("sqrt", below).imag == -2
    assert computed("log", above).imag == -computed("log", below).imag == np.array(np.pi, dtype).real
    for name, x in (("asin", 2), ("acos", 2), ("atanh", 2), ("log1p", -3), ("acosh", -3)):
        one, other = array(dtype, complex(x, 0.0)), array(dtype, complex(x, -0.0))
        np.testing.assert_array_equal(computed(name, one), computed(name, other).conj())
        assert computed(name, one).imag != 0
    for name in ("atan", "asinh"):
        one, other = array(dtype, complex(0.0, 2)), array(dtype, complex(-0.0, 2))
        np.testing.assert_array_equal(computed(name, one), -computed(name, other).conj())
        assert computed(name, one).real != 0


@every_dtype
def test_exponentials_of_large_parts_are_finite_where_the_result_is(dtype):
    x, y = (88.9, 3.14159265 / 2) if dtype == "c8" else (709.9, np.pi / 2 - 1e-3)
    z = array(dtype, complex(x, y), complex(-x, y))
    wide = z.astype("clongdouble")
    for name in ("exp", "sinh", "cosh", "expm1"):
        got, want = computed(name, z), NUMPY[name](wide)
        finite = np.abs(want) < float(np.finfo(z.real.dtype).max)
        assert_near(got[finite], want[finite].astype(dtype), "complex parts", terms=np.abs(want[finite]).astype("f8"))
    far = array(dtype, complex(1e4, 2), complex(-1e4, 2))
    np.testing.assert_array_equal(computed("tanh", far), array(dtype, 1, -1))


@every_dtype
def test_roots_and_logarithms_of_ends_of_the_range_keep_their_bits(dtype):
    info = np.finfo(np.zeros(0, dtype).real.dtype)
    z = array(dtype, complex(info.max, info.max), complex(info.tiny, -info.tiny), complex(0, info.max), info.tiny)
    wide = z.astype("clongdouble")
    for name in ("sqrt", "log"):
        want = NUMPY[name](wide)
        assert_near(computed(name, z), want.astype(dtype), "complex parts", terms=np.abs(want).astype("f8"))


@every_dtype
@pytest.mark.parametrize("distance", [1e-9, -1e-7, 1e-3])
def test_near_the_unit_circle_the_logarithm_is_the_distance(distance, dtype):
    """What cancels is exact: the squares of the upper halves of the parts, whatever their last bits."""
    z = ((1 + distance) * np.exp(1j * np.linspace(0.1, 3, 64))).astype(dtype)
    with mpmath.workprec(200):
        exact = np.array([float(mpmath.log(mpmath.mpc(complex(v))).real) for v in z])
    lower = np.sqrt(np.finfo(z.real.dtype).eps)
    assert_near(computed("log", z).real, exact.astype(z.real.dtype), "products of lower halves", terms=lower)


@every_dtype
def test_powers_of_zero_and_with_no_exponent(dtype):
    z, w = array(dtype, 0, 0, 0, 2 + 1j, complex(NAN, 1)), array(dtype, 2, -1, 1j, 0, 0)
    got = computed("pow", z, w)
    np.testing.assert_array_equal(got.real, [0, NAN, NAN, 1, 1])
    np.testing.assert_array_equal(got.imag, [0, NAN, NAN, 0, 0])


@every_dtype
def test_the_sign_of_an_infinite_part_is_on_its_axis(dtype):
    z = array(dtype, complex(INF, 3), complex(2, -INF), complex(INF, -INF), 0, -4j, complex(NAN, 1))
    got = computed("sign", z)
    np.testing.assert_array_equal(got.real, [1, 0, NAN, 0, 0, NAN])
    np.testing.assert_array_equal(got.imag, [0, -1, NAN, 0, -1, NAN])


@every_dtype
@pytest.mark.parametrize("name", ["asin", "acos", "atan", "asinh", "acosh", "atanh", "sqrt", "log", "abs"])
def test_an_infinite_part_gives_the_limit_of_the_function(name, dtype):
    """C99, Annex G: in each quadrant, with one part infinite or both."""
    parts = [(INF, 2), (2, INF), (INF, INF), (INF, 0.5), (0.5, INF), (INF, 1e30), (1e30, INF)]
    z = array(dtype, *(complex(a * x, b * y) for x, y in parts for a in (1, -1) for b in (1, -1)))
    got, want = computed(name, z), NUMPY[name](z.astype("c16"))
    for mine, numpys in [(got, want)] if name == "abs" else [(got.real, want.real), (got.imag, want.imag)]:
        finite = np.isfinite(numpys)
        np.testing.assert_array_equal(mine[~finite], numpys[~finite])
        assert_near(mine[finite], numpys[finite].astype(mine.dtype), "complex parts", terms=1)
