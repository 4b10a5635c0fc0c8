"""Users' functions by what they compute: names that differ where something they read does, labels, refusals."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cgraph.kernels.user_function import user_function

SCALE = 2.0


def function(body: str, **values: object) -> Callable:
    """A function `f` from source; `values` are its globals."""
    space = dict(values)
    exec(body, space)
    return space["f"]


def closing_over(value: object) -> Callable:
    def f(x):
        return x * value

    return f


def nested(value: float) -> Callable:
    def g(x):
        return x + value

    def f(x):
        return g(x) * 2

    return f


PAIRS = {
    "a constant": (function("def f(x): return x * 2.0"), function("def f(x): return x * 3.0")),
    "a default": (function("def f(x, y=1.0): return x + y"), function("def f(x, y=2.0): return x + y")),
    "what it calls": (
        function("def f(x): return np.sin(x)", np=np),
        function("def f(x): return np.cos(x)", np=np),
    ),
    "an operation": (function("def f(x): return x + x"), function("def f(x): return x - x")),
    "a global": (function("def f(x): return x * s", s=2.0), function("def f(x): return x * s", s=3.0)),
    "a global's kind": (function("def f(x): return x * s", s=2), function("def f(x): return x * s", s=2.0)),
    "an array": (
        function("def f(x): return x * s[0]", s=np.array([1, 2])),
        function("def f(x): return x * s[0]", s=np.array([2, 2])),
    ),
    "an array's dtype": (
        function("def f(x): return x * s[0]", s=np.zeros(2, "i4")),
        function("def f(x): return x * s[0]", s=np.zeros(1, "i8")),
    ),
    "what it has closed over": (closing_over(2.0), closing_over(3.0)),
    "a function that it calls": (nested(2.0), nested(3.0)),
    "an order": (function("def f(x, y): return x - y"), function("def f(x, y): return y - x")),
}


@pytest.mark.parametrize("what", PAIRS)
def test_users_functions_that_differ_have_other_names(what):
    first, second = PAIRS[what]
    assert user_function(first).name != user_function(second).name
    assert user_function(first) != user_function(second)


def test_users_functions_that_compute_the_same_have_one_name():
    for make in (lambda: closing_over(2.0), lambda: nested(2.0), lambda: function("def f(x): return np.sin(x)", np=np)):
        assert user_function(make()) == user_function(make())


class Config:
    pass


def recursive(x):
    return recursive(x - 1) if x > SCALE else x


MORE = {
    "the order of arguments": (function("def f(x, y): return x - y"), function("def f(y, x): return x - y")),
    "an array's shape": (
        function("def f(x): return x * s", s=np.zeros((1, 2))),
        function("def f(x): return x * s", s=np.zeros((2, 1))),
    ),
    "a number's sign of zero": (function("def f(x): return x * 0.0"), function("def f(x): return x * -0.0")),
    "a truth and a one": (function("def f(x): return x + True"), function("def f(x): return x + 1")),
    "the second of two globals": (
        function("def f(x): return x * a + b", a=1, b=2),
        function("def f(x): return x * a + b", a=1, b=3),
    ),
    "globals that change places": (
        function("def f(x): return x * a + b", a=1, b=2),
        function("def f(x): return x * a + b", a=2, b=1),
    ),
    "a list and a tuple": (function("def f(x): return s", s=[1]), function("def f(x): return s", s=(1,))),
    "a function inside": (
        function("def f(x):\n def g(y): return y * 2\n return g(x)"),
        function("def f(x):\n def g(y): return y * 3\n return g(x)"),
    ),
    "an attribute": (function("def f(x): return x.real"), function("def f(x): return x.imag")),
    "a dtype": (
        function("def f(x): return x.astype(s)", s=np.dtype("f4")),
        function("def f(x): return x.astype(s)", s=np.dtype("f8")),
    ),
    "values that cannot be described": (
        function("def f(x): return s", s=Config()),
        function("def f(x): return s", s=Config()),
    ),
}


@pytest.mark.parametrize("what", MORE)
def test_what_a_function_reads_is_in_its_name(what):
    first, second = MORE[what]
    assert user_function(first).name != user_function(second).name
    assert user_function(first).name == user_function(first).name


def test_what_a_function_does_not_read_is_not_in_its_name():
    make = "def f(x): return x * a"
    assert user_function(function(make, a=1, b=2)) == user_function(function(make, a=1, b=3))


def test_a_function_that_calls_itself_has_a_name():
    assert user_function(recursive) == user_function(recursive)
    assert user_function(recursive).name.startswith("recursive_")


def test_equal_functions_are_one_key_and_others_are_not():
    one, same, other = (user_function(closing_over(v)) for v in (2.0, 2.0, 3.0))
    assert len({one, same}) == 1 and hash(one) == hash(same) and one != other and one != one.name
    assert repr(one) == one.name and one.python(4) == 8


def test_a_label_is_the_functions_name_and_its_place_the_file_and_line():
    made = user_function(recursive)
    line = 1 + Path(__file__).read_text().splitlines().index("def recursive(x):")
    assert (made.label, made.where) == ("recursive", f"{Path(__file__).name}:{line}")


def test_what_numba_compiled_is_the_function_inside():
    plain = closing_over(2.0)

    class Compiled:
        py_func = staticmethod(plain)

    assert user_function(Compiled()) == user_function(plain)
    calling = [function("def f(x): return g(x)", g=g) for g in (Compiled(), plain)]
    assert user_function(calling[0]).name == user_function(calling[1]).name


@pytest.mark.parametrize("value", [np.sin, partial(recursive, 1), len, Config, 3, Config()])
def test_other_callables_are_refused(value):
    with pytest.raises(TypeError, match="a kernel needs a plain Python function, not .*Wrap it in def or lambda"):
        user_function(value)
