"""Limits: how large the whole numbers can be that shapes are computed from, and what a run must check of them.

A length that is known only when run has a maximum, which decides how much memory there is for it. It follows from what
the number is computed from (`spans`): a count of what is not 0 is no larger than what is counted, a smaller one of two
numbers is no larger than either. Where nothing bounds it, the reader's user says it: ``maximum={"n": 8}``.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from math import inf, prod
from operator import mul
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.names import cg
from cgraph.formats.onnx.dynamic.intervals import MOVES, SMALL, Pair, bounds_of, rule_of, trusts_floats
from cgraph.ir.graph import Node
from cgraph.ops.arithmetic import Cast
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.take import Take
from cgraph.record import Record

PLACES = np.dtype("int64")


class Size(Record):
    """A length that is known only when run: two are equal if they are one node.

    Fields
        node: int64, of no axes
        low, high: bounds; infinite where there is none
    """

    node: Node
    low: float
    high: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.node is other.node

    def __hash__(self) -> int:
        return hash(self.node)


Length = int | Size


class Element(Record):
    """One element of a value, in C order."""

    node: Node
    place: int


class Check(Record, eq=False):
    """What must hold when a graph has run, and what is said where it does not."""

    holds: Node
    text: str


class LengthBounds:
    """Bounds of the values of one model. Changes: what is found out, and the checks that a run makes.

    Parameters
        maximum: the largest value of whole numbers, and the greatest length of what has one axis of open length, by
            the value's name
        allowance: what reading the file may still cost
    """

    def __init__(self, maximum: Mapping[str, int], allowance: Allowance) -> None:
        for name, most in maximum.items():
            if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 0:
                raise FormatError(f"maximum gives {most!r:.40} for {name!r}; it takes whole numbers from 0 on")
        self.maximum = {name: int(most) for name, most in maximum.items()}
        self.allowance = allowance
        self.used: set[str] = set()
        self.trusting: set[Node] = set()  # whose bounds hold where no float that they come from is NaN
        self.checks: list[Check] = []
        self._most: dict[Node, int] = {}
        self._bounds: dict[Node, Pair] = {}
        self._sources: dict[Node, np.ndarray | None] = {}
        self._when: list[Node] = []
        self._steps: dict[int, Node] = {}

    # -- bounds -----------------------------------------------------------------------------------------------------
    def bounds(self, node: Node) -> Pair:
        """The lowest and the highest elements; every node is looked at once."""
        waiting = [node]
        while waiting:
            x = waiting[-1]
            operands = x.operands if rule_of(x) else ()
            missing = [y for y in operands if y not in self._bounds]
            if missing:
                waiting += missing
            elif x in self._bounds:
                waiting.pop()
            else:
                low, high = bounds_of(x, [self._bounds[y] for y in operands])
                if trusts_floats(x) or any(y in self.trusting for y in operands):
                    self.trusting.add(x)
                self._bounds[waiting.pop()] = low, np.minimum(high, self._most.get(x, inf))
        return self._bounds[node]

    def at_most(self, node: Node, most: int) -> None:
        """The elements of a value are no larger, which whoever says so has checked."""
        self._most[node] = min(most, self._most.get(node, most))
        low, high = self.bounds(node)
        self._bounds[node] = low, np.minimum(high, most)

    def source(self, node: Node) -> np.ndarray | None:
        """For each element of small whole numbers the one of which it is a copy, or the number that it is."""
        waiting = [node]
        while waiting:
            x = waiting[-1]
            operands = copied_operands(x)
            missing = [y for y in operands if y not in self._sources]
            if missing:
                waiting += missing
            elif x in self._sources:
                waiting.pop()
            else:
                self._sources[waiting.pop()] = self._source_of(x, [self._sources[y] for y in operands])
        return self._sources[node]

    def _source_of(self, x: Node, operands: Sequence[np.ndarray | None]) -> np.ndarray | None:
        if x.size > SMALL or x.dtype.kind not in "iu":
            return None
        low, high = self.bounds(x)
        if operands and all(y is not None for y in operands):
            copied = isinstance(x.op, Cast)
            values = [np.asarray(y, object) for y in operands]
            index = [self.bounds(x.operands[1])[0].astype(np.int64)] if isinstance(x.op, Take) else []
            elements = values[0] if copied else x.op.meaning(*values[:1], *index) if index else x.op.meaning(*values)
            elements = np.array(elements, object).reshape(x.shape)
        else:
            elements = np.empty(x.shape, object)
            for place in range(x.size):
                elements.flat[place] = Element(x, place)
        for place, (least, most) in enumerate(zip(low.flat, high.flat)):
            if least == most and abs(least) < 2.0**53:
                elements.flat[place] = int(least)
        return elements

    def length(self, node: Node) -> Length:
        """A whole number of no axes, as a number where it is known."""
        return self.lengths(cg.reshape(node, (1,)))[0]

    def lengths(self, node: Node) -> list[Length]:
        """The elements of a row of whole numbers."""
        if isinstance(node.op, ConstOp):
            return [int(n) for n in node.op.array.reshape(-1)]
        sources, (low, high) = self.source(node), self.bounds(node)
        if sources is None:
            raise FormatError(f"{node.name} {node.spec} holds no lengths")
        return [
            source if isinstance(source, int) else Size(scalar_node(source), float(least), float(most))
            for source, least, most in zip(sources.flat, low.flat, high.flat)
        ]

    def steps(self, n: int) -> Node:
        """0 to n - 1, once for each n."""
        if n not in self._steps:
            self.allowance.spend(f"the numbers up to {n:,}", nbytes=8 * n)
            self._steps[n] = Const(np.arange(n, dtype=PLACES))
        return self._steps[n]

    # -- what a run checks --------------------------------------------------------------------------------------------
    def check(self, holds: Node, text: str) -> None:
        """A run ends in an InputError with this text where a bool of no axes is false; in a branch if it is taken."""
        for condition in self._when:
            holds = cg.logical_or(holds, cg.logical_not(condition))
        self.checks.append(Check(holds, text))

    @contextmanager
    def under(self, condition: Node) -> Iterator[None]:
        """What is checked meanwhile counts only where a condition holds."""
        self._when.append(condition)
        try:
            yield
        finally:
            self._when.pop()

    def check_equal(self, x: Length, y: Length, text: str) -> None:
        """Two lengths must be equal. FormatError where they cannot be."""
        if x == y:
            return
        (a, b), (c, d) = bounds_of_length(x), bounds_of_length(y)
        if b < c or d < a:
            raise FormatError(text)
        self.check(cg.equal(node_of(x), node_of(y)), text)


def copied_operands(x: Node) -> tuple[Node, ...]:
    """The operands of which the elements of a value are copies."""
    if isinstance(x.op, Take) and isinstance(x.operands[1].op, ConstOp):
        operands = x.operands[:1]
    elif isinstance(x.op, MOVES) or (isinstance(x.op, Cast) and is_wide(x) and is_wide(x.operands[0])):
        operands = x.operands
    else:
        return ()
    return operands if all(y.size <= SMALL for y in (x, *operands)) else ()


def is_wide(x: Node) -> bool:
    """Whole numbers that hold lengths."""
    return x.dtype.kind in "iu" and x.dtype.itemsize >= 4


def scalar_node(element: Element) -> Node:
    """An element as an int64 of no axes."""
    node = element.node
    scalar = node if node.ndim == 0 else cg.reshape(cg.reshape(node, (node.size,))[element.place], ())
    return cg.astype(scalar, PLACES)


def node_of(length: Length) -> Node:
    """A length as an int64 of no axes."""
    return length.node if isinstance(length, Size) else Const(np.array(length, PLACES))


def bounds_of_length(length: Length) -> tuple[float, float]:
    """The bounds of a length."""
    return (length.low, length.high) if isinstance(length, Size) else (length, length)


def most(length: Length) -> float:
    """The largest that a length can be."""
    return bounds_of_length(length)[1]


def product_of(lengths: Sequence[Length]) -> Any:
    """The product of lengths: a number, or a node."""
    product: Any = prod(n for n in lengths if not isinstance(n, Size))
    nodes = [n.node for n in lengths if isinstance(n, Size)]
    if not nodes:
        return product
    return reduce(mul, nodes if product == 1 else [*nodes, Const(np.array(product, PLACES))])
