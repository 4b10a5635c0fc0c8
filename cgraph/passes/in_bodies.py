"""A pass for the bodies of loops."""

from collections.abc import Callable

from cgraph.ir.graph import Node, apply
from cgraph.ir.traverse import rebuild
from cgraph.ops.loop import Body, Loop
from cgraph.passes.rewrite import remade
from cgraph.record import replace

Rewrite = Callable[[tuple[Node, ...]], tuple[Node, ...]]


def in_bodies(outputs: tuple[Node, ...], rewrite: Rewrite) -> tuple[Node, ...]:
    """`rewrite` what one round of each loop computes; loops that share a body still share one."""
    bodies: dict[Body, Body] = {}

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if not isinstance(node.op, Loop):
            return remade(node, operands)
        body = node.op.body
        if body not in bodies:
            bodies[body] = body_of(body, rewrite(body.results))
        return remade(node, operands) if bodies[body] is body else apply(replace(node.op, body=bodies[body]), *operands)

    return rebuild(outputs, change)


def body_of(body: Body, results: tuple[Node, ...]) -> Body:
    """The body with other results; itself where they are the same nodes."""
    if all(a is b for a, b in zip(results, body.results)):
        return body
    return replace(body, next=results[: len(body.next)], ys=results[len(body.next) :])
