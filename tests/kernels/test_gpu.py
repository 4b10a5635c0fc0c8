"""Kernels of the CPU's emitters, made for a GPU: scalar functions have the CPU's bits, rare paths their own."""

import mpmath
import numpy as np
import pytest

from cgraph.kernels.expression import UNARY, Trace
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import host_target
from tests.support.gpu import GPU, run_on_gpu
from tests.support.kernels import run_calls, view_of
from tests.support.tolerance import assert_near

every_float = pytest.mark.parametrize("dtype", ["f4", "f8"])
FLOAT = sorted(UNARY - {"not", "gamma", "lgamma"})
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 89.5, -104.5, 0.5, 1.0, -1.0]


def computed(name, *xs, gpu=True):
    m = Trace()
    program = m.program(getattr(m, name)(*(m.load(i, x.dtype.str[1:]) for i, x in enumerate(xs))))
    out = np.empty_like(xs[0])
    target = GPU if gpu else host_target()
    calls = pointwise_calls(target, program, view_of(out), *map(view_of, xs))
    run_on_gpu(calls) if gpu else run_calls(calls)
    return out


def ulps(got, f, x):
    """The largest error in units of the last place."""
    with mpmath.workprec(1300):
        exact = [f(mpmath.mpf(float(v))) for v in x]
        errors = [abs(mpmath.mpf(float(g)) - e) / float(np.spacing(abs(got.dtype.type(e)))) for g, e in zip(got, exact)]
        return float(max(errors))


@every_float
@pytest.mark.parametrize("name", FLOAT)
def test_functions_have_the_bits_of_the_cpu(name, dtype):
    if not host_target().fma:
        pytest.skip("the processor has no fused multiply-add, the GPU has")
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-9, 9, 60), rng.uniform(-1, 1, 60), SPECIAL]).astype(dtype)
    here, there = computed(name, x, gpu=False), computed(name, x)
    same = (here.view(f"u{x.itemsize}") == there.view(f"u{x.itemsize}")) | (np.isnan(here) & np.isnan(there))
    assert same.all(), x[~same]


@pytest.mark.parametrize("name, bound", [("sin", 2), ("cos", 2), ("tan", 4)])
def test_functions_of_large_angles(name, bound):
    rng = np.random.default_rng(1)
    x = 2.0 ** rng.uniform(20, 1023, 120) * rng.choice([-1, 1], 120)
    x[:3] = 5.319372648326541e255, 6381956970095103.0 * 2.0**797, 2.0**1023  # near multiples of pi/2
    assert ulps(computed(name, x), getattr(mpmath, name), x) <= bound
    assert np.isnan(computed(name, np.array([np.inf, -np.inf, np.nan]))).all()


def log_of_gamma(x):
    return mpmath.log(abs(mpmath.gamma(x)))


@pytest.mark.parametrize(
    "name, f, low, high, bound",
    [
        ("gamma", mpmath.gamma, -30, 171, 16),
        ("gamma", mpmath.gamma, 0, 3, 16),
        ("lgamma", log_of_gamma, 0, 20, 8),
        ("lgamma", log_of_gamma, 0.5, 2.6, 8),
        ("lgamma", log_of_gamma, 20, 1000, 8),
    ],
)
def test_gamma_functions(name, f, low, high, bound):
    x = np.random.default_rng(2).uniform(low, high, 120)
    assert ulps(computed(name, x), f, x) <= bound


def test_lgamma_of_negative_numbers_is_near_in_absolute_terms():
    x = np.random.default_rng(3).uniform(-30, 0, 120)
    want = np.array([float(log_of_gamma(mpmath.mpf(v))) for v in x])
    assert (np.abs(computed("lgamma", x) - want) <= 16 * np.spacing(np.maximum(np.abs(want), 1))).all()


@pytest.mark.parametrize("name", ["gamma", "lgamma"])
def test_gamma_functions_of_special_numbers_are_the_c_librarys(name):
    x = np.array([0.0, -0.0, 1, 2, 3, -1, -2, np.inf, -np.inf, np.nan, 171.6, 172, -171.5, -200.5, 1e300, -1e20])
    assert_near(computed(name, x), computed(name, x, gpu=False), "float64 on a simulated GPU")


@every_float
def test_fmod_is_exact(dtype):
    rng = np.random.default_rng(4)
    most = {"f4": 38, "f8": 300}[dtype]
    x, y = (rng.uniform(-1, 1, 80) * 10.0 ** rng.integers(-most, most, 80) for _ in range(2))
    y[:30] = x[:30] / rng.uniform(1, 1e12, 30)
    pairs = [(5, 3), (-6, 3), (6, 3), (0.0, 2), (-0.0, 2), (np.inf, 2), (1, np.inf), (np.nan, 1), (1, 0), (5e-324, 3)]
    x, y = (np.concatenate([a, b]).astype(dtype) for a, b in zip((x, y), np.array(pairs).T))
    got = computed("fmod", x, y)
    with np.errstate(invalid="ignore"):
        want = np.fmod(x, y)
    np.testing.assert_array_equal(got, want)
    assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()
