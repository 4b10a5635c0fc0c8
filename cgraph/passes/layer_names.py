"""Names of layers: convolutions, and products by constants."""

from collections.abc import Container

from cgraph.ir.graph import Node
from cgraph.ops.leaf import ConstOp
from cgraph.ops.shape import BroadcastTo, Reshape, Transpose


def layer_name(right: Node, otherwise: str, names: Container[str]) -> str:
    """Return the name of the weights, else another one, made distinct from `names` by a number."""
    while isinstance(right.op, BroadcastTo | Reshape | Transpose):
        right = right.operands[0]
    stem = (isinstance(right.op, ConstOp) and right.op.label) or otherwise
    name, i = stem, 1
    while name in names:
        i += 1
        name = f"{stem}.{i}"
    return name
