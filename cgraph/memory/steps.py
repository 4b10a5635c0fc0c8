"""The steps of a plan, each with its places."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cgraph.ir.graph import Node
from cgraph.ir.work import Step
from cgraph.kernels.kernel import ARENA, Pointer, View, contiguous
from cgraph.memory.layout import Layout
from cgraph.memory.problem import Plan
from cgraph.memory.usage import Usage

Span = tuple[int, int]  # first byte in the arena, bytes


def steps_of(layout: Layout, usage: Usage, plan: Plan, views: Mapping[Node, Any]) -> Iterator[Step]:
    """All steps in running order."""
    dead: dict[int, list[Span]] = {}
    kept = {usage.operand_of[i] for i, v in enumerate(layout.values) if v.kept}
    for i, (x, at) in enumerate(zip(usage.problem.operands, plan.offsets)):
        if i not in kept:
            dead.setdefault(x.interval.last, []).append((at, x.nbytes))
    for t, node in enumerate(layout.steps):
        xs = tuple([views[x] for x in node.operands])
        workspace = layout.workspace(node, usage, plan)
        yield Step(node, layout.works[node], views[node], xs, workspace, partial(bytes_at, dead.get(t, ())))


def bytes_at(spans: Sequence[Span]) -> list[View]:
    """Spans of the arena as bytes."""
    return [contiguous(Pointer(ARENA, at), (nbytes,), "u1") for at, nbytes in spans]
