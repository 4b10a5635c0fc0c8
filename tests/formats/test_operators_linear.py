"""MatMul, Gemm, Einsum and Det: vectors, batches, transposes, factors, rows and columns that are added."""

from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.linear import letters_of_einsum, letters_of_gemm, letters_of_matmul
from cgraph.ops.leaf import Var
from tests.support.onnx_models import FLOAT, assert_equal_results, one, results_of
from tests.support.tolerance import assert_near

pytest.importorskip("onnxruntime")
rng = np.random.default_rng(0)


def numbers(*shape, dtype="f4"):
    return rng.integers(-5, 6, shape).astype(dtype) if dtype[0] == "i" else rng.standard_normal(shape).astype(dtype)


SHAPES = [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4))]
SHAPES += [((5, 1, 2, 3), (6, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((0, 3), (3, 4))]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_products_of_vectors_matrices_and_batches(shapes, dtype):
    assert_equal_results("MatMul", [numbers(*shape, dtype=dtype) for shape in shapes])


@pytest.mark.parametrize("turned", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("added", [None, (4,), (2, 4), (2, 1), (1, 4), (1,), ()])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 3.0)])
def test_gemm_with_factors(turned, added, alpha, beta):
    a, b = numbers(*((3, 2) if turned[0] else (2, 3))), numbers(*((4, 3) if turned[1] else (3, 4)))
    c = None if added is None else numbers(*added)
    operands = [a, b] if c is None else [a, b, c]
    assert_equal_results("Gemm", operands, transA=turned[0], transB=turned[1], alpha=alpha, beta=beta)


def test_factors_of_gemm_are_one_unless_told():
    assert_equal_results("Gemm", [numbers(2, 3), numbers(3, 4), numbers(4)])
    assert_equal_results("Gemm", [numbers(2, 3), numbers(3, 4), numbers(4)], alpha=2.0)
    assert_equal_results("Gemm", [numbers(2, 3), numbers(3, 4), numbers(4)], beta=2.0)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij, kj -> ki", [(2, 3), (4, 3)]),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
        ("ii->i", [(3, 3)]),
        ("ij->", [(2, 3)]),
        ("ij->ji", [(2, 3)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]),
        ("i,j,k->kij", [(2,), (3,), (4,)]),
    ],
)
def test_sums_of_products_by_letters(equation, shapes):
    assert_equal_results("Einsum", [numbers(*shape) for shape in shapes], equation=equation)


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 4, 4)])
def test_determinants(shape):
    assert_equal_results("Det", [numbers(*shape)], near="float32 long products")


def context(*shapes, **attributes):
    """What the letters of a contraction are told from."""
    values = [None if shape is None else Var(shape) for shape in shapes]
    return SimpleNamespace(
        array=lambda i: values[i],
        value=lambda i: values[i] if i < len(values) else None,
        attribute=attributes.get,
        required=attributes.__getitem__,
    )


def test_axes_of_one_letter_have_one_length():
    assert letters_of_matmul(context((2, 3), (3, 4))) == (["ij", "jk"], "ik")
    assert letters_of_matmul(context((3,), (3, 4))) == (["j", "jk"], "k")
    assert letters_of_matmul(context((2, 3), (3,))) == (["ij", "j"], "i")
    assert letters_of_matmul(context((5, 6, 2, 3), (6, 3, 4))) == (["ABij", "Bjk"], "ABik")
    assert letters_of_gemm(context((2, 3), (3, 4))) == (["ij", "jk", ""], "ik")
    assert letters_of_gemm(context((2, 3), (3, 4), (4,), transA=1)) == (["ji", "jk", "k"], "ik")
    assert letters_of_gemm(context((2, 3), (3, 4), (2, 4), transB=1)) == (["ij", "kj", "ik"], "ik")
    assert letters_of_einsum(context(equation="ab, bc -> ca")) == (["ab", "bc"], "ca")


def test_letters_that_cannot_be_told_are_refused():
    for shapes in (((), (3,)), ((1,) * 11, (3, 4))):
        with pytest.raises(FormatError, match="axes with dynamic lengths cannot be multiplied"):
            letters_of_matmul(context(*shapes))
    assert letters_of_matmul(context((1,) * 10, (3, 4)))[1] == "ABCDEFGHik"
    for equation in ("ab,bc", "...a,ab->...b"):
        with pytest.raises(FormatError, match="the equation .* has no -> or has ..."):
            letters_of_einsum(context(equation=equation))


@pytest.mark.parametrize("transposed", [None, 0, 1])
@pytest.mark.parametrize("columns", [1, 3])
def test_solutions_of_linear_systems_perhaps_of_the_transpose(transposed, columns):
    a, b = numbers(2, 4, 4, dtype="f8") + 3 * np.eye(4), numbers(2, 4, columns, dtype="f8")
    options = {} if transposed is None else {"transposed": transposed}
    ((got,), _) = results_of("Solve", [a, b], by="nobody", domain="com.microsoft", **options)
    assert_near(got, np.linalg.solve(a.swapaxes(1, 2) if transposed else a, b), "float64 conditioned")


def test_determinants_of_each_matrix():
    a = numbers(3, 4, 4, dtype="f8")
    ((got,), _) = results_of("Det", [a], by="nobody")
    assert_near(got, np.linalg.det(a), "float64 conditioned")


@pytest.mark.parametrize("opset", [1, 6, 7, 13])
@pytest.mark.parametrize("turned", [0, 1])
def test_products_of_every_version(opset, turned):
    """Before version 7 the axes behind the first are one; the rest of the operator is the same."""
    a = rng.standard_normal((3, 2, 2) if opset < 7 and not turned else (4, 3) if turned else (3, 4)).astype("f4")
    b, added = rng.standard_normal((4, 5)).astype("f4"), rng.standard_normal(5).astype("f4")
    options = {"transA": turned, "alpha": 0.5, "beta": 2.0} | ({"broadcast": 1} if opset < 7 else {})
    raw = one("Gemm", [("a", FLOAT, a.shape)], {"b": b, "c": added}, opset, **options)
    (got,) = load(raw).compile(engine="reference")(a)
    flat = a.T if turned else a.reshape(3, 4)
    assert_near(got, 0.5 * flat @ b + 2 * added, "float32 products")
