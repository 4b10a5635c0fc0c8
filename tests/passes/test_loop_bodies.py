"""Passes for bodies: each body is rewritten or planned once, kinds are chosen, and what does not change stays."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.ops.conditional import Conditional
from cgraph.ops.loop import Body, Loop
from cgraph.ops.physical.planned_body import PlannedBody
from cgraph.ops.physical.rounds import PlannedConditional, Rounds, WhileRounds
from cgraph.ops.shape import items
from cgraph.ops.while_loop import WhileLoop
from cgraph.passes.loop_bodies import body_of, each_structured, in_bodies, plan_bodies
from cgraph.record import replace

S, W = cg.Var((2,), "float64", "s"), cg.Var((2,), "float64", "w")
ROUND = Body((S,), (), (W,), (S * W,), ())
LOOP = Loop(ROUND, 3)
CHOICE = Conditional(Body((), (), (S, W), (), (S + W,)), Body((), (), (S, W), (), (S - W,)))
UNTIL = WhileLoop(Body((), (), (S, W), (), (cg.sum(S) < 9,)), replace(ROUND, next=(S + W,)), 4)
X, Y, P = cg.Var(np.array([1.0, 2.0])), cg.Var(np.array([3.0, 4.0])), cg.Var(np.array(True))


def graph():
    (a,) = items(apply(LOOP, X, Y))
    (b,) = items(apply(CHOICE, P, a, Y))
    (c,) = items(apply(UNTIL, b, Y))
    return (a, c, cg.exp(X))


def negated(seen):
    def rewrite(roots):
        seen.append(roots)
        return tuple(-x if x.dtype.kind == "f" else x for x in roots)

    return rewrite


def test_every_body_is_rewritten_and_the_rest_of_the_graph_is_not():
    seen = []
    got = in_bodies(graph(), negated(seen))
    assert seen == [LOOP.body.results, CHOICE.first.results, CHOICE.other.results, UNTIL.condition.results,
                    UNTIL.body.results]  # fmt: skip
    a, c, e = evaluate(got)
    assert a.tolist() == [-27, -128] and e.tolist() == np.exp(X.value).tolist()
    b = -(a + Y.value)
    for _ in range(4):
        b = -(b + Y.value) if b.sum() < 9 else b
    np.testing.assert_array_equal(c, b)


@pytest.mark.parametrize("body", range(2))
def test_one_of_several_bodies_may_change(body):
    def rewrite(roots):
        return tuple(-x for x in roots) if roots[0] is CHOICE.bodies[body].results[0] else roots

    for taken in (True, False):
        (b,) = items(apply(CHOICE, cg.Var(np.array(taken)), X, Y))
        (got,) = evaluate(in_bodies((b,), rewrite))
        want = X.value + Y.value if taken else X.value - Y.value
        assert got.tolist() == (-want if taken == (body == 0) else want).tolist()


def test_only_the_kinds_asked_for():
    seen = []
    got = in_bodies(graph(), negated(seen), (Conditional, WhileLoop))
    assert seen == [CHOICE.first.results, CHOICE.other.results, UNTIL.condition.results, UNTIL.body.results]
    assert got[0] is graph()[0] and got[1] is not graph()[1] and got[2] is graph()[2]


def test_a_rewrite_that_changes_nothing_leaves_the_very_nodes():
    assert all(a is b for a, b in zip(in_bodies(graph(), lambda roots: roots), graph()))
    plain = (cg.exp(X),)
    assert in_bodies(plain, negated([]))[0] is plain[0]


def test_a_body_of_two_loops_is_rewritten_once_and_stays_shared():
    seen = []
    one, two = items(apply(LOOP, X, Y))[0], items(apply(Loop(ROUND, 5), Y, X))[0]
    a, b = in_bodies((one, two), negated(seen))
    assert len(seen) == 1 and a.operands[0].op.body is b.operands[0].op.body


def test_results_of_a_body_are_split_into_state_and_rows():
    body = Body((S,), (), (), (S,), (W, S))
    same = body_of(body, (S, W, S))
    changed = body_of(body, (W, S, W))
    assert same is body and (changed.next, changed.ys) == ((W,), (S, W)) and changed.carry == (S,)


def test_each_kind_has_its_step_and_each_body_one_plan():
    planned = []

    def plan(body):
        planned.append(body)
        return PlannedBody((), len(planned), (), (), body)

    outputs = (*graph(), items(apply(Loop(ROUND, 7), Y, X))[0])
    got = plan_bodies(outputs, plan)
    steps = {type(n.op): n.op for n in post_order(got) if hasattr(n.op, "plans")}
    assert set(steps) == {Rounds, PlannedConditional, WhileRounds}
    assert planned.count(ROUND) == 1 and len(planned) == 5
    assert [p.plan for p in steps[WhileRounds].plans] == [UNTIL.condition, UNTIL.body]
    assert [p.plan for p in steps[PlannedConditional].plans] == [CHOICE.first, CHOICE.other]
    for a, b in zip(evaluate(got), evaluate(outputs), strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_op_may_be_replaced_by_any_other():
    got = each_structured(graph()[:1], lambda op: Loop(op.body, 1) if isinstance(op, Loop) else op)
    assert evaluate(got)[0].tolist() == [3, 8]
    with pytest.raises(ZeroDivisionError):
        each_structured(graph(), lambda op: 1 // 0)
