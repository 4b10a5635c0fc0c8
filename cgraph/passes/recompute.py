"""recompute: values that are read again much later are computed again instead of kept, segment by segment.

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

from cgraph.ir.graph import Node, apply
from cgraph.memory.layout import Layout, owner_of, producers_of
from cgraph.ops.physical.again import Again
from cgraph.passes.rewrite import remade


def recompute(layout: Layout, segments: int) -> tuple[list[Node], dict[Node, Node]]:
    """A running order in which forward values are computed again, and what became of each node.

    Same values, bit for bit: the same kernels in the same order. Never fewer steps. Not computed again: what is an
    output, what is impure, what reads a Var that the forward part has written already, and the last segment, which is
    read at once.

    Parameters
        layout: a schedule of a physical graph
        segments: of about equal bytes that wait, at least 2
    """
    forward = Forward(layout)
    return Rebuilding(layout, forward, forward.dropped(segments)).run()


class Forward:
    """What the steps up to the turn leave for those behind it. The turn is the step with most bytes waiting behind it.

    Fields
        producer: per node, the step whose bytes it shows, -1 for leaves
        reads: per step, the steps that it reads
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.values = layout.values[: len(layout.steps)]
        self.producer = producers_of(layout.views, layout.value_of)
        self.reads = [[self.producer[x] for x in n.operands if self.producer[x] >= 0] for n in layout.steps]

    @cached_property
    def turn(self) -> int:
        waiting = self.bytes_across([(t, v.last) for t, v in enumerate(self.values)])
        return max(range(len(waiting)), key=waiting.__getitem__, default=0)

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
        return {t for t in range(self.turn + 1) if self.values[t].last > self.turn and not self.values[t].kept}

    @cached_property
    def pinned(self) -> set[int]:
        """Steps up to the turn that must not run twice."""
        written = {owner_of(self.layout.views[n]) for n in self.layout.steps[: self.turn + 1] if n.op.writes}
        views = self.layout.views
        return {
            t
            for t, node in enumerate(self.layout.steps[: self.turn + 1])
            if self.values[t].kept
            or not node.op.pure
            or node.op.writes
            or (written and any(owner_of(views[x]) in written for x in node.operands))
        }

    def bytes_across(self, spans: Sequence[tuple[int, int]]) -> list[int]:
        """Behind each step, the bytes of values that are not kept, made at or before it and read later."""
        change = [0] * (len(spans) + 1)
        for t, (first, last) in enumerate(spans):
            if not self.values[t].kept and last > first:
                change[first] += self.values[t].nbytes
                change[last] -= self.values[t].nbytes
        return list(accumulate(change))[: len(spans)]

    def cuts(self, segments: int) -> list[int]:
        """The last step of each segment but the last: where fewest bytes must be kept, once half a segment is full."""
        limit = max(sum(self.values[t].nbytes for t in self.waiting) / segments, 1)
        across = self.bytes_across(list(enumerate(self.last)))
        found: list[int] = []
        full, best, behind = 0, -1, 0
        for t in range(self.turn):
            size = self.values[t].nbytes if t in self.waiting else 0
            full, behind = full + size, behind + size
            if 2 * full >= limit and (best < 0 or across[t] < across[best]):
                best, behind = t, 0
            if full >= limit:
                found.append(best)
                full, best = behind, -1
                behind = 0
        return found

    def dropped(self, segments: int) -> list[list[int]]:
        """Per segment, the steps to run again, rising."""
        cuts = self.cuts(segments)
        found: list[list[int]] = []
        for first, last in zip([0, *(c + 1 for c in cuts)], cuts):
            again: list[int] = []
            wanted: set[int] = set()
            for t in range(last, first - 1, -1):
                read_by_later_segment = self.last[t] > last
                if t not in self.pinned and not read_by_later_segment and (t in self.waiting or t in wanted):
                    again.append(t)
                    wanted.update(self.reads[t])
            found.append(again[::-1])
        return found


class Rebuilding:
    """The new order under construction. Changes: nodes are added.

    Fields
        segment_of: per step that runs again, its segment
        again: what stands for a node behind the turn when its bytes are computed again
        new: what became of each node
    """

    def __init__(self, layout: Layout, forward: Forward, dropped: list[list[int]]) -> None:
        self.layout, self.forward, self.dropped = layout, forward, dropped
        self.nodes = list(layout.views)
        self.segment_of = {t: s for s, steps in enumerate(dropped) for t in steps}
        self.made: set[int] = set()
        self.again: dict[Node, Node] = {}
        self.new: dict[Node, Node] = {}
        self.order: list[Node] = []

    def run(self) -> tuple[list[Node], dict[Node, Node]]:
        self.order = list(self.before)
        self.new = {n: n for n in self.before}
        for node in self.nodes[len(self.before) :]:
            if node.op.writes:
                self.finish_readers(owner_of(self.layout.views[node]))
            for x in node.operands:
                self.want(x)
            self.new[node] = remade(node, tuple(self.again.get(x, self.new[x]) for x in node.operands))
            self.order.append(self.new[node])
        return self.order, self.new

    def want(self, x: Node) -> None:
        """The node's segment runs again, if it must and has not yet."""
        segment = self.segment_of.get(self.forward.producer[x])
        if segment is not None and segment not in self.made:
            self.run_again(segment)

    def finish_readers(self, var: Node) -> None:
        """Everything that reads a Var runs again before the Var is written."""
        views, steps = self.layout.views, self.layout.steps
        for segment, again in enumerate(self.dropped):
            if segment not in self.made and any(owner_of(views[x]) is var for t in again for x in steps[t].operands):
                self.run_again(segment)

    def run_again(self, segment: int) -> None:
        """Add the steps of a segment, with all views of what they make."""
        self.made.add(segment)
        for node in self.nodes_of[segment]:
            operands = tuple(self.again.get(x, x) for x in node.operands)
            differs = any(a is not b for a, b in zip(operands, node.operands))
            self.again[node] = apply(node.op if differs else Again(node.op), *operands)
            self.order.append(self.again[node])

    @cached_property
    def before(self) -> list[Node]:
        """Every node up to the turn."""
        places = {node: i for i, node in enumerate(self.nodes)}
        steps = self.layout.steps
        return self.nodes[: places[steps[self.forward.turn]] + 1] if steps else []

    @cached_property
    def nodes_of(self) -> list[list[Node]]:
        """Per segment, the nodes before the turn that show bytes which are computed again, in order."""
        found: list[list[Node]] = [[] for _ in self.dropped]
        for node in self.before:
            segment = self.segment_of.get(self.forward.producer[node])
            if segment is not None:
                found[segment].append(node)
        return found
