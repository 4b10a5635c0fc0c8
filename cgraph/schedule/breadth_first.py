"""breadth_first: nodes in the order in which they become ready, first come first served.

Source: Kahn 1962, Topological sorting of large networks. Time O(n) and the edges. The published tables of memory
strategies use this order. It keeps the branches of a graph in use side by side, so it often needs more than
`depth_first`.
"""

from collections import deque

from cgraph.schedule.dag import Dag


def breadth_first(dag: Dag) -> tuple[int, ...]:
    """Run ready nodes from a queue; nodes that become ready together run in order of position."""
    missing = [len(operands) for operands in dag.distinct]
    queue = deque(i for i, count in enumerate(missing) if not count)
    order: list[int] = []
    while queue:
        node = queue.popleft()
        order.append(node)
        for user in dag.users[node]:
            missing[user] -= 1
            if not missing[user]:
                queue.append(user)
    return tuple(order)
