"""From a schedule to a planning problem: owners of bytes, usage intervals, and sharing by permission.

Values are plain records here, without nodes or ops: what a step writes and reads, and how a value's bytes relate to
those of another. Three relations save bytes:
- an *alias* is a view into its owner's bytes and needs none of its own;
- an *overwriting* value takes the exact bytes of an operand that is read for the last time by the op that makes it;
- a *part* is computed inside the result of the concat that reads it.
The last two are permissions of the op; `usage_of` applies them where they are legal, and `memory.check` checks the
result.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cgraph.ir.bands import InPlaceJoin
from cgraph.memory.pieces import Above, Span, pieces_of
from cgraph.memory.problem import Plan, Problem, ProblemOperand, Spans, UsageInterval, round_sizes
from cgraph.system.alignment import round_up


@dataclass
class StepValue:
    """Bytes that one step writes. Changes while usage is computed.

    Fields
        nbytes: bytes of the value
        step: the step that writes it
        name: used in pictures and messages
        last: the last step that reads it or a view of it
        lasting: alive to the end: an output, or the source of an update edge
        overwritable: values whose exact bytes this one may use
        parts: values that may be computed inside this one, each with its byte offset
        over: a value that this one may overlap while it is read
    """

    nbytes: int
    step: int
    name: str
    last: int
    lasting: bool = False
    overwritable: tuple[int, ...] = ()
    parts: tuple[tuple[int, int], ...] = ()
    over: InPlaceJoin | None = None


@dataclass
class Usage:
    """The operand of the problem that holds each value, and the value's offset inside it.

    Fields
        values: the values, as passed to `usage_of`
        alignment: alignment of the problem
        roots: for each operand, the value whose bytes contain all of it
        first, last: for each value that is a root, the steps in which the operand is in use
        operand_of: for each value, the operand's index in `problem`
        delta: for each value, its first byte inside the operand
        shared: for each value, the value whose bytes it took over, or -1
        inside: for each value, the concat result it is computed inside, or -1
        pieces: the problem if values overlap others, so that some have several operands
    """

    values: Sequence[StepValue]
    alignment: int
    roots: list[int]
    first: list[int]
    last: list[int]
    operand_of: list[int]
    delta: list[int]
    shared: list[int]
    inside: list[int]
    pieces: Problem | None = None

    @cached_property
    def problem(self) -> Problem:
        """The problem that a strategy gets: most arrangements are dropped earlier, by their bound."""
        if self.pieces is not None:
            return self.pieces
        return Problem(
            tuple(
                [
                    ProblemOperand(
                        self.values[i].nbytes, UsageInterval(self.first[i], self.last[i]), self.values[i].name
                    )
                    for i in self.roots
                ]
            ),
            self.alignment,
        )

    @cached_property
    def spans(self) -> Spans:
        """The same for bounds."""
        if self.pieces is not None:
            return Spans(self.pieces.nbytes, self.pieces.first, self.pieces.last)
        nbytes = round_sizes([self.values[i].nbytes for i in self.roots], self.alignment)
        first, last = (np.array([x[i] for i in self.roots], np.int64) for x in (self.first, self.last))
        return Spans(nbytes, first, last)

    def offset(self, plan: Plan, value: int) -> int:
        """Return the first byte of a value in the arena."""
        return plan.offsets[self.operand_of[value]] + self.delta[value]


def usage_of(
    values: Sequence[StepValue], alignment: int, overwrite: bool = True, join: bool | Collection[int] = True
) -> Usage:
    """Return the planning problem of these values, in the order in which they are written.

    `overwrite` and `join` say whether to use the permissions to overwrite and to compute parts in place; `join` may
    name the values whose parts are computed in place.
    """
    joined = range(len(values) if join is True else 0) if isinstance(join, bool) else join
    groups = _SharedBytes(values)
    for i, value in enumerate(values):
        if value.parts and i in joined:
            groups.join(i)
        if overwrite and value.overwritable:
            groups.overwrite(i)
    return groups.usage(alignment, overwrite)


class _SharedBytes:
    """Groups of values that share bytes. Changes: grows. Every group has a root whose bytes contain all members.

    `active` lists, for each root, the members that a later step may still read: only they can prevent sharing. A value
    that is alone in its group is in neither list.
    """

    def __init__(self, values: Sequence[StepValue]) -> None:
        self.values = values
        self.root = list(range(len(values)))
        self.delta = [0] * len(values)
        self.first = [v.step for v in values]
        self.last = [v.last for v in values]
        self.active: dict[int, list[int]] = {}
        self.members: dict[int, list[int]] = {}
        self.shared = [-1] * len(values)
        self.inside = [-1] * len(values)

    def overwrite(self, i: int) -> None:
        """Take the bytes of the first operand that allows it."""
        value = self.values[i]
        if self.root[i] != i or i in self.members:
            return
        for x in value.overwritable:
            if self._may_overwrite(value, x):
                self.shared[i] = x
                self._move([i], self.root[x], self.delta[x])
                return

    def _may_overwrite(self, value: StepValue, x: int) -> bool:
        operand = self.values[x]
        if operand.lasting or operand.last != value.step or operand.nbytes != value.nbytes:
            return False
        root, low = self.root[x], self.delta[x]
        active = [
            m for m in self.active.get(root, (root,)) if self.values[m].lasting or self.values[m].last >= value.step
        ]
        self.active[root] = active
        for m in active:
            apart = self.delta[m] >= low + operand.nbytes or self.delta[m] + self.values[m].nbytes <= low
            if m != x and not apart:
                return False
        return True

    def join(self, i: int) -> None:
        """Place the parts of a concat result inside it, as far as no other value claims their bytes."""
        for x, at in self.values[i].parts:
            if self.root[x] != x or x == i or self.values[x].nbytes == 0:
                continue
            self.inside[x] = i
            self._move(self.members.get(x, [x]), i, at)

    def _move(self, members: list[int], root: int, by: int) -> None:
        """Move all members of one group into another, `by` bytes further on."""
        old = self.root[members[0]]
        for m in members:
            self.root[m] = root
            self.delta[m] += by
        self.members.setdefault(root, [root]).extend(members)
        self.active.setdefault(root, [root]).extend(self.active.get(old, (old,)))
        self.first[root] = min(self.first[root], self.first[old])
        self.last[root] = max(self.last[root], self.last[old])

    def usage(self, alignment: int, overwrite: bool) -> Usage:
        """Return one operand of the planning problem for each root, or several for roots that overlap others for a
        step.
        """
        roots = [i for i, root in enumerate(self.root) if root == i]
        place, pieces = dict(zip(roots, range(len(roots)))), None
        overs = self.overs(alignment) if overwrite and any(value.over for value in self.values) else {}
        if overs:
            spans = {i: Span(self.values[i].name, self.values[i].nbytes, self.first[i], self.last[i]) for i in roots}
            operands, place, ties = pieces_of(spans, overs)
            pieces = Problem(tuple(operands), alignment, ties)
        at = [place[root] for root in self.root]
        return Usage(
            self.values, alignment, roots, self.first, self.last, at, self.delta, self.shared, self.inside, pieces
        )

    def overs(self, alignment: int) -> dict[int, Above]:
        """Return the roots that each root overlaps; both begin at multiples of the alignment."""
        overs = {}
        for i, value in enumerate(self.values):
            if value.over and self.is_over(i):
                fork = value.over.fork
                apart = round_up(self.delta[i] + value.over.ahead - self.delta[fork], alignment)
                stop = apart + self.delta[fork] + self.values[fork].nbytes
                overs[self.root[i]] = Above(self.root[fork], apart, stop)
        return overs

    def is_over(self, i: int) -> bool:
        """Return True if a value may overlap another that its step reads last; both may be members of others."""
        over, step = self.values[i].over, self.values[i].step
        if over is None or self.values[over.fork].lasting:
            return False
        own, other = self.root[i], self.root[over.fork]
        used = [m for m in self.members.get(other, (other,)) if self.values[m].last >= step]
        return own != other and self.first[own] == step and self.last[other] == step and used == [over.fork]
