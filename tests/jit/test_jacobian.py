"""`cg.jacobian` and `cg.hessian`: central differences are the oracle."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ArgumentError, DTypeError, GraphError, ShapeError
from cgraph.transforms.jacobian import Jacobian
from tests.support.tolerance import all_near

X = np.linspace(0.3, 1.7, 6).reshape(2, 3)
W = np.linspace(-1, 1, 12).reshape(3, 4)

FUNCTIONS = [
    lambda x: np.tanh(x @ W),
    lambda x: np.cumsum(x, axis=1)[0] * x[1],
    lambda x: np.sort(x, axis=None)[::2],
    lambda x: np.linalg.inv(x @ x.T),
    lambda x: (x**2).sum(),
    lambda x: np.stack([x, x.T.reshape(2, 3)]).astype("float64")[:, ::-1],
    lambda x: x[:, :0],
    lambda x: cg.scan(lambda c, row: (np.tanh(c + row), c * row), x[1], x)[1],
]


def differences(f, x, step=1e-6):
    """The Jacobian by central differences."""
    rows = np.zeros((*np.shape(f(x)), *x.shape))
    for i in np.ndindex(x.shape):
        shift = np.zeros_like(x)
        shift[i] = step
        rows[(..., *i)] = (f(x + shift) - f(x - shift)) / (2 * step)
    return rows


@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_jacobian_is_that_of_central_differences(f):
    rows = cg.jacobian(f)(X)
    assert all_near(rows, differences(cg.jit(f), X), "central differences")
    assert all_near(cg.jit(cg.jacobian(cg.jit(f)))(X), rows)
    examples = np.stack([X, X + 0.1])
    each = cg.vmap(cg.jacobian(f))(examples)
    assert all_near(each, np.stack([cg.jacobian(f)(x) for x in examples]))


@pytest.mark.parametrize("f", [lambda x: np.sum(x**3), lambda x: np.prod(x), lambda x: (x @ W**2).std()])
def test_a_hessian_is_that_of_central_differences(f):
    rows = cg.hessian(f)(X)
    assert rows.shape == (2, 3, 2, 3)
    assert all_near(rows, differences(cg.grad(f), X), "central differences")
    along = np.ones_like(X)
    x = cg.Var((2, 3), "float64").assign(X)
    assert all_near((rows * along).sum((2, 3)), cg.hessian_vector_product(f(x), x, along).eval())


def test_a_jacobian_has_the_structures_of_result_and_argument():
    def f(p, x):
        return {"y": x @ p["w"] + p["b"], "twice": (2 * p["b"],)}

    to_p, to_x = cg.jacobian(f, argnums=(0, 1))({"w": W, "b": 3.0}, X)["y"]
    assert to_p["w"].shape == (2, 4, 3, 4) and np.array_equal(to_p["b"], np.ones((2, 4)))
    assert all_near(to_x, np.einsum("ik,lj->ijkl", np.eye(2), W))
    of_twice = cg.jacobian(f, argnums=-1)({"w": W, "b": 3.0}, X)["twice"]
    assert of_twice[0].shape == (2, 3) and not of_twice[0].any()
    (single,) = cg.jacobian(lambda x: x * x, argnums=(0,))(2.0)
    assert single == 4
    blocks = cg.hessian(lambda x, y: np.sum(x * y**2), argnums=(0, 1))(np.ones(2), np.full(2, 3.0))
    assert [b.tolist() for row in blocks for b in row] == [
        [[0, 0], [0, 0]],
        [[6, 0], [0, 6]],
        [[6, 0], [0, 6]],
        [[2, 0], [0, 2]],
    ]


def test_an_argument_that_is_named_twice_gives_its_jacobian_twice():
    first, second = cg.jacobian(lambda x: 3 * x, argnums=(0, -1))(np.ones(2))
    assert np.array_equal(first, 3 * np.eye(2)) and np.array_equal(second, first)


def test_float32_stays_float32():
    assert cg.jacobian(np.sin)(np.ones(2, "float32")).dtype == "float32"


def test_a_random_stream_moves_on():
    stream = cg.numpy.random.default_rng(0)
    f = cg.jacobian(lambda x, stream: x * stream.normal(size=2))
    first, second = f(np.ones(2), stream), f(np.ones(2), stream)
    assert not np.array_equal(first, second)


def test_the_same_jacobian_written_again_is_not_compiled_again():
    def f(x):
        return np.sin(x)

    cg.jacobian(f)(X)
    before = cg.jit.cache_info().compilations
    assert all_near(cg.jacobian(f)(X + 1).sum(), np.cos(X + 1).sum())
    assert cg.jit.cache_info().compilations == before
    assert Jacobian(f, 0).recipe != Jacobian(f, (0,)).recipe


@pytest.mark.parametrize(
    "f, argument, error, words",
    [
        (lambda x: x, np.arange(3), DTypeError, "astype"),
        (lambda x: x * 1j, X, DTypeError, "np.real"),
        (lambda x: x > 1, X, DTypeError, "return floats"),
        (lambda x: (x, "text"), X, GraphError, "not a traced array"),
    ],
)
def test_what_has_no_jacobian_is_refused(f, argument, error, words):
    with pytest.raises(error, match=words):
        cg.jacobian(f)(argument)


def test_a_hessian_takes_one_number_and_an_argument_that_is_there():
    with pytest.raises(ShapeError, match="return one number"):
        cg.hessian(np.sin)(X)
    with pytest.raises(ArgumentError, match="argnums has 1"):
        cg.hessian(np.sum, argnums=1)(X)
