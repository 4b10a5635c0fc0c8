"""Sub-graphs as functions of Vars: the values that they read from outside become Vars as well."""

from collections.abc import Collection, Sequence

from cgraph.ir.graph import Node, apply
from cgraph.ir.traverse import descendants, post_order
from cgraph.ops.leaf import ConstOp, Var, VarOp
from cgraph.ops.shape import Item, ViewOp
from cgraph.record import Record


class Closed(Record, eq=False):
    """Results that read only Vars.

    Fields
        shared: the values that they read from outside
        names: a Var for each of these
        results: the results, computed from the inputs and `names`
    """

    shared: tuple[Node, ...]
    names: tuple[Var, ...]
    results: tuple[Node, ...]


def close(inputs: Sequence[Var], results: Sequence[Node], since: int | None = None) -> Closed:
    """Return results with a Var in place of each value that they read from outside.

    A node is inside if it depends on `inputs`, or if its serial is at least `since`. Constants and views of them are
    everywhere.
    """
    order, own = post_order(results), set(inputs)
    inner = (descendants(order, inputs) - own) | created(order, since)
    free: set[Node] = set()
    for node in order:
        if isinstance(node.op, ConstOp) or (isinstance(node.op, ViewOp) and all(x in free for x in node.operands)):
            free.add(node)
    read = dict.fromkeys(x for node in order if node in inner for x in node.operands) | dict.fromkeys(results)
    shared = [x for x in read if x not in inner and x not in free and x not in own]
    new: dict[Node, Node] = {x: Var(x.shape, x.dtype, f"shared{i}") for i, x in enumerate(shared)}
    names = tuple(new[x] for x in shared)
    for node in order:
        if node not in new and (node in free or not node.operands):
            new[node] = node
        elif node not in new and node in inner:
            new[node] = apply(node.op, *(new[x] for x in node.operands))
    return Closed(tuple(shared), names, tuple(new[x] for x in results))  # type: ignore[arg-type]


def created(order: Collection[Node], since: int | None) -> set[Node]:
    """Return the nodes of at least this serial, but no leaves, and no items of older nodes."""
    if since is None:
        return set()
    young = (x for x in order if x.serial >= since and not isinstance(x.op, ConstOp | VarOp))
    return {x for x in young if not isinstance(x.op, Item) or x.operands[0].serial >= since}


def inline(inputs: Sequence[Node], results: Sequence[Node], operands: Sequence[Node]) -> list[Node]:
    """Return results with operands in place of inputs."""
    new: dict[Node, Node] = dict(zip(inputs, operands))
    for node in post_order(results):
        if node not in new:
            new[node] = apply(node.op, *(new[x] for x in node.operands)) if node.operands else node
    return [new[x] for x in results]
