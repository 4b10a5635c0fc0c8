"""Join a reduction with the pointwise op that feeds it."""

from cgraph.ir.graph import Node, apply, keeps_place
from cgraph.ir.traverse import located, post_order, users_of
from cgraph.ops.family import Pointwise
from cgraph.ops.fused import FusedReduction
from cgraph.ops.reduce import Reduction
from cgraph.passes.rewrite import remade


@keeps_place
def fuse_reductions(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """A pointwise op that only a reduction reads becomes part of it: no bytes for what lies between.

    Values change in the last places, since the order of a sum follows the layout of what is read. May worsen: one more
    kernel to compile, once. Not joined: a result that somebody else wants too, which would be computed twice.
    """
    order = post_order(outputs)
    reductions = [n for n in order if isinstance(n.op, Reduction)]
    if not reductions:
        return outputs
    users, ends = users_of(order), set(outputs)
    joined = {n for n in reductions if is_joined(n.operands[0], users, ends)}
    if not joined:
        return outputs
    new: dict[Node, Node] = {}
    for node in located(order):
        operands = tuple([new[x] for x in node.operands])
        if node in joined:
            inner = operands[0]
            new[node] = apply(FusedReduction(node.op, inner.op), *inner.operands)  # type: ignore[arg-type]
        else:
            new[node] = remade(node, operands)
    return tuple(new[x] for x in outputs)


def is_joined(x: Node, users: dict[Node, list[Node]], ends: set[Node]) -> bool:
    """The operand of a reduction is computed inside it."""
    return isinstance(x.op, Pointwise) and len(users[x]) == 1 and x not in ends
