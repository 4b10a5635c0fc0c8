"""Reductions by hand and by NumPy: axes in any order, dtypes, ties, NaN, no elements, products of zeros, complex."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import ShapeError
from cgraph.ops.reduce import count, keepdims_shape, sum_dtype
from tests.support.tolerance import assert_close, near

X = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype("f4")


def meant(node):
    """The value by meaning."""
    return evaluate((node,), {})[0]


def run(node):
    """The value by meaning, which the compiled one must equal."""
    (got,) = cg.compile([node], [])()
    assert_close(got, meant(node))
    return got


def slope(f, x):
    v = cg.Var(x.shape, x.dtype)
    return cg.compile([cg.gradient(f(v), [v])[0]], [v])(x)[0]


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "any", "all", "mean", "var", "std", "ptp"])
@pytest.mark.parametrize("axis", [None, 0, -1, (1, 3), (3, 0), ()], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes_are_numpys(name, axis, keepdims):
    got = meant(getattr(cg, name)(cg.Const(X), axis, keepdims=keepdims))
    want = np.asarray(getattr(np, name)(X.astype("f8"), axis=axis, keepdims=keepdims))
    assert_close(got, want.astype(got.dtype))
    assert got.dtype == (bool if name in ("any", "all") else np.float32)


def test_an_index_counts_along_the_axis_or_the_flattened_operand_and_ties_go_to_the_first():
    x = np.array([[3, 1, 3], [1, 3, 1]])
    assert run(cg.argmax(x)) == 0 and run(cg.argmin(x)) == 1
    assert run(cg.argmax(x, 0)).tolist() == [0, 1, 0] and run(cg.argmin(x, 1)).tolist() == [1, 0]
    assert run(cg.argmax(x, 1, keepdims=True)).tolist() == [[0], [1]]
    assert run(cg.argmin(np.array([2.0, np.nan, np.nan]))) == 1 and run(cg.argmax(np.float32(7))) == 0


def test_small_integers_are_summed_in_64_bits_and_wrap_only_where_asked():
    x = np.full(300, 255, "u1")
    assert run(cg.sum(x)) == 76500 and run(cg.sum(x)).dtype == np.uint64
    assert run(cg.sum(x, dtype="uint8")) == 76500 % 256 and run(cg.sum(-x.astype("i2"))).dtype == np.int64
    assert run(cg.prod(np.array([-128, 2], "i1"))) == -256
    assert run(cg.mean(np.array([True, False]))) == 0.5 and run(cg.mean(x)).dtype == np.float64
    assert [sum_dtype(np.dtype(d)).name for d in ("?", "f4", "c8", "u2", "i4")] == [
        "int64", "float32", "complex64", "uint64", "int64",
    ]  # fmt: skip


def test_no_elements_have_a_sum_a_product_and_no_extreme():
    x = np.zeros((2, 0), "f4")
    assert run(cg.sum(x, 1)).tolist() == [0, 0] and run(cg.prod(x, 1)).tolist() == [1, 1]
    assert run(cg.all(x, 1)).all() and not run(cg.any(x, 1)).any()
    assert run(cg.max(x, 0)).shape == (0,)
    assert np.isnan(meant(cg.mean(cg.Const(x), 1))).all()
    for name in ("min", "max", "argmin", "argmax"):
        with pytest.raises(ShapeError, match=rf"{name} of .* along axes \[1\] has no elements"):
            getattr(cg, name)(cg.Const(x), 1)


def test_a_variance_is_over_the_count_minus_the_degrees():
    x = np.array([1.0, 3.0, 8.0])
    assert run(cg.var(x)) == near(26 / 3, "float64 formulas") and run(cg.var(x, ddof=1)) == 13
    assert meant(cg.var(cg.Const(x), ddof=3)) == np.inf == meant(cg.var(cg.Const(x), ddof=4))
    assert run(cg.var(np.array([1 + 1j, 3 - 1j]))) == 2 and run(cg.count_nonzero(np.array([0, -2, 5]))) == 2


def test_gradients_of_products_with_zeros_and_of_ties():
    product = slope(
        lambda v: cg.sum(cg.prod(v, (2, 0))), np.array([2, 3, 0, 5, 7, 1, 1, 0, 2, 0], "f8").reshape(1, 2, 5)
    )
    assert product.tolist() == [[[0, 0, 210, 0, 0], [0, 0, 0, 0, 0]]]
    assert slope(lambda v: cg.prod(v), np.array([2.0, 3, 4])).tolist() == [12, 8, 6]
    assert slope(lambda v: cg.sum(cg.max(v, 1)), np.array([[1.0, 4, 4], [9, 0, 0]])).tolist() == [
        [0, 0.5, 0.5],
        [1, 0, 0],
    ]
    assert slope(lambda v: cg.std(v), np.array([2.0, 2.0])).tolist() == [0, 0]


def test_complex_numbers_compare_by_real_then_imaginary_part_and_nan_first():
    x = np.array([1 + 2j, 3 - 1j, 3 + 1j, 1 - 5j])
    assert run(cg.max(x)) == 3 + 1j and run(cg.min(x)) == 1 - 5j
    assert run(cg.argmax(x)) == 2 and run(cg.argmin(x)) == 3
    x[1] = complex(0, np.nan)
    assert np.isnan(meant(cg.min(cg.Const(x)))) and run(cg.argmin(x)) == 1
    assert run(cg.any(np.array([0j, 1j]))) and not run(cg.all(np.array([0j, 1j])))


def test_axes_that_stay_have_length_1():
    assert keepdims_shape((2, 3, 4), (0, 2)) == (1, 3, 1)
    assert count(cg.Var((2, 3, 4)), (0, -1)) == 8 and count(cg.Var((2, 3, 4)), None) == 24
