"""Operands of values that overlap for one step: pieces with fixed distances.

A value that lies over another has bytes in common with it at the step that makes it, and at no other. So both are cut
there: what the other one needs before, what the two need at that step, what this one needs afterwards.
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
    """What a span lies over at its first step, which is the last of the other one.

    Fields
        other: which span
        apart: bytes from where this one begins to where the other one begins
        stop: bytes from where this one begins to the end of what is still read
    """

    other: int
    apart: int
    stop: int


def pieces_of(
    spans: Mapping[int, Span], overs: Mapping[int, Above]
) -> tuple[list[ProblemOperand], dict[int, int], tuple[tuple[Tie, ...], ...]]:
    """The operands, that of each span, and which of them keep their distances.

    Spans come after those that they lie over. The operand of a span begins where the span begins; it is the piece that
    no other span has a part in, if there is one.
    """
    covers = {above.other: i for i, above in overs.items()}
    operands, place = list[ProblemOperand](), dict[int, int]()
    ties: dict[int, list[Tie]] = {}  # by the first span of a chain
    chain: dict[int, tuple[int, int]] = {}  # of each span the first one, and bytes from where that begins
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
