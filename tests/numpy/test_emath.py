"""Functions with complex results are NumPy's where NumPy's are complex, and the same numbers where they are real."""

import numpy as np
import pytest

import cgraph as cg
from tests.numpy.evaluated import assert_same, called, values

X = np.array([-2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 9.0])


@pytest.mark.parametrize("call", [
    "sqrt(x)", "log(x + 0.25)", "log2(x + 0.25)", "log10(x + 0.25)", "logn(3, x + 0.25)", "logn(0.5, x + 0.25)",
    "logn(a, x + 0.25)", "power(x + 0.25, 0.5)", "power(x + 0.25, -2)", "power(a, x)", "arccos(x)", "arcsin(x)",
    "arctanh(x / 4)", "arctanh(x + 0.25)",
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_values_beside_numpys(call, dtype):
    arrays = {"x": X.astype(dtype), "a": (np.abs(X) + 2).astype(dtype)}
    nodes = {name: cg.Var(v.shape, v.dtype).assign(v) for name, v in arrays.items()}
    (got,) = values(called(f"np.emath.{call}", nodes))
    (want,) = called(f"np.emath.{call}", arrays)
    kind = np.result_type(want, "complex64")
    assert got.dtype == kind
    assert_same(got, want.astype(kind), "float32" if dtype == "float32" else "float64")


def test_integers_are_numbers_of_64_bits():
    (got,) = values(called("np.emath.sqrt(x)", {"x": cg.Const(np.array([-4, 9]))}))
    assert_same(got, np.array([2j, 3]))
