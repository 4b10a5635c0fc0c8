"""Which pointwise ops become one, and which stay apart."""

import pytest
from hypothesis import given, settings

import cgraph as cg
from cgraph.ir.traverse import post_order
from cgraph.ops.fused import FusedPointwise
from cgraph.passes.fuse_pointwise import fuse_pointwise
from tests.support.graphs import graphs
from tests.support.rewrites import assert_keeps_values, assert_leaves_nothing, assert_left, assert_same_values

X, Y = cg.Var((3, 4), "float64", "x"), cg.Var((3, 4), "float64", "y")
ROW = cg.Var((4,), "float64", "row")
SIN = cg.sin(X)


def sizes(outputs) -> list[int]:
    """Ops in each fused node."""
    return sorted(len(n.op.body) for n in post_order(fuse_pointwise(outputs)) if isinstance(n.op, FusedPointwise))


def test_a_chain_and_a_diamond_become_one_op():
    assert sizes((cg.exp(cg.sin(X) * Y),)) == [3]
    assert sizes((SIN * Y + cg.exp(SIN),)) == [4]
    assert_same_values(fuse_pointwise, SIN * Y + cg.exp(SIN))


LEFT = {
    "one op": (cg.sin(X),),
    "across a sum": (cg.sin(cg.sum(cg.sin(X), 0)),),
    "across a reshape": (cg.sin(cg.reshape(cg.sin(X), (12,))),),
    "across a broadcast": (cg.cumsum(X, 0) * cg.broadcast_to(cg.sin(ROW), (3, 4)),),
    "an output that is read": (SIN, cg.exp(SIN)),
    "two users that stay apart": (cg.sum(cg.exp(SIN)), cg.max(cg.cos(SIN))),
    "a pointwise user and another": (cg.exp(SIN), cg.cumsum(SIN, 0)),
}


@pytest.mark.parametrize("name", LEFT)
def test_not_joined(name):
    assert_left(fuse_pointwise, *LEFT[name])


def test_no_more_ops_than_the_limit_become_one(monkeypatch):
    y = X
    for _ in range(7):
        y = cg.sin(y)
    monkeypatch.setitem(fuse_pointwise.__globals__, "MOST_OPS", 3)
    assert sizes((y,)) == [3, 3]
    assert_same_values(fuse_pointwise, y)
    monkeypatch.setitem(fuse_pointwise.__globals__, "MOST_OPS", 7)
    assert sizes((y,)) == [7]


def test_fused_ops_count_as_what_they_are_made_of(monkeypatch):
    y = cg.exp(fuse_pointwise((cg.sin(cg.cos(X)),))[0])
    monkeypatch.setitem(fuse_pointwise.__globals__, "MOST_OPS", 2)
    assert_left(fuse_pointwise, y)
    monkeypatch.setitem(fuse_pointwise.__globals__, "MOST_OPS", 3)
    assert sizes((y,)) == [3]


def test_no_more_operands_than_the_limit_are_read(monkeypatch):
    many = [cg.Var((2,), "float64", f"v{i}") for i in range(5)]
    y = many[0]
    for v in many[1:]:
        y = y + v
    monkeypatch.setitem(fuse_pointwise.__globals__, "MOST_OPERANDS", 3)
    fused = [n for n in post_order(fuse_pointwise((y,))) if isinstance(n.op, FusedPointwise)]
    assert [n.op.count for n in fused] == [3, 3]
    assert_same_values(fuse_pointwise, y)
    monkeypatch.setitem(fuse_pointwise.__globals__, "MOST_OPERANDS", 5)
    assert sizes((y,)) == [4]


@settings(max_examples=40)
@given(drawn=graphs(impure=True))
def test_random_graphs_keep_their_values_and_nothing_is_left_to_join(drawn):
    assert_keeps_values(fuse_pointwise, drawn)
    assert_leaves_nothing(fuse_pointwise, drawn)


def test_an_array_that_several_ops_read_is_one_operand():
    total = SIN * X + X * ROW + cg.exp(SIN) * ROW
    (node,) = fuse_pointwise((total,))
    assert len(node.operands) == len(set(node.operands)) == 2 and node.operands[0] is X
    assert_same_values(fuse_pointwise, total)
