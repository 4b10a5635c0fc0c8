"""Boxes of a compiled Function: steps, then workspaces, views by owner, and operands that several values share."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import GraphError
from cgraph.ir.graph import apply
from cgraph.memory.layout import owner_of
from cgraph.memory.strategies.greedy_by_size import greedy_by_size
from cgraph.memory.usage import usage_of
from cgraph.ops.leaf import ConstOp
from cgraph.ops.shape import Full
from cgraph.record import replace
from cgraph.view.boxes import VALUE, WORKSPACE
from cgraph.view.page import page_html
from cgraph.view.planned import compiled_of, function_svg, memory_of, views_by_owner
from tests.support.planned import planned

ROW = np.zeros((1, 4), "f4")


def graph():
    x = cg.Var((8, 4), name="x")
    y = np.sin(x)
    turned = cg.reshape(y.T, (32,))
    return x, y, turned, cg.sort(turned, 0)


def test_a_function_or_its_plan_is_shown_and_the_reference_engine_has_none():
    x, _, _, z = graph()
    function = cg.compile(z, x)
    assert compiled_of(function) is function.compiled is compiled_of(function.compiled)
    with pytest.raises(GraphError) as error:
        compiled_of(cg.compile(z, x, engine="reference"))
    assert str(error.value) == "the reference engine has no memory plan to show; compile for another engine"


@pytest.mark.parametrize("show", [cg.report, function_svg, page_html, lambda f: cg.timed_report(f, ROW)])
def test_functions_of_several_plans_are_refused_with_the_way_to_one(show):
    def build(sizes):
        x = cg.Var((sizes["n"], 4), name="x")
        return np.sin(x), x

    sized, jitted = cg.compile_sizes(build, {"x": ("n", 4)}), cg.jit(np.sin)
    for function in (sized, jitted):
        with pytest.raises(GraphError, match=r"a plan for each size.* function.at\(n=4\)"):
            show(function)
    for function in (sized.at(n=1), jitted.compiled(ROW)):
        assert show(function)


def test_boxes_are_steps_and_then_workspaces():
    x, _, _, z = graph()
    compiled = planned(z)
    memory = memory_of(compiled)
    steps, spaces = compiled.layout.steps, list(compiled.layout.workspace_of)
    assert spaces, "a sort has a workspace"
    kinds = [VALUE] * len(steps) + [WORKSPACE] * len(spaces)
    assert [box.kind for box in memory.boxes] == kinds
    for i, (box, node) in enumerate(zip(memory.boxes, [*steps, *spaces], strict=True)):
        is_space = i >= len(steps)
        assert box.name == (f"{node.title} workspace" if is_space else node.title)
        assert box.spec == ("" if is_space else str(node.spec)) and box.where == node.where
        value = compiled.usage.values[i]
        assert (box.nbytes, box.first, box.last) == (value.nbytes, value.step, value.last)
        assert box.offset == compiled.usage.offset(compiled.plan, i)
    assert memory.lower_bound == compiled.lower_bound and memory.nbytes == compiled.nbytes


def test_views_belong_to_the_node_whose_bytes_they_show():
    x, y, _, z = graph()
    compiled = planned(z)
    names = {owner.name: [view.name for view in views] for owner, views in views_by_owner(compiled).items()}
    assert "transpose" in names["sin"] and "sin" not in names["sin"]
    (box,) = [box for box in memory_of(compiled).boxes if box.name == "y (sin)"]
    place = f"{y.T.where.split(':')[0]}:{box.views[0].rpartition(':')[2]}"
    assert box.views[0] == f"turned (transpose) float32[4,8] at {place}"
    (last,) = [box for box in memory_of(compiled).boxes if box.name.endswith("sort")]
    assert last.views == ()


def test_no_node_is_a_view_of_itself_and_each_other_view_has_one_owner():
    _, _, _, z = graph()
    compiled = planned(z + apply(Full((32,), np.dtype("float32"), 2.0)) * cg.Const(np.arange(32, dtype="f4"))[::-1])
    views, layout = views_by_owner(compiled), compiled.layout
    assert any(isinstance(node.op, Full | ConstOp) for node in layout.views)
    pairs = [(owner, node) for owner, nodes in views.items() for node in nodes]
    assert all(owner is not node and owner_of(layout.views[node]) is owner for owner, node in pairs)
    assert len(pairs) == sum(owner_of(view) is not node for node, view in layout.views.items()) > 0


def test_operands_of_several_values_are_reserved_from_the_first_step_to_the_last():
    """An exp writes over the sine that it reads."""
    x = cg.Var((64,), name="x")
    memory = memory_of(planned(np.exp(np.sin(x))))
    (reserved,) = memory.reserved
    one, other = memory.boxes
    assert (other.over, one.over, one.operand, other.operand) == (0, -1, 0, 0)
    assert (reserved.first, reserved.last, reserved.nbytes, reserved.offset) == (one.first, other.last, 256, one.offset)
    assert memory_of(planned(np.sin(x))).reserved == ()


def test_a_box_names_every_view_of_its_value():
    y = np.sin(cg.Var((8, 4), name="x"))
    views = [y.T, cg.reshape(y, (32,)), y[:, :2]]
    compiled = planned(cg.concat([cg.reshape(x, (-1,)) for x in views], 0))
    (box,) = [box for box in memory_of(compiled).boxes if box.name.endswith("(sin)") or box.name == "sin"]
    shown = [text.partition(" at ")[0].rpartition(" ")[2] for text in box.views]
    assert len(shown) >= 3 and {"float32[4,8]", "float32[32]", "float32[8,2]"} <= set(shown)


def test_the_bound_is_that_of_any_use_of_the_permissions():
    """Here nothing overwrites, so the bytes in use are more than an overwriting plan needs."""
    x = cg.Var((64, 64), name="x")
    compiled = planned(np.tanh(np.sin(np.cos(x) + 1.0)))
    usage = usage_of(compiled.usage.values, 64, False, False)
    apart = replace(compiled, usage=usage, plan=greedy_by_size(usage.problem))
    memory = memory_of(apart)
    assert memory.lower_bound == compiled.lower_bound == x.nbytes < memory.peak_nbytes == 2 * x.nbytes
    assert memory.nbytes == 2 * x.nbytes and memory.ratio == 2
