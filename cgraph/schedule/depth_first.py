"""depth_first: each node right after its operands, in post-order from the nodes that nobody reads.

Source: the usual post-order; Owl's evaluation order in Vandenhove's internship report. Time O(n) and the edges.
"""

from cgraph.schedule.dag import Dag


def depth_first(dag: Dag) -> tuple[int, ...]:
    """Post-order, operands in their order, last nodes in order of position. A loop, since graphs are deep."""
    order: list[int] = []
    seen = [False] * len(dag.nbytes)
    for root, users in enumerate(dag.users):
        if not users:
            _visit(dag, root, seen, order)
    return tuple(order)


def _visit(dag: Dag, root: int, seen: list[bool], order: list[int]) -> None:
    """Append everything `root` needs, then `root`."""
    seen[root] = True
    stack = [(root, iter(dag.distinct[root]))]
    while stack:
        node, operands = stack[-1]
        unseen = next((x for x in operands if not seen[x]), None)
        if unseen is None:
            order.append(node)
            stack.pop()
            continue
        seen[unseen] = True
        stack.append((unseen, iter(dag.distinct[unseen])))
