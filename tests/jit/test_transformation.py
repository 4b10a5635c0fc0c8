"""A function made of a function: its name and recipe, placeholders for leaves, and random streams that advance."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.transforms.transformation import InnerCall, Transformation, leaves_of, substitute
from tests.support.computed import computed, float64
from tests.support.tolerance import assert_near


def add(x, y=1.0):
    """Add."""
    return x + y


class Twice(Transformation):
    """The function, twice its result."""

    def __init__(self, f):
        super().__init__(f, lambda *args, **kwargs: 2 * f(*args, **kwargs), ("twice",))


def test_it_has_the_name_and_text_of_the_function_and_shows_the_outermost_step():
    made = Twice(add)
    assert (made.__name__, made.__doc__, made.__wrapped__) == ("add", "Add.", add)
    assert repr(made) == "<twice of add>" and repr(cg.grad(made)) == "<grad of add>"
    assert made.recipe == (add, ("twice", ())) and Twice(made).recipe == (add, ("twice", ("twice", ())))


def test_it_applies_to_arrays_nodes_and_traced_arrays():
    made = Twice(add)
    assert made(np.array([1.0, 2.0])).tolist() == [4, 6] and made(3.0, y=2.0) == 10
    x = float64([1.0, 2.0])
    assert computed(made(x)).tolist() == [4, 6]
    assert cg.jit(lambda x: made(x) + 1)(np.array([1.0])).tolist() == [5]


def test_static_arguments_of_the_function_stay_static():
    power = cg.jit(lambda x, n: x**n if isinstance(n, int) and n == 3 else None, static_argnums=1)
    made = Twice(power)
    assert made.static_numbers == frozenset({1}) and made(2.0, 3) == 16
    assert cg.grad(power)(2.0, 3) == 12


def test_placeholders_replace_leaves_by_position():
    x, y = float64([1.0, 2.0], [10.0, 20.0])
    seen = []

    def f(a, b):
        return {"difference": a["p"] - b, "constant": 7, "same": b}

    def outer(x, y):
        args = ({"p": x}, y)
        call = InnerCall(f, args, {})
        stand_in = cg.Var((2,), "float64")
        leaves, form, keys = call.run({0: stand_in}, leaves_of((args, {})))
        seen.extend([leaves, form, keys, stand_in, y.node])
        return x

    cg.jit(outer)(np.ones(2), np.ones(2))
    (difference, constant, same), form, keys, stand_in, node = seen
    assert difference.operands == (stand_in, node) and constant == 7 and same is node and keys == []
    assert form.names == ("difference", "constant", "same")
    assert computed(*substitute([difference], {stand_in: x, node: y})).tolist() == [-9, -18]


def test_substitution_replaces_every_use_and_nothing_else():
    a, b, x = float64([1.0], [2.0], [5.0])
    total, other, same = substitute([cg.exp(a) * a + b, b * 2, a], {a: x})
    assert same is x and other.operands[0] is b
    assert computed(total).tolist() == [5 * np.exp(5.0) + 2]


def test_leaves_in_their_order():
    assert leaves_of(({"b": 1.0, "a": (2.0, None)}, [3.0])) == [1.0, 2.0, 3.0]


def weighted(x, stream):
    return (x * stream.normal(size=2)).sum()


TRANSFORMED = {
    "twice": (Twice(weighted), lambda x, w: 2 * (x * w).sum()),
    "grad": (cg.grad(weighted), lambda x, w: w),
    "value_and_grad": (lambda x, s: cg.value_and_grad(weighted)(x, s)[1], lambda x, w: w),
    "jacobian": (cg.jacobian(weighted), lambda x, w: w),
    "vmap": (
        lambda x, s: cg.vmap(weighted, (0, None))(np.stack([x, 2 * x]), s),
        lambda x, w: (x * w).sum() * np.array([1.0, 2.0]),
    ),
}


@pytest.mark.parametrize("function, meaning", TRANSFORMED.values(), ids=TRANSFORMED)
def test_random_streams_advance_through_a_transformation(function, meaning):
    """Each call draws what follows, as outside; within a function that is compiled, too."""
    stream, plain = (cg.numpy.random.default_rng(5) for _ in range(2))
    x = np.array([1.0, 3.0])
    for call in (function, function, cg.jit(lambda x, stream: function(x, stream))):
        assert_near(call(x, stream), meaning(x, plain.normal(size=2)), "float64 formulas")
    twice = cg.jit(lambda x, stream: (function(x, stream), function(x, stream)))
    assert_near(twice(x, stream), [meaning(x, plain.normal(size=2)) for _ in range(2)], "float64 formulas")


@pytest.mark.parametrize("transform", [cg.grad, cg.jacobian, cg.hessian], ids=lambda f: f.__name__)
def test_each_of_several_streams_advances_also_by_name_and_in_a_tree(transform):
    def f(x, one, *, more, last):
        return ((one.normal(size=2) + more["a"].normal(size=2)) * last.normal(size=2) * x**2).sum()

    streams, plain = ([cg.numpy.random.default_rng(seed) for seed in (1, 2, 3)] for _ in range(2))
    function = transform(f)
    x = np.array([1.0, 3.0])
    for call in (function, function, cg.jit(lambda *args, **named: function(*args, **named))):
        one, other, last = (stream.normal(size=2) for stream in plain)
        slope = 2 * (one + other) * last
        want = np.diag(slope) if transform is cg.hessian else slope * x
        assert_near(call(x, streams[0], more={"a": streams[1]}, last=streams[2]), want, "float64 formulas")
