"""Linear algebra through LAPACK: the same bits on any number of threads, errors that reach the caller, batches."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import NoGradientError, ShapeError
from tests.support.tolerance import assert_near


@pytest.mark.parametrize("name", ["inv", "det", "qr", "svd", "eigh", "cholesky"])
def test_same_bits_on_any_number_of_threads(name):
    n = 200
    x = cg.Var((n, n), "float64")
    a = np.random.default_rng(1).normal(size=(n, n))
    value = a @ a.T + n * np.eye(n)
    found = getattr(cg, name)(x)
    outputs = list(found) if isinstance(found, tuple) else [found]
    one, two = (cg.compile(outputs, [x], threads=threads)(value) for threads in (1, 2))
    assert [y.tobytes() for y in one] == [y.tobytes() for y in two]


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_a_singular_matrix_ends_the_run_and_the_function_stays_usable(engine):
    x = cg.Var((2, 2), "float64", "x")
    f = cg.compile(cg.inv(x) * 2, [x], engine=engine)
    with pytest.raises(np.linalg.LinAlgError):
        f(np.zeros((2, 2)))
    assert_near(f(np.eye(2)), 2 * np.eye(2), "float64 through float32")


def test_numpy_functions_work_on_nodes():
    x = cg.Const(np.array([[2.0, 1], [1, 3]]))
    assert_near(np.linalg.inv(x).eval() @ x.op.array, np.eye(2), "float64 through float32 near zero")
    assert_near(np.linalg.norm(x, 1).eval(), 4, "float64 through float32")
    assert_near(np.linalg.det(x).eval(), 5, "float64 through float32")


def test_shapes_that_do_not_fit():
    x = cg.Var((2, 3), "float64", "x")
    with pytest.raises(ShapeError, match=r"inv at test_linalg.py:\d+: .*square.*x float64\[2,3\]"):
        cg.inv(x)
    with pytest.raises(ShapeError, match="differ in rows"):
        cg.solve(cg.Var((3, 3), "float64"), cg.Var((2, 1), "float64"))


def test_gradients_that_do_not_exist_say_so():
    x = cg.Var((2, 3), "float64", "x")
    with pytest.raises(NoGradientError, match=r"qr at test_linalg.py:\d+"):
        cg.gradient(cg.sum(cg.qr(x)[0]), x)
    with pytest.raises(NoGradientError, match="full_matrices=False"):
        cg.gradient(cg.sum(cg.svd(x)[0]), x)


@pytest.mark.parametrize(
    "build",
    [
        lambda x, y: cg.tensordot(x, y, 3),
        lambda x, y: cg.tensordot(x, y, ((0, 0), (0, 1))),
        lambda x, y: cg.tensordot(x, y, ((0, 1), (1, 1))),
        lambda x, _: cg.norm(x, 1, (0, 0)),
        lambda x, _: cg.norm(x, 2, (0, -2)),
    ],
)
def test_no_axis_is_taken_twice(build):
    with pytest.raises(ShapeError, match=r"axes .* name one axis twice|outside the 2 axes"):
        build(cg.Var((4, 4), "float64"), cg.Var((4, 4, 4), "float64"))


def test_leading_axes_that_do_not_broadcast():
    with pytest.raises(ShapeError, match="leading axes of .* do not broadcast"):
        cg.solve(cg.Var((2, 3, 3), "float64"), cg.Var((5, 3, 1), "float64"))
