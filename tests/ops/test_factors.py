"""Matrix factorisations: shapes with and without all columns, which triangle is read, gradients, and what has none."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, NoGradientError, ShapeError
from cgraph.ir.graph import apply
from cgraph.ops.factors import Eigh, Qr, Svd, outside, reciprocal_or_zero, skew
from tests.autodiff.differences import check_first
from tests.support.computed import computed, float64
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1)]


def random(*shape, dtype="float64"):
    x = RNG.normal(size=shape)
    return cg.Var((x + 1j * RNG.normal(size=shape)).astype(dtype) if dtype[0] == "c" else x.astype(dtype))


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_qr_is_orthonormal_columns_times_an_upper_triangle(shape, complete, dtype):
    x, (m, n) = random(*shape, dtype=dtype), shape[-2:]
    k = m if complete else min(m, n)
    q, r = computed(*cg.qr(x, complete))
    assert (q.shape[-2:], r.shape[-2:]) == ((m, k), (k, n))
    assert_near(q @ r, x.value, "float64 formulas near zero")
    assert_near(adjoint(q) @ q, np.broadcast_to(np.eye(k), (*shape[:-2], k, k)), "float64 formulas near zero")
    np.testing.assert_array_equal(r, np.triu(r))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_svd_has_descending_values_and_orthonormal_vectors(shape, full, dtype):
    x, (m, n) = random(*shape, dtype=dtype), shape[-2:]
    k = min(m, n)
    u, s, v = computed(*cg.svd(x, full))
    assert (u.shape[-2:], v.shape[-2:]) == (((m, m), (n, n)) if full else ((m, k), (k, n)))
    assert s.dtype == "float64" and (np.diff(s) <= 0).all()
    assert_near((u[..., :k] * s[..., None, :]) @ v[..., :k, :], x.value, "float64 formulas near zero")
    np.testing.assert_array_equal(computed(cg.svdvals(x)), computed(cg.svd(x, full_matrices=False)[1]))


def test_one_triangle_is_read_and_the_eigenvalues_ascend():
    lower = np.array([[2.0, 9.0], [1.0, 2.0]])
    for upper, sums in ((False, [1, 3]), (True, [-7, 11])):
        w, v = computed(*cg.eigh(cg.Var(lower), upper))
        assert_near(w, sums, "float64 formulas")
        symmetric = np.array([[2.0, sums[1] - 2], [sums[1] - 2, 2.0]])
        assert_near(symmetric @ v, v * w, "float64 formulas near zero")


def test_eigenvalues_of_any_matrix_are_complex():
    x = cg.Var(np.array([[0.0, -2.0], [2.0, 0.0]]))
    w, v = computed(*cg.eig(x))
    assert w.dtype == v.dtype == "complex128"
    assert_near(np.sort(w.imag), [-2, 2], "float64 formulas")
    assert_near(x.value @ v, v * w, "float64 formulas near zero")
    assert [y.dtype for y in cg.eig(cg.Var((2, 2), "float32"))] == ["complex64"] * 2


def test_gradients_agree_with_differences():
    tall, square = RNG.normal(size=(4, 2)), RNG.normal(size=(3, 3))
    check_first(lambda x: cg.qr(x)[1], [tall])
    check_first(lambda x: cg.qr(x)[0], [tall])
    check_first(lambda x: cg.qr(x, True)[1], [square])
    for shape in ((4, 2), (2, 4), (3, 3)):
        check_first(lambda x: cg.svd(x, False)[0] * cg.svdvals(x), [RNG.normal(size=shape)])
        check_first(lambda x: cg.svd(x, False)[2], [RNG.normal(size=shape)])
    check_first(lambda x: cg.square(cg.eigh(x)[1]) + cg.eigh(x)[0], [square])
    check_first(lambda x: cg.square(cg.eigh(x, True)[1]) + cg.eigh(x, True)[0], [square])
    check_first(lambda x: cg.real(cg.eig(x)[0] * cg.eig(x)[0]), [square])


def test_the_other_triangle_of_eigh_has_no_gradient():
    x = cg.Var(np.array([[2.0, 9.0], [1.0, 3.0]]))
    for upper, place in ((False, (0, 1)), (True, (1, 0))):
        g = computed(cg.gradient(cg.sum(cg.eigh(x, upper)[0] * np.array([1.0, 2])), x))
        assert g[place] == 0 != g[place[::-1]]


def test_what_has_no_gradient_says_so():
    wide, tall = cg.Var((2, 3), "float64"), cg.Var((3, 2), "float64")
    for y, x, message in (
        (cg.qr(wide)[1], wide, r"float64\[2,3\] has more columns than rows, and no gradient; transpose the operand"),
        (cg.qr(tall, True)[1], tall, r"float64\[3,2\] has no gradient with complete=True; pass complete=False"),
        (cg.svd(wide)[1], wide, r"has no gradient with full_matrices=True; pass full_matrices=False"),
    ):
        with pytest.raises(NoGradientError, match=message):
            cg.gradient(cg.sum(y), x)


def test_what_is_no_matrix_is_refused_and_each_field_makes_another_node():
    x = cg.Var((3, 3), "float64")
    for function in (cg.eigh, cg.eig):
        with pytest.raises(ShapeError, match=r"shape \[2, 3\] is not that of square matrices"):
            function(cg.Var((2, 3), "float64"))
    with pytest.raises(DTypeError, match="matrices of int32 are not supported"):
        apply(Qr(), cg.Var((2, 2), "int32"))
    assert cg.qr(x)[0] is cg.qr(x, False)[0] is not cg.qr(x, True)[0]
    assert Svd(True) != Svd(False) and Eigh(True) != Eigh(False) and Qr(True) != Qr(False)
    assert [y.shape for y in cg.svd(cg.Var((2, 0, 3)))] == [(2, 0, 0), (2, 0), (2, 3, 3)]


def test_pieces_of_the_formulas():
    u, g = np.linalg.qr(RNG.normal(size=(4, 2)))[0], RNG.normal(size=(4, 2))
    left, product = float64(u, g), u.T @ g
    assert_near(computed(skew(*left)), product - product.T, "float64 formulas near zero")
    assert_near(u.T @ computed(outside(*left)), np.zeros((2, 2)), "float64 formulas near zero")
    assert computed(reciprocal_or_zero(float64([0.0, -4.0]))).tolist() == [0, -0.25]
