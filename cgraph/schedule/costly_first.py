"""costly_first: depth first; of a node's operands, the one first that needs most bytes beyond those of its value.

While an operand is computed, the results of those before it wait. So an operand that needs many bytes and leaves few
should be computed while nothing waits yet. Exact for trees whose subtrees are each computed without a break; in other
graphs a shared operand is counted once for each reader, so the estimate is high.

Source: the order of evaluation of Sethi and Ullman 1970, The generation of optimal code for arithmetic expressions,
with bytes in place of registers. Time O(n) and the edges, and sorting each node's operands.
"""

from cgraph.ir.traverse import post_order_of
from cgraph.schedule.dag import Dag


def costly_first(dag: Dag) -> tuple[int, ...]:
    """Return a post-order; operands, and last nodes, by falling difference of bytes needed and bytes left; ties in
    input order.
    """
    operands: list[tuple[int, ...]] = []
    excess: list[int] = []  # bytes that computing a node needs, minus those of its value
    for i, reads in enumerate(dag.distinct):
        in_order = tuple(sorted(reads, key=lambda x: -excess[x]))
        operands.append(in_order)
        own = dag.needed(i, sum(dag.nbytes[x] for x in dag.overwritable[i]))
        excess.append(_bytes_needed(dag, in_order, excess, own) - dag.nbytes[i])
    roots = sorted((i for i, users in enumerate(dag.users) if not users), key=lambda x: -excess[x])
    return post_order_of(operands, roots)


def _bytes_needed(dag: Dag, operands: tuple[int, ...], excess: list[int], own: int) -> int:
    """Return the most bytes in use while `operands` are computed one after the other, followed by a node of `own`
    bytes.
    """
    waiting, most = 0, 0
    for operand in operands:
        most = max(most, waiting + dag.nbytes[operand] + excess[operand])
        waiting += dag.nbytes[operand]
    return max(most, waiting + own)
