"""Values of lazy arrays: one Function serves all graphs of one structure.

The structure is the list of ops with the positions of their operands; of values only shape and dtype belong to it, so
that ``x + 1`` and ``y + 2`` share one Function. A run also computes the values of all live Arrays that the result
depends on.
"""

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from cgraph.function import Function, compile
from cgraph.ir.graph import Node, apply
from cgraph.ops.leaf import Var
from cgraph.storage.function_cache import FunctionCache, nbytes_of

MOST_FUNCTIONS = 4096
MOST_NBYTES = 1 << 28
ONE_THREAD = 1 << 16  # elements, up to which starting other threads takes longer than the work


class Leaf(Var):
    """A Var that stands for the value of an Array."""

    __slots__ = ("_constant",)


def leaf(value: np.ndarray) -> Leaf:
    """Return a leaf of the graph for this value, which must not change any more."""
    node = Leaf(value.shape, value.dtype)
    node._constant = value  # type: ignore[attr-defined]
    return node


FUNCTIONS = FunctionCache(MOST_FUNCTIONS, MOST_NBYTES)
"""The Functions by structure."""
ARRAYS: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""Arrays alive, by the identity of their node; `Array.is_of` returns True while it still is that node."""


def compute(array: Any) -> None:
    """Compute the value of an Array, and of all Arrays whose nodes it depends on."""
    order, leaf_values = walk(array.node)
    places = {id(n): i for i, n in enumerate(order)}
    below = [x for n in order if (x := of_node(n)) is not None and x.is_lazy and x is not array]
    arrays = [*below, array]
    structure = tuple(n.spec if id(n) in leaf_values else (n.op, *(places[id(x)] for x in n.operands)) for n in order)
    key = (structure, tuple(places[id(x.node)] for x in arrays))
    function = FUNCTIONS.get(key)
    if function is None:
        function = compile_structure(order, leaf_values, [x.node for x in arrays])
        FUNCTIONS.keep(key, function, nbytes_of(function))
    for x, value in zip(arrays, function(*leaf_values.values())):
        x.settle(value)


def walk(root: Node) -> tuple[list[Node], dict[int, np.ndarray]]:
    """Return the nodes that `root` needs, operands first, down to those with values; and these values by identity."""
    order: list[Node] = []
    leaf_values: dict[int, np.ndarray] = {}
    ids: set[int] = set()
    stack = [(root, False)]
    while stack:
        node, operands_done = stack.pop()
        if operands_done:
            order.append(node)
            continue
        if id(node) in ids:
            continue
        ids.add(id(node))
        value = known_value(node)
        if value is not None:
            leaf_values[id(node)] = value
            order.append(node)
            continue
        stack.append((node, True))
        stack.extend((x, False) for x in reversed(node.operands))
    return order, leaf_values


def known_value(node: Node) -> np.ndarray | None:
    if isinstance(node, Leaf):
        return node._constant  # type: ignore[attr-defined]
    array = of_node(node)
    return None if array is None or array.is_lazy else array.value


def of_node(node: Node) -> Any:
    """Return the living Array that has, or had, this node."""
    array = ARRAYS.get(id(node))
    return array if array is not None and array.is_of(node) else None


def compile_structure(order: list[Node], leaf_values: dict[int, np.ndarray], outputs: list[Node]) -> Function:
    """Return a Function of graphs of this structure. Its inputs are the values of leaves, in their order."""
    inputs = {id(n): Var(n.shape, n.dtype) for n in order if id(n) in leaf_values}
    copies: dict[int, Node] = dict(inputs)
    for n in order:
        if id(n) not in copies:
            copies[id(n)] = apply(n.op, *(copies[id(x)] for x in n.operands))
    threads = 1 if all(n.size <= ONE_THREAD for n in order if hasattr(n.spec, "shape")) else 0
    return compile([copies[id(n)] for n in outputs], list(inputs.values()), threads=threads)
