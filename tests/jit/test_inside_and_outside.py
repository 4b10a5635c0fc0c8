"""What a function does with arrays of NumPy, it does with traced ones: dtypes, views, numbers, streams, settings."""

import itertools
import operator
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError, DTypeError, GraphError
from cgraph.transforms.trees import Static, flatten
from cgraph.transforms.weak import SELECTING
from tests.support.tolerance import assert_near

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float32", "float64", "complex64")
IN_PLACE = {
    "+=": operator.iadd,
    "*=": operator.imul,
    "out=": lambda x, y: np.subtract(x, y, out=x) if x.dtype != bool else np.logical_or(x, y, out=x),
    "copyto": lambda x, y: np.copyto(x, y),
}


def outcome(f, *args):
    """What a call returns, or that it is refused."""
    try:
        return f(*args)
    except (TypeError, ValueError, OverflowError, CgraphError):
        return "refused"


@pytest.mark.parametrize("how", IN_PLACE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_takes_in_place_what_numpys_takes(dtype, how):
    def change(x, y):
        IN_PLACE[how](x, y)
        return x

    for other in DTYPES:
        x, y = np.array([1, 0, 3]).astype(dtype), np.array([2, 5, 1]).astype(other)
        want, got = outcome(change, x.copy(), y), outcome(cg.jit(change), x, y)
        assert isinstance(got, str) == isinstance(want, str), (other, got, want)
        if not isinstance(want, str):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_is_copied_in_the_dtype_of_the_array(dtype):
    def set_to(x, number):
        np.copyto(x, number)
        return x

    for number in (True, 1, 1.5, 300, 1j):
        want = outcome(set_to, np.zeros(3, dtype), number)
        got = outcome(cg.jit(lambda x, number=number: set_to(x, number)), np.zeros(3, dtype))
        assert isinstance(got, str) == isinstance(want, str), (number, got, want)
        if not isinstance(want, str):
            np.testing.assert_array_equal(got, want)


VIEWS = {
    "conj": lambda x: x.conj(),
    "conjugate": lambda x: x.conjugate(),
    "astype without a copy": lambda x: x.astype(x.dtype, copy=False),
    "real": lambda x: x.real,
    "T": lambda x: x.T,
    "an ellipsis": lambda x: x[...],
    "an element with an ellipsis": lambda x: x[1, 2, ...],
    "a new axis": lambda x: x[None, 1, :, None],
    "backwards": lambda x: x[::-1, 2::-2],
    "a view of a view": lambda x: x[1:][:, 1:].T[1:],
    "an axis that goes": lambda x: np.squeeze(x[:1], 0),
    "axes that change places": lambda x: np.swapaxes(x, 0, 1)[2],
    "an axis that moves": lambda x: np.moveaxis(x, 0, -1)[1:3],
    "a diagonal of rows": lambda x: np.flip(x, 1)[:, 0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_an_assignment_to_a_view_is_seen_in_the_array_and_the_other_way(name):
    def there_and_back(x):
        y = VIEWS[name](x)
        y[...] = y + 10
        x[1] *= 2
        return x, y + 0

    a = np.arange(12.0).reshape(3, 4)
    for got, want in zip(cg.jit(there_and_back)(a), there_and_back(a.copy()), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("reshape", [lambda x: x.reshape(()), lambda x: np.reshape(x, ()), lambda x: x[0, ...]])
def test_an_array_without_axes_is_an_array_and_not_a_number(reshape):
    def change(x):
        y = reshape(x)
        z = y
        y += 1
        y[...] = y * 3
        return z + 0

    assert cg.jit(change)(np.array([4.0])) == change(np.array([4.0])) == 15


NUMBERS = {
    "where": lambda x, n: np.where(x > 2, x, n),
    "clip": lambda x, n: np.clip(x, n, 3),
    "clip from above": lambda x, n: np.clip(x, 0, n),
    "quantile": lambda x, n: np.quantile(x, n / 4),
    "percentile": lambda x, n: np.percentile(x, q=n),
    "nanquantile": lambda x, n: np.nanquantile(x, n / 4),
    "nanpercentile": lambda x, n: np.nanpercentile(x, n),
    "trapezoid": lambda x, n: np.trapezoid(x, dx=n),
    "select": lambda x, n: np.select([x > 2, x < 1], [x, n], n * 2),
    "float_power": lambda x, n: np.float_power(x, n).astype("float32"),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_promotes_with_the_operands_of_any_function(name, dtype):
    f = NUMBERS[name]
    for number in (1, 2.0):
        x = np.array([0.5, 1.5, 2.5, 3.5], dtype)
        got, want = cg.jit(f)(x, number), f(x, number)
        assert_near(got, want, "float32 formulas")
        assert got.dtype == np.asarray(want).dtype, number


def test_every_function_that_promotes_numbers_is_called_above():
    assert NUMBERS.keys() >= SELECTING


def test_a_number_on_the_left_of_a_ufunc_with_unlike_operands():
    places = np.array([1, 2, 3], "int32")
    got = cg.jit(np.ldexp)(1.5, places)
    np.testing.assert_array_equal(got, np.ldexp(1.5, places))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_number_that_must_be_an_integer(dtype):
    x = np.array([0.5, -1.25], dtype)
    got = cg.jit(np.ldexp)(x, 3)
    np.testing.assert_array_equal(got, np.ldexp(x, 3))
    assert got.dtype == dtype
    with pytest.raises(DTypeError, match="must be an integer"):
        cg.jit(np.ldexp)(x, 3.0)


# -- streams and static values -------------------------------------------------------------------------------------
Pair = namedtuple("Pair", "first second")


@dataclass
class Held:
    first: Any
    second: Any


CONTAINERS = {
    "itself": lambda a, b: a,
    "a tuple": lambda a, b: (b, a),
    "a list": lambda a, b: [a, b],
    "a dict": lambda a, b: {"b": b, "a": a},
    "a named tuple": Pair,
    "a dataclass": Held,
    "a dict in a dataclass": lambda a, b: Held({"x": b}, [a]),
}


def streams(tree: Any) -> list:
    if isinstance(tree, Held):
        tree = (tree.first, tree.second)
    if isinstance(tree, dict):
        tree = tree.values()
    return [tree] if not isinstance(tree, tuple | list | type({}.values())) else [s for x in tree for s in streams(x)]


def numbers(tree, x):
    """Numbers of each stream, of unlike count, and a float that depends on x."""
    drawn = [stream.random(i + 2).sum() for i, stream in enumerate(streams(tree))]
    return (sum(drawn) * x).sum()


TRANSFORMED = {
    "jit": lambda x, tree: cg.jit(lambda x, tree: numbers(tree, x))(x, tree),
    "grad": lambda x, tree: cg.grad(lambda x, tree: numbers(tree, x))(x, tree),
    "value_and_grad": lambda x, tree: cg.value_and_grad(lambda x, tree: numbers(tree, x))(x, tree),
    "jacobian": lambda x, tree: cg.jacobian(lambda x, tree: numbers(tree, x))(x, tree),
    "grad by name": lambda x, tree: cg.grad(lambda x, tree: numbers(tree, x))(x, tree=tree),
    "jit in jit": lambda x, tree: cg.jit(lambda x, tree: cg.jit(lambda x, t: numbers(t, x))(x, t=tree))(x, tree=tree),
    "grad in jit": lambda x, tree: cg.jit(lambda x, tree: cg.grad(lambda x, t: numbers(t, x))(x, tree))(x, tree),
}


@pytest.mark.parametrize("how", TRANSFORMED)
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_stream_goes_on_after_a_call_whatever_contains_it(container, how):
    rng = cg.numpy.random.default_rng
    tree, alone = (CONTAINERS[container](rng(1), rng(2)) for _ in range(2))
    TRANSFORMED[how](np.ones(3), tree)
    for i, stream in enumerate(streams(alone)):
        stream.random(i + 2)
    for got, want in zip(streams(tree), streams(alone), strict=True):
        np.testing.assert_array_equal(np.asarray(got.random(3)), np.asarray(want.random(3)))


class Name(str):
    __slots__ = ()


@dataclass(frozen=True)
class Setting:
    size: Any
    note: Any = field(default=None, compare=False)


UNLIKE = {
    "True and 1": (True, 1),
    "1 and 1.0": (1, 1.0),
    "zeros of either sign": (0.0, -0.0),
    "complex zeros": (complex(0, 0.0), complex(0, -0.0)),
    "real zeros": (complex(0.0, 1), complex(-0.0, 1)),
    "in tuples": ((1, (2, True)), (1, (2, 1))),
    "steps of slices": (slice(0, 4, 1), slice(0, 4, 2)),
    "starts of slices": (slice(0, 4), slice(1, 4)),
    "ends of slices": (slice(0, 4), slice(0, 5)),
    "types in slices": (slice(0, 4), slice(False, 4)),
    "in frozen sets": (frozenset([1, 2]), frozenset([True, 2])),
    "numbers of NumPy": (np.float32(1), np.float64(1)),
    "units of times": (np.datetime64(1, "s"), np.datetime64(1, "ms")),
    "fields": (Setting(1), Setting(2)),
    "types of fields": (Setting(1), Setting(True)),
    "text and bytes": ("a", b"a"),
}
ALIKE = {
    "fields that do not count": (Setting(1, "a"), Setting(1, 2.5)),
    "equal tuples": ((1, "a"), (1, "a")),
    "not numbers": (float("nan"), float("nan")),
    "slices": (slice(None, 3), slice(None, 3)),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_static_values_that_differ_in_type_or_value_are_two(name):
    one, two = map(Static, UNLIKE[name])
    assert one != two and one == Static(UNLIKE[name][0])


@pytest.mark.parametrize("name", ALIKE)
def test_static_values_that_are_equal_are_one(name):
    one, two = map(Static, ALIKE[name])
    assert one == two and hash(one) == hash(two)


@pytest.mark.parametrize("one, two", [("a", Name("a")), (1, True), (1, 1.0), (0.0, -0.0)])
def test_keys_of_unlike_types_make_unlike_structures(one, two):
    assert flatten({one: 1.0}, []) != flatten({two: 1.0}, [])


@pytest.mark.parametrize("make", [list, tuple, set, iter, dict.fromkeys, lambda x: (i for i in x)])
def test_static_numbers_and_names_may_be_any_iterable(make):
    f = cg.jit(lambda x, n: x * n if n > 1 else x, static_argnums=make([1]))
    assert f(np.ones(2), 3).tolist() == [3, 3] and f(np.ones(2), 1).tolist() == [1, 1]
    g = cg.jit(lambda x, n: x * n if n > 1 else x, static_argnames=make(["n"]))
    assert g(np.ones(2), n=3).tolist() == [3, 3]


# -- transformations -----------------------------------------------------------------------------------------------
def changing(x, y):
    y += x
    y[0] = 7
    return (x * y).sum()


INNER = {
    "grad": cg.grad,
    "value_and_grad": cg.value_and_grad,
    "jacobian": cg.jacobian,
    "vmap": lambda f: cg.vmap(f, (0, None)),
    "jit": cg.jit,
}


@pytest.mark.parametrize("name", INNER)
def test_an_inner_function_may_change_an_argument_that_is_not_transformed(name):
    x, y = np.array([2.0, 3.0]), np.array([1.0, 5.0])
    x = np.stack([x, x + 1]) if name == "vmap" else x
    got = cg.jit(lambda x, y: INNER[name](changing)(x, y + 0))(x, y)
    want = INNER[name](changing)(x, y.copy())
    for a, b in zip(*((got, want) if name == "value_and_grad" else ([got], [want])), strict=True):
        assert_near(a, b, "float64 formulas")


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("transform", [cg.grad, cg.value_and_grad])
def test_others_are_returned_beside_one_number(transform, count):
    with pytest.raises(GraphError, match="returns a pair"):
        transform(lambda x: tuple([x.sum()] * count), has_aux=True)(np.ones(3))


@pytest.mark.parametrize("numbers", list(itertools.permutations(range(3), 2)))
def test_gradients_and_derivatives_come_in_the_order_of_argnums(numbers):
    values = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0]), np.array([6.0])

    def f(x, y, z):
        return x.sum() ** 2 * (y * np.array([1.0, 2.0, 4.0])).sum() * z.sum() ** 3

    for got, i in zip(cg.grad(f, numbers)(*values), numbers, strict=True):
        assert_near(got, cg.grad(f, i)(*values), "float64 formulas")
    for got, i in zip(cg.jacobian(f, numbers)(*values), numbers, strict=True):
        assert_near(got, cg.grad(f, i)(*values), "float64 formulas")
    for row, i in zip(cg.hessian(f, numbers)(*values), numbers, strict=True):
        for got, j in zip(row, numbers, strict=True):
            want = cg.jacobian(cg.grad(f, i), j)(*values)
            assert got.shape == (*values[i].shape, *values[j].shape)
            assert_near(got, want, "float64 formulas")


# -- what of Python's functions a traced array has, and how a call passes its options ------------------------------
@pytest.mark.parametrize("digits", [None, 0, 1, -1])
@pytest.mark.parametrize("make", [lambda a: a[0], lambda a: a.sum()], ids=["element", "sum"])
def test_rounding_gives_what_numpy_gives(make, digits):
    a = np.array([12.5, -3.75, 7.25])

    def rounded(x):
        return round(make(x)) if digits is None else round(make(x), digits)

    want, got = outcome(rounded, a), outcome(cg.jit(rounded), a)
    np.testing.assert_array_equal(got, want)
    assert np.asarray(got).dtype == np.asarray(want).dtype


@pytest.mark.parametrize("digits", [None, 0, 1])
@pytest.mark.parametrize("number", [True, 3, 2.5])
def test_rounding_a_python_number_promotes_as_pythons_result(number, digits):
    def rounded(n):
        return np.ones(2, "float32") * (round(n) if digits is None else round(n, digits))

    got, want = cg.jit(rounded)(number), rounded(number)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == want.dtype


def test_a_copy_of_a_number_is_the_number_and_one_of_an_array_is_another():
    import copy

    def copies(x, n):
        y, m = copy.copy(x), copy.deepcopy(n)
        assert m is n and y is not x
        y += 1
        return x + 0, y, x * m

    for got, want in zip(cg.jit(copies)(np.ones(2, "float32"), 2.5), ([1, 1], [2, 2], [2.5, 2.5]), strict=True):
        np.testing.assert_array_equal(got, want)
        assert got.dtype == np.float32


OPTIONS = {"engine": "reference", "threads": 1, "memory": "one_each", "order": "breadth_first", "winograd": False}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_a_compiled_function_reach_compile(name, monkeypatch):
    from cgraph.transforms import compile_function

    seen = []

    def compiled(nodes, variables, **options):
        seen.append(options)
        return cg.compile(nodes, variables, **options)

    monkeypatch.setattr(compile_function, "compile", compiled)
    assert cg.jit(lambda x: x + 1, **{name: OPTIONS[name]})(np.ones(2)).tolist() == [2, 2]
    assert seen == [{name: OPTIONS[name]}]


def each_kind(a, /, b, *more, c, d=1, **others):
    return a


@pytest.mark.parametrize("name", ["b", "c", "d", "e"])
def test_a_static_name_may_be_any_parameter_that_takes_a_name(name):
    call = {"b": 2, "c": 3, "d": 4, "e": 5}
    f = cg.jit(each_kind, static_argnames=name)
    assert f.static_names == {name} and f.static_numbers == ({1} if name == "b" else set())
    assert f(np.ones(2), **call).tolist() == [1, 1]


def test_static_positions_are_those_of_parameters_that_have_one():
    assert cg.jit(each_kind, static_argnums=(0, 1)).static_names == {"b"}
    assert cg.jit(lambda a, *, b: a, static_argnums=-1).static_names == {"b"}
    assert cg.jit(lambda a, b: a, static_argnums=-1).static_numbers == {1}


@pytest.mark.parametrize("number", [True, False, 3, 2.5, 2j])
def test_a_number_that_an_outer_function_passes_on_stays_pythons(number):
    """The inner function may decide by it."""
    seen = []

    @cg.jit
    def inner(x, n):
        seen.append(type(n))
        return x * n if n else x - 1

    x = np.array([2, 3], "float32")
    got, want = cg.jit(lambda x: inner(x, number))(x), x * number if number else x - 1
    assert seen == [type(number)] and got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
