"""Fusion of pointwise ops whose intermediate values have no other reader."""

from collections.abc import Iterable

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.family import Pointwise
from cgraph.ops.fused import FusedPointwise

MOST_OPS = 64  # limits the code of one kernel; long chains become equal pieces that share one kernel
MOST_OPERANDS = 12


def fuse_pointwise(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Add a pointwise node to the group of its users if all belong to one group: same values, fewer nodes and bytes.

    No node is computed twice, since a node with users in two groups stays alone. Not joined: across a reshape or a
    broadcast, and beyond `MOST_OPS` ops or `MOST_OPERANDS` operands.
    """
    graph = Roots.of(outputs)
    if not graph.has(Pointwise):
        return outputs
    groups = _groups(graph)
    inside = {node for group in groups.values() for node in group[1:]}

    def change(node: Node, new: New) -> Node | None:
        if node in groups:
            return _fuse(groups[node][::-1], new)
        return node if node in inside else None

    return rebuild(graph, change) if groups else outputs


def _groups(graph: Roots) -> dict[Node, list[Node]]:
    """Return the groups of several nodes, each from its last node, which is its key, to its first."""
    groups: dict[Node, list[Node]] = {}
    reads: dict[Node, set[Node]] = {}
    group_of_users: dict[Node, Node | None] = {}  # None if they are in no group, or in several
    for node in reversed(graph.order):
        head = None
        if isinstance(node.op, Pointwise):
            head = None if node in graph.ends else group_of_users.get(node)
            if head is None or not _fits(node, head, groups.get(head) or [head], reads.get(head) or head.operands):
                head = node
            else:
                groups.setdefault(head, [head]).append(node)
                reads[head] = {*reads.get(head, head.operands), *node.operands} - {node}
        for x in node.operands:
            if group_of_users.setdefault(x, head) is not head:
                group_of_users[x] = None
    return groups


def _fits(node: Node, head: Node, inside: list[Node], reads: Iterable[Node]) -> bool:
    if node.shape != head.shape or _count(inside) + count_of(node) > MOST_OPS:
        return False
    return len({*reads, *node.operands} - {node}) <= MOST_OPERANDS


def count_of(node: Node) -> int:
    """Return the number of pointwise ops that a node stands for."""
    return len(node.op.body) if isinstance(node.op, FusedPointwise) else 1


def _count(nodes: list[Node]) -> int:
    return sum(map(count_of, nodes))


def _fuse(inside: list[Node], new: New) -> Node:
    """Return one node for these, which come operands first."""
    own = set(inside)
    reads = list(dict.fromkeys(x for n in inside for x in n.operands if x not in own))
    place = {x: i for i, x in enumerate(reads)}
    body: list = []
    for n in inside:
        body += body_of(n, place, len(reads) + len(body))
        place[n] = len(reads) + len(body) - 1
    return apply(FusedPointwise(len(reads), tuple(body)), *(new[x] for x in reads))


def body_of(node: Node, place: dict[Node, int], start: int) -> list:
    """Return the node's op, or its ops if it is already fused, with positions in the new list."""
    places = [place[x] for x in node.operands]
    if not isinstance(node.op, FusedPointwise):
        return [(node.op, tuple(places))]
    count = node.op.count

    def moved(i: int) -> int:
        return places[i] if i < count else start + i - count

    return [(op, tuple(map(moved, at))) for op, at in node.op.body]
