"""Constant folding while a graph is built from a file, so that computed shapes become constants."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from cgraph.engine.reference import evaluate
from cgraph.formats.allowance import Allowance
from cgraph.formats.unspecified import UnknownError
from cgraph.ir.graph import Node
from cgraph.ir.spec import Spec
from cgraph.ir.traverse import post_order
from cgraph.ops.family import Pointwise
from cgraph.ops.join import Concat
from cgraph.ops.leaf import Const, ConstOp, Var
from cgraph.ops.quantise import Dequantize
from cgraph.ops.shape import BroadcastTo, Full, Transpose, ViewOp
from cgraph.ops.take import Take, TakeAlongAxis
from cgraph.ops.while_loop import WhileLoop

FOLDED_SIZE = 4096  # elements: shape computations are far smaller, weights far larger
LINEAR = (Pointwise, ViewOp, Concat, Take, TakeAlongAxis, Full)
"""Ops whose work is in proportion to the elements that they read and write."""


@dataclass(eq=False)
class Evaluator:
    """Evaluates nodes while a graph is built. Changes: `used` grows, the allowance falls.

    Fields
        allowance: the remaining cost of reading the file
        values: constant inputs, arrays by name
        used: inputs whose value decided a shape; the graph is valid for these values only
        opened: True if a node depends on an input or on random numbers, per node
        lacking: True if a node depends on an input without a constant value, per node
    """

    allowance: Allowance
    values: Mapping[str, np.ndarray] = field(default_factory=dict)
    used: dict[str, np.ndarray] = field(default_factory=dict)
    opened: dict[Node, bool] = field(default_factory=dict)
    lacking: dict[Node, bool] = field(default_factory=dict)

    def is_open(self, node: Node) -> bool:
        """Return True if the value depends on an input, differs between runs, or takes a number of rounds that no file
        size bounds. Each node is visited once.
        """
        return depends_on(
            node, lambda x: isinstance(x, Var) or not x.op.pure or isinstance(x.op, WhileLoop), self.opened
        )

    def lacks(self, node: Node) -> bool:
        """Return True if the value depends on an input without a constant value. Each node is visited once."""
        return depends_on(node, lambda x: isinstance(x, Var) and x.name not in self.values, self.lacking)

    def missing(self, node: Node) -> list[str]:
        """Return the names of the inputs without a constant value that a node depends on."""
        if not self.lacks(node):
            return []
        return [x.name for x in post_order([node]) if isinstance(x, Var) and x.name not in self.values]

    def array(self, node: Node, why: str) -> np.ndarray:
        """Return the value of a node. UnknownError if it depends on an input without a constant value."""
        order = post_order([node])
        leaves = [x for x in order if isinstance(x, Var)]
        missing = self.missing(node)
        if missing:
            raise UnknownError(
                f"{why} must be constant while the graph is built, but depends on input {missing[0]!r}",
                constants=missing,
            )
        self.used.update((x.name, self.values[x.name]) for x in leaves)
        return self.computed(node, order, {x: self.values[x.name] for x in leaves})

    def computed(self, node: Node, order: Sequence[Node], values: Mapping[Node, np.ndarray]) -> np.ndarray:
        """Charge and compute the value of a node; `order` lists all nodes that it depends on."""
        if isinstance(node.op, ConstOp):
            return node.op.array
        self.allowance.spend("computing a constant", work=sum(map(work_of, order)))
        self.allowance.check("computing a constant", sum(map(nbytes_of, order)), self.allowance.nbytes, "bytes")
        return evaluate([node], values)[0]


def depends_on(node: Node, holds: Callable[[Node], bool], answers: dict[Node, bool]) -> bool:
    """Return True if `holds` is true of a node or of anything that it depends on; `answers` caches the results."""
    waiting = [node]
    while waiting:
        x = waiting[-1]
        missing = [y for y in x.operands if y not in answers]
        if missing:
            waiting += missing
        else:
            answers[waiting.pop()] = holds(x) or any(answers[y] for y in x.operands)
    return answers[node]


STEP = 1000  # elements that could be computed while a node is looked at


def work_of(node: Node) -> int:
    """Estimate how many elements a node computes: an upper bound, except for ops of linear families."""
    sizes = [prod(x.spec.shape) for x in node.operands if isinstance(x.spec, Spec)]
    results = [node.spec] if isinstance(node.spec, Spec) else node.spec.specs
    size = sum(prod(spec.shape) for spec in results)
    if isinstance(node.op, LINEAR):
        return STEP + size + sum(sizes)
    return STEP + max(size, 1) * max(sizes, default=1)


def nbytes_of(node: Node) -> int:
    """Return the bytes of a node's value; 0 for a constant, which exists already."""
    return 0 if isinstance(node.op, ConstOp | BroadcastTo | Transpose) else node.nbytes


def fold(x: Any, operands: Sequence[Any], evaluator: Evaluator) -> Any:
    """Return a small result of constants as a Const, so that shape computations end here; quantised filters stay nodes.

    Values are Nodes, lists of them, or None.
    """
    if not isinstance(x, Node) or x.size > FOLDED_SIZE or isinstance(x.op, ConstOp | Dequantize):
        return x
    if any(y is not None and not is_small_constant(y) for y in operands):
        return x
    if evaluator.is_open(x):
        return x
    return Const(np.array(evaluator.computed(x, post_order([x]), {})))


def is_small_constant(x: Any) -> bool:
    if isinstance(x, list):
        return all(map(is_small_constant, x))
    return isinstance(x, Node) and isinstance(x.op, ConstOp) and x.size <= FOLDED_SIZE
