"""Rematerialisation by segments: values that are read again much later are computed again.

Idea: in a training graph the values of the forward part wait for the backward part, which reads the last one first. The
forward part is cut into segments. Values that a later segment reads are stored; all others in a segment are dropped,
and computed again from the stored ones directly before the backward part first needs them. With segments of about
sqrt(n) of n equal values, about 2 sqrt(n) are in use at once instead of n, and every value is computed at most twice.

Source: Chen, Xu, Zhang and Guestrin 2016, arXiv:1604.06174.
Time: O(n log n) for n nodes. Not done: the pass does not search for the cheapest values to compute again, and does not
nest segments.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from cgraph.memory.layout import Layout, owner_of, producers_of


def in_segments(layout: Layout, segments: int) -> list[int]:
    """Return the steps of a layout by position, with forward steps a second time where they are read again.

    Never fewer steps. Not computed again: outputs, impure ops, steps that read a Var which the forward part has written
    already, and the last segment, which is read at once.

    Parameters
        segments: number of segments of about equal waiting bytes, at least 2
    """
    return Forward(layout).order(segments)


class Forward:
    """The forward part of a schedule. It ends at the turn: the step after which the most bytes wait to be read.

    Fields
        producer: for each node, the step whose bytes it refers to, -1 for leaves
        reads: for each step, the steps that it reads
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
        """For each step, the last reader up to the turn."""
        last = list(range(len(self.values)))
        for t in range(self.turn + 1):
            for x in self.reads[t]:
                last[x] = t
        return last

    @cached_property
    def waiting(self) -> set[int]:
        """Steps up to the turn whose values are read after it."""
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
        """Return, after each step, the bytes of waiting values computed so far and read later, without stored ones."""
        change = [0] * (len(spans) + 1)
        for t, (first, last) in enumerate(spans):
            if not self.values[t].lasting and last > first:
                change[first] += self.values[t].nbytes
                change[last] -= self.values[t].nbytes
        return list(accumulate(change))[: len(spans)]

    def cuts(self, segments: int) -> list[int]:
        """Return the last step of each segment except the last: where the fewest bytes wait, once half a segment is
        full.
        """
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
        """Return, for each segment, the steps to run again, in rising order."""
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
        """Return all steps, with each segment again directly before the first step after the turn that needs it."""
        dropped = self.dropped(segments)
        segment_of = {t: s for s, steps in enumerate(dropped) for t in steps}
        views, steps = self.layout.views, self.layout.steps
        order = list(range(self.turn + 1))
        waiting = dict.fromkeys(s for s, again in enumerate(dropped) if again)
        for t in range(self.turn + 1, len(steps)):
            needed = [segment_of[x] for x in self.reads[t] if x in segment_of]
            if steps[t].op.writes:  # steps that read a Var run again before the Var is written
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
