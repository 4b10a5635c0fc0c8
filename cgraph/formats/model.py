"""Model: a graph read from a file, with its inputs and outputs by name."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cgraph.function import Function, compile
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Var


@dataclass(frozen=True, eq=False)
class Model:
    """A network from outside as a graph of this library.

    Fields
        inputs: Vars, named as in the file
        outputs: nodes, in the file's order
        names: the outputs' names
        values: every named value of the file's main graph
        updates: update edges, for what is kept from run to run
        fixed: inputs whose given value decided a shape; the graph is right for that value alone
    """

    inputs: tuple[Var, ...]
    outputs: tuple[Node, ...]
    names: tuple[str, ...]
    values: dict[str, Any] = field(default_factory=dict, repr=False)
    updates: dict[Var, Node] = field(default_factory=dict, repr=False)
    fixed: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    def compile(self, **options: Any) -> Function:
        """A Function of the inputs that returns a list of the outputs; options as for `cgraph.compile`."""
        return compile(list(self.outputs), inputs=self.inputs, updates=self.updates, **options)
