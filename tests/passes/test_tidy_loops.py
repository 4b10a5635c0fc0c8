"""Loops simplified: unread states, rows and sequences go, loops that differ in their states merge, values stay."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.ops.loop import Body, Loop
from cgraph.ops.shape import items
from cgraph.passes.tidy_loops import key_of, tidy, tidy_loops
from tests.support.rewrites import assert_left, assert_same_values

A, B, C = (cg.Var((), "float64", name) for name in "abc")
X, Y, W, V = (cg.Var((), "float64", name) for name in "xywv")
# a needs x and w; b needs a and y; c needs v only
BODY = Body((A, B, C), (X, Y), (W, V), (A * W + X, B + A * Y, C * V), (A - X, cg.exp(B), C + 1))
LOOP = Loop(BODY, 4)
OPERANDS = [cg.Var(np.array(v)) for v in (1.0, 2.0, 3.0, np.arange(4.0), np.arange(4.0) / 7, 0.5, 1.25)]
RESULTS = items(apply(LOOP, *OPERANDS))
LAST_A, LAST_B, LAST_C, ROWS_A, ROWS_B, ROWS_C = RESULTS


def loops(roots):
    return [n for n in post_order(roots) if isinstance(n.op, Loop)]


def sizes(op):
    body = op.body
    return [len(part) for part in (body.carry, body.xs, body.shared, body.next, body.ys)]


def test_a_state_needs_the_states_that_it_is_computed_from():
    for read, want, reads in (
        ((LAST_A,), [1, 1, 1, 1, 0], {0, 3, 5}),
        ((LAST_B,), [2, 2, 1, 2, 0], {0, 1, 3, 4, 5}),
        ((LAST_C,), [1, 0, 1, 1, 0], {2, 6}),
        ((ROWS_C, LAST_A), [2, 1, 2, 2, 1], {0, 2, 3, 5, 6}),
        ((ROWS_B,), [2, 2, 1, 2, 1], {0, 1, 3, 4, 5}),
    ):
        got = tidy_loops(read)
        (node,) = loops(got)
        assert sizes(node.op) == want
        assert set(node.operands) == {OPERANDS[i] for i in reads}
        assert_same_values(tidy_loops, *read)
        assert all(a is b for a, b in zip(tidy_loops(got), got))


def test_a_loop_whose_results_are_all_read_is_left():
    plain = Body((A,), (X,), (W,), (A * W + X,), (A - X,))
    results = items(apply(Loop(plain, 4), OPERANDS[0], OPERANDS[3], OPERANDS[5]))
    before = loops(results)[0]
    (after,) = loops(tidy_loops(results))
    assert sizes(after.op) == sizes(before.op)
    assert_left(tidy_loops, *tidy_loops(results))


def test_loops_that_differ_in_returning_their_states_are_one():
    with_states = items(apply(Loop(BODY, 4, states=True), *OPERANDS))
    outputs = (LAST_A, ROWS_B, with_states[6], with_states[0])
    got = tidy_loops(outputs)
    (node,) = loops(got)
    assert node.op.states and got[0] is got[3]
    assert_same_values(tidy_loops, *outputs)
    states = evaluate([got[2]])[0]
    assert states[0] == 1 and len(states) == 4


def test_states_that_nobody_reads_are_not_returned():
    with_states = items(apply(Loop(BODY, 4, states=True), *OPERANDS))
    (node,) = loops(tidy_loops((with_states[0],)))
    assert not node.op.states
    plain = Body((A,), (), (), (A * A,), (A + 1,))
    results = items(apply(Loop(plain, 4, states=True), OPERANDS[0]))
    got = tidy_loops(results[:2])
    assert not loops(got)[0].op.states and loops(tidy_loops(results))[0].op.states
    assert_same_values(tidy_loops, *results)


def test_a_loop_that_is_an_output_itself_is_left():
    assert_left(tidy_loops, apply(LOOP, *OPERANDS))


def test_loops_over_other_values_or_directions_stay_apart():
    base = apply(LOOP, *OPERANDS)
    assert key_of(base) == key_of(apply(Loop(BODY, 4, states=True), *OPERANDS))
    others = [apply(Loop(BODY, 4, backward=True), *OPERANDS), apply(LOOP, OPERANDS[1], *OPERANDS[1:])]
    assert len({key_of(n) for n in (base, *others)}) == 3


def test_places_number_results_as_if_states_were_returned():
    tidied = tidy(LOOP, {1, 4})
    assert tidied.places == {0: 0, 1: 1, 4: 2, 6: 3, 7: 4}
    assert tidied.operands == (0, 1, 3, 4, 5)
    assert tidy(Loop(BODY, 4, states=True), {7}).op.states and not tidied.op.states


def test_bodies_are_rewritten_and_loops_inside_them_as_well():
    twice = Body((A,), (), (), ((A + 0) * 1 + (cg.Const(1.0) + cg.Const(2.0)),), ())
    (got,) = loops(tidy_loops(items(apply(Loop(twice, 4), OPERANDS[0]))))
    assert len(post_order(got.op.body.results)) == 3  # a, 3 and their sum
    shared = tuple(cg.Var(x.shape, x.dtype) for x in OPERANDS[3:])
    inner = items(apply(LOOP, A, B, C, *shared))[2]
    outer = Body((A, B, C), (), shared, (A, B, inner), ())
    outputs = items(apply(Loop(outer, 2), *OPERANDS))[2:]
    (got,) = loops(tidy_loops(outputs))
    (inside,) = loops(got.op.body.results)
    assert sizes(inside.op) == sizes(got.op) == [1, 0, 1, 1, 0]  # what the loop inside left out is not carried either
    assert got.operands == (OPERANDS[2], OPERANDS[6])
    assert_same_values(tidy_loops, *outputs)
    assert_left(tidy_loops, *tidy_loops(outputs))


def test_results_of_a_loop_that_is_tidied_twice_keep_their_places():
    shared = tuple(cg.Var(x.shape, x.dtype) for x in OPERANDS[3:])
    inner = items(apply(LOOP, A, B, C, *shared))[2]
    outer = Body((A, B, C), (), shared, (A, B, inner), (C + 1,))
    outputs = items(apply(Loop(outer, 2, states=True), *OPERANDS))
    asked = (outputs[6], outputs[3], outputs[2])
    (got,) = loops(tidy_loops(asked))
    assert sizes(got.op) == [1, 0, 1, 1, 1] and got.op.states
    assert_same_values(tidy_loops, *asked)


COMPANY = {
    "a choice": lambda y: cg.cond(cg.Var((), bool, "p"), lambda a: cg.exp(a + 0), lambda a: a * 1, y),
    "a loop with a condition": lambda y: cg.while_loop(lambda a: cg.sum(a) < 9, lambda a: a * 2 + 0, y),
    "another loop": lambda y: cg.scan(lambda a, x: (a + x, a), y[0], y)[1],
    "ops": cg.exp,
}


@pytest.mark.parametrize("behind", [True, False])
@pytest.mark.parametrize("company", COMPANY)
def test_loops_are_tidied_whatever_else_the_graph_contains(company, behind):
    (alone,) = loops(tidy_loops((LAST_A,)))
    other = COMPANY[company](cg.broadcast_to(LAST_A, (4,)) if behind else OPERANDS[3])
    got = tidy_loops((LAST_A, other))
    assert sizes(got[0].operands[0].op) == sizes(alone.op) == [1, 1, 1, 1, 0]
    assert got[0].operands[0] in loops(got) and got[0].operands[0].operands == alone.operands


def test_choices_are_rewritten_without_any_loop():
    p = cg.Var((), bool)
    y = cg.cond(p, lambda a: cg.exp(a + 0), lambda a: a * 1, OPERANDS[3])
    (got,) = tidy_loops((y,))
    assert got.operands[0].op.other.ys[0] is got.operands[0].op.other.shared[0]
    assert_left(tidy_loops, cg.exp(OPERANDS[3]))


@pytest.mark.parametrize("read", [(0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3, 4), (0, 1, 2, 4, 5), (1, 2, 3)])
def test_rows_that_nobody_reads_go_whatever_is_left_before_them(read):
    """Also the last ones, where all states stay."""
    outputs = tuple(RESULTS[i] for i in read)
    got = tidy_loops(outputs)
    (node,) = loops(got)
    assert sizes(node.op)[-1] == sum(i > 2 for i in read)
    assert_same_values(tidy_loops, *outputs)
