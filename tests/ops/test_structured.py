"""Planned loops and branches: the facets of the op they run, and a workspace as large as the largest body needs."""

from functools import partial

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.kernels.target import host_target
from cgraph.memory.auto import auto
from cgraph.ops.conditional import Conditional
from cgraph.ops.leaf import Var
from cgraph.ops.loop import Body
from cgraph.ops.physical.planned_body import PlannedBody
from cgraph.ops.physical.structured import PlannedOp
from cgraph.passes.loop_bodies import plan_bodies
from cgraph.planning.options import PlanSettings
from cgraph.planning.plan import round_of
from cgraph.system.alignment import ALIGNMENT


def body(x, y):
    return Body((), (), (x,), (), (y,))


X = Var((2,), "float32", "x")
CHOICE = Conditional(body(X, X * 2), body(X, X - 1))


def planned(*nbytes):
    return PlannedOp(CHOICE, tuple(PlannedBody((), n, (), (), f"plan {n}") for n in nbytes))


def test_facets_are_those_of_the_op():
    op, p = planned(8, 8), Var((), bool)
    assert op.name == "cond" and op.pure and not op.can_fail and op.takes_complex
    assert op.infer(p.spec, X.spec) == CHOICE.infer(p.spec, X.spec)
    assert op.meaning(np.array(False), np.ones(2, "f4"))[0].tolist() == [0, 0]
    failing = Conditional(body(X, cg.take(X, cg.Const([0, 1]))), body(X, X))
    assert PlannedOp(failing, ()).can_fail
    impure = Conditional(body(X, cg.delay(lambda a: a, X)), body(X, X))
    assert not PlannedOp(impure, ()).pure


@pytest.mark.parametrize("nbytes", [(64, 4096), (4096, 64), (0, 0)])
def test_bodies_share_a_workspace_as_large_as_the_largest_needs(nbytes):
    assert planned(*nbytes).work(host_target(), Var((), bool).spec, X.spec).nbytes == max(nbytes)


def test_an_op_without_parts_says_so():
    with pytest.raises(NotImplementedError, match="cond does not define parts"):
        planned(8, 8).parts(host_target(), (), (), None)


def test_plans_of_bodies_are_shown_by_name():
    loop, _ = cg.scan(lambda s, row: (s + row * 2, None), np.zeros(3), cg.Var((9, 3), "float64"))
    chosen = cg.cond(cg.Var((), bool), cg.exp, cg.log, cg.Var((2,)))
    target = host_target()
    settings = PlanSettings(target, ALIGNMENT, auto)
    for node, names in ((loop, ["a round"]), (chosen, None)):
        (root,) = plan_bodies((node,), partial(round_of, settings))
        step = root.operands[0]
        assert isinstance(step.op, PlannedOp)
        inner = step.op.work(target, *(x.spec for x in step.operands)).inner
        assert list(inner) == (names or list(type(step.op).inner_names))
        assert list(inner.values()) == [plan.plan for plan in step.op.plans]
    assert apply(CHOICE, Var((), bool), X).op is CHOICE
