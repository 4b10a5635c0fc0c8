"""The simulator's multiply-add: one rounding on every target, elements any bytes apart."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.simulate.signature import FMA
from cgraph.kernels.target import target_named
from tests.support.kernels import TARGETS, run_calls


def computed(target, x, y, z):
    out = np.full(len(x) + 1, 7, x.dtype)
    steps = {f"{name}_step": a.strides[0] for name, a in zip("xyz", (x, y, z))}
    places = {name: Pointer(a) for name, a in zip("xyz", (x, y, z))}
    call = FMA.call((x.dtype.str[1:],), len(x), **places, **steps, out=Pointer(out))
    run_calls([call], target_named(target))
    assert out[-1] == 7
    return out[:-1]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype, eps", [("f4", 2.0**-23), ("f8", 2.0**-52)])
def test_one_rounding(target, dtype, eps):
    """The product is 1 - eps**2: what the sum leaves of it is lost where the product is rounded first."""
    x, y, z = (np.array([v, 3], dtype) for v in (1 + eps, 1 - eps, -1))
    np.testing.assert_array_equal(computed(target, x, y, z), np.array([-(eps**2), 3 * 3 + 3], dtype))


@pytest.mark.parametrize("target", TARGETS)
def test_each_operand_has_its_own_step(target):
    x, y, z = np.arange(1, 9.0)[::2], np.arange(10, 40.0)[::3][:4], np.broadcast_to(np.array(0.5), 4)
    np.testing.assert_array_equal(computed(target, x, y, z), x * y + 0.5)
    np.testing.assert_array_equal(computed(target, z, x[::-1], y), 0.5 * x[::-1] + y)


def test_infinities_and_nans():
    x, y, z = (np.array(v, "f4") for v in ([np.inf, np.inf, 0, 1], [2, 0, np.inf, np.nan], [-1, 1, 1, 1]))
    np.testing.assert_array_equal(computed("host", x, y, z), np.array([np.inf, np.nan, np.nan, np.nan], "f4"))
