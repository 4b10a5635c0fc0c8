"""Rematerialisation by segments: values that are read again much later are computed again.

Idea: in a training graph the values of the forward part wait for the backward part, last made, first read. The forward
part is cut into segments. What a later segment reads is kept; everything else in a segment is dropped, and computed
again from what is kept right before the backward part first asks for it. With segments of about sqrt(n) of n equal
values, about 2 sqrt(n) are in use at once in place of n, and every value is computed at most twice.

Source: Chen, Xu, Zhang and Guestrin 2016, arXiv:1604.06174.
Time: O(n log n) for n nodes. What it does not do: look for the cheapest values to compute again; nest segments.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from cgraph.memory.layout import Layout, owner_of, producers_of


def in_segments(layout: Layout, segments: int) -> list[int]:
    """Return the steps of a layout by position, with forward steps a second time where they are read again.

    Never fewer steps. Not computed again: what is an output, what is impure, what reads a Var that the forward part has
    written already, and the last segment, which is read at once.

    Parameters
        segments: of about equal bytes that wait, at least 2
    """
    return Forward(layout).order(segments)


class Forward:
    """The forward part of a schedule, up to the turn: the step with most bytes waiting after it.

    Fields
        producer: per node, the step whose bytes it shows, -1 for leaves
        reads: per step, the steps that it reads
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.values = layout.values[: len(layout.steps)]
        self.producer = producers_of(layout.views, layout.value_of)
        self.reads = [[self.producer[x] for x in n.op.reads(n.operands) if self.producer[x] >= 0] for n in layout.steps]

    @cached_property
    def turn(self) -> int:
        waiting = self.bytes_across([(t, v.last) for t, v in enumerate(self.values)])
        return max(range(len(waiting)), key=waiting.__getitem__, default=-1)  # -1: nothing runs

    @cached_property
    def last(self) -> list[int]:
        """Per step, the last one up to the turn that reads it."""
        last = list(range(len(self.values)))
        for t in range(self.turn + 1):
            for x in self.reads[t]:
                last[x] = t
        return last

    @cached_property
    def waiting(self) -> set[int]:
        """Steps up to the turn whose values are read behind it."""
        return {t for t in range(self.turn + 1) if self.values[t].last > self.turn and not self.values[t].lasting}

    @cached_property
    def pinned(self) -> set[int]:
        """Steps up to the turn that must not run twice."""
        written = {owner_of(self.layout.views[n]) for n in self.layout.steps[: self.turn + 1] if n.op.writes}
        views = self.layout.views
        return {
            t
            for t, node in enumerate(self.layout.steps[: self.turn + 1])
            if self.values[t].lasting
            or not node.op.pure
            or node.op.writes
            or (written and any(owner_of(views[x]) in written for x in node.operands))
        }

    def bytes_across(self, spans: Sequence[tuple[int, int]]) -> list[int]:
        """Behind each step, the bytes of values that are not kept, made at or before it and read later."""
        change = [0] * (len(spans) + 1)
        for t, (first, last) in enumerate(spans):
            if not self.values[t].lasting and last > first:
                change[first] += self.values[t].nbytes
                change[last] -= self.values[t].nbytes
        return list(accumulate(change))[: len(spans)]

    def cuts(self, segments: int) -> list[int]:
        """The last step of each segment but the last: where fewest bytes must be kept, once half a segment is full."""
        limit = max(sum(self.values[t].nbytes for t in self.waiting) / segments, 1)
        across = self.bytes_across(list(enumerate(self.last)))
        cuts: list[int] = []
        full, best, behind = 0, -1, 0
        for t in range(self.turn):
            size = self.values[t].nbytes if t in self.waiting else 0
            full, behind = full + size, behind + size
            if 2 * full >= limit and (best < 0 or across[t] < across[best]):
                best, behind = t, 0
            if full >= limit:
                cuts.append(best)
                full, best = behind, -1
                behind = 0
        return cuts

    def dropped(self, segments: int) -> list[list[int]]:
        """Per segment, the steps to run again, rising."""
        cuts = self.cuts(segments)
        segments_again: list[list[int]] = []
        for first, last in zip([0, *(c + 1 for c in cuts)], cuts):
            again: list[int] = []
            needed: set[int] = set()
            for t in range(last, first - 1, -1):
                read_by_later_segment = self.last[t] > last
                if t not in self.pinned and not read_by_later_segment and (t in self.waiting or t in needed):
                    again.append(t)
                    needed.update(self.reads[t])
            segments_again.append(again[::-1])
        return segments_again

    def order(self, segments: int) -> list[int]:
        """All steps, and each segment once more right before the first step behind the turn that asks for it."""
        dropped = self.dropped(segments)
        segment_of = {t: s for s, steps in enumerate(dropped) for t in steps}
        views, steps = self.layout.views, self.layout.steps
        order = list(range(self.turn + 1))
        waiting = dict.fromkeys(s for s, again in enumerate(dropped) if again)
        for t in range(self.turn + 1, len(steps)):
            needed = [segment_of[x] for x in self.reads[t] if x in segment_of]
            if steps[t].op.writes:  # what reads a Var runs again before the Var is written
                var = owner_of(views[steps[t]])
                needed += [
                    s for s in waiting if any(owner_of(views[x]) is var for i in dropped[s] for x in steps[i].operands)
                ]
            for s in dict.fromkeys(needed):
                if s in waiting:
                    del waiting[s]
                    order += dropped[s]
            order.append(t)
        return order
