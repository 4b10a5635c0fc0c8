"""Does every step find the values that it reads? A replay of a schedule over bytes, value by value.

`memory.check` looks at a plan as the planner sees it: operands and intervals. This check looks at what an engine gets:
nodes in running order, and where each value lies. It knows no interval, no strategy and nothing of who was meant to
share with whom, so that a mistake in working these out cannot hide in both.

Bytes are cut into segments between any two places where something begins or ends, and each segment knows the step that
wrote it last. A value is there as long as its segments have the writers that they had when its step was done. So a part
that was made in place, inside a concat result, stays what it was and belongs to both.
Time O(n log n) for n steps, and the segments of each value that is read.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cgraph.errors import PlanError
from cgraph.ir.cut import ROWS
from cgraph.ir.graph import Node
from cgraph.ir.work import Work
from cgraph.kernels.kernel import ARENA, Pointer
from cgraph.kernels.views.layout import by_rows
from cgraph.memory.incremental import cut_out
from cgraph.memory.layout import is_leaf, own_view
from cgraph.ops.join import Concat

NOBODY, WORKSPACE = -2, -1  # writers that are no step
Views = Mapping[Node, Any]
Span = tuple[int, int]


def check_replay(
    steps: Sequence[Node],
    views: Views,
    works: Mapping[Node, Work],
    workspaces: Mapping[Node, int],
    nbytes: int,
    lasting: Iterable[Node],
    always: Iterable[Node] = (),
) -> None:
    """Return if every step reads what it should, and everything kept is there at the end.

    Parameters
        steps: nodes that compute, in running order
        views: where every node's value is, operands before users
        works: what the target does for each step
        workspaces: the first byte of each workspace
        nbytes: of the arena
        kept: nodes whose values must be there at the end
        always: nodes whose bytes nobody else may write at any step
    Raises
        PlanError: the first thing that is wrong, with the nodes' names and places
    """
    replay = _PlanReplay(steps, views, works, workspaces, nbytes)
    own = {replay.owner[node] for node in always}
    for t, node in enumerate(steps):
        replay.run(t, node, node in own)
    for node in lasting:
        replay.require(node, None)


class _PlanReplay:
    """Bytes and what is in them. Changes as steps run.

    Fields
        owner: the step in whose result each node's value lies, or the leaf
        writer: per segment, the step that wrote it last, int64 ``[segments]``
        done: per step that has run, what `writer` was for its result: one number where all are alike
    """

    def __init__(
        self,
        steps: Sequence[Node],
        views: Views,
        works: Mapping[Node, Work],
        workspaces: Mapping[Node, int],
        nbytes: int,
    ) -> None:
        self.steps, self.views, self.works = steps, views, works
        computed = set(steps)
        self.owner = owners(views, computed)
        vars_at = places_of_vars(steps, views, nbytes)
        self.bytes_of = {node: span_of(node, views[node], nbytes, vars_at) for node in steps}
        self.bytes_of |= {x: (at, at + x.spec.nbytes) for x, at in vars_at.items()}
        sizes = {node: works[node].needs(views[node], [views[x] for x in node.operands]) for node in steps}
        missing = [node for node, size in sizes.items() if size and node not in workspaces]
        if missing:
            raise PlanError(f"{missing[0]!r} has no workspace")
        self.workspace_of = {node: within((at, at + sizes[node]), nbytes, node) for node, at in workspaces.items()}
        edges = sorted({x for span in (*self.bytes_of.values(), *self.workspace_of.values()) for x in span})
        index = {x: i for i, x in enumerate(edges)}
        self.segments = {node: (index[low], index[high]) for node, (low, high) in self.bytes_of.items()}
        self.workspace_segments = {node: (index[low], index[high]) for node, (low, high) in self.workspace_of.items()}
        self.writer = np.full(len(edges), NOBODY, np.int64)
        self.done: dict[Node, int | np.ndarray] = dict.fromkeys(vars_at, NOBODY)

    def run(self, t: int, node: Node, alone: bool) -> None:
        """Step t: look at what it reads, then write. With `alone`, nobody may have written its bytes before."""
        for x in dict.fromkeys(node.op.reads(node.operands)):
            self.require(x, node)
        low, high = self.segments[node]
        if alone and (self.writer[low:high] != NOBODY).any():
            raise PlanError(f"the bytes of {self.text(node)} should be its own at every step, but others use them")
        in_place = self.made_in_place(node)
        written = cut_out(self.bytes_of[node], sorted(self.bytes_of[x] for x in in_place))
        self.check_reads(node, written)
        self.check_workspace(node)
        if node in self.workspace_segments:
            begin, end = self.workspace_segments[node]
            self.writer[begin:end] = WORKSPACE
        before = [(self.segments[x], self.writer[slice(*self.segments[x])].copy()) for x in in_place]
        self.writer[low:high] = t
        for (begin, end), was in before:
            self.writer[begin:end] = was
        self.done[node] = self.writer[low:high].copy() if in_place else t

    def require(self, x: Node, reader: Node | None) -> None:
        """Refuse if the value that `x` shows is not there when `reader`, or at the end the caller, reads it."""
        owner = self.owner[x]
        if owner not in self.bytes_of:
            return
        if owner not in self.done:
            who = "the caller" if reader is None else repr(reader)
            raise PlanError(f"{who} reads {x!r}, which has not been computed")
        low, high = self.segments[owner]
        wrong = self.writer[low:high] != self.done[owner]
        if wrong.any():
            who = "the caller" if reader is None else repr(reader)
            by = int(self.writer[low + int(wrong.argmax())])
            writer = "a workspace" if by == WORKSPACE else repr(self.steps[by])
            raise PlanError(f"{who} reads {self.text(owner)}, but {writer} has written there")

    def made_in_place(self, node: Node) -> list[Node]:
        """The values that a concat finds in its result already: whole, at their place, each once."""
        if not isinstance(node.op, Concat):
            return []
        parts: dict[Node, None] = {}
        places = node.op.places(self.views[node], *(x.spec for x in node.operands))
        for x, place in zip(node.operands, places):
            owner = self.owner[x]
            whole = not is_leaf(owner) and self.bytes_of[owner] == contiguous_bytes(self.views[x])
            if whole and same_bytes(self.views[x], place):
                parts[owner] = None
        return list(parts)

    def check_reads(self, node: Node, written: list[Span]) -> None:
        """Refuse if the step writes what it still reads, other than by permission, exactly in place."""
        permitted, over = self.works[node].overwrites, self.works[node].over
        for i, x in enumerate(node.operands):
            owner = self.owner[x]
            if owner not in self.bytes_of or not any(overlap(self.bytes_of[owner], span) for span in written):
                continue
            if over and i == over.fork:
                self.check_over(node, x, over.ahead)
                continue
            if i not in permitted:
                raise PlanError(f"{self.text(node)} overwrites {self.text(owner)} while it reads it")
            if not same_bytes(self.views[x], self.views[node]) or self.bytes_of[owner] != self.bytes_of[node]:
                raise PlanError(f"{self.text(node)} overwrites {self.text(owner)}, but not its very bytes")

    def check_over(self, node: Node, fork: Node, ahead: int) -> None:
        """Refuse if a result lies over an operand that begins too early, or if they do not lie row by row."""
        for x in (node, fork):
            if not is_by_rows(self.views[x]):
                raise PlanError(f"{self.text(node)} overwrites {self.text(fork)}, but {x!r} does not lie row by row")
        apart = self.views[fork].at.offset - self.views[node].at.offset
        if apart < ahead:
            raise PlanError(f"{self.text(node)} begins {apart} bytes before {self.text(fork)}, {ahead} are needed")

    def check_workspace(self, node: Node) -> None:
        """Refuse if the step's workspace is where its result or an operand lies."""
        if node not in self.workspace_of:
            return
        for x in (node, *node.operands):
            owner = self.owner[x]
            if owner in self.bytes_of and overlap(self.bytes_of[owner], self.workspace_of[node]):
                raise PlanError(f"the workspace of {node!r} and {self.text(owner)} share bytes")

    def text(self, node: Node) -> str:
        low, high = self.bytes_of[node]
        return f"{node!r} in [{low}, {high})"


def owners(views: Views, computed: set[Node]) -> dict[Node, Node]:
    """In whose bytes each node's value lies; every view must be the one that its op gives.

    Raises
        PlanError: a node has no bytes, or a view is not where its op puts it
    """
    owners_by_node: dict[Node, Node] = {}
    for node, view in views.items():
        if node in computed:
            owners_by_node[node] = node
        elif is_leaf(node):
            if view != own_view(node.spec, Pointer(node)):
                raise PlanError(f"{node!r} is not where its own value is")
            owners_by_node[node] = node
        else:
            alias = node.op.alias(*(views[x] for x in node.operands)) if node.operands else None
            if alias is None:
                raise PlanError(f"{node!r} has no bytes: no step writes it, and it is no view")
            if alias != view:
                raise PlanError(f"{node!r} is not where it lies in {node.operands[0]!r}")
            owners_by_node[node] = owners_by_node[node.operands[0]]
    return owners_by_node


def places_of_vars(steps: Sequence[Node], views: Views, nbytes: int) -> dict[Node, int]:
    """Behind the arena, a place for every Var that a step writes into."""
    places: dict[Node, int] = {}
    for node in steps:
        if node.op.writes and views[node].at.base not in places:
            places[views[node].at.base] = nbytes
            nbytes += node.spec.nbytes
    return places


def span_of(node: Node, view: Any, nbytes: int, vars_at: Mapping[Node, int]) -> Span:
    """The bytes of a step's result, which must lie in C order inside the arena, or be a Var's."""
    first = view[0] if isinstance(view, tuple) else view
    if node.op.writes:
        return vars_at[first.at.base], vars_at[first.at.base] + node.spec.nbytes
    if first.at.base is not ARENA:
        raise PlanError(f"{node!r} is computed, but not into the arena")
    if not (isinstance(view, tuple) or view.is_contiguous or is_by_rows(view)):
        raise PlanError(f"{node!r} is computed, but neither in C order nor row by row")
    return within((first.at.offset, first.at.offset + node.spec.nbytes), nbytes, node)


def within(span: Span, nbytes: int, node: Node) -> Span:
    """The span of a node's result or workspace, which must lie inside the arena."""
    if span[0] < 0 or span[1] > nbytes:
        raise PlanError(f"{node!r} has bytes [{span[0]}, {span[1]}), which leave the arena of {nbytes} bytes")
    return span


def contiguous_bytes(view: Any) -> Span | None:
    """The bytes of a view in C order; None for another one."""
    if isinstance(view, tuple) or not view.is_contiguous:
        return None
    return view.at.offset, view.at.offset + view.size * view.itemsize


def same_bytes(x: Any, y: Any) -> bool:
    """Both show the same bytes in C order, or row by row."""
    if is_by_rows(x) and x == y:
        return True
    span = contiguous_bytes(x)
    return span is not None and span == contiguous_bytes(y) and x.at == y.at


def is_by_rows(view: Any) -> bool:
    """A view of images whose rows lie one behind the other, without gaps."""
    few = isinstance(view, tuple) or len(view.shape) <= ROWS
    return not few and view.shows_same(by_rows(view.at, view.shape, view.dtype))


def overlap(x: Span, y: Span) -> bool:
    return max(x[0], y[0]) < min(x[1], y[1])
