"""The bytes that a traced array names: an array and its views share them, as in NumPy."""

from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

from cgraph.errors import GraphError
from cgraph.ir.graph import Node, Op, apply
from cgraph.ops.shape import BroadcastTo, Item, Reshape, Transpose, ViewOp
from cgraph.ops.slicing import SetSlice, Slice

Path = tuple[Op, ...]
"""View ops that lead from a stored value to a view of it."""


class Storage:
    """The state that an array and its views share. Mutable: an assignment replaces the node.

    Fields
        node: the present value
        trace: the trace that created it; only this one may assign
        version: the number of assignments
        relatives: storages that NumPy may or may not let share these bytes
        stale: the user's line that assigned to a relative, after which nobody knows this value; "" if none
    """

    __slots__ = ("__weakref__", "node", "relatives", "stale", "trace", "version")

    def __init__(self, node: Node, trace: Any) -> None:
        self.node, self.trace, self.version, self.stale = node, trace, 0, ""
        self.relatives: WeakSet[Storage] | None = None

    def relate(self, other: "Storage") -> None:
        """Note that two storages may share bytes."""
        if self.relatives is None:
            self.relatives = WeakSet([self])
        self.relatives.add(other)
        other.relatives = self.relatives

    def value(self) -> Node:
        """Return the present value. GraphError if an assignment to a relative may have changed it."""
        if self.stale:
            raise GraphError(
                f"{self.stale} assigns to an array that is, in NumPy, perhaps a view of this one and perhaps a copy "
                "(reshape and ravel depend on the layout in memory). Use .copy() where a copy is meant, or assign "
                "before reshaping"
            )
        return self.node

    def assign(self, path: Path, node: Node, line: str) -> None:
        """Replace the view at the end of a path by `node`."""
        self.node = put(self.value(), path, node)
        self.version += 1
        for other in list(self.relatives or ()):
            if other is not self:
                other.stale = line


def follow(node: Node, path: Path) -> Node:
    """Return the view of a value at the end of a path."""
    for op in path:
        node = apply(op, node)
    return node


def put(node: Node, path: Path, value: Node) -> Node:
    """Return `node` with the view at the end of a path replaced by `value`."""
    if not path:
        return value
    op, rest = path[0], path[1:]
    value = put(apply(op, node), rest, value)
    if isinstance(op, Slice):
        return apply(SetSlice(op.starts, op.steps), node, value)
    if isinstance(op, Transpose):
        return apply(Transpose(tuple(op.axes.index(i) for i in range(len(op.axes)))), value)
    if isinstance(op, Reshape):
        return apply(Reshape(node.shape), value)
    raise GraphError("assignment destination is read-only: it is a view made by broadcasting. Use .copy() of it first")


def path_between(source: Node, result: Node) -> Path | None:
    """Return the view ops that lead from one node to another, or None if it is not a view of it."""
    ops: list[Op] = []
    while result is not source:
        if not isinstance(result.op, ViewOp) or isinstance(result.op, Item):
            return None
        ops.append(result.op)
        result = result.operands[0]
    return tuple(reversed(ops))


def is_exact(path: Sequence[Op], name: str) -> bool:
    """Return True if NumPy returns a view for sure; reshape and ravel copy where the layout demands it."""
    return name not in ("reshape", "ravel") or not any(isinstance(op, Reshape | BroadcastTo) for op in path)
