"""Give the bodies of loops their plans."""

from collections.abc import Callable

from cgraph.ir.graph import Node, apply
from cgraph.ir.traverse import post_order, rebuild
from cgraph.ops.loop import Body, Loop
from cgraph.ops.physical.rounds import Round, Rounds
from cgraph.passes.rewrite import remade


def plan_bodies(
    outputs: tuple[Node, ...], order: list[Node], plan: Callable[[Body], Round]
) -> tuple[tuple[Node, ...], list[Node]]:
    """Every loop becomes a step with planned steps inside: same values. `plan` is asked once per body.

    `order` has all nodes, operands before users; what comes back are the outputs and such an order of the new graph.
    """
    if not any(isinstance(node.op, Loop) for node in order):
        return outputs, order
    rounds: dict[Body, Round] = {}

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if not isinstance(node.op, Loop):
            return remade(node, operands)
        body = node.op.body
        if body not in rounds:
            rounds[body] = plan(body)
        return apply(Rounds(node.op, rounds[body]), *operands)

    found = rebuild(outputs, change, order)
    return found, post_order(found)
