"""Primitives of scalar programs run on arrays, and exact values beside them: for the tests of vector mathematics."""

import mpmath
import numpy as np
import pytest

from cgraph.kernels.expression import Trace
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import target_named
from tests.support.kernels import TARGETS, run_calls, view_of

every_target = pytest.mark.parametrize("target", TARGETS)
every_float = pytest.mark.parametrize("dtype", ["f4", "f8"])
INF, NAN = np.inf, np.nan


def computed(name, target, *xs, dtype=None):
    """What a kernel computes on the target of this name: of a primitive by its name, or a function of a trace."""
    m = Trace()
    operands = [m.load(i, x.dtype.str[1:]) for i, x in enumerate(xs)]
    program = m.program(name(m, *operands) if callable(name) else getattr(m, name)(*operands))
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


def special_values(dtype):
    """Zeros, infinities, NaN, both ends of the range and some numbers between, of both signs."""
    info = np.finfo(dtype)
    sizes = [0, 1, 0.5, 2, 3, INF, 1e-30, 1e30, 4.5, 1e7, info.max, info.tiny, info.smallest_subnormal, info.tiny / 8]
    return np.array([s * v for v in sizes for s in (1, -1)] + [NAN], dtype)


def same(got, want, ulp=4):
    """Equal within so many ulp, NaN where NaN, the same sign of zero."""
    with np.errstate(all="ignore"):
        close = (np.abs(got - want) <= ulp * np.spacing(np.abs(want))) | (got == want)
    return (close & (np.signbit(got) == np.signbit(want))) | (np.isnan(got) & np.isnan(want))


def assert_points(name, target, dtype, points, ulp=0):
    """The primitive has these values: pairs of one operand, or a tuple of operands, and the value; within `ulp`."""
    rows = [x if isinstance(x, tuple) else (x,) for x, _ in points]
    xs, want = [np.array(column, dtype) for column in zip(*rows)], np.array([y for _, y in points], dtype)
    got = computed(name, target, *xs)
    ok = same(got, want, ulp)
    assert ok.all(), [(*(x[i] for x in xs), got[i], want[i]) for i in np.flatnonzero(~ok)]


def pairs_at_every_exponent(dtype):
    """Two operands of any exponents and at both ends, also such that sums of squares, or of both, overflow."""
    rng = np.random.default_rng(9)
    end = 126 if dtype == "f4" else 1022
    x = spread(rng, 1500, -end, end, dtype)
    x[:150], x[150:200] = spread(rng, 150, end - 26, end + 1.99, dtype), spread(rng, 50, -end, -end + 20, dtype)
    with np.errstate(over="ignore", under="ignore"):
        y = (x * (spread(rng, 1500, -20, 1, "f8") * 0.7)).astype(dtype)
    x[:50] = spread(rng, 50, end + 1, end + 1.99, dtype)  # whose sums overflow
    y[:50] = (x[:50] * rng.uniform(0.3, 1, 50)).astype(dtype)
    y[np.isinf(y)] = x[np.isinf(y)]
    return x, y
