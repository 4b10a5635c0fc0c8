"""The replay refuses every way to spoil a sound run, and accepts no run that goes wrong byte by byte."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.errors import PlanError
from cgraph.kernels.kernel import ARENA, Pointer, View, contiguous
from cgraph.kernels.target import host_target
from cgraph.kernels.views.layout import by_rows
from cgraph.memory.auto import auto
from cgraph.memory.replay import _PlanReplay, check_replay, places_of_vars
from cgraph.memory.strategies import STRATEGIES
from cgraph.planning.options import PlanSettings, Request
from cgraph.planning.orders import ORDERS
from cgraph.planning.plan import plan_graph
from cgraph.record import replace as changed
from tests.support.graphs import graphs
from tests.support.ops import work_of
from tests.support.planned import planned
from tests.support.replays import is_sound, needs, run_of

N = 64  # float32 values; 256 bytes


def vector(name="v"):
    return cg.Var((N,), name=name)


def refused(run, text):
    assert not is_sound(run)
    with pytest.raises(PlanError, match=text):
        run.check()


@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=30)
@given(drawn=graphs())
def test_every_order_and_every_strategy_gives_a_sound_run(order, drawn):
    for strategy in (auto, STRATEGIES["one_each"], STRATEGIES["greedy_in_order_blocks"]):
        run = run_of(
            plan_graph(Request(tuple(drawn.outputs), (), {}), PlanSettings(host_target(), 64, strategy, order))
        )
        run.check()
        assert is_sound(run)


@settings(max_examples=150)
@given(drawn=graphs(most_nodes=12, zero_size=False), data=st.data())
def test_no_run_is_accepted_that_goes_wrong_byte_by_byte(drawn, data):
    run = run_of(planned(*drawn.outputs))
    if not run.steps:
        return
    for _ in range(data.draw(st.integers(1, 2))):
        node = data.draw(st.sampled_from(run.steps))
        places = [run.views[x].at.offset for x in run.steps if not isinstance(run.views[x], tuple)]
        run = run.moved(node, data.draw(st.sampled_from(places) | st.integers(0, run.nbytes // 4).map(lambda x: 4 * x)))
    if not is_sound(run):
        with pytest.raises(PlanError):
            run.check()


def test_bytes_that_are_read_later_may_not_be_taken():
    a = cg.sin(vector())
    b = cg.exp(a)
    c = a * cg.cos(b)
    run = run_of(planned(c))
    refused(run.moved(b, run.views[a].at.offset), "reads <sin")
    second = run_of(planned(cg.cos(b) - a))
    refused(second.moved(b, second.views[a].at.offset), "reads <sin")


def test_what_is_kept_may_not_be_taken():
    a = cg.sin(vector())
    b = cg.exp(a)
    run = run_of(planned(a, b))
    refused(run.moved(b, run.views[a].at.offset), "the caller reads <sin")


def test_only_permission_lets_a_step_overwrite_what_it_reads():
    x = cg.exp(cg.Var((8, 8)))
    product = cg.matmul(x, cg.sin(cg.Var((8, 8))))
    run = run_of(planned(product))
    refused(run.moved(product, run.views[x].at.offset), "while it reads it")


def test_overwriting_must_hit_the_very_bytes():
    a = cg.sin(vector())
    b = cg.exp(a)
    run = run_of(planned(b))
    refused(run.moved(b, run.views[a].at.offset + 64), "not its very bytes")


def test_an_operand_that_is_read_twice_needs_permission_twice():
    x = cg.negative(vector())
    turned = cg.set_slice(x, (slice(None, None, -1),), x)
    run = run_of(planned(turned))
    refused(run.moved(turned, run.views[x].at.offset), "while it reads it")


def test_a_view_lies_where_its_op_puts_it():
    x = cg.exp(cg.Var((8, 8)))
    part = x[2:4]
    run = run_of(planned(cg.sin(part), x))
    wrong = replace(run, views={**run.views, part: run.views[part].moved(32)})
    with pytest.raises(PlanError, match="is not where it lies in <exp"):
        wrong.check()


def test_a_leaf_stays_where_it_is():
    x, y = vector("x"), vector("y")
    run = run_of(planned(cg.sin(x) + y))
    wrong = replace(run, views={**run.views, x: run.views[y]})
    with pytest.raises(PlanError, match="not where its own value is"):
        wrong.check()


def joined():
    x, y = cg.sin(vector("x")), cg.exp(vector("y"))
    return x, y, cg.concat([x, y])


def test_parts_in_their_places_are_accepted():
    x, y, whole = joined()
    run = run_of(planned(whole))
    at = run.views[whole].at.offset
    assert (run.views[x].at.offset, run.views[y].at.offset) == (at, at + 4 * N)


@pytest.mark.parametrize("shape", [(3, 4), (1, 3, 4), (1, 1, 5)])
def test_a_concat_of_parts_in_their_places_copies_nothing(shape):
    axis = sum(n == 1 for n in shape)
    whole = cg.concat([cg.sin(cg.Var(shape)), cg.exp(cg.Var(shape))], axis)
    views = run_of(planned(whole)).views
    assert work_of(whole).placed(views[whole], tuple(views[x] for x in whole.operands)) == []


def test_a_part_in_another_ones_place_is_refused():
    x, y, whole = joined()
    run = run_of(planned(whole))
    at = run.views[whole].at.offset
    refused(run.moved(x, at + 4 * N).moved(y, at), "while it reads it")
    refused(run.moved(x, at + 4 * N), "reads <sin")
    refused(run.moved(x, at + 4), "reads <sin|while it reads it")


def test_a_part_made_in_place_is_there_after_the_concat():
    x, y, whole = joined()
    late = cg.cos(x)
    run = run_of(planned(whole, late))
    run.check()
    refused(run.moved(late, run.views[x].at.offset), "the caller reads <concat")


def test_overwriting_a_part_spoils_the_whole():
    x, _, whole = joined()
    later = cg.tanh(x) + cg.sum(whole)
    run = run_of(planned(later))
    by_name = {n.op.name: n for n in run.steps}
    run = replace(run, steps=tuple(by_name[name] for name in ("sin", "exp", "concat", "tanh", "sum", "add")))
    refused(run.moved(by_name["tanh"], run.views[x].at.offset), "reads <concat")


def with_workspace(is_view=False):
    """A convolution with its workspace, and another user of its operand, which may be a view."""
    x = cg.reshape(cg.exp(cg.Var((12, 256))), (4, 3, 16, 16)) if is_view else cg.exp(cg.Var((4, 3, 16, 16)))
    y = cg.conv2d(x, cg.Var((8, 3, 3, 3)), pad=1)
    run = run_of(planned(x + 1.0, y))
    assert y in run.workspaces
    return x, y, run


@pytest.mark.parametrize("is_view", [False, True])
def test_a_workspace_lies_apart_from_operands_results_and_all_that_is_read_later(is_view):
    x, y, run = with_workspace(is_view)
    assert any(n is x for n in run.steps) != is_view
    other = next(n for n in run.steps if n.op.name == "add")
    refused(run.with_workspace(y, run.views[x].at.offset), "the workspace of <conv2d.*share bytes")
    refused(run.with_workspace(y, run.views[y].at.offset), "the workspace of <conv2d.*share bytes")
    last = replace(run, steps=(*(n for n in run.steps if n is not y), y))
    apart = last.moved(other, last.nbytes + 64)
    apart.check()
    refused(apart.with_workspace(y, apart.views[other].at.offset), "a workspace has written there")


def test_a_missing_workspace_is_refused():
    _, _, run = with_workspace()
    with pytest.raises(PlanError, match="has no workspace"):
        replace(run, workspaces={}).check()


def test_everything_lies_inside_the_arena():
    run = run_of(planned(cg.sin(vector())))
    with pytest.raises(PlanError, match="leave the arena of 255 bytes"):
        replace(run, nbytes=255).check()
    with pytest.raises(PlanError, match="leave the arena"):
        run.moved(run.steps[0], -64).check()


def test_operands_run_before_their_users():
    run = run_of(planned(cg.sum(cg.sin(vector()))))
    refused(replace(run, steps=run.steps[::-1]), "has not been computed")


def test_a_value_without_a_step_is_refused():
    run = run_of(planned(cg.sum(cg.sin(vector()))))
    with pytest.raises(PlanError, match="no step writes it"):
        replace(run, steps=run.steps[1:]).check()


def test_bytes_of_a_value_that_is_always_there_are_nobody_elses():
    a = cg.sin(vector("a"))
    b = cg.sum(cg.exp(vector("b")))
    compiled = planned(a * b)
    run = run_of(compiled)
    exp = next(n for n in run.steps if n.op.name == "exp")
    order = (*(n for n in run.steps if n is not a and n.op.name != "multiply"), a, run.steps[-1])
    run = replace(run.moved(a, run.views[exp].at.offset), steps=order)
    run.check()
    with pytest.raises(PlanError, match="should be its own at every step"):
        check_replay(run.steps, run.views, run.works, run.workspaces, run.nbytes, run.kept, always=(a,))


@pytest.mark.parametrize("view", [lambda a: cg.reshape(a, (1, *a.shape)), lambda a: a[1:], lambda a: cg.flip(a, 0)])
def test_a_view_that_is_always_there_owns_the_bytes_of_the_whole(view):
    a = cg.sin(vector("a"))
    part = view(a)
    total = cg.sum(cg.exp(vector("b"))) + cg.sum(cg.cos(part))
    run = run_of(planned(total))
    exp = next(n for n in run.steps if n.op.name == "exp")
    order = (exp, *(n for n in run.steps if n is not exp))
    run = replace(run.moved(a, run.views[exp].at.offset), steps=order)
    with pytest.raises(PlanError, match="should be its own at every step"):
        check_replay(run.steps, run.views, run.works, run.workspaces, run.nbytes, run.kept, always=(part,))


def test_several_results_lie_in_one_step_each_in_its_place():
    values, places = cg.top_k(cg.exp(vector()), 5)
    run = run_of(planned(values, places))
    run.check()
    assert is_sound(run)
    both = values.operands[0]
    wrong = {**run.views, both: tuple(view.moved(4) for view in run.views[both])}
    with pytest.raises(PlanError, match="is not where it lies in"):
        replace(run, views=wrong).check()


@pytest.mark.parametrize("shape", [(8, 8), (2, 3, 4, 4), (5, 1, 2, 6)])
def test_a_step_computes_into_the_arena_in_c_order(shape):
    y = cg.exp(cg.Var(shape))
    run = run_of(planned(y))
    elsewhere = run.views[y.operands[0]]
    with pytest.raises(PlanError, match="is computed, but not into the arena"):
        replace(run, views={**run.views, y: elsewhere}).check()
    view = run.views[y]
    turned = View(view.at, view.shape, view.strides[::-1], view.dtype)
    with pytest.raises(PlanError, match="is computed, but neither in C order nor row by row"):
        replace(run, views={**run.views, y: turned}).check()


def test_a_replay_of_a_long_chain_is_accepted():
    x = vector()
    for _ in range(2000):
        x = cg.sin(x)
    run = run_of(planned(x))
    run.check()
    assert len(run.steps) == 2000 and run.nbytes == np.dtype("float32").itemsize * N


def test_vars_that_steps_write_into_have_bytes_one_behind_the_other():
    x, v, w = vector("x"), vector("v"), cg.Var((3,), name="w")
    run = run_of(planned(cg.cumsum(x, 0), updates={w: w + 1, v: v * 2}))
    written = [run.views[node].at.base for node in run.steps if node.op.writes]
    assert set(written) == {v, w}
    places = places_of_vars(run.steps, run.views, 1000)
    assert list(places.items()) == [(written[0], 1000), (written[1], 1000 + written[0].nbytes)]
    assert places_of_vars((*run.steps, *run.steps), run.views, 1000) == places, "each Var once"


@pytest.mark.parametrize("which", [0, 1])
def test_a_var_is_read_before_a_step_writes_into_it(which):
    v, w = vector("v"), vector("w")
    run = run_of(planned(cg.cumsum(v, 0), cg.cumprod(w, 0), updates={v: v * 2, w: w + 1}))
    run.check()
    (write,) = (x for x in run.steps if x.op.writes and run.views[x].at.base is (v, w)[which])
    early = replace(run, steps=(write, *(x for x in run.steps if x is not write)))
    with pytest.raises(PlanError, match=f"reads <.*, but {re.escape(repr(write))} has written there"):
        early.check()


def test_a_workspace_ends_with_the_arena_at_the_latest():
    _, y, run = with_workspace()
    room = run.nbytes - needs(run, y)
    for beyond in (4, run.nbytes):
        with pytest.raises(PlanError, match=f"which leave the arena of {run.nbytes} bytes"):
            replace(run, workspaces={y: room + beyond}).check()
    larger = run.with_workspace(y, run.nbytes)
    larger.check()
    with pytest.raises(PlanError, match=f"which leave the arena of {larger.nbytes - 1} bytes"):
        replace(larger, nbytes=larger.nbytes - 1).check()


def test_a_workspace_takes_no_bytes_of_a_value_that_is_always_there():
    _, y, run = with_workspace()
    other = next(n for n in run.steps if n.op.name == "add")
    run = replace(run, steps=(*(n for n in run.steps if n is not other), other)).with_workspace(y, run.nbytes)
    run = run.moved(other, run.workspaces[y])
    run.check()
    with pytest.raises(PlanError, match="should be its own at every step"):
        check_replay(run.steps, run.views, run.works, run.workspaces, run.nbytes, run.kept, always=(other,))


@pytest.mark.parametrize("apart", [0, 60, 64, 100])
@pytest.mark.parametrize("in_c_order", [None, "result", "operand"])
def test_a_result_may_overlap_an_operand_that_begins_far_enough_behind_it_if_both_lie_row_by_row(apart, in_c_order):
    shape = (2, 3, 4, 5)
    nodes = {"result": cg.Var(shape, name="result"), "operand": cg.Var(shape, name="operand")}
    replay = object.__new__(_PlanReplay)
    replay.views, replay.bytes_of = {}, dict.fromkeys(nodes.values(), (0, 480))
    for (name, node), at in zip(nodes.items(), (0, apart)):
        replay.views[node] = (contiguous if name == in_c_order else by_rows)(Pointer(ARENA, at), shape, "f4")
    if in_c_order is None and apart >= 64:
        replay.check_over(*nodes.values(), 64)
        return
    text = "does not lie row by row" if in_c_order else f"begins {apart} bytes before .*, 64 are needed"
    with pytest.raises(PlanError, match=text):
        replay.check_over(*nodes.values(), 64)


def test_a_workspace_has_as_many_bytes_as_these_views_need():
    _, y, run = with_workspace()
    works = {**run.works, y: changed(run.works[y], exact=lambda *views: 64)}
    run = replace(run, works=works, workspaces={y: run.nbytes}, nbytes=run.nbytes + 64)
    run.check()
    with pytest.raises(PlanError, match="leave the arena"):
        replace(run, nbytes=run.nbytes - 1).check()
