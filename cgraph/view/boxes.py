"""Boxes of a memory picture: one for each value, steps across and bytes upwards.

Pictures, pages and reports all read these records, so they agree.
"""

from collections.abc import Sequence

import numpy as np

from cgraph.memory.bounds import breadths_at
from cgraph.memory.problem import Plan, Problem
from cgraph.record import Record

VALUE, WORKSPACE = "value", "workspace"


class BoxBytes(Record):
    """The bytes of one value while they are in use; base of `Box`, which documents the fields, and of its row."""

    name: str
    spec: str
    where: str
    nbytes: int
    offset: int
    first: int
    last: int


class Box(BoxBytes):
    """The bytes of one value while they are in use.

    Fields
        name: the op's name, or the name in the planning problem
        spec: ``float32[3,4]``; empty if unknown
        where: the user's file and line; empty if unknown
        nbytes, offset: bytes ``[offset, offset + nbytes)`` of the arena
        first, last: steps, both included
        operand: the operand of the problem that holds it
        block: number of its block; boxes of one block share bytes and have one colour
        kind: `VALUE` or `WORKSPACE`
        over, inside: the box whose bytes it takes over, or inside which it is computed; -1 if none
        views: the other nodes that are views of these bytes
    """

    operand: int
    block: int
    kind: str = VALUE
    over: int = -1
    inside: int = -1
    views: tuple[str, ...] = ()


class MemoryPicture(Record):
    """All boxes of a plan, with its totals.

    Fields
        boxes: one per value
        reserved: one box per operand that several values share: all its bytes, from the first step to the last
        nbytes, strategy, proved: as in the plan
        lower_bound: no plan of this schedule has fewer bytes
        peak, peak_nbytes: the first step with the most bytes in use, and those bytes
        first, last: the first and the last step shown
        changes, in_use: steps at which the bytes in use change, rising, and the bytes from there on, int64 ``[m]``
    """

    boxes: tuple[Box, ...]
    reserved: tuple[Box, ...]
    nbytes: int
    strategy: str
    proved: bool
    lower_bound: int
    peak: int
    peak_nbytes: int
    first: int
    last: int
    changes: np.ndarray
    in_use: np.ndarray

    @property
    def ratio(self) -> float:
        """Plan size over lower bound; 1 if no bytes are needed."""
        return self.nbytes / self.lower_bound if self.lower_bound else 1.0

    def alive(self, step: int) -> list[int]:
        """Return the boxes in use at a step, largest first."""
        boxes = [i for i, x in enumerate(self.boxes) if x.first <= step <= x.last and x.nbytes]
        return sorted(boxes, key=lambda i: (-self.boxes[i].nbytes, i))


def memory_of_plan(problem: Problem, plan: Plan) -> MemoryPicture:
    """Return the boxes of a plan, from sizes and intervals only. Time O(n log n)."""
    blocks = blocks_of(problem, plan)
    boxes = [
        Box(x.name or f"operand {i}", "", "", x.nbytes, at, x.interval.first, x.interval.last, i, blocks[i])
        for i, (x, at) in enumerate(zip(problem.operands, plan.offsets))
    ]
    return memory_with(problem, plan, boxes, [])


def last_drawn_steps(boxes: Sequence[Box]) -> list[int]:
    """Return the last step at which each box is drawn: before another value overwrites it or is computed in it."""
    until = [x.last for x in boxes]
    for i, x in enumerate(boxes):
        for covered, by in ((x.over, x), (i if x.inside >= 0 else -1, boxes[x.inside])):
            if covered >= 0:
                until[covered] = max(boxes[covered].first, min(until[covered], by.first - 1))
    return until


def blocks_of(problem: Problem, plan: Plan) -> list[int]:
    """Return the number of each operand's block.

    In a plan made of blocks (operands begin together or share no byte), operands of one offset are in one block. In any
    other plan each operand is a block of its own.
    """
    sizes: dict[int, int] = {}
    for at, x in zip(plan.offsets, problem.operands):
        if x.nbytes:
            sizes[at] = max(sizes.get(at, 0), x.nbytes)
    starts = sorted(sizes)
    if any(at + sizes[at] > after for at, after in zip(starts, starts[1:])):
        return list(range(len(problem.operands)))
    number = {at: i for i, at in enumerate(starts)}
    return [number[at] if x.nbytes else len(starts) for at, x in zip(plan.offsets, problem.operands)]


def memory_with(
    problem: Problem, plan: Plan, boxes: Sequence[Box], reserved: Sequence[Box], bound: int | None = None
) -> MemoryPicture:
    """Return the boxes of a plan with the bytes in use at every step.

    `bound` is a lower bound of the plans; by default the largest operator breadth of this problem.
    """
    changes = np.unique(np.concatenate((problem.first, problem.last + 1)))
    in_use = breadths_at(problem, changes)
    peak = int(in_use.argmax()) if len(changes) else 0
    most = int(in_use[peak]) if len(changes) else 0
    return MemoryPicture(
        tuple(boxes),
        tuple(reserved),
        plan.nbytes,
        plan.strategy or "plan",
        plan.proved,
        most if bound is None else bound,
        int(changes[peak]) if len(changes) else 0,
        most,
        int(changes[0]) if len(changes) else 0,
        int(changes[-1]) - 1 if len(changes) else 0,
        changes,
        in_use,
    )
