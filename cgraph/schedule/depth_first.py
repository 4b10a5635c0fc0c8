"""depth_first: each node right after its operands, in post-order from the nodes that nobody reads.

Source: the usual post-order; Owl's evaluation order in Vandenhove's internship report. Time O(n) and the edges.
"""

from collections.abc import Sequence

from cgraph.schedule.dag import Dag


def depth_first(dag: Dag) -> tuple[int, ...]:
    """Post-order, operands in their order, last nodes in order of position."""
    return post_order(dag.distinct, [i for i, users in enumerate(dag.users) if not users])


def post_order(operands: Sequence[tuple[int, ...]], roots: Sequence[int]) -> tuple[int, ...]:
    """All that `roots` need, each node after its operands, in the orders given. A loop, since graphs are deep."""
    order: list[int] = []
    seen = [False] * len(operands)
    for root in roots:
        seen[root] = True
        stack = [(root, iter(operands[root]))]
        while stack:
            node, rest = stack[-1]
            unseen = next((x for x in rest if not seen[x]), None)
            if unseen is None:
                order.append(node)
                stack.pop()
            else:
                seen[unseen] = True
                stack.append((unseen, iter(operands[unseen])))
    return tuple(order)
