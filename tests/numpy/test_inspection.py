"""What is known of a node without its values is NumPy's: lengths, dtypes, indices, and functions applied along axes."""

import numpy as np
import pytest

import cgraph as cg
from tests.numpy.evaluated import compare, drawn

X = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64"])
def test_lengths_and_dtypes(dtype):
    x, node = X.astype(dtype), cg.Var(X.shape, dtype)
    for call in (
        "ndim({})", "shape({})", "size({})", "size({}, 1)", "size({}, -1)", "iscomplexobj({})", "isrealobj({})",
        "result_type({}, 'float64')", "result_type({}, 1.5)", "result_type({}, np.ones(2, 'i2'))",
        "can_cast({}.dtype, 'float32')", "can_cast({}.dtype, 'int16', 'no')", "can_cast({}.dtype, 'int8', 'unsafe')",
    ):  # fmt: skip
        want, got = (eval(f"np.{call.format('x')}", {"np": np, "x": v}) for v in (x, node))
        assert got == want and type(got) is type(want), call
    assert np.size(node, (0, 2)) == 8
    assert np.can_cast(node, "complex128") and np.can_cast("bool", node.dtype)
    assert np.min_scalar_type(node) == dtype
    if dtype != "bool":
        assert np.common_type(node, np.ones(2, "f4")) is np.common_type(x, np.ones(2, "f4"))


@pytest.mark.parametrize("function", ["triu_indices_from", "tril_indices_from"])
def test_indices_of_triangles(function):
    for k in (-3, -1, 0, 1, 4):
        for shape in ((3, 4), (4, 2), (2, 2), (3,)):
            compare(f"np.{function}(x, {k})", x=drawn(shape))


def test_indices_of_diagonals_and_grids():
    for shape in ((3, 3), (2, 2, 2), (2, 3), (3,)):
        compare("np.diag_indices_from(x)", x=drawn(shape))
    compare("np.ix_(x, y, z)", x=np.array([1, 0]), y=np.array([2, 0, 1]), z=np.array([3]))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("function", [
    "lambda r: r.sum()", "lambda r: r * 2", "lambda r: r[:2]", "lambda r: np.stack([r, -r, r * 3])", "np.cumsum",
    "lambda r: np.outer(r, r)",
])  # fmt: skip
def test_functions_of_rows_take_the_place_of_their_axis(axis, function):
    compare(f"np.apply_along_axis({function}, {axis}, x)", x=X)
    compare(f"np.apply_along_axis(lambda r, a, b=1: r[0] * a + b, {axis}, x, 3, b=2)", x=X)


@pytest.mark.parametrize("axes", [0, -1, [0, 2], (2, 0), [0, 1, 2]])
def test_functions_of_axes_keep_every_axis(axes):
    compare(f"np.apply_over_axes(np.sum, x, {axes})", x=X)
    compare(f"np.apply_over_axes(lambda v, i: np.max(v, i, keepdims=True), x, {axes})", x=X)


def test_functions_of_parts_take_further_arguments():
    parts = "[lambda t, n, by: t * n + by, lambda t, n, by: n - by, 5]"
    compare(f"np.piecewise(x, [x > 1, x > 9], {parts}, 2, by=3.0)", x=X)


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_what_can_be_cast_depends_on_the_rule(casting):
    dtypes = ("bool", "int8", "uint8", "int64", "float32", "float64", "complex64")
    for one in dtypes:
        x = cg.Var((2,), one)
        for other in dtypes:
            want = np.can_cast(one, other, casting)
            assert np.can_cast(x, other, casting) is np.can_cast(x, other, casting=casting) is want
            assert np.can_cast(one, cg.Var((2,), other), casting) is want
