"""A traced array: attributes of an ndarray, every operator on both sides, and what says that it has no value."""

import copy
import operator
import pickle
import re
import threading
from types import FunctionType

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import GraphError
from cgraph.transforms.tracer import Tracer
from tests.support.tolerance import assert_close

X, Y = np.array([[5.0, -3.0], [2.0, 7.0]]), np.array([[2.0, 4.0], [-3.0, 0.5]])
WHOLE = np.array([[5, 3], [2, 7]])
FLOATS = "add sub mul truediv floordiv mod pow matmul lt le gt ge eq ne".split()
BITS = "and_ or_ xor lshift rshift".split()


def inside(f, x):
    """Look at a traced array; return what is seen."""
    seen = []
    cg.jit(lambda x: seen.append(f(x)))(x)
    return seen[0]


@pytest.mark.parametrize("name", FLOATS + BITS)
def test_operators_are_numpys_with_arrays_and_numbers_on_either_side(name):
    f = getattr(operator, name)
    x, y = (np.abs(X), Y) if name == "pow" else (WHOLE, WHOLE.T) if name in BITS else (X, Y)
    assert_close(cg.jit(f)(x, y), f(x, y))
    if name != "matmul":
        assert_close(cg.jit(lambda x: f(x, 2))(x), f(x, 2))
        assert_close(cg.jit(lambda y: f(2, y))(y), f(2, y))
    assert_close(cg.jit(lambda y: f(x, y))(y), f(x, y))


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"])
def test_operators_in_place_change_the_array_and_its_views_and_not_the_argument(name):
    f = getattr(operator, name)

    def g(x, y):
        x = x + 0
        row = x[0]
        f(row, y)
        return x

    want = np.abs(X)
    f(want[0], Y[0])
    given = np.abs(X)
    np.testing.assert_array_equal(cg.jit(g)(given, Y[0]), want)
    np.testing.assert_array_equal(given, np.abs(X))


def test_one_operand():
    for f in (operator.neg, operator.abs, operator.pos, lambda x: x.T, lambda x: divmod(x, 3),
              lambda x: divmod(3, x), lambda x: [*x][1], lambda x: np.stack(list(x))):  # fmt: skip
        for got, want in zip(cg.jit(f)(X), f(X)):
            np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(cg.jit(lambda x: round(x / 3, 1))(X), np.round(X / 3, 1))
    np.testing.assert_array_equal(cg.jit(operator.invert)(WHOLE), ~WHOLE)


def test_attributes_are_those_of_an_array():
    x = np.zeros((2, 3), "float32")
    assert inside(lambda x: (x.shape, x.dtype, x.ndim, x.size, x.nbytes, x.itemsize, len(x)), x) == (
        (2, 3), np.dtype("float32"), 2, 6, 24, 4, 2,
    )  # fmt: skip
    shown = inside(lambda x: (repr(x), f"{x}", hash(x) == hash(x)), x)
    assert shown[0] == shown[1] and shown[0].startswith("<traced <x float32[2,3] at") and shown[2]


@pytest.mark.parametrize("f, words", [
    (bool, "if, while, and, or and not need True or False"), (float, "float\\(\\) needs a number"),
    (int, "int\\(\\) needs a number"), (complex, "complex\\(\\) needs a number"),
    (range, "range\\(\\), a shape or a slice needs an integer"),
    (lambda x: x.item(), "item\\(\\) needs a number"), (lambda x: x.tolist(), "tolist\\(\\) needs numbers"),
    (lambda x: x.eval(), "eval\\(\\) needs the value"), (lambda x: f"{x:.2f}", "format '.2f' needs a number"),
    (pickle.dumps, "pickle needs the value"),
], ids=lambda x: x if isinstance(x, str) else getattr(x, "__name__", ""))  # fmt: skip
def test_what_needs_a_value_names_it_with_its_line(f, words):
    with pytest.raises(
        GraphError, match=rf"test_tracer.py:\d+: {words}, and x float64\[\] \(made at test_tracer.py:\d+\)"
    ):
        inside(f, 2.0)


def test_conversions_name_what_converts():
    for f in (float, int, complex):
        with pytest.raises(GraphError, match=r"x.astype\(float\) and the like to convert, np.sin in place of math.sin"):
            inside(f, 2.0)
    assert inside(lambda x: np.sin(x.astype(float)), 2).dtype == "float64"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, np.copy, lambda x: x.copy()])
def test_a_copy_is_another_array(duplicate):
    def f(x, tree):
        y, (z, number) = duplicate(x[1:]), copy.deepcopy(tree)
        y[0], x[2], z[0] = 7, 8, 9
        return x, y, z, tree[0], copy.copy(number) + 1

    got = cg.jit(f)(np.zeros(3), [np.zeros(2), 3])
    assert [np.array(x).tolist() for x in got] == [[0, 0, 8], [7, 0], [9, 0], [0, 0], 4]


def test_private_names_are_no_attributes():
    assert inside(lambda x: hasattr(x, "_private"), X) is False
    with pytest.raises(AttributeError, match="a traced array has no attribute '_private'"):
        inside(lambda x: x._private, X)


def test_a_tracer_that_left_its_function_is_refused():
    left = inside(lambda x: x + 1, X)
    assert isinstance(left, Tracer)
    with pytest.raises(GraphError, match="is used after its function has returned: it has left it through"):
        left + 1
    with pytest.raises(GraphError, match="has left it through"):
        cg.jit(lambda y: y + left)(X)
    assert left.shape == (2, 2)


def test_another_thread_is_no_part_of_the_trace():
    errors = []

    def f(x):
        def other():
            try:
                x + 1
            except GraphError as error:
                errors.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return x

    cg.jit(f)(X)
    assert len(errors) == 1 and "is used in another thread, or in a function that runs later" in errors[0]


def test_an_array_of_an_enclosing_function_is_not_assigned():
    def outer(x):
        y = x * 2

        def inner(z):
            y[0] = z[0]
            return z.sum()

        return cg.grad(inner)(x)

    with pytest.raises(GraphError, match=r"test_tracer.py:\d+ assigns to an array of an enclosing function. Pass"):
        cg.jit(outer)(X)


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"])
@pytest.mark.parametrize("is_array", [True, False])
def test_what_an_augmented_assignment_gives_is_the_array_itself_and_of_a_number_another_number(name, is_array):
    """A later assignment through either name is seen through both, as in NumPy; a number has no other name."""
    f = getattr(operator, name)

    def g(x, y):
        x = x + 0 if is_array else x
        z = f(x, y)
        if is_array:
            z[0] = 11
            x[1] = 13
        return x, z, z is x

    x, y = (np.abs(X), Y) if is_array else (3.0, 2.0)
    for got, want in zip(cg.jit(g)(x, y), g(x, y)):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("need", [
    bool, float, int, complex, range, np.asarray, np.array, lambda x: np.float64(x), lambda x: x.item(),
    lambda x: x.tolist(), lambda x: x.eval(), lambda x: f"{x:.2f}",
])  # fmt: skip
def test_a_message_names_the_line_that_needs_a_value_and_then_the_line_that_made_it(need):
    """They are different lines, in this order, for whatever reads a value."""

    def g(x):
        y = x * 2
        return need(y)

    first = g.__code__.co_firstlineno
    with pytest.raises(cg.CgraphError) as caught:
        cg.jit(g)(2.0)
    used, made = (int(line) for line in re.findall(r"test_tracer\.py:(\d+)", str(caught.value)))
    own = need.__code__.co_firstlineno if isinstance(need, FunctionType) and need.__module__ == __name__ else first + 2
    assert (used, made) == (own, first + 1)
