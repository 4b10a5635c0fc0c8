"""The engine interface: lower a graph, plan it, make symbolic code of the plan, and make programs that run."""

from typing import Any, Protocol

from cgraph.engine.instance import Program
from cgraph.ir.graph import Node
from cgraph.planning.compiled import Compiled
from cgraph.planning.options import CompileOptions, Request


class Engine(Protocol):
    """A device and the way it runs a graph.

    Fields
        name: its key in `cgraph.engine.engines`
        alignment: offsets of values are multiples of this number of bytes
        feeds_rows: True if row sources and row sinks may exchange images during a run
    """

    name: str
    alignment: int
    feeds_rows: bool

    @property
    def refuses(self) -> tuple[str, ...]:
        """Options of `cgraph.compile` that the engine does not support."""

    def lower(self, roots: tuple[Node, ...], options: CompileOptions) -> tuple[Node, ...]:
        """Return the graph as this device computes it: same values, physical layouts."""

    def plan(self, request: Request, options: CompileOptions) -> Compiled | None:
        """Return the plan, or None on an engine that plans nothing. Raise BudgetError if no plan fits."""

    def code(self, request: Request, compiled: Any) -> Any:
        """Return the kernel calls by name, over symbolic addresses."""

    def program(self, code: Any) -> Program:
        """Return the code with its kernels; compile those that are not cached."""
