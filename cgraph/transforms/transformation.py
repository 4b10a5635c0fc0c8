"""Transformation: a function made of a function, applied inside a trace, or compiled when called outside of one."""

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from cgraph.ir.graph import Node
from cgraph.ir.roots import rebuild
from cgraph.ir.tracing import TRACE
from cgraph.transforms.compile_function import CompiledFunction, recipe_of
from cgraph.transforms.leaves import node_of, tracer_of
from cgraph.transforms.trace import FunctionTrace, nodes_in
from cgraph.transforms.tracer import Tracer
from cgraph.transforms.trees import flatten, streams_in, unflatten


class Transformation:
    """A function that calls another one in a trace of its own and changes the graph that it builds.

    Fields
        f: the function
        apply: takes trees of traced arrays, within a trace
        recipe: the Python function at the bottom, and the transformations from there
    """

    def __init__(self, f: Callable, apply: Callable, step: tuple) -> None:
        base, steps = recipe_of(f)
        self.f, self.apply, self.recipe = f, apply, (base, (*step, steps))
        numbers, names = getattr(f, "static_numbers", ()), getattr(f, "static_names", ())
        self.static_numbers, self.static_names = numbers, names
        update_wrapper(self, f, updated=())
        self.__wrapped__ = f
        self._compiled = CompiledFunction(apply, tuple(numbers), tuple(names), {}, self.recipe)

    def __repr__(self) -> str:
        return f"<{self.recipe[1][0]} of {getattr(self.f, '__qualname__', repr(self.f))}>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Apply it to arrays at once, to nodes as a graph, and in a traced function as a part of that."""
        return self._compiled(*args, **kwargs)


class InnerCall:
    """One call of a function in a trace of its own, with some leaves replaced by placeholders. Mutable: it runs once.

    Fields
        outer, trace: the trace in progress, and the function's own
    """

    def __init__(self, f: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.f, self.args, self.kwargs = f, tuple(args), kwargs
        self.outer, self.trace = TRACE.get(), FunctionTrace()

    def run(self, placeholders: dict[int, Node], at: Sequence[Any]) -> tuple[list[Any], Any, list[Node]]:
        """Return leaves and structure of the result, nodes in place of tracers, and the keys of random streams.

        Parameters
            placeholders: nodes that replace leaves, by position among `at`
            at: the leaves of all arguments, in order
        """

        def work() -> tuple[list[Any], Any, list[Node]]:
            new = [self._inside(x, placeholders.get(i)) for i, x in enumerate(at)]
            structure = flatten((self.args, self.kwargs), [])
            args, kwargs = unflatten(structure, iter(new))
            leaves: list[Any] = []
            form = flatten(self.f(*args, **kwargs), leaves)
            return nodes_in(leaves, []), form, [node_of(stream.key) for stream in streams_in((args, kwargs))]

        return self.trace.run(work)

    def _inside(self, x: Any, node: Node | None) -> Any:
        """Return a leaf as the function gets it."""
        if node is not None:
            return tracer_of(self.trace, x, node)
        return tracer_of(self.trace, x, x.node) if isinstance(x, Tracer) else x

    def advance_streams(self, keys: Sequence[Node]) -> None:
        """Give the random streams among the arguments their new keys."""
        for stream, key in zip(streams_in((self.args, self.kwargs)), keys):
            stream.key = self.outer.tracer(key)


def substitute(nodes: Sequence[Node], new: dict[Node, Node]) -> list[Node]:
    """Return nodes with placeholders replaced."""
    return list(rebuild(tuple(nodes), lambda node, _: new.get(node)))


def leaves_of(tree: Any) -> list[Any]:
    """Return the leaves of a tree."""
    leaves: list[Any] = []
    flatten(tree, leaves)
    return leaves
