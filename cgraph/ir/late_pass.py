"""Late passes: a pass whose module is imported when a graph has an op that it may replace.

    fold_norm = LatePass("cgraph.passes.fold_norm", "BatchNorm")
    roots = fold_norm(roots)

A graph without any of its ops is returned as it is, so a small graph neither loads nor runs most passes. The same rules
hold as for import statements: no import runs up (tests/packaging/test_imports.py).
"""

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

from cgraph.ir.graph import Node
from cgraph.ir.roots import Roots


class LatePass:
    """A pass by the name of its function.

    Parameters
        place: ``package.module`` of a function with the name of its module, or ``package.module:function``
        ops: names of classes of ops, or of their base classes, one of which a graph needs; none for any graph
    """

    def __init__(self, place: str, *ops: str) -> None:
        self.module, _, function = place.partition(":")
        self.__name__ = function or self.module.rpartition(".")[2]
        self.ops = frozenset(ops)

    @cached_property
    def function(self) -> Callable[..., tuple[Node, ...]]:
        """The pass itself; imports its module."""
        function: Callable[..., tuple[Node, ...]] = getattr(import_module(self.module), self.__name__)
        return function

    def concerns(self, graph: Roots) -> bool:
        """Return True if the graph has an op that the pass may replace."""
        return not (self.ops and self.ops.isdisjoint(graph.kind_names))

    def __call__(self, outputs: tuple[Node, ...], *arguments: Any) -> tuple[Node, ...]:
        """Return the graph after the pass.

        Parameters
            arguments: further ones of the function, such as a target
        """
        graph = Roots.of(outputs)
        return self.function(graph, *arguments) if self.concerns(graph) else graph
