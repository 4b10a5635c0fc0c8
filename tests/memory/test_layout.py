"""Layouts of schedules: owners and views, last reads, permissions by operand, parts, workspaces, other orders."""

import pytest

import cgraph as cg
from cgraph.ir.bands import InPlaceJoin
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from cgraph.kernels.kernel import ARENA
from cgraph.kernels.target import host_target
from cgraph.memory.auto import auto
from cgraph.memory.layout import Layout, NodeFacts, StepFacts, in_order, layout_of, producers_of, step_facts
from cgraph.memory.usage import usage_of
from cgraph.record import replace
from tests.support.planned import planned

A, B = cg.Var((6, 6), name="a"), cg.Var((6, 6), name="b")
ONE, TWO = cg.cumsum(A, 0), cg.cumsum(B, 0)


def laid_out(*roots: Node) -> Layout:
    """The layout of a graph as it is written, depth first."""
    return layout_of(post_order(roots), roots, (), NodeFacts(host_target()))


def test_a_value_is_in_use_up_to_the_last_step_that_reads_it_or_a_view_of_it():
    view = ONE[2:4]
    first, second = cg.cumprod(ONE, 0), cg.cumsum(view, 1)
    layout = laid_out(cg.sum(first), second)
    assert [(v.step, v.last, v.lasting) for v in layout.values] == [
        (0, 3, False),
        (1, 2, False),
        (2, 3, True),
        (3, 3, True),
    ]
    assert [node.op.name for node in layout.steps] == ["cumsum", "cumprod", "sum", "cumsum"]
    assert [v.name for v in layout.values] == [node.title for node in layout.steps]
    at = layout.views[view].at
    assert at.base is ONE and at.offset == 2 * ONE.nbytes // 6
    producers = producers_of(layout.views, layout.value_of)
    assert [producers[node] for node in (A, ONE, view, first, second)] == [-1, 0, 0, 1, 3]


def test_a_value_of_which_a_view_is_returned_stays_and_one_that_nobody_reads_ends_with_its_step():
    kept, unread = laid_out(ONE[1:], TWO), layout_of([A, ONE, B, TWO], [TWO], (), NodeFacts(host_target()))
    assert [v.lasting for v in kept.values] == [True, True] and kept.steps == (ONE, TWO)
    assert [(v.last, v.lasting) for v in unread.values] == [(0, False), (1, True)]
    nothing = laid_out(A)
    assert (nothing.steps, nothing.values, list(nothing.views)) == ((), (), [A])


TALL = cg.cumsum(cg.Var((12, 6), name="tall"), 0)
OVERWRITES = {
    "both": (ONE + TWO, {0, 1}),
    "not a Var": (A + TWO, {0}),
    "not a smaller operand": (ONE + cg.cumsum(cg.Var((6,)), 0), {0}),
    "nor where it comes first": (cg.cumsum(cg.Var((6,)), 0) + ONE, {1}),
    "not in another order": (ONE + TWO.T, {0}),
    "nor where that comes first": (ONE.T + TWO, {1}),
    "not from behind its first byte": (ONE[::-1] + TWO, {1}),
    "not the first rows of a larger value": (TALL[:6] + TWO, {1}),
    "nor its last rows": (TALL[6:] + TWO, {1}),
    "one twice": (ONE + ONE, {0}),
    "not one that is read in two orders": (ONE + ONE.T, set()),
    "not another number of bytes": (ONE.astype("float64"), set()),
    "as many bytes of another dtype": (ONE.astype("int32"), {0}),
    "not what a product reads": (ONE @ TWO, set()),
    "what is normalised, not its scale": (cg.layer_norm(ONE, TWO, TWO), {0}),
    "not what is also the scale": (cg.layer_norm(ONE, ONE, TWO), set()),
    "nor what is also the shift": (cg.layer_norm(ONE, TWO, ONE), set()),
}


@pytest.mark.parametrize("name", OVERWRITES)
def test_a_step_may_overwrite_whole_operands_of_its_size_and_order(name):
    node, steps = OVERWRITES[name]
    layout = laid_out(node)
    assert layout.steps[-1] is node and set(layout.values[-1].overwritable) == steps


ROW = cg.cumsum(cg.Var((1, 6)), 1)
PARTS = {
    "each at its offset": (cg.concat([ONE, TWO]), ((0, 0), (1, 144))),
    "not across rows": (cg.concat([ONE, TWO], 1), ()),
    "across a single row": (cg.concat([ROW, ROW * 2], 1), ((0, 0), (1, 24))),
    "one of two alike": (cg.concat([ONE, ONE, TWO]), ((0, 0), (1, 288))),
    "no Var": (cg.concat([A, TWO]), ((0, 144),)),
    "no part of a value": (cg.concat([ONE[:3], TWO]), ((1, 72),)),
    "no turned value": (cg.concat([ONE.T, TWO]), ((1, 144),)),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_a_concat_are_whole_values_each_once_where_its_result_has_them_side_by_side(name):
    node, parts = PARTS[name]
    assert laid_out(node).values[-1].parts == parts


def test_workspaces_follow_the_values_and_last_one_step():
    x = cg.Var((2, 3, 9, 7), name="x")
    first = cg.conv2d(x, cg.Var((5, 3, 3, 3)), pad=1)
    second = cg.conv2d(first, cg.Var((4, 5, 3, 3)), pad=1)
    layout = laid_out(second)
    assert layout.steps == (first, second) and layout.workspace_of == {first: 2, second: 3}
    assert [(v.step, v.last) for v in layout.values[2:]] == [(0, 0), (1, 1)]
    assert [v.name for v in layout.values[2:]] == [f"{node.title} workspace" for node in layout.steps]
    usage = usage_of(layout.values, 64)
    plan = auto(usage.problem)
    for node, i in layout.workspace_of.items():
        room = layout.workspace(node, usage, plan)
        assert (room.at.base, room.at.offset) == (ARENA, usage.offset(plan, i))
        assert (room.shape, room.dtype) == ((layout.values[i].nbytes,), "u1")
    assert layout.workspace(x, usage, plan) is None
    places = layout.place(usage, plan)
    assert [places[node].at.offset for node in layout.steps] == [usage.offset(plan, i) for i in (0, 1)]
    assert places[x] is layout.views[x]


def test_in_another_order_leaves_come_first_and_views_directly_behind_their_value():
    view = ONE[2:4]
    first, second = cg.cumprod(ONE, 0), cg.cumsum(view, 1)
    layout = laid_out(first, second)
    assert in_order(layout, (0, 2, 1)) == [A, ONE, view, second, first]
    assert in_order(layout, (0, 1, 2)) == [A, ONE, view, first, second]


def test_equal_ops_on_operands_of_equal_specs_share_their_work_and_no_others_do():
    facts = NodeFacts(host_target())
    works = [facts.work(node) for node in (ONE, TWO, cg.cumsum(A, 1), cg.cumsum(cg.Var((6, 5)), 0))]
    works.append(facts.work(cg.cumsum(cg.Var((6, 6), "float64"), 0)))
    assert works[0] is works[1] and len({id(work) for work in works}) == 4
    assert facts.work(ONE) is works[0]


def test_a_step_that_writes_into_a_var_has_no_bytes_in_the_arena():
    v = cg.Var((6, 6), name="v")
    layout = planned(ONE, updates={v: v * 2}).layout
    written = [value.nbytes for node, value in zip(layout.steps, layout.values) if node.op.writes]
    assert written == [0] and sum(value.nbytes for value in layout.values) == ONE.nbytes


def test_a_value_that_later_runs_find_is_computed_beside_a_concat_and_is_in_use_from_the_first_step_to_the_last():
    joined = cg.concat([ONE, TWO])
    layout = layout_of(post_order((joined,)), (joined,), (TWO,), NodeFacts(host_target()))
    assert layout.values[-1].parts == ((0, 0),)
    assert [(v.step, v.last, v.lasting) for v in layout.values] == [(0, 2, False), (0, 2, True), (2, 2, True)]


def test_a_workspace_has_the_bytes_for_these_views_if_the_work_knows_them():
    facts = NodeFacts(host_target())
    views = facts.views_of(post_order((ONE,)))
    for exact, nbytes in ((None, 100), (lambda out, x: out.size - x.size + 33, 33)):
        work = replace(facts.work(ONE), nbytes=100, exact=exact)
        assert step_facts(ONE, work, views).workspace == nbytes


@pytest.mark.parametrize("fork", [0, 1])
def test_a_join_in_place_overlaps_the_operand_that_its_work_names(fork):
    facts, node = NodeFacts(host_target()), ONE + TWO
    facts.view(A), facts.view(B)
    facts.steps[node] = StepFacts(node.nbytes, "join", 0, (), (), InPlaceJoin(fork, 8))
    layout = layout_of(post_order((node,)), (node,), (), facts)
    assert layout.values[-1].over == InPlaceJoin(layout.value_of[(ONE, TWO)[fork]], 8)


def test_a_step_takes_over_bytes_only_in_the_order_in_which_both_values_lie():
    """Of images, one row by row and the other plane by plane."""
    x = cg.Var((1, 3, 4, 5), name="x")
    first = cg.cumsum(x, 3)
    second = cg.exp(first)
    third = cg.tanh(second)
    order, facts = post_order((third,)), NodeFacts(host_target())
    assert [v.overwritable for v in layout_of(order, [third], (), facts).values] == [(), (0,), (1,)]
    for rows, taken in (
        ({first}, [(), (), (1,)]),
        ({second}, [(), (), ()]),
        ({first, second}, [(), (0,), ()]),
        ({first, second, third}, [(), (0,), (1,)]),
    ):
        values = layout_of(order, [third], (), facts, rows).values
        assert [v.overwritable for v in values] == taken
