"""Singular vectors that no node reads are not computed, and what is read has NumPy's values."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.ops.factors import SingularValues, Svd, TallSvd
from cgraph.passes.drop_factors import drop_factors
from tests.support.tolerance import assert_near

DTYPES = ("float32", "float64", "complex64", "complex128")


def kinds(*nodes):
    return {type(n.op) for n in post_order(drop_factors(nodes))} & {Svd, TallSvd, SingularValues}


def matrices(*shape, dtype="float64"):
    rng = np.random.default_rng(0)
    return (rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype[0] == "c" else 0)).astype(dtype)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    "shape, values, right", [((40, 5), SingularValues, TallSvd), ((11, 6), SingularValues, TallSvd),
                             ((10, 6), SingularValues, Svd), ((5, 40), SingularValues, Svd)]
)  # fmt: skip
def test_the_op_depends_on_the_results_that_are_read(shape, values, right, full):
    u, s, v = cg.svd(cg.Var(shape, "float64"), full)
    assert kinds(s) == {values}
    assert kinds(v) == kinds(s, v) == {right}
    assert kinds(u) == kinds(u, s) == kinds(u, s, v) == {Svd}


def test_a_gradient_reads_all_factors():
    x = cg.Var((12, 3), "float64")
    assert kinds(cg.gradient(cg.sum(cg.svdvals(x)), x)) == {Svd}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(30, 4), (3, 25, 9), (8, 1), (70, 35)], ids=str)
def test_the_rest_has_numpys_values(shape, dtype, threads):
    a, x = matrices(*shape, dtype=dtype), cg.Var(shape, dtype, "x")
    _, s, v = cg.svd(x, full_matrices=False)
    _, *want = np.linalg.svd(a, full_matrices=False)
    named = "float32 sums near zero" if dtype in ("float32", "complex64") else "float64 formulas near zero"
    for got in (cg.compile([s, v], [x], threads=threads)(a), evaluate(drop_factors((s, v)), {x: a})):
        for y, z in zip(got, want, strict=True):
            assert_near(y, z, named)
    values = cg.compile(s, [x], threads=threads)(a)
    np.testing.assert_array_equal(values, np.linalg.svd(a, compute_uv=False))
    assert values.dtype == want[0].dtype


def test_less_memory_is_planned_than_for_all_factors():
    x = cg.Var((400, 8), "float64", "x")
    u, s, v = cg.svd(x, full_matrices=False)
    assert cg.compile(v, [x]).nbytes < cg.compile([u, s, v], [x]).nbytes / 2


@pytest.mark.parametrize("read", ["values", "right vectors"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_matrix_that_is_not_finite_ends_the_run_with_the_users_line(read, bad):
    x = cg.Var((2, 12, 3), "float64", "x")
    _, s, v = cg.svd(x, full_matrices=False)
    f = cg.compile(s if read == "values" else v, [x])
    value = matrices(2, 12, 3)
    f(value)
    value[1, 4, 2] = bad
    with pytest.raises(np.linalg.LinAlgError, match="at test_drop_factors.py:.*SVD did not converge"):
        f(value)


def test_empty_matrices_run_in_numpy():
    x = cg.Var((0, 20, 3), "float64", "x")
    _, s, v = cg.svd(x, full_matrices=False)
    assert [y.shape for y in cg.compile([s, v], [x])(np.zeros((0, 20, 3)))] == [(0, 3), (0, 3, 3)]


def test_of_several_decompositions_each_is_computed_as_far_as_it_is_read():
    x, y = cg.Var((12, 3), "float64", "x"), cg.Var((9, 2), "float64", "y")
    q, r = cg.qr(y)
    outputs = [*cg.svd(x, full_matrices=False), cg.svdvals(x + 1.0), cg.svd(y, full_matrices=False)[2], q, r]
    assert kinds(*outputs) == {Svd, SingularValues, TallSvd}
    values = {x: matrices(12, 3), y: matrices(9, 2)}
    for got, want in zip(evaluate(drop_factors(tuple(outputs)), values), evaluate(outputs, values), strict=True):
        assert_near(got, want, "float64 formulas near zero")
