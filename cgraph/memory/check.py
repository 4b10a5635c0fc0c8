"""Independent plan checker: it shares no code with the strategies.

A sweep over the steps keeps the operands in use sorted by offset. They are disjoint until the first mistake, so a
starting operand is compared only with its two neighbours. Time O(n log n).
"""

from bisect import bisect_left

from cgraph.errors import PlanError
from cgraph.memory.problem import Plan, Problem, ProblemOperand


def check_plan(problem: Problem, plan: Plan) -> None:
    """Raise PlanError unless every operand has bytes of its own while it is in use. Operands of no bytes share nothing.

    Raises
        PlanError: two operands in use at one step share bytes; the distance of tied operands is wrong; an offset is
            negative, not aligned, or leaves the arena; offsets are missing; the arena's size is negative
    """
    if len(plan.offsets) != len(problem.operands):
        raise PlanError(f"the plan has {len(plan.offsets)} offsets for {len(problem.operands)} operands")
    if plan.nbytes < 0:
        raise PlanError(f"the arena has {plan.nbytes} bytes")
    for i, (operand, at) in enumerate(zip(problem.operands, plan.offsets)):
        _check_place(i, operand, at, plan.nbytes, problem.alignment)
    _check_sharing(problem.operands, plan.offsets)
    for tied in problem.ties:
        if len({plan.offsets[tie.operand] - tie.at for tie in tied}) > 1:
            named = ", ".join(_span(x.operand, problem.operands[x.operand], plan.offsets[x.operand]) for x in tied)
            raise PlanError(f"{named} do not keep their distances")


def _check_place(i: int, operand: ProblemOperand, at: int, arena: int, alignment: int) -> None:
    if at < 0:
        raise PlanError(f"{_span(i, operand, at)} begins before the arena")
    if at % alignment:
        raise PlanError(f"{_span(i, operand, at)} is not aligned to {alignment} bytes")
    if at + operand.nbytes > arena:
        raise PlanError(f"{_span(i, operand, at)} leaves the arena of {arena} bytes")


def _check_sharing(operands: tuple[ProblemOperand, ...], offsets: tuple[int, ...]) -> None:
    """Raise PlanError if two operands in use at one step share a byte."""
    in_use: list[tuple[int, int]] = []  # (offset, position), sorted
    for step, starts, i in _events(operands):
        key = (offsets[i], i)
        at = bisect_left(in_use, key)
        if not starts:
            del in_use[at]
            continue
        for _, other in in_use[max(at - 1, 0) : at + 1]:
            _check_pair(operands, offsets, other, i, step)
        in_use.insert(at, key)


def _events(operands: tuple[ProblemOperand, ...]) -> list[tuple[int, int, int]]:
    """Return (step, 1 if it starts or 0 if it has ended, position), sorted: operands that end free their bytes
    first.
    """
    events = []
    for i, operand in enumerate(operands):
        if operand.nbytes:
            events.append((operand.interval.first, 1, i))
            events.append((operand.interval.last + 1, 0, i))
    events.sort()
    return events


def _check_pair(operands: tuple[ProblemOperand, ...], offsets: tuple[int, ...], i: int, k: int, step: int) -> None:
    if offsets[i] + operands[i].nbytes <= offsets[k] or offsets[k] + operands[k].nbytes <= offsets[i]:
        return
    one, other = _span(i, operands[i], offsets[i]), _span(k, operands[k], offsets[k])
    raise PlanError(f"{one} and {other} share bytes, but both are in use at step {step}")


def _span(i: int, operand: ProblemOperand, at: int) -> str:
    return f"{operand.name or f'operand {i}'} [{at}, {at + operand.nbytes})"
