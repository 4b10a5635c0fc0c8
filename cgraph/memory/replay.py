"""Check that every step finds the values that it reads: a replay of a schedule over bytes, value by value.

`memory.check` examines a plan as the planner sees it: operands and intervals. This check examines what an engine gets:
nodes in running order, and the address of each value. It uses no intervals, no strategy, and nothing about which values
should share bytes, so a mistake in computing these cannot be hidden from both.

Bytes are cut into segments between any two addresses where something begins or ends, and each segment stores the step
that wrote it last. A value is valid as long as its segments have the writers that they had when its step ended. So a
part that was computed in place, inside a concat result, keeps its value and belongs to both. Time O(n log n) for n
steps, and the segments of each value that is read.
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

NOBODY, WORKSPACE = -2, -1  # writers that are not steps
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
    """Raise PlanError unless every step reads the right values, and every lasting value is valid at the end.

    Parameters
        steps: nodes that compute, in running order
        views: the view of every node, operands before users
        works: the target's work for each step
        workspaces: the first byte of each workspace
        nbytes: bytes of the arena
        kept: nodes whose values must be valid at the end
        always: nodes whose bytes no other node may write at any step
    Raises
        PlanError: the first mistake, with the nodes' names and addresses
    """
    replay = _PlanReplay(steps, views, works, workspaces, nbytes)
    own = {replay.owner[node] for node in always}
    for t, node in enumerate(steps):
        replay.run(t, node, node in own)
    for node in lasting:
        replay.require(node, None)


class _PlanReplay:
    """Bytes and their content. Changes as steps run.

    Fields
        owner: the step whose result contains each node's value, or the leaf
        writer: for each segment, the step that wrote it last, int64 ``[segments]``
        done: for each step that has run, `writer` for its result: one number if all are equal
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
        """Check what step t reads, then record what it writes. With `alone`, no other step may have written its bytes
        before.
        """
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
        """Raise PlanError if the value of `x` is not valid when `reader`, or at the end the caller, reads it."""
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
        """Return the values that are in a concat's result already: whole, at their offsets, each once."""
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
        """Raise PlanError if the step writes bytes that it still reads, except by permission and exactly in place."""
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
        """Raise PlanError if a result overlaps an operand that begins too early, or if they are not stored row by
        row.
        """
        for x in (node, fork):
            if not is_by_rows(self.views[x]):
                raise PlanError(f"{self.text(node)} overwrites {self.text(fork)}, but {x!r} does not lie row by row")
        apart = self.views[fork].at.offset - self.views[node].at.offset
        if apart < ahead:
            raise PlanError(f"{self.text(node)} begins {apart} bytes before {self.text(fork)}, {ahead} are needed")

    def check_workspace(self, node: Node) -> None:
        """Raise PlanError if the step's workspace overlaps its result or an operand."""
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
    """Return the owner of each node's bytes; every view must be the one that its op declares.

    Raises
        PlanError: a node has no bytes, or a view differs from the one that its op declares
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
    """Return addresses after the arena for every Var that a step writes into."""
    places: dict[Node, int] = {}
    for node in steps:
        if node.op.writes and views[node].at.base not in places:
            places[views[node].at.base] = nbytes
            nbytes += node.spec.nbytes
    return places


def span_of(node: Node, view: Any, nbytes: int, vars_at: Mapping[Node, int]) -> Span:
    """Return the bytes of a step's result, which must be in C order inside the arena, or those of a Var."""
    first = view[0] if isinstance(view, tuple) else view
    if node.op.writes:
        return vars_at[first.at.base], vars_at[first.at.base] + node.spec.nbytes
    if first.at.base is not ARENA:
        raise PlanError(f"{node!r} is computed, but not into the arena")
    if not (isinstance(view, tuple) or view.is_contiguous or is_by_rows(view)):
        raise PlanError(f"{node!r} is computed, but neither in C order nor row by row")
    return within((first.at.offset, first.at.offset + node.spec.nbytes), nbytes, node)


def within(span: Span, nbytes: int, node: Node) -> Span:
    """Return the span of a node's result or workspace, which must be inside the arena."""
    if span[0] < 0 or span[1] > nbytes:
        raise PlanError(f"{node!r} has bytes [{span[0]}, {span[1]}), which leave the arena of {nbytes} bytes")
    return span


def contiguous_bytes(view: Any) -> Span | None:
    """Return the bytes of a view in C order; None for another view."""
    if isinstance(view, tuple) or not view.is_contiguous:
        return None
    return view.at.offset, view.at.offset + view.size * view.itemsize


def same_bytes(x: Any, y: Any) -> bool:
    """Return True if both refer to the same bytes in C order, or row by row."""
    if is_by_rows(x) and x == y:
        return True
    span = contiguous_bytes(x)
    return span is not None and span == contiguous_bytes(y) and x.at == y.at


def is_by_rows(view: Any) -> bool:
    """Return True for a view of images whose rows follow one another without gaps."""
    few = isinstance(view, tuple) or len(view.shape) <= ROWS
    return not few and view.shows_same(by_rows(view.at, view.shape, view.dtype))


def overlap(x: Span, y: Span) -> bool:
    return max(x[0], y[0]) < min(x[1], y[1])
