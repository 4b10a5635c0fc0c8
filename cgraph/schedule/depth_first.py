"""depth_first: each node directly after its operands, in post-order from the nodes that no other node reads.

Source: the usual post-order; Owl's evaluation order in Vandenhove's internship report. Time O(n) and the edges.
"""

from cgraph.ir.traverse import post_order_of
from cgraph.schedule.dag import Dag


def depth_first(dag: Dag) -> tuple[int, ...]:
    """Return the post-order, operands in their order, last nodes in order of position."""
    return post_order_of(dag.distinct, [i for i, users in enumerate(dag.users) if not users])
