"""A bound on the distance of two computed positions, as in ``x[i : i + 3]`` with an i known only at run time."""

from math import ceil, isfinite

from cgraph.formats.onnx.dynamic.intervals import MOVES
from cgraph.ir.graph import Node
from cgraph.ops.arithmetic import Add, Cast, Minimum
from cgraph.ops.leaf import ConstOp


def most_apart(stop: Node, start: Node) -> int | None:
    """Return k if `stop` is ``start + k``, or the minimum of this and other numbers; None if it is neither.

    Rounding and overflow can exceed this bound, so a run must check it.
    """
    first, waiting, visited = source(start), [stop], set()
    while waiting:
        x = source(waiting.pop())
        if x in visited:
            continue
        visited.add(x)
        if isinstance(x.op, Minimum):
            waiting += x.operands
        elif isinstance(x.op, Add):
            for a, b in (x.operands, x.operands[::-1]):
                added = known_number(b)
                if source(a) is first and added is not None:
                    return ceil(added)
    return None


def source(x: Node) -> Node:
    """Return the value of one element that another one copies or converts."""
    while isinstance(x.op, (*MOVES, Cast)) and len(x.operands) == 1 and x.size == x.operands[0].size == 1:
        x = x.operands[0]
    return x


def known_number(x: Node) -> float | None:
    """Return the number of a constant of one element; None if it is not one, or not finite."""
    op = source(x).op
    if not isinstance(op, ConstOp) or op.array.size != 1 or op.array.dtype.kind not in "iuf":
        return None
    number = float(op.array.item())
    return number if isfinite(number) else None
