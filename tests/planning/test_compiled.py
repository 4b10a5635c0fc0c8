"""A planned graph: its sizes by hand, its order of steps, and the same plan for other constants."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import Node
from cgraph.kernels.kernel import ARENA
from cgraph.memory.problem import Plan
from cgraph.ops.leaf import Const
from cgraph.planning.compiled import Compiled, with_constants
from cgraph.record import replace
from tests.support.planned import planned

KB = 1024


def test_sizes_are_those_that_counting_by_hand_gives():
    """A chain of two cumulative sums and an addition: of three values of 1 KiB, two are in use at a time."""
    x = cg.Var((KB // 4,), name="x")
    one = cg.cumsum(x, 0)
    two = cg.cumprod(one, 0)
    compiled = planned(one + two)
    assert [step.node for step in compiled.steps] == list(compiled.layout.steps) and len(compiled.layout.steps) == 3
    assert compiled.nbytes == compiled.plan.nbytes == 2 * KB == compiled.peak_nbytes == compiled.lower_bound
    assert compiled.plain_lower_bound == compiled.unshared_nbytes == 3 * KB
    loose = replace(compiled, plan=Plan(compiled.plan.offsets, 5 * KB))
    assert (loose.nbytes, loose.peak_nbytes, loose.lower_bound) == (5 * KB, 2 * KB, 2 * KB)


def test_the_plain_bound_counts_parts_beside_their_concat():
    x = cg.Var((KB // 4,), name="x")
    compiled = planned(cg.concat([cg.cumsum(x, 0), cg.cumprod(x, 0)], 0))
    assert (compiled.nbytes, compiled.lower_bound, compiled.plain_lower_bound) == (2 * KB, 2 * KB, 4 * KB)


def test_workspaces_and_bodies_of_loops_count():
    x, state = cg.Var((6, KB // 4), name="x"), cg.Var((KB // 4,), name="state")
    _, rows = cg.scan(lambda s, row: (cg.cumsum(s + row, 0), cg.cumprod(s, 0)), state, x)
    compiled = planned(rows)
    (body,) = compiled.inner.values()
    ((node, name),) = compiled.inner
    assert isinstance(body, Compiled) and body.nbytes >= 2 * KB and isinstance(name, str)
    assert node in compiled.layout.steps
    assert compiled.unshared_nbytes == sum(v.nbytes for v in compiled.layout.values)
    assert planned(cg.cumsum(x, 0)).inner == {}


def test_inner_plans_are_told_apart_by_their_step_and_name():
    x = cg.Var((3,), name="x")
    compiled = planned(cg.cumsum(x, 0), cg.cumprod(x, 0))
    works = dict(compiled.layout.works)
    for node, names in zip(compiled.layout.steps, (("one", "two"), ("two",))):
        works[node] = replace(works[node], inner={name: (node, name) for name in names})
    inner = replace(compiled, layout=replace(compiled.layout, works=works)).inner
    assert list(inner) == list(inner.values()) and len(inner) == 3


def test_bounds_count_whole_multiples_of_the_alignment():
    x = cg.Var((3,), name="x")
    compiled = planned(cg.cumsum(x, 0) + cg.cumprod(x, 0))
    assert compiled.peak_nbytes == compiled.lower_bound == 128 and compiled.plain_lower_bound == 192


def with_filter() -> tuple[Compiled, Node, Node]:
    """A plan in which one constant is read as it is, a part of it as a view, and another constant beside it."""
    x, w, b = cg.Var((3,), name="x"), Const(np.arange(6, dtype="f4").reshape(2, 3)), Const(np.ones(3, "f4"))
    state = cg.Var((3,), name="state")
    compiled = planned(cg.sort(x * w[1], 0), w[0], updates={state: cg.cumsum(x + b, 0) - w[0]})
    assert compiled.layout.workspace_of
    return compiled, w, b


def test_other_constants_take_the_places_of_some_and_nothing_moves():
    compiled, w, b = with_filter()
    other = Const(np.full((2, 3), 5, "f4"))
    changed = with_constants(compiled, {w: other})
    assert changed.plan is compiled.plan and changed.usage is compiled.usage
    assert changed.updated == compiled.updated and changed.order == compiled.order
    nodes = set(changed.layout.views)
    assert other in nodes and b in nodes and w not in nodes
    for old, new in zip(compiled.layout.views, changed.layout.views):
        before, after = compiled.views[old], changed.views[new]
        assert (after.shape, after.strides, after.at.offset) == (before.shape, before.strides, before.at.offset)
        assert after.at.base is (other if before.at.base is w else before.at.base)
        assert [x.op for x in new.operands] == [other.op if x is w else x.op for x in old.operands]
    assert [x.op for x in changed.layout.steps] == [x.op for x in compiled.layout.steps]
    assert all(x in nodes for x in (*changed.outputs, *changed.sources, *changed.layout.lasting, *changed.layout.steps))
    assert changed.layout.lasting == (*changed.outputs, *changed.sources)
    (part,) = set(changed.outputs) - set(changed.layout.steps)
    assert changed.views[part].at.base is other and changed.views[changed.outputs[0]].at.base is ARENA


def test_tables_name_the_new_nodes():
    compiled, w, _ = with_filter()
    changed = with_constants(compiled, {w: Const(np.zeros((2, 3), "f4"))})
    old, new = compiled.layout, changed.layout
    for name in ("value_of", "workspace_of", "works"):
        before, after = getattr(old, name), getattr(new, name)
        renamed = dict(zip(old.views, new.views))
        assert after == {renamed[x]: entry for x, entry in before.items() if x in renamed}
        assert set(after) <= set(new.views)
    assert [step.node for step in changed.steps] == list(new.steps)


def test_without_other_constants_the_nodes_are_the_same():
    compiled, _, _ = with_filter()
    same = with_constants(compiled, {})
    assert same.layout.steps == compiled.layout.steps and same.outputs == compiled.outputs


@pytest.mark.parametrize("changing", [False, True])
def test_nodes_whose_values_stay_are_renamed(changing):
    x, w = cg.Var((3,), name="x"), Const(np.arange(3, dtype="f4"))
    f = cg.compile(cg.cumsum(cg.Var((3,), name="kept") * w, 0) * x, [x], changing=[x] if changing else [])
    (const,) = [node for node in f.compiled.layout.views if isinstance(node.op, type(w.op)) and node.shape == (3,)]
    changed = with_constants(f.compiled, {const: Const(np.ones(3, "f4"))})
    assert len(changed.layout.always) == changing and changed.layout.always <= set(changed.layout.views)
