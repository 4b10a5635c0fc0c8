"""Every primitive: error in units of the last place against 90-bit arithmetic, special values, conversions."""

import ast
import inspect
from importlib import import_module

import mpmath
import numpy as np
import pytest
from scipy import special

from cgraph.kernels.expression import Trace
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import target_named
from tests.support.kernels import run_calls, view_of
from tests.support.primitives import computed, every_float, every_target, same, special_values, spread, worst_ulp

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


def arguments(name, dtype, n):
    rng = np.random.default_rng(7)
    low, high = EXACT[name][2 + (dtype == "f8")]
    x = np.concatenate([spread(rng, n // 2, low, high, dtype), spread(rng, n // 2, -3, min(high, 4), dtype)])
    return inside(name, x)


def inside(name, x):
    """The arguments, moved to where the function is real."""
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


def compared(name):
    """Positive numbers that a module of mathematics compares an argument with, read from its source."""
    module = import_module(f"cgraph.kernels.llvm.{name}")
    sides = [
        side
        for x in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(x, ast.Compare)
        for side in (x.left, *x.comparators)
    ]
    values = []
    for side in sides:
        names = {x.id for x in ast.walk(side) if isinstance(x, ast.Name)}
        if all(x.isupper() for x in names):
            value = eval(ast.unparse(side), dict(vars(module)))
            values += value.values() if isinstance(value, dict) else [value]
    return {float(x) for x in values if isinstance(x, int | float) and not isinstance(x, bool) and 0 < x < np.inf}


MODULES = ("rare", "varc", "verf", "vexp", "vhyperbolic", "vlog", "vmath", "vpow", "vtrig")
MARGINS = {2.0**-n for n in (25, 26, 54, 55, 56)}  # below which a float is its own result, from bits of its dtype
BORDERS = sorted(set().union(*map(compared, MODULES)) | MARGINS)


def test_borders_of_formulas_are_found():
    assert {0.5, 0.55, 1.0, 4.0, 16.0, 28.0, 40.0, 2.0**-28, 800.0} <= set(BORDERS)


@every_float
@pytest.mark.parametrize("name", EXACT)
def test_error_where_formulas_meet(name, dtype):
    """At each number that a source compares with, and the neighbouring floats, of both signs."""
    at = np.array([x for x in BORDERS if np.log2(x) < EXACT[name][2 + (dtype == "f8")][1]], dtype)
    x = np.concatenate([np.nextafter(at, np.zeros_like(at)), at, np.nextafter(at, np.full_like(at, np.inf))])
    x = inside(name, np.concatenate([x, -x]))
    assert worst_ulp(computed(name, "host", x), EXACT[name][0], x) <= EXACT[name][1][dtype == "f8"]


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
