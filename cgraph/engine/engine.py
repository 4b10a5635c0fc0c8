"""What an engine is: it lowers a graph, plans it, makes symbolic code of the plan, and programs that run."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ops.leaf import Var
from cgraph.planning import Compiled
from cgraph.request import Options, Request


class Instance(Protocol):
    """A program with memory of its own. One run at a time.

    Fields
        wrote: the last run has begun to write straight into Vars
    """

    wrote: bool

    def bind(self, arrays: Mapping[Node, np.ndarray]) -> None:
        """The memory of Vars for the runs that follow: what inputs are given and cells hold, in C order."""

    def run(self, steps: tuple[int, ...] | None = None) -> None:
        """Run all steps, or some of them in their order."""

    def owns(self, node: Node) -> bool:
        """The node's value lies in this instance's memory, not in a Var, an input or a constant."""

    def read(self, node: Node) -> np.ndarray:
        """The value of an output or of the source of an update edge, where it lies."""

    def write(self, x: Var, source: Node) -> None:
        """The value of an update edge's source into its Var; only counted as a change where a kernel wrote it there."""


class Program(Protocol):
    """Code with its kernels: what all instances share."""

    @property
    def code(self) -> Any:
        """What it was made of."""

    def instance(self) -> Instance:
        """A program with memory of its own."""


class Engine(Protocol):
    """A device, and how it runs a graph.

    Fields
        name: its key in `cgraph.engine.engines`
        alignment: bytes that the places of values are multiples of
    """

    name: str
    alignment: int

    def lower(self, roots: tuple[Node, ...], options: Options) -> tuple[Node, ...]:
        """The graph as this device computes it: same values, physical layouts."""

    def plan(self, request: Request, options: Options) -> Compiled | None:
        """Where every value lies; None on an engine that plans nothing. BudgetError where it does not fit."""

    def code(self, request: Request, compiled: Any) -> Any:
        """The kernel calls by name, over symbolic addresses."""

    def program(self, code: Any) -> Program:
        """Kernels for that code, compiled where they are not there yet."""
