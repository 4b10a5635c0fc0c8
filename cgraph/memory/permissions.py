"""Lower bound of a schedule's plans for every use of the permissions to overwrite and to join in place.

At a step, values in use have bytes of their own except for two kinds of pairs: the value being written and an operand
that it may overwrite; and a concat result and a part of it, while both are in use. Counting only one of each pair gives
a bound for every use of the permissions.

Source: operator breadth of Pisarchyk and Lee 2020, arXiv:2001.03288; the two permissions are this project's.
Time O(n log n) for n values.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from cgraph.memory.usage import StepValue
from cgraph.system.alignment import round_up


def permitted_lower_bound(values: Sequence[StepValue], alignment: int) -> int:
    """Return the bytes that every plan of these values needs."""
    nbytes = aligned_sizes(values, alignment)
    ends = max((v.last for v in values), default=-1) + 2
    change = np.zeros(ends, np.int64)  # change of the bytes in use, from each step on
    for value, size in zip(values, nbytes):
        change[value.step] += size
        change[value.last + 1] -= size
        overwritten = max((nbytes[x] for x in value.overwritable if may_be_overwritten(values[x], value)), default=0)
        if value.over:
            other = nbytes[value.over.fork]
            overwritten = max(overwritten, size + other - max(size, value.over.ahead + other))
        change[value.step] -= overwritten
        change[value.step + 1] += overwritten
    for x, whole in wholes_of(values).items():
        for first, last in merge_ranges((max(values[x].step, v.step), min(values[x].last, v.last)) for v in whole):
            change[first] -= nbytes[x]
            change[last + 1] += nbytes[x]
    most = int(change.cumsum().max(initial=0))
    return round_up(most, alignment)


def may_be_overwritten(operand: StepValue, by: StepValue) -> bool:
    """Return True if no step reads the operand after the step that would overwrite it."""
    return not operand.lasting and operand.last == by.step and operand.nbytes == by.nbytes


def aligned_sizes(values: Sequence[StepValue], alignment: int) -> list[int]:
    """Return the bytes of each value, rounded up, except values that may be inside another, at any byte of it."""
    inside = {x for value in values for x, _ in value.parts}
    sizes = []
    for i, value in enumerate(values):
        if i in inside or any(x in inside for x in value.overwritable):
            inside.add(i)
        sizes.append(value.nbytes if i in inside else round_up(value.nbytes, alignment))
    return sizes


def wholes_of(values: Sequence[StepValue]) -> dict[int, list[StepValue]]:
    """Return, for each part, the concat results that it may be computed inside."""
    wholes: dict[int, list[StepValue]] = {}
    for value in values:
        for x, _ in value.parts:
            wholes.setdefault(x, []).append(value)
    return wholes


def merge_ranges(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges of steps ``first..last`` without overlaps."""
    ranges: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(ranges[-1][1], last)
        else:
            ranges.append((first, last))
    return ranges
