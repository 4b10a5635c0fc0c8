"""by_rows: inputs that are read by rows and outputs that are delivered by rows, so that neither is ever stored whole.

The steps between them are one region in bands (`cgraph.budget.bands.build_bands`): every step that depends on such an
input, up to one value, the join: the output that is delivered, or the last value that is read whole.
"""

from collections.abc import Mapping, Sequence

from cgraph.errors import GraphError
from cgraph.ir.graph import Node, apply
from cgraph.ir.origin import keeps_origin
from cgraph.ir.roots import rebuild
from cgraph.ir.traverse import descendants
from cgraph.memory.layout import Layout, NodeFacts, layout_of
from cgraph.ops.leaf import Var
from cgraph.ops.physical.ports import RowPort, RowSink, RowSource

IMAGE_AXES = 4


@keeps_origin
def by_rows(roots: tuple[Node, ...], pictures: Mapping[int, RowPort], inputs: Sequence[Var]) -> tuple[Node, ...]:
    """Return the same graph with streamed inputs and outputs.

    Parameters
        roots: roots of a logical graph
        pictures: the roots that are delivered by rows
        inputs: the Vars that are read by rows
    """
    asked = {x: apply(RowSource(x, x.spec)) for x in inputs}
    nodes = rebuild(roots, lambda node, new: asked.get(node))
    return tuple(apply(RowSink(pictures[i]), x) if i in pictures else x for i, x in enumerate(nodes))


def is_by_rows(layout: Layout) -> bool:
    """Return True if a step reads rows from a source."""
    return any(isinstance(node.op, RowSource) for node in layout.steps)


def region_of(layout: Layout, facts: NodeFacts) -> tuple[Layout, int, int]:
    """Return the steps in an order in which those of the region are neighbours, and its first and last step.

    Raises
        GraphError: an output is not computed by rows; several values are read whole
    """
    nodes = list(layout.views)
    downstream = descendants(nodes, [node for node in layout.steps if isinstance(node.op, RowSource)])
    steps, inside = set(layout.steps), set[Node]()
    for node in nodes:
        if node in downstream and node in steps and is_cut(node, downstream, inside):
            inside.add(node)
    order = [x for part in (set(nodes) - downstream, inside, downstream - inside) for x in nodes if x in part]
    check_region(order, inside, layout.lasting)
    reordered = layout_of(order, layout.lasting, layout.always, facts)
    first = next(t for t, node in enumerate(reordered.steps) if node in inside)
    return reordered, first, first + len(inside) - 1


def is_cut(node: Node, downstream: set[Node], inside: set[Node]) -> bool:
    """Return True if a step can run in bands of rows."""
    cut = node.op.cut(*(x.spec for x in node.operands))
    if cut is None:
        return False
    return all(x in inside and table is not None for x, table in zip(node.operands, cut.reads) if x in downstream)


def check_region(order: Sequence[Node], inside: set[Node], lasting: Sequence[Node]) -> None:
    """Raise GraphError unless exactly one value of the region is read whole or delivered."""
    for node in order:
        if isinstance(node.op, RowSink) and node not in inside:
            early = next(x for x in order if x not in inside and any(y in inside for y in x.operands))
            raise GraphError(
                f"{node.op.port.name} cannot be streamed by rows: {early.name} at {early.where} reads whole images. "
                "Remove it from rows="
            )
    outside = {x for node in order if node not in inside for x in node.operands} | set(lasting)
    joins = [node for node in order if node in inside and node in outside]
    if len(joins) > 1:
        named = ", ".join(f"{x.name} at {x.where}" for x in joins[:4])
        raise GraphError(f"streamed rows must lead to one value, not to {named}. Name fewer inputs in rows=")
