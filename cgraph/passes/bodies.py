"""Passes for the bodies of loops, and their plans."""

from collections.abc import Callable

from cgraph.ir.graph import Node, Op, apply
from cgraph.ir.traverse import post_order, rebuild
from cgraph.ops.loop import Body, Loop
from cgraph.ops.physical.rounds import Round, Rounds
from cgraph.passes.rewrite import remade
from cgraph.record import replace

Rewrite = Callable[[tuple[Node, ...]], tuple[Node, ...]]


def in_bodies(outputs: tuple[Node, ...], order: list[Node], rewrite: Rewrite) -> tuple[tuple[Node, ...], list[Node]]:
    """`rewrite` what one round of each loop computes; loops that share a body still share one.

    `order` has all nodes, operands before users; what comes back are the outputs and such an order of the new graph.
    """
    bodies: dict[Body, Body] = {}

    def changed(loop: Loop) -> Loop:
        body = loop.body
        if body not in bodies:
            bodies[body] = body_of(body, rewrite(body.results))
        return loop if bodies[body] is body else replace(loop, body=bodies[body])

    return each_loop(outputs, order, changed)


def plan_bodies(
    outputs: tuple[Node, ...], order: list[Node], plan: Callable[[Body], Round]
) -> tuple[tuple[Node, ...], list[Node]]:
    """Every loop becomes a step with planned steps inside: same values. `plan` is asked once per body."""
    rounds: dict[Body, Round] = {}

    def planned(loop: Loop) -> Rounds:
        if loop.body not in rounds:
            rounds[loop.body] = plan(loop.body)
        return Rounds(loop, rounds[loop.body])

    return each_loop(outputs, order, planned)


def each_loop(
    outputs: tuple[Node, ...], order: list[Node], change: Callable[[Loop], Op]
) -> tuple[tuple[Node, ...], list[Node]]:
    """The graph with another op in the place of each loop, and its order."""
    if not any(isinstance(node.op, Loop) for node in order):
        return outputs, order

    def made(node: Node, operands: tuple[Node, ...]) -> Node:
        return apply(change(node.op), *operands) if isinstance(node.op, Loop) else remade(node, operands)

    found = rebuild(outputs, made, order)
    return found, post_order(found)


def body_of(body: Body, results: tuple[Node, ...]) -> Body:
    """The body with other results; itself where they are the same nodes."""
    if all(a is b for a, b in zip(results, body.results)):
        return body
    return replace(body, next=results[: len(body.next)], ys=results[len(body.next) :])
