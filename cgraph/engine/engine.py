"""What an engine is: it lowers a graph, plans it, makes symbolic code of the plan, and programs that run."""

from typing import Any, Protocol

from cgraph.engine.instance import Program
from cgraph.ir.graph import Node
from cgraph.planning.options import CompileOptions, Request
from cgraph.planning.plan import Compiled


class Engine(Protocol):
    """A device, and how it runs a graph.

    Fields
        name: its key in `cgraph.engine.engines`
        alignment: bytes that the places of values are multiples of
        feeds_rows: images may come and go by rows while a run goes on
    """

    name: str
    alignment: int
    feeds_rows: bool

    @property
    def refuses(self) -> tuple[str, ...]:
        """Options of `cgraph.compile` that it cannot follow."""

    def lower(self, roots: tuple[Node, ...], options: CompileOptions) -> tuple[Node, ...]:
        """The graph as this device computes it: same values, physical layouts."""

    def plan(self, request: Request, options: CompileOptions) -> Compiled | None:
        """Where every value lies; None on an engine that plans nothing. BudgetError where it does not fit."""

    def code(self, request: Request, compiled: Any) -> Any:
        """The kernel calls by name, over symbolic addresses."""

    def program(self, code: Any) -> Program:
        """Kernels for that code, compiled where they are not there yet."""
