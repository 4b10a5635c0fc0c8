"""The oracle: every op by its meaning, in NumPy, unplanned."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cgraph.errors import UnassignedError
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import VarOp


def evaluate(outputs: Sequence[Node], values: Mapping[Node, np.ndarray] | None = None) -> list[np.ndarray]:
    """The outputs' values; `values` gives Vars, others are read from their cells. Each op runs by `meaning`."""
    values = values or {}
    order = post_order(outputs)
    last_user = {x: node for node in order for x in node.operands}
    known: dict[Node, Any] = {}
    for node in order:
        known[node] = value_of(node, values, known)
        for x in node.operands:
            if last_user[x] is node and x in known and not any(x is y for y in outputs):
                del known[x]
    return [known[x] for x in outputs]


def value_of(node: Node, values: Mapping[Node, np.ndarray], known: Mapping[Node, Any]) -> Any:
    """One node's value, given those of its operands."""
    if not isinstance(node.op, VarOp):
        with np.errstate(all="ignore"):
            found = node.op.meaning(*(known[x] for x in node.operands))
        return found if isinstance(found, tuple) else np.asarray(found, node.dtype)
    if node in values:
        return values[node]
    if node.op.cell.array is None:
        raise UnassignedError(f"{node.name} {node.spec} (made at {node.where}) has no value; assign one first")
    return node.op.cell.array.copy()
