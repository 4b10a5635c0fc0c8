"""Exponentials of numbers up to 0, in the forms that need fewer instructions."""

import numpy as np
import pytest

from cgraph.kernels.llvm.vexp import UPSCALE, exp2_down, exp_down, large_exp
from cgraph.kernels.target import target_named
from tests.support.emitted import applied
from tests.support.primitives import every_float, every_target

EXACT = {exp_down: np.exp, exp2_down: np.exp2}


def numbers(dtype):
    """From 0 to where the results are denormal, and 0."""
    rng = np.random.default_rng(0)
    lowest = 104 if dtype == "f4" else 745
    x = -np.concatenate([rng.uniform(0, lowest, 3000), np.exp2(rng.uniform(-40, 6, 1000)), np.arange(96)])
    return x.astype(dtype)


@every_target
@every_float
@pytest.mark.parametrize("function", EXACT, ids=lambda f: f.__name__)
def test_results_are_within_an_ulp_also_where_they_are_denormal(function, target, dtype):
    x = numbers(dtype)
    got = applied(function, target_named(target), x)
    want = EXACT[function](x.astype(np.longdouble))
    assert (np.abs(got - want) <= 1.1 * np.spacing(np.maximum(got, 0))).all()


@every_target
@every_float
def test_large_ones_are_the_exponential_times_a_power_of_two(target, dtype):
    x = numbers(dtype)
    got = applied(large_exp, target_named(target), x).astype(np.longdouble)
    want = np.exp(x.astype(np.longdouble)) * np.longdouble(2) ** UPSCALE[dtype]
    assert (np.abs(got / want - 1) <= 2 * np.finfo(dtype).eps).all()


@every_target
@pytest.mark.parametrize("function", [exp_down, exp2_down, large_exp], ids=lambda f: f.__name__)
def test_a_nan_of_any_bits_stays_one_and_minus_infinity_is_0(function, target):
    bits = np.array([0x7FC00000, 0x7FC00001, 0x7FC001FF, 0xFFC00123, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF800000, 0], "u4")
    got = applied(function, target_named(target), bits.view("f4"))
    assert np.isnan(got[:6]).all()
    assert got[6] <= np.float32(2.0 ** (UPSCALE["f4"] - 150)) if function is large_exp else got[6] == 0
    assert got[7] == (2.0 ** UPSCALE["f4"] if function is large_exp else 1)
