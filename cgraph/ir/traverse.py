"""Walks over a graph: loops, never recursion, since graphs are deeper than Python's stack."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from cgraph.ir.graph import Node, made_at


def post_order(outputs: Iterable[Node], before: Mapping[Node, Sequence[Node]] | None = None) -> list[Node]:
    """Every node that `outputs` need, operands before users, each once; depth first in operand order.

    `before` names, for some nodes, others that come before them without being operands.
    """
    before = before or {}
    order: list[Node] = []
    done: set[Node] = set()
    for output in outputs:
        stack = [(output, 0)]
        while stack:
            node, i = stack.pop()
            if node in done:
                continue
            earlier = (*node.operands, *before[node]) if node in before else node.operands
            if i < len(earlier):
                stack.append((node, i + 1))
                if earlier[i] not in done:
                    stack.append((earlier[i], 0))
            else:
                done.add(node)
                order.append(node)
    return order


def users_of(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Each node's users among `nodes`, in their order; a user that reads it twice is listed once."""
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        users.setdefault(node, [])
        for x in dict.fromkeys(node.operands):
            users.setdefault(x, []).append(node)
    return users


def descendants(nodes: Iterable[Node], sources: Iterable[Node]) -> set[Node]:
    """Those of `nodes` (operands before users) that depend on a source, sources included."""
    found = set(sources)
    for node in nodes:
        if any(x in found for x in node.operands):
            found.add(node)
    return found


def located(nodes: Iterable[Node]) -> Iterator[Node]:
    """Each node in turn; what is made meanwhile comes from its line of the user's code, not from that of compile."""
    for node in nodes:
        with made_at(*node.origin):
            yield node


def rebuild(outputs: tuple[Node, ...], change: Callable[[Node, tuple[Node, ...]], Node]) -> tuple[Node, ...]:
    """The graph with every node replaced, bottom-up, by ``change(node, new_operands)``."""
    new: dict[Node, Node] = {}
    for node in located(post_order(outputs)):
        new[node] = change(node, tuple(new[x] for x in node.operands))
    return tuple(new[x] for x in outputs)
