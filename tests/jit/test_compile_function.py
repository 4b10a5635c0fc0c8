"""`cg.jit`: structures, keys, static values, the cache, closures, methods and nested functions; NumPy is the oracle."""

import collections
import copy
import functools
import gc
import operator
import pickle
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ArgumentError, GraphError, InputError
from cgraph.transforms.compile_function import parameters_of, recipe_of, static, static_arguments
from tests.numpy.calls import CALLS, operands
from tests.numpy.evaluated import called
from tests.support.tolerance import all_near, assert_close, assert_near

X = np.arange(6.0).reshape(2, 3)
Pair = collections.namedtuple("Pair", "first second")


@dataclass(frozen=True)
class Layer:
    w: Any
    b: Any

    @cg.jit
    def apply(self, x):
        return Layer(x @ self.w, self.b + 1)


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    @functools.partial(cg.jit, static_argnums=0)
    def apply(self, x):
        return x * self.factor

    @cg.jit
    def refused(self, x):
        return x


def counted(f):
    """The function, and a list that grows with each trace."""
    traces = []

    @functools.wraps(f)
    def call(*args, **kwargs):
        traces.append(args)
        return f(*args, **kwargs)

    return call, traces


@pytest.mark.parametrize("call", CALLS)
def test_a_call_of_numpy_gives_in_jit_what_it_gives_outside(call):
    want = called(call, operands())
    got = cg.jit(lambda arrays: called(call, arrays), engine="reference")(operands())
    for x, y in zip(got, want, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if y.dtype != object:
            y = y.astype("float32") if y.dtype == np.float16 else y
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            assert_close(x, y, 20)


def test_results_come_back_in_the_structure_that_the_function_returns():
    f = cg.jit(lambda t: {"a": t["x"] @ t["y"][0], "b": [t["y"][1] + 1, None, "text", 3], "c": Pair(t["x"], ())})
    got = f({"x": X, "y": (np.ones(3), 2)})
    assert list(got) == ["a", "b", "c"] and got["b"][1:] == [None, "text", 3]
    assert got["a"].tolist() == [3.0, 12.0] and got["b"][0] == 3 and isinstance(got["b"][0], np.int64)
    assert type(got["c"]) is Pair and np.array_equal(got["c"].first, X)


def test_arguments_take_every_kind_of_container_and_keyword():
    f = cg.jit(lambda a, /, *more, scale=2.0, **named: [a[0] * scale, sum(more), named["x"]["y"][1]])
    got = f([X], X, X + 1, x={"y": (1, X)})
    assert all(np.array_equal(x, y) for x, y in zip(got, [X * 2, 2 * X + 1, X]))
    assert f([X], X, scale=np.float32(3), x={"y": (1, 2.5)})[0].tolist() == (X * 3).tolist()


def test_numbers_among_the_results_are_numpy_scalars():
    total, (count,), kept = cg.jit(lambda x: (x.sum(), (x[0, 1],), x))(X)
    assert type(total) is np.float64 and type(count) is np.float64 and kept.shape == (2, 3)
    assert type(cg.jit(np.sum)(X)) is np.float64


def test_equal_shapes_and_dtypes_are_traced_once():
    f, traces = counted(lambda x, a: x * a)
    g = cg.jit(f)
    for x, a in [(X, 2.0), (X + 1, 3.0), (X.T.copy().T, 4.0)]:
        assert np.array_equal(g(x, a), x * a)
    assert len(traces) == 1
    assert g(X.astype("float32"), 2.0).dtype == np.float32 and g(X, np.float32(2)).dtype == np.float64
    assert g(X[0], 2.0).shape == (3,) and g(X, 2).dtype == np.float64
    assert len(traces) == 5


@pytest.mark.parametrize(
    "one, other", [(True, 1), (0.0, -0.0), (1, 1.0), ((1, 2), (1, 2.0)), ("a", "b"), ((True,), (1,)), (1j, 1)]
)
def test_static_values_are_compared_by_type_and_value(one, other):
    f, traces = counted(lambda x, mode: (x + 1, mode))
    g = cg.jit(f, static_argnames="mode")
    for mode in (one, other, one, other):
        got = g(X, mode=mode)[1]
        assert type(got) is type(mode) and repr(got) == repr(mode)
    assert len(traces) == 2


def test_static_arguments_are_named_by_position_or_by_name():
    for g in (cg.jit(lambda x, n: [x] * n, static_argnums=1), cg.jit(lambda x, n: [x] * n, static_argnames="n")):
        assert len(g(X, 3)) == 3 and len(g(X, n=2)) == 2
    with pytest.raises(ArgumentError, match="not hashable"):
        g(X, [1])
    with pytest.raises(ArgumentError, match="static_argnames has 'm'"):
        cg.jit(lambda x, n: x, static_argnames="m")


def test_text_functions_and_dtypes_are_static_without_being_named():
    f = cg.jit(lambda x, mode, g, dtype: g(np.pad(x, 1, mode=mode)).astype(dtype))
    got = f(X, "edge", np.sin, np.dtype("float32"))
    assert got.dtype == "float32" and all_near(got, np.sin(np.pad(X, 1, mode="edge")), "float32 formulas near zero")
    assert all_near(f(X, "reflect", np.cos, np.dtype("f8")), np.cos(np.pad(X, 1, mode="reflect")))


@pytest.mark.parametrize(
    "f, args",
    [
        (lambda x, a: (x + a, a * x, x / a, a - x, x**a, x // a), (np.float32([1, 2]), 2.5)),
        (lambda x, a: (x + a, x * a, a // x, x % a, x < a, a == x), (np.uint8([1, 200]), 3)),
        (lambda x, a: (x + a, x * a, x > a), (np.int16([1, 2]), 2.5)),
        (lambda x, a: (x + a, x & a, x | a), (np.array([3, 4]), True)),
        (lambda x, a, b: ((a + b) * x, (a * b / 2) * x, (a > b), a + b), (np.float32([1, 2]), 2, 3)),
        (lambda x, a, b: ((a + b) * x, (-a) ** 2 * x, abs(a) + x), (np.float32([1, 2]), True, 2.5)),
        (lambda x, a: (np.maximum(x, a), np.where(x > 1, x, a), np.clip(x, 0, a)), (np.float32([1, 2]), 1.5)),
        (lambda x, a: (np.add(x, a), np.hypot(a, x), np.sin(a)), (np.float32([1, 2]), 1.5)),
        (lambda x, a: (x + a, x * 1j), (np.complex64([1, 2]), 1.5)),
        (lambda x, a: x + a, (np.float32([1, 2]), np.float64(1.5))),
        (lambda x, a: x < a, (np.uint8([1, 200]), 300)),
    ],
)
def test_python_numbers_promote_as_numpy_promotes_them(f, args):
    got, want = cg.jit(f)(*args), f(*args)
    for x, y in zip(*[(r if isinstance(r, tuple) else (r,)) for r in (got, want)], strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        assert_close(np.asarray(x), np.asarray(y), 4)


def test_captured_arrays_are_constants_and_captured_vars_are_read_at_each_call():
    array, w = np.ones(3), cg.Var((3,), "float64").assign(np.ones(3))
    f = cg.jit(lambda x: x @ array + x @ w)
    assert f(X[1]) == 24
    array[:] = 5
    w.assign(np.zeros(3))
    assert f(X[1]) == 12


def test_a_var_is_not_assigned_while_a_function_is_traced():
    w = cg.Var((3,), "float64").assign(np.ones(3))
    for value in (lambda x: x[0], lambda x: np.zeros(3)):
        with pytest.raises(GraphError, match=r"updates= of cg\.compile"):
            cg.jit(lambda x, value=value: w.assign(value(x)))(X)
    assert w.value.tolist() == [1, 1, 1]


def test_functions_of_jit_nest_and_leave_arguments_unchanged():
    @cg.jit
    def inner(x, n=2):
        x[0] = n
        return x

    def outer(x):
        y = inner(x)
        return x + inner(y, n=5), inner(np.zeros(3)), y

    a = X[0].copy()
    got = cg.jit(outer)(a)
    assert [g.tolist() for g in got] == [[5, 2, 4], [2, 0, 0], [2, 1, 2]] and a.tolist() == [0, 1, 2]


def test_methods_partials_lambdas_and_dataclasses_are_functions():
    assert np.array_equal(Scaled(3.0).apply(X), X * 3) and np.array_equal(Scaled(4.0).apply(X), X * 4)
    with pytest.raises(ArgumentError, match="static_argnames"):
        Scaled(3.0).refused(X)
    got = Layer(np.ones(3), 2.0).apply(X)
    assert type(got) is Layer and got.w.tolist() == [3, 12] and got.b == 3
    assert np.array_equal(cg.jit(functools.partial(np.add, 2.0))(X), X + 2)
    assert all_near(cg.jit(np.sin)(X), np.sin(X))


@cg.jit
def doubled(x):
    return 2 * x


def test_a_function_of_a_module_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(doubled)) is doubled and copy.deepcopy([doubled])[0] is doubled


def test_nodes_as_arguments_give_nodes():
    x = cg.Var((2, 3), "float64")
    y = cg.jit(lambda a, b: {"y": a * b})(x, 2.0)["y"]
    assert isinstance(y, cg.Node) and np.array_equal(cg.compile(y, [x])(X), 2 * X)


def test_compiled_gives_the_function_with_its_plan():
    f = cg.jit(lambda params, x: x @ params["w"], budget=1 << 20, threads=1)
    function = f.compiled({"w": np.ones((3, 2))}, X)
    assert [x.name for x in function.inputs] == ["params.w", "x"] and function.nbytes <= 1 << 20
    assert np.array_equal(function(np.ones((3, 2)), X)[0], X @ np.ones((3, 2)))
    with pytest.raises(GraphError, match="no option 'budgett'"):
        cg.jit(lambda x: x, budgett=3)


def test_what_a_function_of_some_arguments_has_is_named():
    f = cg.jit(lambda x: x * 1)
    for name in ("save", "nbytes", "report"):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}'; use f.compiled\(\*arguments\).{name}$"):
            getattr(f, name)
        assert hasattr(f.compiled(X), name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'$"):
        f.nothing  # noqa: B018


def test_clear_and_the_end_of_a_function_remove_what_it_compiled():
    def entries():
        gc.collect()
        return cg.jit.cache_info().entries

    before, f = entries(), cg.jit(lambda x: x + 1)
    f(X), f(X[0])
    assert entries() == before + 2
    f.clear()
    assert entries() == before and f(X)[0, 0] == 1
    del f
    assert entries() == before


def test_the_cache_is_bounded(monkeypatch):
    from cgraph.transforms import compile_function, executable

    cache = executable.Executables(most=3, most_nbytes=1 << 30)
    monkeypatch.setattr(compile_function, "EXECUTABLES", cache)
    f = cg.jit(lambda x: x + 1)
    for n in range(1, 8):
        assert f(np.zeros(n)).tolist() == [1] * n
    assert cache.info().entries == 3 and cache.info().compilations == 7


def test_a_second_call_with_arrays_looks_up_nothing_but_their_shapes_and_dtypes(monkeypatch):
    """Arguments that are all arrays take the short way; static, named and other arguments do not."""
    from cgraph.transforms.compile_function import CompiledFunction

    functions = (cg.jit(lambda x, n=2: x * n), cg.jit(lambda x, n=2: x * n, static_argnums=1))
    expected = [[f(X).tolist(), f(X, n=3).tolist(), f(X, 3).tolist()] for f in functions]
    long_way, general = [], CompiledFunction._call
    monkeypatch.setattr(CompiledFunction, "_call", lambda *xs: long_way.append(xs) or general(*xs))
    plain, static = functions
    assert plain(X).tolist() == expected[0][0] and not long_way
    assert [plain(X, n=3).tolist(), plain(X, 3).tolist()] == expected[0][1:] and len(long_way) == 2
    assert [static(X).tolist(), static(X, n=3).tolist(), static(X, 3).tolist()] == expected[1] and len(long_way) == 5


def test_an_exception_while_tracing_leaves_nothing_behind():
    fails = [True]

    def f(x):
        if fails:
            raise KeyError("own")
        return x + 1

    g, before = cg.jit(f), cg.jit.cache_info().entries
    with pytest.raises(KeyError, match="own"):
        g(X)
    assert cg.jit.cache_info().entries == before and isinstance(cg.zeros((2,)), cg.Node)
    fails.clear()
    assert np.array_equal(g(X), X + 1)


def test_threads_trace_and_run_at_the_same_time():
    f, got = cg.jit(lambda x: np.sin(x).sum() * x), {}

    def work(n):
        got[n] = [f(np.full(n + i % 3, 1.0 * n)) for i in range(6)]

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 4, 5)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for n in (3, 4, 5):
        for i, y in enumerate(got[n]):
            x = np.full(n + i % 3, 1.0 * n)
            assert_close(y, np.sin(x).sum() * x, 20)


def test_arguments_of_other_kinds_are_refused_by_name():
    with pytest.raises(ArgumentError, match=r"p\.a is <object"):
        cg.jit(lambda p: p)({"a": object()})
    with pytest.raises(ArgumentError, match="default_rng"):
        cg.jit(lambda rng: rng.random())(np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="masked array"):
        cg.jit(lambda x: x)(np.ma.masked_array([1.0], [True]))
    with pytest.raises((InputError, ArgumentError, cg.DTypeError)):
        cg.jit(lambda x: x)(np.array(["a"]))


def test_a_function_that_computes_nothing_returns_its_constants():
    f = cg.jit(lambda x: (np.arange(3), None, "a"))
    first = f(X)[0]
    first[:] = 7
    assert f(X)[0].tolist() == [0, 1, 2]
    with pytest.raises(GraphError, match="nothing that depends"):
        f.compiled(X)


def test_a_kernel_of_ones_own_works_inside():
    cube = cg.kernel(lambda x: x * x * x)
    assert np.array_equal(cg.jit(lambda x: cube(x) + 1)(X), X**3 + 1)


def test_a_layer_works_inside():
    nn = pytest.importorskip("nn")
    layer = nn.Linear(3, 2)
    layer.weight.assign(np.ones((3, 2), "float32"))
    layer.bias.assign(np.ones(2, "float32"))
    assert np.array_equal(cg.jit(lambda x: layer(x))(X.astype("float32")), X @ np.ones((3, 2)) + 1)


# -- the parts --------------------------------------------------------------------------------------------------------


def three(a, /, b, *, c=0):
    return a * b + c


def test_a_static_argument_is_known_by_position_and_by_name():
    names = parameters_of(three)
    assert static_arguments(names, (1,), ()) == ({1}, {"b"}) and static_arguments(names, (), ("b",)) == ({1}, {"b"})
    assert static_arguments(names, (0,), ()) == ({0}, frozenset())  # by position only
    assert static_arguments(names, (-1,), ("c",)) == ({2}, {"c"})
    assert static_arguments(names, (), ("a",)) == ({0}, {"a"})
    assert static_arguments({}, (5,), ("z",)) == ({5}, {"z"})
    with pytest.raises(ArgumentError, match="static_argnums has 3, of 3 parameters. Use 0 to 2"):
        static_arguments(names, (3,), ())
    with pytest.raises(ArgumentError, match="static_argnames has 'd'. Use one of a, b, c"):
        static_arguments(names, (), ("d",))
    more = parameters_of(lambda *xs, **named: None)
    assert static_arguments(more, (7,), ("any",)) == ({7}, {"any"})


def test_what_is_not_hashable_is_no_static_argument():
    assert static((1, "a")) == static((1, "a")) != static((True, "a"))
    with pytest.raises(ArgumentError, match=r"the static argument \[1\] of list is not hashable; pass a tuple"):
        cg.jit(three, static_argnames="b")(1.0, [1])


def test_leaves_are_named_by_the_parameters_that_take_them():
    def f(p, *rest, scale):
        return p["w"] + rest[1] * scale["s"][0]

    function = cg.jit(f).compiled({"w": 1.0}, 2.0, 3.0, scale={"s": (4.0,)})
    assert [x.name for x in function.inputs] == ["p.w", "rest[0]", "rest[1]", "scale.s[0]"]


def test_a_function_without_anything_to_compute_has_no_function_and_jit_takes_functions_only():
    with pytest.raises(GraphError, match="returns nothing that depends on its arguments, so there is no Function"):
        cg.jit(lambda x: 3).compiled(1.0)
    with pytest.raises(ArgumentError, match="jit takes a function, not 3; pass a Python function over arrays"):
        cg.jit(3)
    assert repr(cg.jit(three)) == "<jit of three>" and recipe_of(three) == (three, ())


def test_every_option_and_static_argument_is_part_of_the_number():
    def f(x, n):
        return x * n

    made = [
        cg.jit(f),
        cg.jit(f, static_argnums=1),
        cg.jit(f, threads=1),
        cg.jit(f, threads=2),
        cg.jit(f, budget=1 << 20),
    ]
    assert len({g._number for g in made}) == 5
    assert cg.jit(f)._number == made[0]._number and cg.jit(f, static_argnames="n")._number == made[1]._number
    base, (kind, steps, statics, options) = made[2].recipe
    assert (base, kind, steps, options) == (f, "jit", (), (("threads", 1),)) and statics == (frozenset(), frozenset())


def test_arrays_alone_are_found_by_the_short_key_and_by_the_long_one():
    g, traces = counted(lambda x, y: x + y)
    f = cg.jit(g)
    f.compiled(X, X)
    f(X, X)
    assert len(traces) == 1
    f(X, X.astype("float32")), f(X[0], X[0]), f(X, y=X)
    assert len(traces) == 4
    assert f(X, 2.0).tolist() == (X + 2).tolist() and len(traces) == 5


def test_streams_advance_wherever_they_stand_among_the_arguments():
    """By position, by keyword, in containers: each as outside, and those that are not drawn from stay."""
    new = cg.numpy.random.default_rng

    @cg.jit
    def draw(first, *rest, pair, other=None):
        values = [first.normal(size=2), pair["b"][0].normal(size=2)]
        return [*values, *(x.normal(size=2) for x in rest), *([other.normal(size=2)] if other is not None else [])]

    streams, plain = [new(i) for i in range(6)], [new(i) for i in range(6)]
    drawn = (0, 2, 3, 4, 5)
    for _ in range(3):
        found = draw(streams[0], streams[3], streams[4], pair={"a": streams[1], "b": (streams[2],)}, other=streams[5])
        for got, i in zip(found, drawn, strict=True):
            assert_near(got, plain[i].normal(size=2), "float64 formulas")
    assert_near([x.normal() for x in streams], [x.normal() for x in plain], "float64 formulas")


class Holder:
    def __init__(self, x):
        self.x = x


@pytest.mark.parametrize(
    "f, kind",
    [
        (lambda x: Holder(x), "Holder"),
        (lambda x: (y for y in x), "generator"),
        (lambda x: map(abs, x), "map"),
        (lambda x: {"a": [{1, x.shape[0]}]}, "set"),
        (lambda x: {"a": x}.values(), "dict_values"),
        (lambda x: (x, iter([x])), "list_iterator"),
    ],
)
def test_a_result_in_which_traced_arrays_may_hide_is_refused(f, kind):
    with pytest.raises(GraphError, match=f"the function returns .* of {kind}, .* return one of these"):
        cg.jit(f)(np.ones(2))


def test_settings_among_results_are_returned():
    settings = ("text", b"bytes", np.float32, np.dtype("int8"), slice(1, 2), ..., np.sin, len, None, np.int8(3), 2j)
    assert cg.jit(lambda x: (x, settings))(np.ones(2))[1] == settings


def test_settings_among_arguments_keep_their_value():
    x = np.arange(6.0).reshape(2, 3)
    f = cg.jit(lambda x, setting: x * 1 if callable(setting) else x[setting])
    for setting in (slice(1, None), (slice(None), slice(2)), ..., (..., slice(0, 2), None), np.sin):
        np.testing.assert_array_equal(f(x, setting), x if callable(setting) else x[setting])
    assert cg.grad(lambda x, rows: x[rows].sum())(x, slice(1)).tolist() == [[1, 1, 1], [0, 0, 0]]
    assert cg.vmap(lambda x, place: x[place])(x, slice(1)).tolist() == [[0], [3]]
    assert cg.jit(lambda x, rows: x[rows], static_argnums=1)(x, slice(1)).tolist() == [[0, 1, 2]]


class Marked(np.ndarray):
    """A subclass of NumPy's arrays."""


KINDS = {
    "masked": lambda x: np.ma.masked_array(x, x > 1), "masked, nothing hidden": np.ma.masked_array,
    "subclass": lambda x: x.view(Marked), "record": lambda x: x.view(np.recarray),
    "list": lambda x: x.tolist(), "swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "object": lambda x: x.astype(object),
    "Fortran": np.asfortranarray, "wide": lambda x: x.astype("f8"), "turned": lambda x: x[::-1],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_argument_is_does_not_depend_on_the_calls_before(kind):
    """Plain arrays of the same shape and dtype have a quick way, which others must not take."""

    def outcome(f):
        try:
            result = f(KINDS[kind](np.arange(6, dtype="f4").reshape(2, 3)))
        except Exception as error:
            return type(error), str(error)
        return type(result), result.dtype, result.tolist()

    fresh, used = (cg.jit(lambda x: cg.numpy.sum(x * 2, axis=0)) for _ in range(2))
    for _ in range(2):
        used(np.arange(6, dtype="f4").reshape(2, 3))
    assert outcome(fresh) == outcome(used) == outcome(used)


def test_a_compiled_method_is_a_function_of_its_class_too():
    assert Layer.apply is vars(Layer)["apply"]
    assert Layer.apply(Layer(np.ones(3), 1.0), X).b == 2 == Layer(np.ones(3), 1.0).apply(X).b


def test_arguments_of_a_function_without_known_parameters_are_named_by_their_position():
    def f(*xs):
        return xs[0] + xs[1]["a"]

    f.__signature__ = "unknown"
    assert parameters_of(f) == {}
    assert [x.name for x in cg.jit(f).compiled(X, {"a": X}).inputs] == ["arguments[0]", "arguments[1].a"]
    with pytest.raises(ArgumentError, match=r"^arguments\[1\]\.a is <object"):
        cg.jit(f)(X, {"a": object()})


def test_a_callable_of_which_python_finds_no_signature_is_compiled():
    second = operator.itemgetter(1)
    assert parameters_of(max) == parameters_of(second) == {}
    np.testing.assert_array_equal(cg.jit(second)((X, X + 1)), X + 1)
    assert [x.name for x in cg.jit(second).compiled((X, X + 1)).inputs] == ["arguments[0][0]", "arguments[0][1]"]


@pytest.mark.parametrize("numbers", ["x", 1.5, (0, "y"), [None]])
def test_positions_of_static_arguments_are_integers(numbers):
    with pytest.raises(ArgumentError, match="static_argnums is .*. Pass positions of arguments, such as 0 or"):
        cg.jit(lambda x, y: x, static_argnums=numbers)


def test_several_static_arguments_are_each_a_part_of_the_key():
    f, traces = counted(lambda x, n, *, m: x * n + m)
    for g in (cg.jit(f, static_argnums=[1], static_argnames=["m"]), cg.jit(f, static_argnames=("n", "m"))):
        for n, m in ((2, 3), (2, 4), (3, 3), (2, 3)):
            assert g(X, n, m=m).tolist() == g(X, n=n, m=m).tolist() == (X * n + m).tolist()
        assert len(traces) == 6, "the second one is the first one written in another way"


def test_a_decorator_with_options_passes_each_of_them_on():
    options = {"threads": 1, "budget": 1 << 20}

    def scaled(x, n, *, m=2, to=0):
        """Scale."""
        return x * n + m + to

    statics = {"static_argnums": 1, "static_argnames": ("m",)}
    for f in (cg.jit(**statics, **options)(scaled), cg.jit(scaled, **statics, **options)):
        assert (f.__name__, f.__doc__, f.__wrapped__) == ("scaled", "Scale.", scaled)
        assert (f.static_numbers, f.static_names) == ({1}, {"n", "m"}) and f.options == options
        assert f(X, 3, m=1, to=X).tolist() == (X * 4 + 1).tolist()
        assert f.compiled(X, 3, m=1, to=X).nbytes <= 1 << 20
    for name in ("n", "m"):
        assert name in cg.jit(static_argnames=name)(scaled).static_names
    assert cg.jit()(scaled).options == {} == cg.jit(scaled).options


@pytest.mark.parametrize("function", [functools.partial(three, 2.0), Scaled(2.0).apply, np.add])
def test_a_function_without_a_name_is_shown_as_it_is(function):
    assert repr(cg.jit(function)) == f"<jit of {getattr(function, '__qualname__', repr(function))}>"


def test_a_stream_goes_on_as_a_node_after_a_call_with_nodes():
    x = cg.Var((2,), "float64").assign([1.0, 2.0])
    stream, plain = (cg.numpy.random.default_rng(3) for _ in range(2))
    draw = cg.jit(lambda x, stream: x * stream.normal(size=2))
    for function in (draw, cg.grad(lambda x, stream: (x * x * stream.normal(size=2)).sum()), draw):
        scale = 2 if function is not draw else 1
        assert_near(function(x, stream).eval(), scale * x.value * plain.normal(size=2), "float64 formulas")
    assert_near(stream.normal(size=3).eval(), plain.normal(size=3), "float64 formulas")
