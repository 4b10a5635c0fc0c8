"""Operands of values that overlap for one step: pieces with fixed distances.

A value that overlaps another has bytes in common with it only at the step that computes it. So both are cut there into
the bytes that the other needs before, those that the two need at that step, and those that this one needs afterwards.
"""

from collections.abc import Mapping

from cgraph.memory.problem import ProblemOperand, Tie, UsageInterval
from cgraph.record import Record


class Span(Record):
    """Bytes in use for some steps, both included."""

    name: str
    nbytes: int
    first: int
    last: int


class Above(Record):
    """The span that another overlaps at its first step, which is the last step of that span.

    Fields
        other: number of that span
        apart: bytes from the beginning of this span to that of the other
        stop: bytes from the beginning of this span to the end of what is still read
    """

    other: int
    apart: int
    stop: int


def pieces_of(
    spans: Mapping[int, Span], overs: Mapping[int, Above]
) -> tuple[list[ProblemOperand], dict[int, int], tuple[tuple[Tie, ...], ...]]:
    """Return the operands, the operand of each span, and the operands that keep their distances.

    Spans come after those that they overlap. The operand of a span begins where the span begins; it is the piece that
    is part of no other span, if there is one.
    """
    covers = {above.other: i for i, above in overs.items()}
    operands, place = list[ProblemOperand](), dict[int, int]()
    ties: dict[int, list[Tie]] = {}  # by the first span of a chain
    chain: dict[int, tuple[int, int]] = {}  # for each span the first of its chain, and bytes from the beginning of that
    for i, span in spans.items():
        first, last = span.first + (i in overs), span.last - (i in covers)
        if i in overs:
            above = overs[i]
            begin, at = chain[above.other]
            chain[i] = begin, at - above.apart
        elif i in covers:
            chain[i] = i, 0
        pieces = [(first, last, span.nbytes, span.name)] if first <= last else []
        if i in overs:
            both = f"{span.name} over {spans[above.other].name}"
            pieces.insert(0, (span.first, span.first, max(span.nbytes, above.stop), both))
        for start, stop, nbytes, name in pieces:
            place[i] = len(operands)
            if i in chain:
                ties.setdefault(chain[i][0], []).append(Tie(len(operands), chain[i][1]))
            operands.append(ProblemOperand(nbytes, UsageInterval(start, stop), name))
    return operands, place, tuple(map(tuple, ties.values()))
