"""Whole numbers without an instruction for them: NumPy's values, signs of zeros and NaN included."""

import numpy as np
import pytest

from cgraph.kernels.llvm.rounding import ROUNDINGS
from cgraph.kernels.target import target_named
from cgraph.record import replace
from tests.support.emitted import run_emitted
from tests.support.kernels import TARGETS

SPECIAL = [
    0.0,
    0.25,
    0.5,
    0.75,
    1.0,
    1.5,
    2.5,
    1e-45,
    2.0**22 + 0.5,
    2.0**23 - 0.5,
    2.0**23 + 1,
    2.0**52 - 0.5,
    2.0**52 + 1,
]
LARGE = [2.0**24 + 2, 1e30, np.inf, np.nan]


def numbers(dtype, count=512):
    """Special numbers of both signs, their neighbours, and numbers of every size."""
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        x = np.array([*SPECIAL, *LARGE], dtype)
    near = np.concatenate([x, np.nextafter(x, dtype(-1)), np.nextafter(x, dtype(np.inf))])
    drawn = (rng.standard_normal(count) * np.exp2(rng.uniform(-5, 55, count))).astype(dtype)
    return np.resize(np.concatenate([near, -near, drawn]), count)


@pytest.mark.parametrize("name", sorted(ROUNDINGS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("target", TARGETS)
def test_whole_numbers_are_numpys(target, dtype, name):
    target, x = replace(target_named(target), rounds=False), numbers(dtype)
    out, lanes = np.zeros_like(x), target.lanes_of(np.dtype(dtype).str[1:])

    def write(k, source, place):
        with k.loop(0, len(x), lanes) as i:
            place.store(k.intrinsic(name, source.load(i, lanes)), i)

    run_emitted(write, target, x, out)
    want = getattr(np, name)(x)
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(want))
