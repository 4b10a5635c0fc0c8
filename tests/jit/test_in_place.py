"""NumPy's functions that change an array, on traced arrays and their views: the same elements, or a refusal."""

import itertools

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, GraphError, NoMeaningError, ShapeError
from tests.jit.test_assignment import run
from tests.support.tolerance import assert_near

A = np.arange(12.0).reshape(3, 4)
PROGRAMS = [
    "np.add.at(x, [0, 0, 2], 1.5)", "np.add.at(x, ([0, 0], [i, i]), [2, 3])", "np.add.at(x[1], [i, i, 3], x[0, :3])",
    "np.subtract.at(x, (slice(None), [3, 3]), 1)", "np.multiply.at(x, [i, i], 2)", "np.divide.at(x, [0, 0], 2)",
    "np.power.at(x, [0, 0], 2)", "np.maximum.at(x, [0, 0], [[5], [7]])", "np.minimum.at(x.T, [i], 2)",
    "np.copyto(x, 3)", "np.copyto(x[1:], x[0])", "np.copyto(x, -x, where=x > 4)", "np.copyto(x.T, x[:, 0])",
    "np.putmask(x, x > 3, -1)", "np.putmask(x, x > 3, [1, 2, 3, 4, 5])", "np.putmask(x[0], x[1] > 5, x[2])",
    "np.put(x, [0, -1, 0], [7, 8, 9])", "np.put(x, [[0, 5], [6, 7]], [1, 2])", "x.put([3, 4], x[0, 0] + 5)",
    "np.fill_diagonal(x, 0)", "np.fill_diagonal(x[:, 1:], [5, 6])", "np.fill_diagonal(x.T, x[0, 0] - 1)",
    "y = np.stack([x[:3, :3]] * 3); np.fill_diagonal(y, 9); x = y",
    "np.put_along_axis(x, x.argmax(1)[:, None], -5, 1)", "np.put_along_axis(x, np.array([0, 7]), 1, None)",
    "x[0] = x[0, ::-1]; y = x[0]; y.partition(3); x[1, 0] = y[3]; x[0] = 0",
    "x *= 5; x %= 7; x.sort()", "x *= 5; x %= 7; x.sort(0)", "x *= 5; x %= 7; x.sort(axis=-2)",
    "x[:2] = x[1::-1]; x[:2].partition(1, 0)", "x[:2] = x[1::-1]; x[:2].partition(kth=1, axis=0)",
    "np.copyto(x, -x, where=[True, False, True, False])", "np.putmask(x, x // 4, -1)",
]  # fmt: skip
"""Programs on an array `x` of three by four and an integer `i`, which is 1."""


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gives_what_numpy_gives(program):
    argument = A.copy()
    got = cg.jit(lambda x, i: run(program, x, i))(argument, 1)
    np.testing.assert_array_equal(got, run(program, A.copy(), 1))
    np.testing.assert_array_equal(argument, A)


@pytest.mark.parametrize("f, error, words", [
    (lambda x: np.copyto(x.astype(int), x), DTypeError, "copyto does not copy float64 to .* use astype"),
    (lambda x: np.add.at(x.astype(int), [0], 1.5), DTypeError, "astype"),
    (lambda x: np.hypot.at(x, [0], 1.5), NoMeaningError, "use one of np.add.at, np.subtract.at"),
    (lambda x: np.put(x, [99], 1, mode="clip"), NoMeaningError, "np.clip"),
    (lambda x: np.fill_diagonal(x, 1, wrap=True), ShapeError, "without wrap=True"),
    (lambda x: np.fill_diagonal(x[0], 1), ShapeError, "takes a matrix"),
    (lambda x: np.fill_diagonal(x.reshape(3, 2, 2) + 0, 1), ShapeError, "equal lengths"),
    (lambda x: np.copyto(x.sum(), 1), DTypeError, "is a number"),
    (lambda x: np.place(x, x > 2, [1, 2]), NoMeaningError, "np.where"),
    (lambda x: cg.vmap(lambda row: np.copyto(x, row))(x), GraphError, "an array of an enclosing function"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(f, error, words):
    with pytest.raises(error, match=words):
        cg.jit(f)(A)


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_values_are_copied_with_the_castings_of_numpy(casting):
    kinds = ("bool", "int8", "int64", "float32", "float64", "complex64")
    for kind, other in itertools.product(kinds, repeat=2):
        x, y = np.zeros(3, kind), np.array([0, 1, 2]).astype(other)
        function = cg.jit(lambda x, y: (np.copyto(x, y, casting=casting), x)[1])
        if not np.can_cast(other, kind, casting):
            with pytest.raises(DTypeError, match=casting):
                function(x, y)
        elif (kind[0], other[0]) not in (("b", "c"), ("i", "c"), ("f", "c")):  # NumPy warns of lost imaginary parts
            got = function(x, y)
            assert got.dtype == kind
            np.testing.assert_array_equal(got, y.astype(kind))


def test_gradients_and_batches_of_changes():
    def f(x):
        np.add.at(x, [0, 0, 1], x[1] * 2)
        np.fill_diagonal(x, x[0, 3])
        return (x * x).sum()

    step = 1e-6 * np.eye(12).reshape(12, 3, 4)
    want = [(f(A + s) - f(A - s)) / 2e-6 for s in step]
    assert_near(cg.grad(f)(A).ravel(), want, "central differences")
    many = np.stack([A, A - 3])
    np.testing.assert_array_equal(cg.vmap(f)(many), [f(x.copy()) for x in many])
