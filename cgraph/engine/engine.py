"""What an engine is: it lowers a graph, plans it, makes symbolic code of the plan, and programs that run."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ops.leaf import Value, Var
from cgraph.planning import Compiled
from cgraph.request import Options, Request


class Instance(Protocol):
    """A program with memory of its own. One run at a time."""

    def bind(self, given: Mapping[Node, np.ndarray], cells: Mapping[Var, Value], done: np.ndarray) -> None:
        """The memory of Vars for the runs that follow.

        Parameters
            given: what inputs are given
            cells: the other Vars' values, and those of all Vars with an update edge, which take the new values
            done: an int64 word that is set to 1 when all of them have been written
        """

    def run(self, steps: tuple[int, ...] | None = None, write: bool = True) -> None:
        """Run all steps, or some of them in their order; then write what update edges are left, unless told not to.

        What raises an exception before the first Var is written has written none. From then on no Python code runs
        until all are written.
        """

    def makes(self, node: Node) -> bool:
        """A run computes the node's value, which is there only afterwards."""

    def owns(self, node: Node) -> bool:
        """The node's value lies in this instance's memory, not in a Var, an input or a constant."""

    def read(self, node: Node) -> np.ndarray:
        """The value of an output where it lies, not to be written: if a run makes it, after the run, else before it."""


class Program(Protocol):
    """Code with its kernels: what all instances share."""

    @property
    def code(self) -> Any:
        """What it was made of."""

    @property
    def on_host(self) -> tuple[tuple[str, int], ...]:
        """Steps that leave the device: what each is, and the bytes that are carried to the host and back."""

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
