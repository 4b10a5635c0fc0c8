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


@pytest.mark.parametrize("engine", ["cpu", "cuda-sim"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", range(1, 9))
def test_small_matrices_have_kernels(n, dtype, engine):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(5, n, n)).astype(dtype), rng.normal(size=(5, n, 3)).astype(dtype)
    a[0] = np.roll(np.eye(n), 1, 0)  # every pivot is 0 unless rows are exchanged
    xs = [cg.Var(v.shape, dtype) for v in (a, b)]
    spread = xs[0] @ cg.transpose(xs[0], (0, 2, 1)) + np.eye(n, dtype=dtype)
    outputs = [cg.inv(xs[0]), cg.solve(*xs), cg.det(xs[0]), cg.cholesky(spread)]
    function = cg.compile(outputs, xs, engine=engine)
    assert not function.program.code.callbacks
    inverse, solution, determinant, factor = function(a, b)
    unit = np.finfo(dtype).eps
    condition = np.linalg.cond(a.astype("float64")).max()
    eye = np.eye(n)
    assert np.abs(a @ inverse - eye).max() <= 8 * n * condition * unit
    assert np.abs(a @ solution - b).max() <= 8 * n * condition * unit * np.abs(solution).max()
    assert np.abs(determinant - np.linalg.det(a.astype("float64"))).max() <= 8 * n * condition * unit
    wanted = a @ np.swapaxes(a, 1, 2) + eye
    assert np.abs(factor @ np.swapaxes(factor, 1, 2) - wanted).max() <= 8 * n * unit * np.abs(wanted).max()
    assert (factor == np.tril(factor)).all()


@pytest.mark.parametrize("engine", ["cpu", "cuda-sim"])
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("op", ["inv", "det", "cholesky"])
def test_small_matrices_of_zeros_and_nans_are_treated_as_numpy_treats_them(op, engine):
    x = cg.Var((2, 2), "float64")
    function, numpy = cg.compile(getattr(cg, op)(x), x, engine=engine), getattr(np.linalg, op)
    for value in (np.zeros((2, 2)), np.ones((2, 2)), np.full((2, 2), np.nan), -np.eye(2), np.eye(2)):
        try:
            want = numpy(value)
        except np.linalg.LinAlgError as error:
            with pytest.raises(np.linalg.LinAlgError, match=str(error)):
                function(value)
        else:
            np.testing.assert_array_equal(function(value), want)


def test_a_saved_loop_over_small_matrices_has_the_same_bits(tmp_path):
    xs = cg.Var((12, 3, 3), "float64", "xs")
    function = cg.compile(cg.scan(lambda s, x: (cg.inv(s + x), cg.det(s)), np.eye(3), xs), xs)
    value = np.random.default_rng(0).normal(size=(12, 3, 3)) + 3 * np.eye(3)
    function.save(tmp_path / "saved")
    for a, b in zip(cg.load(tmp_path / "saved")(value), function(value), strict=True):
        np.testing.assert_array_equal(a, b)


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
