"""Values that are known while a graph is built from a file: what shapes are computed from ends as constants."""

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

FOLDED_SIZE = 4096  # elements: shape computations are far smaller, weights far larger
LINEAR = (Pointwise, ViewOp, Concat, Take, TakeAlongAxis, Full)
"""Ops that compute in proportion to what they read and write."""


@dataclass(eq=False)
class Evaluator:
    """Values of inputs that are known while building. Changes: `used` grows, the allowance falls.

    Fields
        allowance: what reading the file may still cost
        values: arrays by input name
        used: inputs whose value decided a shape; they must keep it, for the graph is right for no other
        opened: for nodes that were asked about, whether they depend on an input or on chance
        lacking: for nodes that were asked about, whether they depend on an input of unknown value
    """

    allowance: Allowance
    values: Mapping[str, np.ndarray] = field(default_factory=dict)
    used: dict[str, np.ndarray] = field(default_factory=dict)
    opened: dict[Node, bool] = field(default_factory=dict)
    lacking: dict[Node, bool] = field(default_factory=dict)

    def is_open(self, node: Node) -> bool:
        """The value depends on an input, or is another one each time. Every node is looked at once."""
        return depends_on(node, lambda x: isinstance(x, Var) or not x.op.pure, self.opened)

    def lacks(self, node: Node) -> bool:
        """The value depends on an input of unknown value. Every node is looked at once."""
        return depends_on(node, lambda x: isinstance(x, Var) and x.name not in self.values, self.lacking)

    def missing(self, node: Node) -> list[str]:
        """The inputs of unknown value that the value of a node depends on."""
        if not self.lacks(node):
            return []
        return [x.name for x in post_order([node]) if isinstance(x, Var) and x.name not in self.values]

    def array(self, node: Node, why: str) -> np.ndarray:
        """The value of a node now. UnknownError when it depends on an input of unknown value."""
        order = post_order([node])
        leaves = [x for x in order if isinstance(x, Var)]
        missing = self.missing(node)
        if missing:
            raise UnknownError(
                f"{why} must be known when the graph is built, but depends on input {missing[0]!r}",
                constants=missing,
            )
        self.used.update((x.name, self.values[x.name]) for x in leaves)
        return self.computed(node, order, {x: self.values[x.name] for x in leaves})

    def computed(self, node: Node, order: Sequence[Node], values: Mapping[Node, np.ndarray]) -> np.ndarray:
        """The value of a node, of which `order` is all that it depends on; its work and memory are charged first."""
        if isinstance(node.op, ConstOp):
            return node.op.array
        self.allowance.spend("computing a constant", work=sum(map(work_of, order)))
        self.allowance.check("computing a constant", sum(map(nbytes_of, order)), self.allowance.nbytes, "bytes")
        return evaluate([node], values)[0]


def depends_on(node: Node, holds: Callable[[Node], bool], answers: dict[Node, bool]) -> bool:
    """Return True if `holds` is true of a node or of anything that it depends on; `answers` remembers all of them."""
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
    """About how many elements are computed for a node: a bound for any op but those of linear families."""
    sizes = [prod(x.spec.shape) for x in node.operands if isinstance(x.spec, Spec)]
    results = [node.spec] if isinstance(node.spec, Spec) else node.spec.specs
    size = sum(prod(spec.shape) for spec in results)
    if isinstance(node.op, LINEAR):
        return STEP + size + sum(sizes)
    return STEP + max(size, 1) * max(sizes, default=1)


def nbytes_of(node: Node) -> int:
    """Bytes that a node's value takes; a constant's are there already."""
    return 0 if isinstance(node.op, ConstOp | BroadcastTo | Transpose) else node.nbytes


def fold(x: Any, operands: Sequence[Any], evaluator: Evaluator) -> Any:
    """A small result of constants as a Const, so that shape computations end here; quantized filters stay so.

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
