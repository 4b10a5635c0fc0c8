"""`cg.grad` and `cg.value_and_grad`: central differences are the oracle."""

import collections

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ArgumentError, DTypeError, GraphError, ShapeError
from cgraph.transforms.differentiate import leaf_positions, variable_of
from cgraph.transforms.transformation import leaves_of
from tests.support.tolerance import all_near

X = np.linspace(0.3, 1.7, 6).reshape(2, 3)
W = np.linspace(-1, 1, 12).reshape(3, 4)
Point = collections.namedtuple("Point", "x y")


def assigned(x):
    y = x * 2
    y[0] = x[1] ** 2
    y[y > 2] = 3
    x[:, 1] = 0
    return np.sum(y * x)


def looped(x):
    total, _ = cg.scan(lambda c, row: (np.tanh(c + row * x[0]), None), x[1], cg.numpy.asarray(W.T[:, :3]))
    return total.sum()


FUNCTIONS = [
    lambda x: np.sum(np.sin(x) ** 2),
    lambda x: np.mean(np.tanh(x @ W)) + x[0, 0] ** 3,
    lambda x: np.linalg.norm(x) * np.log(x).sum(),
    lambda x: np.max(x) * np.prod(x),
    lambda x: np.where(x > 1, x**2, -x).sum(),
    lambda x: np.sort(x.ravel())[::2] @ np.arange(3.0),
    lambda x: np.concatenate([x, x[:, ::-1] ** 2]).std(),
    lambda x: cg.cond(x.sum() > 0, lambda a: np.sum(a**3), lambda a: np.sum(a), x),
    assigned,
    looped,
]


def differences(f, x, step=1e-6):
    """The gradient by central differences."""
    slope = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        shift = np.zeros_like(x)
        shift[i] = step
        slope[i] = (f(x + shift) - f(x - shift)) / (2 * step)
    return slope


@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_gradient_is_that_of_central_differences(f):
    value, slope = cg.value_and_grad(f)(X)
    assert all_near(value, cg.jit(f)(X))
    assert all_near(slope, differences(cg.jit(f), X), "central differences")
    assert all_near(cg.jit(cg.grad(cg.jit(f)))(X), slope)


def test_a_gradient_has_the_structure_of_its_argument():
    def loss(p, x):
        return np.mean((x @ p["w"] + p["b"][0]) ** 2) + p["p"].y

    params = {"w": W, "b": [np.zeros(4)], "p": Point(np.ones(2), 2.0)}
    slope = cg.grad(loss)(params, X)
    assert list(slope) == ["w", "b", "p"] and type(slope["p"]) is Point
    assert slope["p"].x.tolist() == [0, 0] and slope["p"].y == 1
    assert all_near(slope["w"], X.T @ (X @ W) * 2 / 8) and slope["b"][0].shape == (4,)


def test_a_gradient_of_ones_own_is_used():
    def clipped(x):
        return cg.sum(cg.custom_gradient(x * x, [x], lambda g: [np.clip(2 * g * x, -1, 1)]))

    for f in (cg.grad(clipped), cg.grad(cg.jit(clipped)), cg.jit(cg.grad(clipped)), cg.vmap(cg.grad(clipped))):
        assert all_near(f(X), np.clip(2 * X, -1, 1))


def test_several_arguments_and_auxiliary_results():
    f = lambda a, x, n: (np.sum(a * x), {"x": x + n, "n": "text"})  # noqa: E731
    (value, aux), (to_a, to_x) = cg.value_and_grad(f, argnums=(0, -2), has_aux=True)(3.0, X, 1)
    assert all_near(value, 3 * X.sum()) and all_near(to_a, X.sum()) and np.array_equal(to_x, np.full_like(X, 3))
    assert np.array_equal(aux["x"], X + 1) and aux["n"] == "text"
    slope, aux = cg.jit(cg.grad(f, argnums=1, has_aux=True))(3.0, X, 1)
    assert np.array_equal(slope, np.full_like(X, 3)) and np.array_equal(aux["x"], X + 1)


def test_gradients_nest():
    cubed = lambda x: np.sum(x**3)  # noqa: E731
    assert cg.grad(cg.grad(lambda x: x**3))(2.0) == 12
    hessian = cg.jit(lambda x: cg.vmap(lambda v: cg.grad(lambda y: cg.grad(cubed)(y) @ v)(x))(np.eye(3)))
    assert all_near(hessian(X[0]), np.diag(6 * X[0]))


def test_what_an_outer_variable_contributes_is_not_differentiated():
    def outer(x):
        c = x**2
        return cg.grad(lambda y: y * c)(x)

    assert cg.jit(outer)(3.0) == 9


def test_static_arguments_of_a_compiled_function_stay_static():
    f = cg.jit(lambda x, n: sum(x**i for i in range(n)).sum(), static_argnames="n")
    assert all_near(cg.grad(f)(X, n=3), 1 + 2 * X) and all_near(cg.grad(f)(X, 4), 1 + 2 * X + 3 * X**2)


def test_the_same_gradient_written_again_is_not_compiled_again():
    def f(x):
        return np.sum(x**2)

    cg.grad(f)(X)
    before = cg.jit.cache_info().compilations
    for _ in range(3):
        cg.grad(f)(X)
    assert cg.jit.cache_info().compilations == before
    cg.grad(f, argnums=(0,))(X), cg.value_and_grad(f)(X)
    assert cg.jit.cache_info().compilations == before + 2


def test_the_gradient_of_a_complex_argument_is_that_of_gradient():
    z = X[0] + 1j * X[1]
    assert all_near(cg.grad(lambda z: np.sum(np.abs(z) ** 2))(z), 2 * z.conj())


@pytest.mark.parametrize(
    "f, argument, error, words",
    [
        (lambda x: x, X, ShapeError, "return one number"),
        (lambda x: x.sum(), np.arange(3), DTypeError, "astype"),
        (lambda x: x * x, 2, DTypeError, "not floats"),
        (
            lambda x: x["x"].sum(),
            {"x": X, "mode": "same"},
            DTypeError,
            "'same' of str is not defined; pass it in an arg",
        ),
        (lambda x: x["x"].sum(), {"x": X, "rows": slice(2)}, DTypeError, "of slice is not defined"),
        (lambda x: (x * 1j).sum(), X, DTypeError, "np.real"),
        (lambda x: "text", X, GraphError, "one traced float"),
        (lambda x: (x.sum(), x), X, GraphError, "has_aux"),
        (lambda x: np.floor(x).astype(int).sum(), X, DTypeError, "float"),
    ],
)
def test_what_has_no_gradient_is_refused(f, argument, error, words):
    with pytest.raises(error, match=words):
        cg.grad(f)(argument)


def test_arguments_that_are_not_there_are_refused():
    with pytest.raises(ArgumentError, match="argnums has 2"):
        cg.grad(lambda x: x.sum(), argnums=2)(X)
    with pytest.raises(ArgumentError, match="argnums"):
        cg.grad(lambda x: x.sum(), argnums=())


# -- the parts --------------------------------------------------------------------------------------------------------


def test_results_are_arranged_as_asked_for():
    def f(x, y):
        return np.sum(x * y), {"twice": 2 * x}

    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    gradients, aux = cg.grad(f, argnums=(1, 0), has_aux=True)(x, y)
    assert [g.tolist() for g in gradients] == [[1, 2], [3, 4]] and aux["twice"].tolist() == [2, 4]
    (value, aux), slope = cg.value_and_grad(f, has_aux=True)(x, y)
    assert (value, slope.tolist(), aux["twice"].tolist()) == (11, [3, 4], [2, 4])
    (single,) = cg.grad(lambda x: np.sum(x**2), argnums=(0,))(x)
    assert single.tolist() == [2, 4]
    assert cg.grad(lambda x, y: np.sum(x * y), argnums=-1)(x, y).tolist() == [1, 2]


def test_positions_count_the_leaves_of_the_arguments_before():
    assert leaf_positions([(X, X), X, {"a": X, "b": X}], (2, 0)) == [3, 4, 0, 1]
    assert leaf_positions([X, (X, X), X], (-2,)) == [1, 2]
    with pytest.raises(ArgumentError, match="argnums has -2, and 1 arguments are passed by position"):
        leaf_positions([X], (-2,))


def test_argnums_that_name_nothing_are_refused():
    for argnums in ((), ("x",), (1.5,)):
        with pytest.raises(ArgumentError, match="names no argument; pass a position such as 0, or several"):
            cg.grad(np.sum, argnums=argnums)
        with pytest.raises(ArgumentError, match="names no argument; pass a position such as 0, or several"):
            cg.jacobian(np.sum, argnums=argnums)


def test_names_and_recipes_tell_gradients_apart():
    def loss(x):
        return np.sum(x)

    loss.__qualname__ = "loss"
    assert repr(cg.grad(loss)) == "<grad of loss>" and repr(cg.value_and_grad(loss)) == "<value_and_grad of loss>"
    made = [cg.grad(loss), cg.grad(loss, 1), cg.grad(loss, (0,)), cg.grad(loss, has_aux=True), cg.value_and_grad(loss)]
    assert len({m.recipe for m in made}) == 5 and cg.grad(loss).recipe == made[0].recipe
    with pytest.raises(
        GraphError, match=r"<grad of loss>: with has_aux the function returns a pair. Return \(value, others\)"
    ):
        made[3](X)


def test_the_gradient_of_a_number_is_a_number_and_of_nodes_a_node():
    assert cg.grad(lambda x: x**3)(2.0) == 12
    x = cg.Var((2,), "float64").assign([1.0, 2.0])
    slope = cg.grad(lambda x: np.sum(x**2))(x)
    assert isinstance(slope, cg.Node) and slope.eval().tolist() == [2, 4]
    with pytest.raises(DTypeError, match=r"with respect to int64\[2\] is not defined: its elements are not floats"):
        variable_of(np.array([1, 2]), 0)


@pytest.mark.parametrize("argnums", [(0, 0), (0, -2), (1, 0, 1), (-1, 1), (2, 0, 2)])
def test_an_argument_that_is_named_twice_has_its_gradient_twice(argnums):
    """Also one of several leaves, and beside other results."""
    x, y, tree = np.arange(3.0), np.array([2.0, 5.0, 7.0]), {"a": np.ones(2), "b": (np.arange(4.0),)}

    def f(x, y, tree):
        return np.sum(x * x * y) + np.sum(tree["a"] * 3) + np.sum(tree["b"][0] ** 2), y * 2

    slopes = [2 * x * y, x * x, {"a": np.full(2, 3.0), "b": (2 * tree["b"][0],)}]
    for call in (cg.grad(f, argnums, has_aux=True), cg.jit(cg.grad(f, argnums, has_aux=True))):
        found, others = call(x, y, tree)
        assert len(found) == len(argnums)
        for got, i in zip(found, argnums):
            want = slopes[i]
            for a, b in zip(*map(leaves_of, (got, want)), strict=True):
                np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(others, y * 2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_a_gradient_has_the_dtype_of_its_argument_and_the_value_that_of_the_result(dtype):
    x, y = X.astype(dtype), X.astype("float64")
    value, (to_x, to_y) = cg.value_and_grad(lambda x, y: np.sum(np.abs(x) ** 2) + np.sum(y), (0, 1))(x, y)
    assert (to_x.dtype, to_y.dtype, value.dtype) == (dtype, "float64", "float64")
    assert cg.grad(lambda x: np.sum(np.abs(x) ** 2))(x).dtype == dtype
