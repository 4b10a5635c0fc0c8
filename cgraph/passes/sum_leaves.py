"""Sums over the leaves of decision trees, computed while the trees are walked down."""

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.arithmetic import astype
from cgraph.ops.reduce import Sum
from cgraph.ops.take import Take
from cgraph.ops.trees import TreeLeaves, TreeSums

RANK = 3  # of what the trees give to each row: [n, trees, targets]


def sum_leaves(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """sum(take(weights, tree_leaves(x, ...), 0), 1) -> one op, if no other node reads the values in between.

    They would take bytes for each row and tree. Values change in the last places: the sum is one of float64.
    """
    graph = Roots.of(outputs)
    if not graph.has(TreeLeaves):
        return outputs

    def change(node: Node, new: New) -> Node | None:
        if not isinstance(node.op, Sum) or node.op.axes != (1,):
            return None
        (terms,) = node.operands
        if not isinstance(terms.op, Take) or terms.op.axis or terms.ndim != RANK or not graph.is_inner(terms):
            return None
        weights, leaves = terms.operands
        if not isinstance(leaves.op, TreeLeaves) or weights.dtype.kind != "f" or not graph.is_inner(leaves):
            return None
        sums = apply(TreeSums(leaves.op.flags), *(new[x] for x in leaves.operands), new[weights])
        return astype(sums, node.dtype)

    return rebuild(graph, change)
