"""Arguments of NumPy's functions reach ours: by position or by name, defaults and layouts dropped, others refused."""

import numpy as np
import pytest
import scipy.special

import cgraph as cg
from cgraph.errors import NoMeaningError
from cgraph.numpy.dispatch import bind, kind_of, name_of, says_nothing
from tests.numpy.evaluated import compare, drawn
from tests.support.tolerance import assert_near

X = cg.Var((2, 3), name="x")


@pytest.mark.parametrize(("function", "name"), [
    (np.fft.fft, "np.fft.fft"), (np.linalg.inv, "np.linalg.inv"), (np.add, "np.add"), (np.sum, "np.sum"),
    (np.emath.sqrt, "np.emath.sqrt"),
])  # fmt: skip
def test_a_function_has_the_name_that_users_write(function, name):
    assert name_of(function) == name


def ours(a, axis=None, keepdims=False):
    return a


def test_required_arguments_stay_in_place_and_defaults_are_dropped():
    assert bind(np.sum, ours, (X,), {}) == ([X], {})
    assert bind(np.sum, ours, (X, 1), {"keepdims": True}) == ([X], {"axis": 1, "keepdims": True})
    assert bind(np.sum, ours, (), {"a": X, "axis": None, "out": None, "dtype": None}) == ([X], {})
    positional, named = bind(np.broadcast_arrays, lambda *args: args, (X, X), {"subok": True})
    assert positional == [X, X] and named == {}


def test_only_what_equals_a_default_of_its_type_says_nothing():
    assert says_nothing("axis", None, None, {}) and says_nothing("casting", "same_kind", "same_kind", {})
    assert says_nothing("ddof", 0, 0, {}) and not says_nothing("ddof", 1, 0, {})
    assert not says_nothing("axis", False, 0, {}) and not says_nothing("axis", 0, None, {})
    assert says_nothing("order", "F", "C", {}) and not says_nothing("order", "F", "C", {"order": None})


@pytest.mark.parametrize(("call", "match"), [
    ("np.sum(x, out=y)", "np.sum at .*out="), ("np.add(x, 1, out=y)", "np.add at .*out="),
    ("np.add(x, 1, where=y > 0)", "where"), ("np.unique(x)", r"np.unique at .*: .*cg.unique"),
    ("np.einsum('ij->i', x, casting='unsafe')", "casting= means nothing for nodes; use "),
    ("np.add.at(x, [0], 1)", "at changes its operand"), 
    
    
])  # fmt: skip
def test_a_refusal_names_the_function_the_line_and_the_way_out(call, match):
    with pytest.raises(NoMeaningError, match=match):
        eval(call, {"np": np, "x": X, "y": np.zeros((2, 3))})


def test_a_refusal_names_the_users_file():
    with pytest.raises(NoMeaningError, match="test_dispatch.py:"):
        np.unique(X)


def test_a_number_of_python_is_weak_and_an_array_is_not():
    assert kind_of(2) is int and kind_of(2.5) is float and kind_of(1j) is complex
    assert kind_of(True) == np.dtype(bool) and kind_of(np.float32(2)) == "float32" and kind_of(X) == X.dtype
    assert kind_of([1, 2]) == np.dtype(int)


def test_outer_pairs_every_element_in_the_order_of_the_operands():
    x, y = drawn((2, 3)), drawn((4,), seed=1)
    compare("np.subtract.outer(x, y), np.subtract.outer(y, x), np.power.outer(y, 2)", x=x, y=y)


def test_an_attribute_that_nobody_has_is_an_attribute_error():
    with pytest.raises(AttributeError, match="a node has no attribute 'shap'"):
        _ = X.shap


def test_a_foreign_type_is_left_to_answer():
    class Foreign:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "foreign"

        def __array_function__(self, function, types, args, kwargs):
            return "foreign"

    class Other:
        def __array_ufunc__(self, *args, **kwargs):
            return "other"

    x = cg.Var((2,))
    assert np.concatenate([x, Foreign()]) == "foreign"
    assert x.__array_ufunc__(np.add, "__call__", x, Other()) is NotImplemented


@pytest.mark.parametrize("kind", [np.memmap, np.matrix, type("Own", (np.ndarray,), {})])
def test_arrays_of_a_subclass_are_operands_of_functions_and_ufuncs(kind):
    x, y = np.arange(6.0).reshape(2, 3), np.arange(6.0, 12).reshape(2, 3)
    node, other = cg.Var(x), y.view(kind)
    for got, want in (
        (np.concatenate([other, node]), np.concatenate([y, x])),
        (np.where(other > 7, node, other), np.where(y > 7, x, y)),
        (np.stack([node, other], 1), np.stack([x, y], 1)),
        (np.subtract(other, node), y - x),
        (other - node, y - x),
    ):
        np.testing.assert_array_equal(got.eval(), want)


@pytest.mark.parametrize(
    ("name", "op"), [("erf", "erf"), ("expit", "sigmoid"), ("gammaln", "lgamma"), ("psi", "digamma")]
)
def test_a_ufunc_of_scipy_leads_to_the_op_of_the_same_meaning(name, op):
    with pytest.raises(NoMeaningError, match=f"use cg.{op}, which takes nodes"):
        getattr(scipy.special, name)(cg.Var((3,)))
    x = np.array([0.5, 1.5, 3.0])
    assert_near(getattr(cg, op)(cg.Const(x)).eval(), getattr(scipy.special, name)(x), "float64 formulas")


@pytest.mark.parametrize(("name", "advice"), [
    ("expit", "use cg.sigmoid, which takes nodes"), ("spence", "it has no meaning for nodes; use x.eval() first"),
])  # fmt: skip
def test_a_ufunc_of_another_package_is_refused_under_its_own_name(name, advice):
    with pytest.raises(NoMeaningError) as refused:
        getattr(scipy.special, name)(X)
    assert str(refused.value).startswith(f"{name} at test_dispatch.py:") and str(refused.value).endswith(f": {advice}")
