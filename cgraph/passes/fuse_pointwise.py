"""Join pointwise ops into one where nobody else wants what lies between."""

from cgraph.ir.graph import Node, apply, keeps_place
from cgraph.ir.traverse import located, post_order, users_of
from cgraph.ops.family import Pointwise
from cgraph.ops.fused import FusedPointwise
from cgraph.passes.rewrite import remade

MOST_OPS = 64  # one kernel's code stays small, and long chains become equal pieces that share one kernel
MOST_OPERANDS = 12


def fuse_pointwise(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """A pointwise node joins the group of its users when they are one group: same values, fewer nodes and bytes.

    May worsen: nothing that is read twice is computed twice, since a node with users in two groups stays alone. Not
    joined: across a reshape or a broadcast, and beyond `MOST_OPS` ops or `MOST_OPERANDS` operands.
    """
    order = post_order(outputs)
    if not any(isinstance(node.op, Pointwise) for node in order):
        return outputs
    users = users_of(order)
    ends = set(outputs)
    group: dict[Node, Node] = {}
    members: dict[Node, list[Node]] = {}
    operands: dict[Node, set[Node]] = {}
    for node in reversed(order):
        if not isinstance(node.op, Pointwise):
            continue
        heads = {group.get(u) for u in users[node]}
        head = next(iter(heads)) if len(heads) == 1 and node not in ends else None
        if head is not None and _fits(node, head, members[head], operands[head]):
            operands[head] = (operands[head] - {node}) | set(node.operands)
        else:
            head = node
            members[head], operands[head] = [], set(node.operands)
        group[node] = head
        members[head].append(node)
    return _build(outputs, order, members) if any(len(inside) > 1 for inside in members.values()) else outputs


def _fits(node: Node, head: Node, inside: list[Node], reads: set[Node]) -> bool:
    if node.shape != head.shape or _count(inside) + _weight(node) > MOST_OPS:
        return False
    return len((reads - {node}) | set(node.operands)) <= MOST_OPERANDS


def _weight(node: Node) -> int:
    return len(node.op.body) if isinstance(node.op, FusedPointwise) else 1


def _count(nodes: list[Node]) -> int:
    return sum(map(_weight, nodes))


@keeps_place
def _build(outputs: tuple[Node, ...], order: list[Node], members: dict[Node, list[Node]]) -> tuple[Node, ...]:
    new: dict[Node, Node] = {}
    for node in located(order):
        inside = members.get(node)
        if inside is not None and len(inside) > 1:
            new[node] = _fused(inside[::-1], new)
        elif inside is not None or not isinstance(node.op, Pointwise):
            new[node] = remade(node, tuple([new[x] for x in node.operands]))
    return tuple(new[x] for x in outputs)


def _fused(inside: list[Node], new: dict[Node, Node]) -> Node:
    """One node for these, which come operands first."""
    own = set(inside)
    reads = list(dict.fromkeys(x for n in inside for x in n.operands if x not in own))
    place = {x: i for i, x in enumerate(reads)}
    body: list = []
    for n in inside:
        body += _body_of(n, place, len(reads) + len(body))
        place[n] = len(reads) + len(body) - 1
    return apply(FusedPointwise(len(reads), tuple(body)), *(new[x] for x in reads))


def _body_of(node: Node, place: dict[Node, int], start: int) -> list:
    """The node's op, or its ops when it is a fused one already, with positions in the new list."""
    places = [place[x] for x in node.operands]
    if not isinstance(node.op, FusedPointwise):
        return [(node.op, tuple(places))]
    count = node.op.count

    def moved(i: int) -> int:
        return places[i] if i < count else start + i - count

    return [(op, tuple(map(moved, at))) for op, at in node.op.body]
