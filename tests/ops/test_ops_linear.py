"""Matrix products and what is built from them: ranks, broadcast axes, dtypes, refusals, gradients, workspaces."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import apply
from cgraph.kernels.gemm.matmul_calls import matmul_nbytes
from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.target import host_target
from cgraph.ops.linear import Matmul, laid_out, leading_shape, runs, workspace_nbytes
from tests.autodiff.differences import check_first
from tests.support.computed import computed, gradients
from tests.support.ops import kernel_result

RNG = np.random.default_rng(0)


def whole(*shape, dtype="float64"):
    x = RNG.integers(-4, 5, shape)
    return (x + 1j * RNG.integers(-4, 5, shape)).astype(dtype) if dtype[0] == "c" else x.astype(dtype)


SHAPES = [((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 1, 2, 3), (6, 3, 4)), ((6, 2, 3), (3,)),
          ((3,), (6, 3, 4)), ((2, 0), (0, 4)), ((0, 3), (3, 4)), ((1, 1), (1, 1))]  # fmt: skip


@pytest.mark.parametrize("x, y", SHAPES)
@pytest.mark.parametrize("dtypes", [("float64", "float64"), ("int8", "int8"), ("bool", "bool"), ("int32", "float32"),
                                    ("complex128", "float64"), ("float32", "complex64"), ("complex64", "complex128")],
                         ids="-".join)  # fmt: skip
def test_products_are_numpys(x, y, dtypes):
    a, b = (whole(*s, dtype=d) if d != "bool" else RNG.random(s) < 0.4 for s, d in zip((x, y), dtypes))
    got, want = computed(cg.matmul(cg.Var(a), cg.Var(b))), np.matmul(a, b)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["dot", "inner", "outer"])
@pytest.mark.parametrize("x, y", [((3,), (3,)), ((2, 3), (3,)), ((), (2, 3)), ((2, 3), ()), ((4, 2, 3), (3,)),
                                  ((3,), (5, 3, 3)), ((2, 3), (4, 3, 3)), ((3, 3), (3, 3))])  # fmt: skip
def test_products_of_any_rank(name, x, y):
    a, b = whole(*x), whole(*y)
    np.testing.assert_array_equal(computed(getattr(cg, name)(cg.Var(a), cg.Var(b))), getattr(np, name)(a, b))


@pytest.mark.parametrize("axes", [0, 1, 2, (0, 1), ((1, 0), (0, 1)), ((-1,), (0,)), ((), ())])
def test_tensordot_over_pairs_of_axes(axes):
    a, b = whole(3, 3), whole(3, 3, 2)
    np.testing.assert_array_equal(computed(cg.tensordot(cg.Var(a), cg.Var(b), axes)), np.tensordot(a, b, axes))


@pytest.mark.parametrize("x, y", [((2,), (3,)), ((2, 1), (1, 3)), ((2, 3), (2,)), ((), (2, 2)), ((2,), (2, 3, 2))])
def test_kron_is_each_element_times_the_whole(x, y):
    a, b = whole(*x), whole(*y)
    np.testing.assert_array_equal(computed(cg.kron(cg.Var(a), cg.Var(b))), np.kron(a, b))


def test_vdot_conjugates_the_first():
    a, b = whole(2, 3, dtype="complex128"), whole(2, 3, dtype="complex128")
    assert computed(cg.vdot(cg.Var(a), cg.Var(b))) == np.vdot(a, b) != np.vdot(b, a)


def test_what_does_not_fit_is_refused_with_its_sizes():
    x, y, three = cg.Var((2, 3), name="x"), cg.Var((4, 5), name="y"), cg.Var((2, 2, 3))
    for act, message in (
        (lambda: cg.matmul(x, y), "x has 3 columns, y has 4 rows; transpose or reshape one of them"),
        (lambda: cg.matmul(x, 2.0), r"matmul of x float32\[2,3\] and .* needs axes; multiply by a number with"),
        (lambda: cg.matmul(three, cg.Var((3, 3, 4))), r"leading axes of .* do not broadcast; use equal lengths or 1"),
        (
            lambda: cg.tensordot(x, y, ((0,), (1,))),
            r"x float32\[2,3\] over \[0\] and y float32\[4,5\] over \[1\] differ",
        ),
        (lambda: cg.tensordot(x, x, ((0, 0), (0, 0))), "name one axis twice"),
        (lambda: apply(Matmul(), x, cg.Var((2, 3, 4))), "must be matrices with equal leading axes; broadcast them"),
    ):
        with pytest.raises(ShapeError, match=message):
            act()
    with pytest.raises(DTypeError, match="operands are float32 and float64; use astype"):
        apply(Matmul(), x, cg.Var((3, 2), "float64"))
    with pytest.raises(DTypeError, match="operands are bool and bool"):
        apply(Matmul(), cg.Var((2, 2), bool), cg.Var((2, 2), bool))
    assert leading_shape(cg.Var((5, 1, 2, 3)), cg.Var((6, 3, 4))) == (5, 6)


def test_gradients_of_both_operands():
    x, y = cg.Var(whole(2, 3)), cg.Var(whole(3, 4))
    seed = whole(2, 4)
    to_x, to_y = gradients(x @ y, x, y, seed=seed)
    np.testing.assert_array_equal(to_x, seed @ y.value.T)
    np.testing.assert_array_equal(to_y, x.value.T @ seed)
    check_first(cg.matmul, [whole(2, 1, 2, 3), whole(4, 3, 2)])
    check_first(cg.matmul, [whole(3), whole(2, 3, 2)])


def test_multiply_adds_are_of_every_element_and_column():
    specs = [cg.Var(s).spec for s in ((5, 2, 3), (5, 3, 4))]
    assert Matmul().multiply_adds(*specs) == 5 * 2 * 3 * 4


def test_products_of_no_terms_are_zeros_and_of_no_rows_are_empty():
    for x, y in (((2, 0), (0, 3)), ((0, 2), (2, 3)), ((2, 2), (2, 0))):
        node = apply(Matmul(), cg.Var(x), cg.Var(y))
        (got,) = kernel_result(node, [np.ones(x, "f4"), np.ones(y, "f4")], "all")
        np.testing.assert_array_equal(got, np.zeros((x[0], y[1]), "f4"))


def test_integers_wrap():
    x = cg.Var(np.full((1, 2), 100, "int8"))
    assert computed(x @ cg.Var(np.full((2, 1), 100, "int8"))).item() == np.int8(20000 % 256 - 256 * (20000 % 256 > 127))


def test_a_workspace_suffices_for_every_layout_of_the_operands():
    target = host_target()
    for x, y in (((3, 40, 50), (3, 50, 60)), ((7, 9), (9, 300))):
        most = workspace_nbytes(target, x, y, "f4")
        for left in ("rows", "columns", "apart"):
            for right in ("rows", "columns", "apart"):
                a = laid_out((int(np.prod(x[:-2], dtype=int)), *x[-2:]), left, "f4", False)
                b = laid_out((int(np.prod(y[:-2], dtype=int)), *y[-2:]), right, "f4", False)
                out = laid_out((a.shape[0], x[-2], y[-1]), "rows", "f4", False)
                assert matmul_nbytes(target, out, a, b) <= most
    assert workspace_nbytes(target, (0, 3), (3, 4), "f4") == 0 == workspace_nbytes(target, (2, 3), (3, 0), "f4")


def test_views_of_each_layout():
    assert laid_out((2, 3, 4), "rows", "f8", False) == View(Pointer(None), (2, 3, 4), (96, 32, 8), "f8")
    assert laid_out((2, 3, 4), "columns", "f8", False).strides == (96, 8, 24)
    assert laid_out((2, 3, 4), "apart", "f4", False).strides == (96, 32, 8)
    assert laid_out((2, 3, 4), "rows", "f8", True).strides == (0, 32, 8)
    assert runs((2, 3, 5)) == [1, 2, 3, 5, 6, 15, 30] and runs(()) == [1]
