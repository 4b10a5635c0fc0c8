"""Passes for the bodies of loops, and their plans."""

from collections.abc import Callable

from cgraph.ir.graph import Node, Op, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.loop import Body, Loop
from cgraph.ops.physical.planned_body import PlannedBody
from cgraph.ops.physical.rounds import Rounds
from cgraph.record import replace

Rewrite = Callable[[tuple[Node, ...]], tuple[Node, ...]]


def in_bodies(outputs: tuple[Node, ...], rewrite: Rewrite) -> Roots:
    """Rewrite the body of each loop; loops that share a body still share one."""
    bodies: dict[Body, Body] = {}

    def changed(loop: Loop) -> Loop:
        body = loop.body
        if body not in bodies:
            bodies[body] = body_of(body, rewrite(body.results))
        return loop if bodies[body] is body else replace(loop, body=bodies[body])

    return each_loop(outputs, changed)


def plan_bodies(outputs: tuple[Node, ...], plan: Callable[[Body], PlannedBody]) -> Roots:
    """Replace every loop by a step with planned steps inside: same values. `plan` is called once per body."""
    rounds: dict[Body, PlannedBody] = {}

    def planned(loop: Loop) -> Rounds:
        if loop.body not in rounds:
            rounds[loop.body] = plan(loop.body)
        return Rounds(loop, rounds[loop.body])

    return each_loop(outputs, planned)


def each_loop(outputs: tuple[Node, ...], change: Callable[[Loop], Op]) -> Roots:
    """Return the graph with another op in the place of each loop."""
    graph = Roots.of(outputs)

    def replace_loop(node: Node, new: New) -> Node | None:
        return apply(change(node.op), *[new[x] for x in node.operands]) if isinstance(node.op, Loop) else None

    return rebuild(graph, replace_loop) if graph.has(Loop) else graph


def body_of(body: Body, results: tuple[Node, ...]) -> Body:
    """Return the body with other results; the same body where they are the same nodes."""
    if all(a is b for a, b in zip(results, body.results)):
        return body
    return replace(body, next=results[: len(body.next)], ys=results[len(body.next) :])
