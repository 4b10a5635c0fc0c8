"""Passes for the bodies of loops and branches, and their plans."""

from collections.abc import Callable

from cgraph.ir.graph import Node, Op, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.conditional import Conditional
from cgraph.ops.loop import Body, Loop, Structured
from cgraph.ops.physical.planned_body import PlannedBody
from cgraph.ops.physical.rounds import PlannedConditional, Rounds, WhileRounds
from cgraph.ops.physical.structured import PlannedOp
from cgraph.ops.while_loop import WhileLoop
from cgraph.record import replace

Rewrite = Callable[[tuple[Node, ...]], tuple[Node, ...]]
PLANNED: dict[type[Structured], type[PlannedOp]] = {
    Loop: Rounds,
    WhileLoop: WhileRounds,
    Conditional: PlannedConditional,
}


def in_bodies(
    outputs: tuple[Node, ...], rewrite: Rewrite, kinds: tuple[type[Structured], ...] = (Structured,)
) -> Roots:
    """Rewrite the bodies of loops and branches of these kinds; those that share a body still share one."""
    bodies: dict[Body, Body] = {}

    def changed(op: Structured) -> Structured:
        if not isinstance(op, kinds):
            return op
        for body in op.bodies:
            if body not in bodies:
                bodies[body] = body_of(body, rewrite(body.results))
        new = [bodies[body] for body in op.bodies]
        return op if all(a is b for a, b in zip(new, op.bodies)) else op.with_bodies(new)

    return each_structured(outputs, changed)


def plan_bodies(outputs: tuple[Node, ...], plan: Callable[[Body], PlannedBody]) -> Roots:
    """Replace every loop and choice by a step with planned steps inside: same values. Each body is planned once."""
    plans: dict[Body, PlannedBody] = {}

    def planned(op: Structured) -> PlannedOp:
        for body in op.bodies:
            if body not in plans:
                plans[body] = plan(body)
        return PLANNED[type(op)](op, tuple(plans[body] for body in op.bodies))

    return each_structured(outputs, planned)


def each_structured(outputs: tuple[Node, ...], change: Callable[[Structured], Op]) -> Roots:
    """Return the graph with another op in the place of each loop and choice."""
    graph = Roots.of(outputs)

    def replace_op(node: Node, new: New) -> Node | None:
        if not isinstance(node.op, Structured):
            return None
        op = change(node.op)
        return None if op is node.op else apply(op, *[new[x] for x in node.operands])

    return rebuild(graph, replace_op) if graph.has(Structured) else graph


def body_of(body: Body, results: tuple[Node, ...]) -> Body:
    """Return the body with other results; the same body where they are the same nodes."""
    if all(a is b for a, b in zip(results, body.results)):
        return body
    return replace(body, next=results[: len(body.next)], ys=results[len(body.next) :])
