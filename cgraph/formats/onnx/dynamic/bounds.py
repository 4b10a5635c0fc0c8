"""LengthBounds: upper bounds of the integers that determine shapes, and the conditions that a run must check.

A dynamic length, known only at run time, has a maximum, which determines its memory. It follows from the computation
of the length (see `intervals`): a count of nonzero elements is at most the number of elements, the minimum of two
numbers is at most either. If nothing bounds a length, the user must do so: ``maximum={"n": 8}``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from cgraph.ops.prefix import Prefix
from cgraph.ops.take import Take
from cgraph.record import Record

PLACES = np.dtype("int64")


class Size(Record):
    """A dynamic length, known only at run time. Two are equal if they are one node.

    Fields
        node: int64 scalar
        low, high: bounds; infinite if there is none
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
    """One element of a value, by its index in C order."""

    node: Node
    place: int


class Check(Record, eq=False):
    """A condition that each run must meet, and the message if it does not."""

    holds: Node
    text: str


class LengthBounds:
    """Bounds of the values of one model. Changes: it caches bounds and collects the checks of a run.

    Parameters
        maximum: by name of a value, the largest integer in it, or the maximum of its one dynamic length
        allowance: the remaining cost of reading the file
    """

    def __init__(self, maximum: Mapping[str, int], allowance: Allowance) -> None:
        for name, most in maximum.items():
            if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 0:
                raise FormatError(f"maximum gives {most!r:.40} for {name!r}; give an integer >= 0")
        self.maximum = {name: int(most) for name, most in maximum.items()}
        self.allowance = allowance
        self.used: set[str] = set()
        self.rounds: set[str] = set()  # names whose maximum is that of a loop's rounds
        self.trusting: set[Node] = set()  # nodes whose bounds hold unless a float in their computation is NaN
        self.zero_padded: dict[Node, dict[int, Node]] = {}  # arrays that are zero beyond these lengths, by axis
        self.checks: list[Check] = []
        self.choices = 0  # values of which only a run decides the number of axes
        self._most: dict[Node, int] = {}
        self._bounds: dict[Node, Pair] = {}
        self._sources: dict[Node, np.ndarray | None] = {}
        self._when: list[Node] = []
        self._steps: dict[int, Node] = {}

    # -- bounds -----------------------------------------------------------------------------------------------------
    def bounds(self, node: Node) -> Pair:
        """Return the bounds of the elements of a node; each node is visited once."""
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

    def limit(self, node: Node, most: int, text: str) -> None:
        """Check in each run that no element of an integer value is larger, and record it."""
        if self._most.get(node, inf) > most:
            self.check(cg.less_equal(cg.max(node), most), text)
            self.at_most(node, most)

    def at_most(self, node: Node, most: int, least: float = -inf) -> None:
        """Record that no element of a value is larger, or less than `least`; the caller has checked it."""
        self._most[node] = min(most, self._most.get(node, most))
        low, high = self.bounds(node)
        self._bounds[node] = np.maximum(low, least), np.minimum(high, most)

    def case(self, node: Node, least: float, most: float) -> "LengthBounds":
        """Return the bounds of values in the runs in which all elements of one are between two numbers."""
        other = LengthBounds({}, self.allowance)
        other._most = dict(self._most)
        other._bounds[node] = np.full(node.shape, float(least)), np.full(node.shape, float(most))
        return other

    def use_for_rounds(self, names: Iterable[str]) -> None:
        """Record that the maximum of these names, if there is one, is that of a loop's rounds."""
        self.rounds |= self.maximum.keys() & set(names)
        self.used |= self.rounds

    def source(self, node: Node) -> np.ndarray | None:
        """Return, for each element of a small integer value, the element that it copies or its constant value."""
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
            copied = isinstance(x.op, Cast | Prefix)
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
        """Return a scalar integer node as a length: an int if it is constant."""
        return self.lengths(cg.reshape(node, (1,)))[0]

    def lengths(self, node: Node) -> list[Length]:
        """Return the elements of a vector of integers as lengths."""
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
        """Return a node 0 to n - 1, cached for each n."""
        if n not in self._steps:
            self.allowance.spend(f"the numbers up to {n:,}", nbytes=8 * n)
            self._steps[n] = Const(np.arange(n, dtype=PLACES))
        return self._steps[n]

    # -- checks of a run ----------------------------------------------------------------------------------------------
    def check(self, holds: Node, text: str) -> None:
        """Make a run raise InputError with this text if a scalar bool is false; in a branch, only if it is active."""
        for condition in self._when:
            holds = cg.logical_or(holds, cg.logical_not(condition))
        self.checks.append(Check(holds, text))

    @contextmanager
    def under(self, condition: Node) -> Iterator[None]:
        """Restrict the checks within this context to runs in which a condition holds."""
        self._when.append(condition)
        try:
            yield
        finally:
            self._when.pop()

    def positions(self, index: Node, n: int) -> Node:
        """Return indices into an axis of n elements; in a branch or round that is not active they are 0.

        All branches and rounds are computed, and the indices of one that is not active may be outside the axis.
        """
        is_inside = isinstance(index.op, ConstOp) and np.all((index.op.array >= -n) & (index.op.array < n))
        if not self._when or is_inside:
            return index
        return cg.where(reduce(cg.logical_and, self._when), index, np.zeros((), index.dtype))

    def check_equal(self, x: Length, y: Length, text: str) -> None:
        """Require two lengths to be equal. FormatError if they cannot be."""
        if x == y:
            return
        (a, b), (c, d) = bounds_of_length(x), bounds_of_length(y)
        if b < c or d < a:
            raise FormatError(text)
        self.check(cg.equal(node_of(x), node_of(y)), text)


def copied_operands(x: Node) -> tuple[Node, ...]:
    """Return the operands whose elements a small value copies."""
    if isinstance(x.op, Prefix) or (isinstance(x.op, Take) and isinstance(x.operands[1].op, ConstOp)):
        operands = x.operands[:1]
    elif isinstance(x.op, MOVES) or (isinstance(x.op, Cast) and is_wide(x) and is_wide(x.operands[0])):
        operands = x.operands
    else:
        return ()
    return operands if all(y.size <= SMALL for y in (x, *operands)) else ()


def is_wide(x: Node) -> bool:
    """Return True for the integer dtypes of lengths."""
    return x.dtype.kind in "iu" and x.dtype.itemsize >= 4


def scalar_node(element: Element) -> Node:
    """Return an element as an int64 scalar."""
    node = element.node
    scalar = node if node.ndim == 0 else cg.reshape(cg.reshape(node, (node.size,))[element.place], ())
    return cg.astype(scalar, PLACES)


def node_of(length: Length) -> Node:
    """Return a length as an int64 scalar."""
    return length.node if isinstance(length, Size) else Const(np.array(length, PLACES))


def bounds_of_length(length: Length) -> tuple[float, float]:
    """Return the bounds of a length."""
    return (length.low, length.high) if isinstance(length, Size) else (length, length)


def most(length: Length) -> float:
    """Return the upper bound of a length."""
    return bounds_of_length(length)[1]


def product_of(lengths: Sequence[Length]) -> Any:
    """Return the product of lengths: an int or a node."""
    product: Any = prod(n for n in lengths if not isinstance(n, Size))
    nodes = [n.node for n in lengths if isinstance(n, Size)]
    if not nodes:
        return product
    return reduce(mul, nodes if product == 1 else [*nodes, Const(np.array(product, PLACES))])
