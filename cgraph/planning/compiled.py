"""A planned graph: engines make programs from it, pictures and reports show it."""

from collections.abc import Iterator, Mapping
from typing import Any

from cgraph.ir.graph import Node
from cgraph.ir.rewrite import with_new_operands
from cgraph.ir.work import PlacedStep
from cgraph.kernels.kernel import Pointer, View
from cgraph.memory.bounds import lower_bound
from cgraph.memory.layout import Layout
from cgraph.memory.permissions import permitted_lower_bound
from cgraph.memory.problem import Plan
from cgraph.memory.steps import steps_of
from cgraph.memory.usage import Usage, usage_of
from cgraph.ops.leaf import Var
from cgraph.record import Record, replace


class Compiled(Record):
    """A planned graph, before it becomes a program.

    Fields
        outputs, sources: physical nodes of the outputs and of the update edges
        updated: the Vars of those edges, in their order
        layout, usage, plan: schedule, planning problem and offsets
        views: the address of every node's value
        order: name of the running order
    """

    outputs: tuple[Node, ...]
    sources: tuple[Node, ...]
    updated: tuple[Var, ...]
    layout: Layout
    usage: Usage
    plan: Plan
    views: Mapping[Node, Any]
    order: str = "depth_first"

    @property
    def steps(self) -> Iterator[PlacedStep]:
        """The steps in running order, each with its addresses."""
        return steps_of(self.layout, self.usage, self.plan, self.views)

    @property
    def inner(self) -> dict[tuple[Node, str], "Compiled"]:
        """The plans of what steps do in their workspaces, such as the bodies of loops."""
        works = ((node, self.layout.works[node]) for node in self.layout.steps)
        return {(node, name): plan for node, work in works for name, plan in work.inner.items()}

    @property
    def nbytes(self) -> int:
        """Bytes of the arena: every intermediate value, output, halo and workspace."""
        return self.plan.nbytes

    @property
    def peak_nbytes(self) -> int:
        """The most bytes in use at any step, with values overwritten or computed in place."""
        return lower_bound(self.usage.problem)

    @property
    def lower_bound(self) -> int:
        """Lower bound of the plans of this schedule, with any use of overwriting and in-place joins."""
        return permitted_lower_bound(self.usage.values, self.usage.problem.alignment)

    @property
    def plain_lower_bound(self) -> int:
        """Lower bound of the plans of this schedule in which nothing is overwritten or computed in place."""
        return lower_bound(usage_of(self.usage.values, self.usage.problem.alignment, False, False).problem)

    @property
    def unshared_nbytes(self) -> int:
        """Bytes if every value has its own."""
        return sum(v.nbytes for v in self.layout.values)


def with_constants(compiled: Compiled, moved: Mapping[Node, Node]) -> Compiled:
    """Return the same plan for a graph with other constants of the same specs instead of some."""
    layout, new = compiled.layout, dict(moved)
    for node in layout.views:  # operands before users
        if node not in new:
            new[node] = with_new_operands(node, tuple(new[x] for x in node.operands))

    def renamed(table: Mapping[Node, Any]) -> dict[Node, Any]:
        return {new[node]: entry for node, entry in table.items() if node in new}  # works are also known of other nodes

    def based(view: View) -> View:
        base = view.at.base
        return replace(view, at=Pointer(new[base], view.at.offset)) if isinstance(base, Node) else view

    def viewed(table: Mapping[Node, View | tuple[View, ...]]) -> dict[Node, Any]:
        return renamed({n: tuple(map(based, v)) if isinstance(v, tuple) else based(v) for n, v in table.items()})

    return replace(
        compiled,
        outputs=tuple(new[x] for x in compiled.outputs),
        sources=tuple(new[x] for x in compiled.sources),
        layout=replace(
            layout,
            steps=tuple(new[x] for x in layout.steps),
            views=viewed(layout.views),
            value_of=renamed(layout.value_of),
            workspace_of=renamed(layout.workspace_of),
            works=renamed(layout.works),
            lasting=tuple(new[x] for x in layout.lasting),
            always=frozenset(new[x] for x in layout.always),
        ),
        views=viewed(compiled.views),
    )
