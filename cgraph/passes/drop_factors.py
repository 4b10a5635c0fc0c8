"""Removal of singular vectors that no node reads."""

from cgraph.ir.graph import Node, Op, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.factors import SingularValues, Svd, TallSvd
from cgraph.ops.shape import Item

ROWS_TO_COLUMNS = 11, 6  # from this ratio on LAPACK itself begins with a triangular factor


def drop_factors(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Compute singular values without vectors, and right vectors of tall matrices without left ones, where no other
    result is read.

    Values without vectors are those of ``np.linalg.svd(x, compute_uv=False)``, which differ in their last places.
    """
    graph = Roots.of(outputs)
    if not graph.has(Svd):
        return outputs
    fewer = {n: op for n in graph.order if isinstance(n.op, Svd) and (op := op_without_vectors(n, graph))}

    def change(node: Node, new: New) -> Node | None:
        if node in fewer:
            return apply(fewer[node], *(new[x] for x in node.operands))
        if not isinstance(node.op, Item) or node.operands[0] not in fewer:
            return None
        bundle = new[node.operands[0]]
        return bundle if isinstance(bundle.op, SingularValues) else apply(Item(node.op.index - 1), bundle)

    return rebuild(graph, change) if fewer else graph


def op_without_vectors(node: Node, graph: Roots) -> Op | None:
    """Return an op that computes only the results that are read; None if the decomposition is already the cheapest."""
    indices = {user.op.index for user in graph.users[node] if isinstance(user.op, Item)}
    if node in graph.ends or 0 in indices:
        return None
    if indices == {1}:
        return SingularValues()
    (*_, m, n), (rows, columns) = node.operands[0].shape, ROWS_TO_COLUMNS
    return TallSvd() if m * columns >= n * rows else None
