"""The reference engine: every op runs its NumPy reference implementation (`meaning`), without a memory plan."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import setitem
from typing import Any, cast

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Var, VarOp
from cgraph.planning.options import CompileOptions, Request
from cgraph.record import Record
from cgraph.storage.cell import CellValue, unassigned


def evaluate(outputs: Sequence[Node], values: Mapping[Node, np.ndarray] | None = None) -> list[np.ndarray]:
    """Return the outputs' values, each op computed by `meaning`. `values` overrides Vars; other Vars are read from
    their cells.
    """
    values = values or {}
    order = post_order(outputs)
    last_user = {x: node for node in order for x in node.operands}
    value_by_node: dict[Node, Any] = {}
    for node in order:
        value_by_node[node] = value_of(node, values, value_by_node)
        for x in node.operands:
            if last_user[x] is node and x in value_by_node and not any(x is y for y in outputs):
                del value_by_node[x]
    return [value_by_node[x] for x in outputs]


def value_of(node: Node, values: Mapping[Node, np.ndarray], operand_values: Mapping[Node, Any]) -> Any:
    """Return one node's value, given the values of its operands."""
    if not isinstance(node.op, VarOp):
        with np.errstate(all="ignore"):
            value = node.op.meaning(*(operand_values[x] for x in node.operands))
        return value if isinstance(value, tuple) else np.asarray(value, node.dtype)
    if node in values:
        return values[node]
    if node.op.cell.array is None:
        raise unassigned(cast(Var, node))
    return node.op.cell.array.copy()


class ReferenceEngine(Record):
    """Runs a graph unlowered, by `meaning`; plans nothing."""

    name = "reference"
    feeds_rows = False
    refuses = ("budget", "precision", "weights", "weights_dtype")
    alignment = 1

    def lower(self, roots: tuple[Node, ...], options: CompileOptions) -> tuple[Node, ...]:
        return roots

    def plan(self, request: Request, options: CompileOptions) -> None:
        """Return None: NumPy allocates."""

    def code(self, request: Request, compiled: None) -> Request:
        """Return the request itself."""
        return request

    def program(self, code: Request) -> "ReferenceProgram":
        return ReferenceProgram(code)


class ReferenceProgram(Record, eq=False):
    """The request whose nodes a run evaluates."""

    code: Request
    on_host = ()
    own_array = None

    def instance(self, memory: np.ndarray | None = None) -> "ReferenceInstance":
        return ReferenceInstance(self.code)


class ReferenceInstance:
    """Values of one run. Mutable: `bind` sets the Vars' values, `run` computes the others."""

    waited = 0.0
    results = ()

    def __init__(self, request: Request) -> None:
        self.request = request
        self.values: dict[Node, np.ndarray] = {}
        self._vars: Mapping[Node, Any] = {}
        self._targets: list[np.ndarray] = []

    def bind(self, inputs: Mapping[Node, np.ndarray], cells: Mapping[Var, CellValue], done: np.ndarray) -> None:
        self._targets = [*(cells[x].writable(x.spec, done) for x in self.request.updates), done]
        self._vars = {**{x: value.array for x, value in cells.items()}, **inputs}

    def write_to(self, arrays: Mapping[Any, np.ndarray]) -> None:
        """Do nothing, since there are no `results`."""

    def direct_run(self, *_: Any) -> None:
        """Return None: a run takes longer than the code around it."""

    def run(
        self, steps: tuple[int, ...] | None = None, write: bool = True, complete: Callable[[Any], None] | None = None
    ) -> None:
        roots = self.request.roots
        self.values = {x: np.array(value) for x, value in zip(roots, evaluate(roots, self._vars))}
        updates: list[Any] = [*(self.values[x] for x in self.request.updates.values()), 1]
        if write:  # in one call of C code, within which no signal is handled
            deque(map(setitem, self._targets, repeat(...), updates), maxlen=0)  # type: ignore[arg-type]

    def recorded(self) -> tuple[()]:
        self.run(write=False)
        return ()

    def makes(self, node: Node) -> bool:
        return True

    def owns(self, node: Node) -> bool:
        return True

    def read(self, node: Node) -> np.ndarray:
        return self.values[node]
