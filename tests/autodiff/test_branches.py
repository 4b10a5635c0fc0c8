"""Gradients of complex functions in all four quadrants and on both sides of their cuts, against differences."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from tests.support.tolerance import assert_near

NAMES = ("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "sqrt", "log", "log1p", "log2", "log10")
SIZES = (0.25, 0.75, 1.5, 3.0)
INSIDE = [complex(a * x, b * y) for a, b in product((1, -1), repeat=2) for x, y in product(SIZES, repeat=2)]
ON_AN_AXIS = [complex(a * x, zero) for a in (1, -1) for x in SIZES for zero in (0.0, -0.0)]
STEP = 1e-6


def slope(name: str, z: complex) -> complex:
    x = cg.Var((), "complex128").assign(z)
    return cg.compile(cg.gradient(getattr(cg, name)(x), x, cg.Const(np.complex128(1))), engine="reference")().item()


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_the_branch_that_the_function_is_on(name):
    """Along the axis a step leads away from the cut, to the side that the sign of the zero says."""
    function = getattr(np, name)
    for z in INSIDE + ON_AN_AXIS:
        step = STEP if z.imag else 1j * np.copysign(STEP, z.imag)
        with np.errstate(all="ignore"):
            want = (function(np.complex128(z + step)) - function(np.complex128(z - (step if z.imag else 0)))) / step
        assert_near(slope(name, z), want / (2 if z.imag else 1), "float32 products")
