"""Every primitive: error in units of the last place against 90-bit arithmetic, special values, integers."""

import mpmath
import numpy as np
import pytest
from scipy import special

from cgraph.kernels.expression import Trace
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import target_named
from tests.support.kernels import TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near

every_target = pytest.mark.parametrize("target", TARGETS)
every_float = pytest.mark.parametrize("dtype", ["f4", "f8"])
INF, NAN = np.inf, np.nan

# name: exact function, bound in ulp (float32, float64), base-2 logarithms of the arguments' range (float32, float64)
EXACT = {
    "exp": (mpmath.exp, (1.1, 1.1), (-20, 6.4), (-20, 9.4)),
    "exp2": (lambda x: mpmath.mpf(2) ** x, (1.1, 1.1), (-20, 6.9), (-20, 9.9)),
    "expm1": (mpmath.expm1, (2, 2), (-60, 6.4), (-60, 9.4)),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), (2, 2), (-20, 6.3), (-20, 9.4)),
    "log": (mpmath.log, (1, 1), (-140, 127), (-1060, 1020)),
    "log2": (lambda x: mpmath.log(x, 2), (0.51, 1), (-140, 127), (-1060, 1020)),
    "log10": (mpmath.log10, (0.51, 1), (-140, 127), (-1060, 1020)),
    "log1p": (mpmath.log1p, (0.51, 1), (-60, 127), (-80, 1020)),
    "sin": (mpmath.sin, (2, 2), (-60, 16), (-60, 20)),
    "cos": (mpmath.cos, (2, 2), (-60, 16), (-60, 20)),
    "tan": (mpmath.tan, (0.51, 2), (-60, 16), (-60, 20)),
    "asin": (mpmath.asin, (0.51, 1.5), (-30, 0), (-30, 0)),
    "acos": (mpmath.acos, (0.51, 1.5), (-30, 0), (-30, 0)),
    "atan": (mpmath.atan, (0.51, 2), (-30, 60), (-30, 60)),
    "sinh": (mpmath.sinh, (0.51, 2), (-30, 6.4), (-30, 9.4)),
    "cosh": (mpmath.cosh, (0.51, 2), (-30, 6.4), (-30, 9.4)),
    "tanh": (mpmath.tanh, (2, 2), (-30, 5), (-30, 6)),
    "asinh": (mpmath.asinh, (0.51, 2), (-30, 100), (-30, 1000)),
    "acosh": (mpmath.acosh, (0.51, 2), (0, 100), (0, 1000)),
    "atanh": (mpmath.atanh, (0.51, 2), (-30, 0), (-30, 0)),
    "erf": (mpmath.erf, (2, 1.5), (-30, 3), (-30, 3)),
    "erfc": (mpmath.erfc, (0.51, 4), (-30, 3.2), (-30, 4.7)),
    "ndtr": (mpmath.ncdf, (8, 8), (-30, 1), (-30, 1)),
}
POSITIVE = {"log", "log2", "log10"}
EXACT_OF_TWO = {
    "pow": (lambda x, y: x**y, (0.51, 1.5)),
    "hypot": (mpmath.hypot, (0.51, 1)),
    "atan2": (mpmath.atan2, (0.51, 2)),
}


def computed(name, target, *xs, dtype=None):
    m = Trace()
    operands = [m.load(i, x.dtype.str[1:]) for i, x in enumerate(xs)]
    program = m.program(getattr(m, name)(*operands))
    out = np.zeros(xs[0].shape, dtype or ("?" if program[-1][1] == "b1" else xs[0].dtype))
    t = target_named(target)
    run_calls(pointwise_calls(t, program, view_of(out), *map(view_of, xs)), t)
    return out


def spread(rng, n, low, high, dtype):
    """Both signs, exponents evenly spread."""
    return (rng.choice([-1, 1], n) * 2.0 ** rng.uniform(low, high, n)).astype(dtype)


def worst_ulp(got, f, *xs):
    """The largest error in units of the last place of the exact result, over normal results."""
    mpmath.mp.prec = 90
    exact = [f(*(mpmath.mpf(float(x)) for x in row)) for row in zip(*xs)]
    limit, tiny = float(np.finfo(got.dtype).max), float(np.finfo(got.dtype).tiny)
    return max(
        float(abs(mpmath.mpf(float(g)) - e)) / np.spacing(got.dtype.type(abs(e)))
        for g, e in zip(got, exact)
        if tiny < abs(e) < limit
    )


def arguments(name, dtype, n):
    rng = np.random.default_rng(7)
    low, high = EXACT[name][2 + (dtype == "f8")]
    x = np.concatenate([spread(rng, n // 2, low, high, dtype), spread(rng, n // 2, -3, min(high, 4), dtype)])
    if name in POSITIVE:
        return np.abs(x)
    if name == "acosh":
        return 1 + np.abs(x)
    if name == "log1p":
        return np.where(x <= -1, -x, x)
    return x[np.abs(x) < 1] if name in ("asin", "acos", "atanh") else x


@every_target
@every_float
@pytest.mark.parametrize("name", EXACT)
def test_error_of_functions_of_one_operand(name, dtype, target):
    x = arguments(name, dtype, 160)
    assert worst_ulp(computed(name, target, x), EXACT[name][0], x) <= EXACT[name][1][dtype == "f8"]


@pytest.mark.slow
@every_float
@pytest.mark.parametrize("name", EXACT)
def test_error_of_functions_of_one_operand_at_many_points(name, dtype):
    x = arguments(name, dtype, 6000)
    assert worst_ulp(computed(name, "host", x), EXACT[name][0], x) <= EXACT[name][1][dtype == "f8"]


@every_target
@every_float
@pytest.mark.parametrize("name", EXACT_OF_TWO)
def test_error_of_functions_of_two_operands(name, dtype, target):
    rng = np.random.default_rng(8)
    x, y = (spread(rng, 200, -10, 10, dtype) for _ in range(2))
    if name == "pow":
        x, y = np.abs(x), y / 64
    else:
        big = 60 if dtype == "f4" else 500
        x[:50] = spread(rng, 50, -big, big, dtype)
    f, bounds = EXACT_OF_TWO[name]
    assert worst_ulp(computed(name, target, x, y), f, x, y) <= bounds[dtype == "f8"]


@every_target
@every_float
@pytest.mark.parametrize("name", ["hypot", "atan2"])
def test_error_at_every_exponent_and_at_both_ends(name, dtype, target):
    rng = np.random.default_rng(9)
    end = 126 if dtype == "f4" else 1022
    x = spread(rng, 1500, -end, end, dtype)
    x[:150], x[150:200] = spread(rng, 150, end - 26, end + 1.99, dtype), spread(rng, 50, -end, -end + 20, dtype)
    with np.errstate(over="ignore", under="ignore"):
        y = (x * (spread(rng, 1500, -20, 1, "f8") * 0.7)).astype(dtype)
    x[:50] = spread(rng, 50, end + 1, end + 1.99, dtype)  # whose sums overflow
    y[:50] = (x[:50] * rng.uniform(0.3, 1, 50)).astype(dtype)
    y[np.isinf(y)] = x[np.isinf(y)]
    f, bounds = EXACT_OF_TWO[name]
    for one, other in ((x, y), (y, x)):
        assert worst_ulp(computed(name, target, one, other), f, one, other) <= bounds[dtype == "f8"]


@every_target
@every_float
def test_hypot_with_zero_is_the_magnitude(dtype, target):
    end = 126 if dtype == "f4" else 1022
    x = spread(np.random.default_rng(9), 1500, -end, end, dtype)
    zero = np.zeros_like(x)
    np.testing.assert_array_equal(computed("hypot", target, x, zero), np.abs(x))
    np.testing.assert_array_equal(computed("hypot", target, zero, zero), zero)


@every_target
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_arguments_and_those_next_to_multiples_of_half_pi(name, target):
    x8 = np.array([1e22, 2.0**1000, 1e300, 2.0**300, 1.5e6, 1.6e6, np.pi, 11 * np.pi / 2, 1e6 * np.pi])
    x4 = np.array([1e5, 1.1e5, 3e38, 16367173 * 2.0**72, 355, 1e10, 99999.5], "f4")
    for x in (x8, x4):
        assert worst_ulp(computed(name, target, x), EXACT[name][0], x) <= 2


def special_values(dtype):
    info = np.finfo(dtype)
    sizes = [0, 1, 0.5, 2, 3, INF, 1e-30, 1e30, 4.5, 1e7, info.max, info.tiny, info.smallest_subnormal, info.tiny / 8]
    return np.array([s * v for v in sizes for s in (1, -1)] + [NAN], dtype)


def same(got, want, ulp=4):
    """Equal within so many ulp, NaN where NaN, the same sign of zero."""
    with np.errstate(all="ignore"):
        close = (np.abs(got - want) <= ulp * np.spacing(np.abs(want))) | (got == want)
    return (close & (np.signbit(got) == np.signbit(want))) | (np.isnan(got) & np.isnan(want))


NUMPY = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "erf": special.erf, "erfc": special.erfc, "sigmoid": special.expit, "abs": np.abs,
    "ndtr": special.ndtr, "neg": np.negative, "atan2": np.arctan2, "pow": np.power,
}  # fmt: skip


@every_target
@every_float
@pytest.mark.parametrize("name", [*EXACT, "floor", "ceil", "rint", "trunc", "sqrt", "abs", "neg"])
def test_special_values_of_one_operand(name, dtype, target):
    x = special_values(dtype)
    with np.errstate(all="ignore"):
        want = NUMPY.get(name) or getattr(np, name)
        want = want(x.astype("f8")).astype(dtype)
    ok = same(computed(name, target, x), want, 64 if name == "ndtr" else 4)  # whose tail loses some
    assert ok.all(), x[~ok]


@every_target
@every_float
def test_the_normal_distribution_is_as_exact_as_its_largest_value_everywhere(dtype, target):
    x = np.linspace(-40, 40, 20001).astype(dtype)
    got, want = computed("ndtr", target, x).astype("f8"), special.ndtr(x.astype("f8"))
    assert np.abs(got - want).max() < {"f4": 1e-7, "f8": 1e-15}[dtype]
    assert (got[x < -14] < 1e-38).all() and (np.diff(got) >= -1e-7).all()


@every_target
@every_float
@pytest.mark.parametrize("name", ["pow", "atan2", "hypot", "fmod", "copysign"])
def test_special_values_of_two_operands(name, dtype, target):
    x, y = (v.ravel().copy() for v in np.meshgrid(special_values(dtype), special_values(dtype)))
    with np.errstate(all="ignore"):
        want = NUMPY.get(name) or getattr(np, name)
        want = want(x.astype(np.longdouble), y.astype(np.longdouble)).astype(dtype)
    ok = same(computed(name, target, x, y), want)
    assert ok.all(), (x[~ok], y[~ok])


@every_target
@every_float
def test_min_and_max_keep_nan(dtype, target):
    x, y = (v.ravel().copy() for v in np.meshgrid(special_values(dtype), special_values(dtype)))
    np.testing.assert_array_equal(computed("min", target, x, y), np.minimum(x, y))
    np.testing.assert_array_equal(computed("max", target, x, y), np.maximum(x, y))


@every_target
@every_float
def test_gamma_and_its_logarithm(dtype, target):
    x = np.array([0.5, 1, 4, 10.25, -0.5, -3.5, 30, 1e-3, INF, NAN], dtype)
    for name, f in (("gamma", special.gamma), ("lgamma", special.gammaln)):
        want = f(x.astype("f8"))
        assert_near(computed(name, target, x), want.astype(dtype), "gamma")


@every_target
def test_powers_of_two_and_ten_have_exact_logarithms(target):
    n = np.arange(-300, 300)
    np.testing.assert_array_equal(computed("log2", target, 2.0**n), n)
    np.testing.assert_array_equal(computed("log10", target, np.array([float(f"1e{i}") for i in range(23)])), range(23))


@every_target
@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u4", "u8"])
def test_integer_division_traps_nowhere(dtype, target):
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, 0, 1, 2, 3, 7, info.max - 1, info.max] + [-1, -7] * (dtype[0] == "i")
    x, y = (v.ravel() for v in np.meshgrid(np.array(values, dtype), np.array(values, dtype)))
    a, b = x.astype(object), y.astype(object)
    quotient = [abs(i) // abs(j) * (1 if (i < 0) == (j < 0) else -1) if j else 0 for i, j in zip(a, b)]
    rest = [i - j * q if j else 0 for i, j, q in zip(a, b, quotient)]
    wrapped = np.array([q % 2**64 for q in quotient], "u8").astype(dtype)
    np.testing.assert_array_equal(computed("div", target, x, y), wrapped)
    np.testing.assert_array_equal(computed("rem", target, x, y), np.array(rest, object).astype(dtype))


@every_target
@pytest.mark.parametrize("dtype", ["i4", "i8", "u1", "u4"])
def test_shifts_and_powers_of_integers(dtype, target):
    x, y = (v.ravel().astype(dtype) for v in np.meshgrid(np.arange(0, 120, 7), np.arange(0, 70)))
    np.testing.assert_array_equal(computed("shl", target, x, y), np.left_shift(x, y))
    np.testing.assert_array_equal(computed("shr", target, x, y), np.right_shift(x, y))
    np.testing.assert_array_equal(computed("pow", target, x, y), np.power(x, y))


@every_target
def test_conversions_agree_with_numpy(target):
    t = target_named(target)
    x = np.array([0.0, 1.5, -2.7, 100.25, 1e-40, 3.0, -0.0], "f8")
    for source in ("f4", "f8", "i1", "i8", "b1"):
        for dtype in ("f4", "f8", "i1", "i4", "i8", "b1"):
            m = Trace()
            program = m.program(m.cast(m.load(0, source), dtype))
            values = x.astype(bool if source == "b1" else source)
            out = np.zeros(7, bool if dtype == "b1" else dtype)
            run_calls(pointwise_calls(t, program, view_of(out), view_of(values)), t)
            np.testing.assert_array_equal(out, values.astype(out.dtype))
