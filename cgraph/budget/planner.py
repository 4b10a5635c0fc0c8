"""Settings shared by all plans of one graph."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from cgraph.ir.graph import Node
from cgraph.memory.auto import auto
from cgraph.memory.layout import Layout, NodeFacts, layout_of
from cgraph.memory.problem import Strategy
from cgraph.memory.smallest import Candidate, Choice, candidates, smallest
from cgraph.record import Record


class Planner(Record, eq=False):
    """Settings shared by all plans of one graph.

    Fields
        strategy: the memory strategy
        alignment: offsets are multiples of it
        facts: views and workspaces of nodes on the target; grows
    """

    strategy: Strategy
    alignment: int
    facts: NodeFacts

    @property
    def is_auto(self) -> bool:
        """Return True if the strategy is `auto`."""
        return self.strategy is auto

    @property
    def quick(self) -> Strategy:
        """The strategy without its exact search."""
        return partial(auto, nodes=0) if self.is_auto else self.strategy

    def layout(
        self,
        order: Sequence[Node],
        lasting: Iterable[Node],
        always: Iterable[Node],
        rows: Collection[Node] = frozenset(),
    ) -> Layout:
        """Return the layout of nodes in running order; see `layout_of`."""
        return layout_of(order, lasting, always, self.facts, rows)

    def candidates(self, order: str, layout: Layout) -> list[Candidate]:
        """Return the candidate ways to share bytes in a layout."""
        return candidates(order, layout, self.alignment)

    def smallest(self, ways: Sequence[Candidate]) -> Choice:
        """Return the smallest plan of these ways."""
        return smallest(ways, self.strategy)
