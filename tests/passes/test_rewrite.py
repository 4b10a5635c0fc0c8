"""Local rules: the first that answers, until none does, within a number of firings."""

import pytest

import cgraph as cg
from cgraph.ir.rewrite import rewrite
from cgraph.ops.activation import Relu
from cgraph.ops.elementary import Cos, Sin, Tanh
from tests.support.rewrites import assert_left, ops_of

X = cg.Var((3,), "float64", "x")


def sin_to_cos(node):
    return cg.cos(node.operands[0])


def cos_to_tanh(node):
    return cg.tanh(node.operands[0])


def never(node):
    return None


def test_what_a_rule_gives_is_rewritten_too():
    (found,) = rewrite((cg.exp(cg.sin(cg.sin(X))),), [(Sin, sin_to_cos), (Cos, cos_to_tanh)])
    assert ops_of((found,)) == {"exp": 1, "tanh": 2}


def test_the_first_rule_that_answers_is_taken():
    (found,) = rewrite((cg.sin(X),), [(Sin, never), (Sin, sin_to_cos), (Sin, cos_to_tanh)])
    assert ops_of((found,)) == {"cos": 1}


def test_a_graph_without_such_ops_is_left():
    assert_left(lambda outputs: rewrite(outputs, [(Relu, sin_to_cos), (Tanh, never)]), cg.tanh(X), cg.exp(X))


def test_rules_that_turn_in_a_circle_are_named():
    with pytest.raises(RuntimeError, match="rules still fire at <"):
        rewrite((cg.sin(X),), [(Sin, sin_to_cos), (Cos, lambda node: cg.sin(node.operands[0]))])


def test_a_rule_may_fire_many_times():
    def one_less(node):
        depth = node.operands[0]
        return cg.sin(depth.operands[0]) if depth.op.name == "negative" else None

    x = X
    for _ in range(90):
        x = cg.negative(x)
    assert ops_of(rewrite((cg.sin(x),), [(Sin, one_less)])) == {"sin": 1}


def test_each_rule_of_an_op_has_its_turn_until_one_fires():
    x = cg.Var((3,))
    asked = []

    def first(node):
        asked.append("first")

    def second(node):
        asked.append("second")
        return cg.tanh(node.operands[0])

    (got,) = rewrite((cg.exp(x),), [(type(cg.exp(x).op), first), (type(cg.exp(x).op), second)])
    assert got.op.name == "tanh" and asked == ["first", "second"]
