"""Steps of a plan with their addresses."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cgraph.ir.graph import Node
from cgraph.ir.work import PlacedStep
from cgraph.kernels.kernel import ARENA, Pointer, View, contiguous
from cgraph.memory.incremental import cut_out
from cgraph.memory.layout import Layout
from cgraph.memory.problem import Plan, Problem
from cgraph.memory.usage import Usage

Span = tuple[int, int]  # in the arena: the first byte, and the number of bytes or the end


def steps_of(layout: Layout, usage: Usage, plan: Plan, views: Mapping[Node, Any]) -> Iterator[PlacedStep]:
    """Return all steps in running order."""
    dead: dict[int, list[Span]] = {}
    lasting = {usage.operand_of[i] for i, v in enumerate(layout.values) if v.lasting}
    goes_on = continuations(usage.problem, plan)
    for i, (x, at) in enumerate(zip(usage.problem.operands, plan.offsets)):
        if i not in lasting:
            left = cut_out((at, at + x.nbytes), goes_on[i]) if i in goes_on else [(at, at + x.nbytes)]
            dead.setdefault(x.interval.last, []).extend([(low, high - low) for low, high in left])
    for t, node in enumerate(layout.steps):
        xs = tuple([views[x] for x in node.operands])
        workspace = layout.workspace(node, usage, plan)
        yield PlacedStep(node, layout.works[node], views[node], xs, workspace, partial(bytes_at, dead.get(t, ())))


def continuations(problem: Problem, plan: Plan) -> dict[int, list[Span]]:
    """Return, for a tied operand, the bytes ``low, high`` of the operands that begin when it ends."""
    spans_of: dict[int, list[Span]] = {}
    for tied in problem.ties:
        operands = [(x.operand, problem.operands[x.operand]) for x in tied]
        for i, x in operands:
            low, high = plan.offsets[i], plan.offsets[i] + x.nbytes
            after = [k for k, y in operands if y.interval.first == x.interval.last + 1]
            spans = ((plan.offsets[k], plan.offsets[k] + problem.operands[k].nbytes) for k in after)
            spans_of[i] = [(max(low, a), min(high, b)) for a, b in spans if max(low, a) < min(high, b)]
    return spans_of


def bytes_at(spans: Sequence[Span]) -> list[View]:
    """Return spans of the arena as bytes."""
    return [contiguous(Pointer(ARENA, at), (nbytes,), "u1") for at, nbytes in spans]
