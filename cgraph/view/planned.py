"""Boxes of a compiled Function, from its plan, schedule and views."""

from collections import defaultdict

import numpy as np

from cgraph.errors import GraphError
from cgraph.function import Function
from cgraph.ir.graph import Node, public
from cgraph.memory.layout import owner_of
from cgraph.planning.compiled import Compiled
from cgraph.view.blocks import memory_svg
from cgraph.view.boxes import VALUE, WORKSPACE, Box, MemoryPicture, blocks_of, memory_with
from cgraph.view.sheet import Svg

Shown = Function | Compiled


@public
def function_svg(shown: Shown, title: str = "") -> Svg:
    """Return the memory plan of a Function as an SVG text: see `cgraph.view.blocks`."""
    return memory_svg(memory_of(shown), title)


def memory_of(shown: Shown) -> MemoryPicture:
    """Return the boxes of a Function: first its steps in order, then the workspaces. Time O(n log n)."""
    compiled = compiled_of(shown)
    blocks = blocks_of(compiled.usage.problem, compiled.plan)
    views = views_by_owner(compiled)
    count = len(compiled.layout.steps)
    nodes = [*compiled.layout.steps, *compiled.layout.workspace_of]
    boxes = [_box(compiled, i, node, blocks, views[node] if i < count else None) for i, node in enumerate(nodes)]
    problem, reserved = compiled.usage.problem, _reserved(compiled, blocks)
    return memory_with(problem, compiled.plan, boxes, reserved, compiled.lower_bound)


def compiled_of(shown: Shown) -> Compiled:
    """Return the plan of a Function. GraphError if it has none, or several."""
    if isinstance(shown, Compiled):
        return shown
    if not isinstance(shown, Function):
        raise GraphError(
            f"{shown!r:.90} has a plan for each size or structure of its arguments. Pass one of its Functions: "
            "function.at(n=4) of a function with sizes, function.compiled(*args) of a function of cg.jit"
        )
    if shown.compiled is None:
        raise GraphError("the reference engine has no memory plan to show; compile for another engine")
    return shown.compiled


def views_by_owner(compiled: Compiled) -> dict[Node, list[Node]]:
    """Return the nodes without bytes of their own, by the node whose bytes they refer to."""
    views: dict[Node, list[Node]] = defaultdict(list)
    for node, view in compiled.layout.views.items():
        owner = owner_of(view)
        if owner is not node:
            views[owner].append(node)
    return views


def _box(compiled: Compiled, i: int, node: Node, blocks: list[int], views: list[Node] | None) -> Box:
    """Return the box of value i, which `node` computes; `views` is None for a workspace."""
    usage, value = compiled.usage, compiled.usage.values[i]
    return Box(
        node.title if views is not None else f"{node.title} workspace",
        str(node.spec) if views is not None else "",
        node.place,
        value.nbytes,
        usage.offset(compiled.plan, i),
        value.step,
        value.last,
        usage.operand_of[i],
        blocks[usage.operand_of[i]],
        VALUE if views is not None else WORKSPACE,
        usage.shared[i],
        usage.inside[i],
        tuple(f"{x.title} {x.spec} at {x.place}" for x in views or ()),
    )


def _reserved(compiled: Compiled, blocks: list[int]) -> list[Box]:
    """Return the operands that hold more than one value."""
    operands = compiled.usage.problem.operands
    count = np.bincount(np.array(compiled.usage.operand_of, np.int64), minlength=len(operands))
    places = zip(operands, compiled.plan.offsets, blocks)
    return [
        Box(x.name, "", "", x.nbytes, at, x.interval.first, x.interval.last, i, block)
        for i, (x, at, block) in enumerate(places)
        if count[i] > 1
    ]
