"""close: what a sub-graph reads from outside becomes a Var; inline puts operands in place of inputs."""

import numpy as np

import cgraph as cg
from cgraph.ir.graph import next_serial
from cgraph.ir.traverse import post_order
from cgraph.ops.closure import close, created, inline
from cgraph.ops.leaf import VarOp
from cgraph.ops.shape import items
from tests.support.computed import computed, float64


def test_values_from_outside_become_vars_in_the_order_they_are_read():
    x, outside, other = cg.Var((2,), name="x"), cg.Var((2,), name="outside"), cg.Var((3,), "int32", "other")
    before = cg.exp(outside)
    closed = close([x], [x * before + outside, other.astype("float32")])
    assert closed.shared[:2] == (before, outside) and closed.shared[2].operands == (other,)
    assert [v.spec for v in closed.names] == [v.spec for v in closed.shared]
    assert [v.name for v in closed.names] == ["shared0", "shared1", "shared2"]
    leaves = {n for n in post_order(closed.results) if isinstance(n.op, VarOp)}
    assert leaves == {x, *closed.names}


def test_a_value_is_shared_once_and_the_results_stay_what_they_were():
    x, outside = float64([1.0, 2.0], [10.0, 20.0])
    results = [x + outside, x * outside, outside]
    closed = close([x], results)
    assert closed.shared == (outside,)
    back = inline(closed.names, closed.results, closed.shared)
    for got, want in zip(back, results, strict=True):
        np.testing.assert_array_equal(computed(got), computed(want))


def test_constants_and_views_of_them_stay_inside():
    x, constant = cg.Var((2, 3)), cg.Const(np.arange(6.0, dtype="float32").reshape(3, 2))
    view = cg.transpose(constant)
    closed = close([x], [x + view, view])
    assert closed.shared == () and closed.results[1] is view
    assert close([x], [x + cg.exp(view)]).shared == (cg.exp(view),)


def test_nodes_of_a_serial_or_later_are_inside_as_well():
    x, outside = cg.Var((2,)), cg.Var((2,))
    old = outside * 2
    since = next_serial()
    young = outside * 3
    assert close([x], [x + old + young]).shared == (old, young)
    assert close([x], [x + old + young], since).shared == (old, outside)
    assert created([outside, old, young, cg.Const(1.5)], since) == {young}
    assert created([young], None) == set()


def test_an_item_of_an_older_node_is_old():
    pair = cg.top_k(cg.Var((4,)), 2)[0].operands[0]
    since = next_serial()
    assert created(items(pair), since) == set()
    young = cg.top_k(cg.Var((5,)), 2)[0].operands[0]
    assert created([young, *items(young)], since) == {young, *items(young)}


def test_inline_replaces_each_input_by_its_own_operand():
    a, b = cg.Var((2,), "float64"), cg.Var((2,), "float64")
    x, y = float64([5.0, 7.0], [2.0, 3.0])
    difference, same = inline([a, b], [a - b, a], [x, y])
    assert computed(difference).tolist() == [3, 4] and same is x
    assert inline([a, b], [b - a], [y, y])[0].operands == (y, y)
