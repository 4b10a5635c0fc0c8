"""Inputs and outputs by rows: sources and sinks in the graph, the steps between them, and what is refused."""

import pytest

import cgraph as cg
from cgraph.budget.bands.streamed_rows import by_rows, is_by_rows, is_cut, region_of
from cgraph.errors import GraphError
from cgraph.ops.physical.ports import RowPort, RowSink, RowSource
from tests.support.schedules import conv, lowered, planner_of, scheduled


def image(rows: int = 24, name: str = "x") -> cg.Var:
    return cg.Var((1, 4, rows, 12), name=name)


def region(*roots):
    planner = planner_of()
    return region_of(scheduled(planner, *lowered(*roots))[0].layout, planner.facts)


def test_sources_replace_the_inputs_everywhere_and_sinks_end_the_outputs_that_are_named():
    x, other = image(), image(name="other")
    y, total = x + other, cg.sum(x)
    port = RowPort("y", y.spec)
    first, second, third = by_rows((total, y, x * 2), {1: port}, (x,))
    assert isinstance(second.op, RowSink) and second.op.port is port
    (source,) = {z for node in (second.operands[0], third) for z in node.operands if isinstance(z.op, RowSource)}
    assert source.op.port is x and source.spec == x.spec
    assert other in set(second.operands[0].operands) and not isinstance(first.op, RowSink)
    assert by_rows((y,), {}, ()) == (y,)


def test_a_root_that_is_delivered_by_rows_is_whole_where_it_is_another_root():
    """As the value of an update edge, which stores all of it."""
    x = image()
    y = x * 2
    ports = {0: RowPort("first", y.spec), 2: RowPort("third", y.spec)}
    first, whole, third = by_rows((y, y, y), ports, (x,))
    assert first.operands == third.operands == (whole,) and not isinstance(whole.op, RowSink)
    assert (first.op.port, third.op.port) == (ports[0], ports[2])


def test_only_a_source_makes_a_schedule_one_by_rows():
    x = image()
    y = conv(x, 4)
    planner = planner_of()
    for roots, want in ((by_rows((y,), {}, (x,)), True), ((y,), False)):
        assert is_by_rows(scheduled(planner, *lowered(*roots))[0].layout) is want


def test_steps_of_the_region_are_neighbours_between_what_comes_before_and_after():
    """A product of Vars is computed before the region, and a sum of its result behind it."""
    x, v = image(), cg.Var((4, 1, 1), name="v")
    y = conv(x, 4) * cg.cumsum(v, 0)
    roots = by_rows((cg.cumsum(cg.sum(y, (2, 3)), 0), v * 2), {}, (x,))
    layout, first, last = region(*roots)
    parts = slice(first), slice(first, last + 1), slice(last + 1, None)
    before, inside, after = (set(layout.steps[part]) for part in parts)
    assert isinstance(layout.steps[first].op, RowSource) and before and after
    assert not any(isinstance(node.op, RowSource) for node in before | after)
    assert all(inside.isdisjoint(node.operands) and after.isdisjoint(node.operands) for node in before)
    assert all(after.isdisjoint(node.operands) for node in inside)
    assert any(not inside.isdisjoint(node.operands) for node in after)


def test_a_step_is_cut_if_it_reads_rows_of_the_region_and_no_whole_value_of_it():
    x = cg.relu(image())
    pool = cg.max_pool2d(x, 3, 1, pad=1)
    (root,) = lowered(pool)
    node = root
    while not node.op.cut(*(z.spec for z in node.operands)):
        node = node.operands[0]
    operand = node.operands[0]
    assert is_cut(node, {operand, node}, {operand}) and not is_cut(node, {operand, node}, set())
    assert is_cut(node, {node}, set()), "operands that do not depend on streamed rows may be whole"
    total = cg.cumsum(x, 2)
    assert not is_cut(total, {total}, set())


def test_two_values_that_lead_out_of_a_region_are_refused_by_name():
    x = image()
    one, two = conv(x, 4), conv(x, 5, seed=1)
    for outputs in ((cg.sum(one), cg.sum(two)), (cg.relu(x), cg.tanh(x))):
        with pytest.raises(GraphError, match="must lead to one value, not to .* at test_bands_streamed_rows.py.*fewer"):
            region(*by_rows(outputs, {}, (x,)))


def test_an_output_behind_a_whole_image_is_refused_with_the_step_that_reads_it():
    x = image()
    y = conv(x, 4)
    y = y / cg.sum(y)
    with pytest.raises(GraphError, match="y cannot be streamed by rows: .* reads whole images. Remove it from rows="):
        region(*by_rows((y,), {0: RowPort("y", y.spec)}, (x,)))
