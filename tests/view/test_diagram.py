"""Items of a graph picture: kinds, numbers of small constants, operands and update edges, before and after planning."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.view.diagram import CONST, OP, VAR, VIEW, diagram_of, diagram_of_nodes
from cgraph.view.planned import memory_of
from tests.support.planned import planned

TABLE = np.arange(6, dtype="float32").reshape(2, 3)


def graph():
    """``(x * 2).T + table``, and a counter that goes down."""
    x, count = cg.Var((3, 2), name="x"), cg.Var((), "int64", "count")
    return x, count, (x * 2.0).T + cg.Const(TABLE, name="table"), count - 1


def test_operands_stand_before_users_and_are_positions():
    _, count, y, after = graph()
    items = diagram_of_nodes([y], {count: after}).items
    assert all(o < i for i, item in enumerate(items) for o in item.operands)
    operands = {item.name: [items[i].name for i in item.operands] for item in items}
    assert operands["add"] == ["transpose", "table"] and operands["transpose"] == ["multiply"]
    assert operands["multiply"][0] == "x" and operands["subtract"][0] == "count" and operands["x"] == []
    assert [item.name for item in items if item.output] == ["add"]


def test_each_kind_of_node_is_told_apart_and_constants_of_one_element_have_their_number():
    _, count, y, after = graph()
    items = diagram_of_nodes([y], {count: after}).items
    kinds = {(item.name, item.kind) for item in items}
    assert {("x", VAR), ("count", VAR), ("table", CONST), ("multiply", OP), ("transpose", OP)} <= kinds
    assert sorted(item.value for item in items if item.value) == ["1", "2"]
    numbers = diagram_of_nodes([cg.Const(np.float64(1234567.891)), cg.Const(np.float32([[0.1]]))])
    assert [item.value for item in numbers.items] == ["1.23457e+06", "0.1"]


def test_an_item_has_the_facts_of_its_node():
    x = cg.Var((3, 2), name="x")
    y = x.T
    (leaf, view) = diagram_of_nodes([y]).items
    assert (leaf.spec, leaf.nbytes, leaf.step, leaf.box, leaf.block) == ("float32[3,2]", 24, -1, -1, -1)
    assert (view.operands, view.output, leaf.output, view.where) == ((0,), True, False, y.where)


def test_an_update_edge_leads_from_the_value_to_the_var():
    count = cg.Var((), "int64", "count")
    after = count + 1
    diagram = diagram_of_nodes([], {count: after})
    ((source, target),) = diagram.updates
    assert diagram.items[source].name == "after (add)" and diagram.items[target].name == "count"
    assert diagram_of_nodes([count]).updates == ()


def test_a_planned_graph_has_steps_boxes_and_blocks():
    x, count, y, after = graph()
    compiled = planned(y, updates={count: after})
    diagram = diagram_of(compiled)
    layout = compiled.layout
    steps = {item.step: item for item in diagram.items if item.step >= 0}
    assert [steps[t].name for t in range(len(layout.steps))] == [node.name for node in layout.steps]
    (turned,) = [item for item in diagram.items if item.name == "transpose"]
    source = diagram.items[turned.operands[0]]
    assert (turned.kind, turned.step) == (VIEW, -1)
    assert (turned.box, turned.block) == (source.box, source.block) and source.box == source.step >= 0
    leaves = [item for item in diagram.items if item.kind in (VAR, CONST)]
    assert leaves and all((item.step, item.box, item.block) == (-1, -1, -1) for item in leaves)
    assert [item.spec for item in diagram.items if item.output] == ["float32[2,3]"]
    ((_, target),) = diagram.updates
    assert diagram.items[target].name == "count"


def test_a_var_that_nothing_reads_is_drawn_with_its_update_edge():
    x, total = cg.Var((2,), name="x"), cg.Var((2,), name="total")
    diagram = diagram_of_nodes([x], {total: x * 2})
    ((source, target),) = diagram.updates
    assert (diagram.items[source].kind, diagram.items[target].name, diagram.items[target].kind) == (OP, "total", VAR)
    assert [item.name for item in diagram.items if item.output] == ["x"]


@pytest.mark.parametrize(("strategy", "blocks"), [("greedy_in_order_blocks", 2), ("one_each", 5)])
def test_an_item_has_the_block_of_the_bytes_in_which_it_lies(strategy, blocks):
    """A block of a plan in blocks has several operands; a view lies in the block of what it refers to."""
    x = cg.Var((3, 40), name="x")
    y = x
    for _ in range(5):
        y = y @ cg.Const(np.ones((40, 40), "f4"))
    function = cg.compile(y.T, [x], memory=strategy)
    items, boxes = diagram_of(function).items, memory_of(function).boxes
    assert len({box.block for box in boxes}) == blocks and len({box.operand for box in boxes}) == 5
    assert sorted(item.box for item in items if item.box >= 0) == [0, 1, 2, 3, 4, 4]
    assert [item.block for item in items] == [-1 if item.box < 0 else boxes[item.box].block for item in items]
