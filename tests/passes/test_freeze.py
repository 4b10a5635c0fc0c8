"""Frozen Vars are constants: what they hold now, whatever is assigned later."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.passes.freeze import freeze
from tests.support.rewrites import assert_left

X = cg.Var((3,), "float64", "x")


def test_only_the_named_vars_become_constants_of_what_they_hold_now():
    a, b = (cg.Var((3,), "float64", name).assign(np.arange(3.0)) for name in "ab")
    (found,) = freeze((X * a + b,), [a])
    assert [x.name for x in post_order([found]) if isinstance(x, cg.Var)] == ["x", "b"]
    a.assign(np.zeros(3))
    np.testing.assert_array_equal(evaluate([found], {X: np.full(3, 2.0)})[0], np.arange(3.0) * 3)


def test_without_vars_the_graph_is_left():
    assert_left(lambda outputs: freeze(outputs, []), cg.sin(X) * 2)


def test_a_var_that_holds_nothing_is_named():
    with pytest.raises(cg.UnassignedError, match=r"empty .*made at test_freeze.py.*cannot be frozen"):
        freeze((X,), [cg.Var((3,), name="empty")])
