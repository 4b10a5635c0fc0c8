"""Large constants move to a file, for runs that read them from there."""

from cgraph.errors import GraphError
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order, rebuild
from cgraph.ops.leaf import HASHED_NBYTES, Const, ConstOp
from cgraph.passes.rewrite import remade
from cgraph.weight_file import StreamedWeights, on_disk


def weights_on_disk(roots: tuple[Node, ...], weights: StreamedWeights) -> tuple[Node, ...]:
    """The same graph over constants in the file, in the order in which they are needed; small ones stay as they are.

    The last pass of all: constants have the form that kernels read.
    """
    if not isinstance(weights, StreamedWeights):
        raise GraphError(f"weights takes StreamedWeights(path, ring), not {weights!r:.60}")
    order, shown = post_order(roots), set(roots)
    large = [x for x in order if isinstance(x.op, ConstOp) and x.nbytes > HASHED_NBYTES and x not in shown]
    if not large:
        return roots
    arrays = on_disk(weights, [x.op.array for x in large])  # type: ignore[attr-defined]
    moved = {x: Const(array, name=x.op.label, copy=False) for x, array in zip(large, arrays)}  # type: ignore[attr-defined]

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        return moved[node] if node in moved else remade(node, operands)

    return rebuild(roots, change, order)
