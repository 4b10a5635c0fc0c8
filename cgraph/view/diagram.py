"""Items of a graph picture: one for each node, with the plan's facts about its bytes."""

from collections.abc import Iterable, Mapping

from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from cgraph.memory.layout import owner_of
from cgraph.ops.leaf import ConstOp, Var, VarOp
from cgraph.record import Record
from cgraph.view.boxes import blocks_of
from cgraph.view.planned import Shown, compiled_of

OP, VIEW, VAR, CONST = "op", "view", "var", "const"


class DiagramItem(Record):
    """One node.

    Fields
        name: the op's name, or the leaf's name
        kind: `OP`, `VIEW` (its bytes are those of another node), `VAR` or `CONST`
        spec: ``float32[3,4]``
        where: the user's file and line
        value: the number in a Const of one element, as text
        nbytes: bytes of the value
        step: its step; -1 for a leaf, a view, and before planning
        box: the position in `Memory.boxes` of the value that contains its bytes, -1 if none
        block: the block of those bytes, -1 if none
        operands: positions in `Diagram.items`
        output: True for an output of the Function
    """

    name: str
    kind: str
    spec: str
    where: str
    value: str
    nbytes: int
    step: int
    box: int
    block: int
    operands: tuple[int, ...]
    output: bool


class Diagram(Record):
    """A graph: items, operands before users, and update edges ``(source, Var)`` as positions in the items."""

    items: tuple[DiagramItem, ...]
    updates: tuple[tuple[int, int], ...]


def diagram_of(shown: Shown) -> Diagram:
    """Return the graph of a Function as it runs. Time O(n)."""
    compiled = compiled_of(shown)
    layout, usage = compiled.layout, compiled.usage
    blocks = blocks_of(usage.problem, compiled.plan)
    box_of = {node: layout.value_of.get(owner_of(view), -1) for node, view in layout.views.items()}
    block_of = {node: blocks[usage.operand_of[i]] for node, i in box_of.items() if i >= 0}
    step_of = {node: t for t, node in enumerate(layout.steps)}
    nodes = list(dict.fromkeys((*layout.views, *compiled.updated)))
    index = {node: i for i, node in enumerate(nodes)}
    outputs = set(compiled.outputs)
    items = []
    for node in nodes:
        view = node not in step_of and bool(node.operands)
        places = step_of.get(node, -1), box_of.get(node, -1), block_of.get(node, -1)
        items.append(_item(node, index, VIEW if view else _kind(node), places, node in outputs))
    updates = tuple((index[x], index[var]) for x, var in zip(compiled.sources, compiled.updated))
    return Diagram(tuple(items), updates)


def diagram_of_nodes(outputs: Iterable[Node], updates: Mapping[Var, Node] | None = None) -> Diagram:
    """Return the user's graph, before any pass. Time O(n)."""
    ends, updates = tuple(outputs), dict(updates or {})
    nodes = post_order((*ends, *updates.values(), *updates))
    index = {node: i for i, node in enumerate(nodes)}
    output_set = set(ends)
    items = tuple(_item(node, index, _kind(node), (-1, -1, -1), node in output_set) for node in nodes)
    return Diagram(items, tuple((index[x], index[var]) for var, x in updates.items()))


def _item(node: Node, index: Mapping[Node, int], kind: str, places: tuple[int, int, int], output: bool) -> DiagramItem:
    operands = tuple(index[x] for x in node.operands)
    return DiagramItem(
        node.title, kind, str(node.spec), node.place, _value(node), node.spec.nbytes, *places, operands, output
    )


def _kind(node: Node) -> str:
    return VAR if isinstance(node.op, VarOp) else CONST if isinstance(node.op, ConstOp) else OP


def _value(node: Node) -> str:
    if isinstance(node.op, ConstOp) and node.op.array.size == 1:
        return f"{node.op.array.item():.6g}"
    return ""
