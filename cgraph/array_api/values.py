"""Values of lazy arrays: one Function serves all graphs of one structure.

The structure is the list of ops with the places of their operands; of what is known only shape and dtype belong to it,
so that ``x + 1`` and ``y + 2`` are one Function. A run also gives the values of all Arrays below the one asked for.
"""

from collections import OrderedDict
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from cgraph.function import Function, compile
from cgraph.ir.graph import Node, apply
from cgraph.ops.leaf import Var

MOST_FUNCTIONS = 4096
MOST_ARENAS = 1 << 28  # bytes
ONE_THREAD = 1 << 16  # elements, up to which starting other threads takes longer than the work


class Leaf(Var):
    """A Var that is the value of an Array."""

    __slots__ = ("held",)


def leaf(value: np.ndarray) -> Leaf:
    """A leaf of the graph that holds this value, which must not change any more."""
    made = Leaf(value.shape, value.dtype)
    made.held = value  # type: ignore[attr-defined]
    return made


class Functions:
    """The Functions by structure. Changes: those not used for longest go when they, or their arenas, are too many."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple, Function] = OrderedDict()
        self._nbytes = 0

    def get(self, key: tuple) -> Function | None:
        function = self._found.get(key)
        if function is not None:
            self._found.move_to_end(key)
        return function

    def keep(self, key: tuple, function: Function) -> None:
        self._found[key] = function
        self._nbytes += function.nbytes
        while len(self._found) > 1 and (len(self._found) > MOST_FUNCTIONS or self._nbytes > MOST_ARENAS):
            self._nbytes -= self._found.popitem(last=False)[1].nbytes

    def __len__(self) -> int:
        return len(self._found)


FUNCTIONS = Functions()
ARRAYS: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""Arrays alive, by the identity of their node; whether it still is that node, the Array knows."""


def compute(array: Any) -> None:
    """Give an Array its value, and all Arrays whose nodes it is computed of theirs."""
    order, known = walked(array.node)
    places = {id(n): i for i, n in enumerate(order)}
    below = [x for n in order if (x := of_node(n)) is not None and x.is_lazy and x is not array]
    wanted = [*below, array]
    structure = tuple(n.spec if id(n) in known else (n.op, *(places[id(x)] for x in n.operands)) for n in order)
    key = (structure, tuple(places[id(x.node)] for x in wanted))
    function = FUNCTIONS.get(key)
    if function is None:
        function = compiled(order, known, [x.node for x in wanted])
        FUNCTIONS.keep(key, function)
    for x, value in zip(wanted, function(*known.values())):
        x.settle(value)


def walked(root: Node) -> tuple[list[Node], dict[int, np.ndarray]]:
    """The nodes that `root` needs, operands first, down to those whose value is known; and those values by identity."""
    order: list[Node] = []
    known: dict[int, np.ndarray] = {}
    seen: set[int] = set()
    stack = [(root, False)]
    while stack:
        node, operands_done = stack.pop()
        if operands_done:
            order.append(node)
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        value = known_value(node)
        if value is not None:
            known[id(node)] = value
            order.append(node)
            continue
        stack.append((node, True))
        stack.extend((x, False) for x in reversed(node.operands))
    return order, known


def known_value(node: Node) -> np.ndarray | None:
    if isinstance(node, Leaf):
        return node.held  # type: ignore[attr-defined]
    array = of_node(node)
    return None if array is None or array.is_lazy else array.value


def of_node(node: Node) -> Any:
    """The Array alive that has, or had, this node."""
    array = ARRAYS.get(id(node))
    return array if array is not None and array.is_of(node) else None


def compiled(order: list[Node], known: dict[int, np.ndarray], wanted: list[Node]) -> Function:
    """A Function of graphs of this structure, whose inputs are the known values in their order."""
    inputs = {id(n): Var(n.shape, n.dtype) for n in order if id(n) in known}
    copies: dict[int, Node] = dict(inputs)
    for n in order:
        if id(n) not in copies:
            copies[id(n)] = apply(n.op, *(copies[id(x)] for x in n.operands))
    threads = 1 if all(n.size <= ONE_THREAD for n in order if hasattr(n.spec, "shape")) else 0
    return compile([copies[id(n)] for n in wanted], list(inputs.values()), threads=threads)
