"""A choice between two sub-graphs: which one runs, what both read, and the gradient of the one that ran."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import GraphError, ShapeError
from cgraph.ops.conditional import Conditional, input_gradients
from cgraph.ops.leaf import Var
from cgraph.ops.loop import Body
from tests.support.computed import computed, float64, gradients


def choice(p, x, y):
    return cg.cond(p, lambda a: a * x, lambda a: a - x, y)


@pytest.mark.parametrize("p", [True, False])
def test_one_of_two_and_its_gradients(p):
    x, y, q = *float64([2.0, 3.0], [5.0, 7.0]), cg.Var(np.array(p))
    z = choice(q, x, y)
    assert computed(z).tolist() == ([10, 21] if p else [3, 4])
    to_x, to_y = gradients(z, x, y, seed=[1, 10])
    assert to_x.tolist() == ([5, 70] if p else [-1, -10])
    assert to_y.tolist() == ([2, 30] if p else [1, 10])


def test_a_number_is_true_where_it_is_not_zero_and_several_are_refused():
    x = float64([1.0])
    assert [computed(cg.cond(cg.Const(p), cg.exp, cg.zeros_like, x)).item() > 0 for p in (2, 0)] == [True, False]
    with pytest.raises(ShapeError, match="cond"):
        cg.cond(cg.Var((2,), bool), cg.exp, cg.log, x)


def test_several_results_are_nested_as_the_first_function_returns_them():
    x = float64([1.0, 4.0])
    p = cg.Var(np.array(False))
    got = cg.cond(p, lambda a: {"b": a, "a": (a + 1,)}, lambda a: {"a": (a * 2,), "b": a * 3}, x)
    assert list(got) == ["b", "a"]
    assert computed(got["b"]).tolist() == [3, 12] and computed(got["a"][0]).tolist() == [2, 8]


def test_results_that_differ_are_refused_with_both_specs():
    x = cg.Var((2,), "float64")
    with pytest.raises(ShapeError, match=r"one function returns float64\[2\], the other float64\[\]; return equal"):
        cg.cond(x[0] > 0, lambda a: a, cg.sum, x)
    with pytest.raises(ShapeError, match="float64.*the other none"):
        cg.cond(x[0] > 0, lambda a: a, lambda a: None, x)
    with pytest.raises(GraphError, match="returned no nodes"):
        cg.cond(x[0] > 0, lambda a: None, lambda a: None, x)


def body(x, y):
    return Body((), (), (x,), (), (y,))


def test_infer_compares_what_both_read_and_both_return():
    x, other = Var((2,), "float64"), Var((3,), "float64")
    op, p = Conditional(body(x, x * 2), body(x, x + 1)), Var((), bool)
    assert [s.shape for s in op.infer(p.spec, x.spec).specs] == [(2,)]
    assert op.name == "cond"
    for bad in ((p.spec, other.spec), (x.spec, x.spec)):
        with pytest.raises(ShapeError):
            op.infer(*bad)
    with pytest.raises(ShapeError):
        Conditional(body(x, x * 2), body(x, cg.sum(x))).infer(p.spec, x.spec)
    with pytest.raises(ShapeError):
        Conditional(body(x, x * 2), body(other, x)).infer(p.spec, x.spec)
    swapped = op.with_bodies(op.bodies[::-1])
    assert (swapped.first, swapped.other) == (op.other, op.first)


def test_what_a_body_does_not_read_has_a_gradient_of_zero_and_integers_have_none():
    x, y, n = float64([2.0], [3.0]) + [cg.Var(np.array([4]))]
    p = cg.Var(np.array(True))
    z = cg.cond(p, lambda a, b, c: a * c, lambda a, b, c: b * c, x, y, n)
    assert [g.tolist() for g in gradients(z, x, y)] == [[4], [0]]
    v, to_y = Var((1,), "float64"), Var((1,), "float64")
    assert input_gradients(Body((), (), (Var((1,), "int32"),), (), (v,)), [to_y]) == []


def test_the_gradient_of_the_gradient():
    x, p = float64([2.0]), cg.Var(np.array(True))
    z = cg.cond(p, lambda a: a * a * a, lambda a: a, x)
    slope = cg.gradient(cg.sum(z), x)
    assert computed(cg.gradient(cg.sum(slope), x)).tolist() == [12]
    p.assign(False)
    assert computed(cg.gradient(cg.sum(slope), x)).tolist() == [0]
