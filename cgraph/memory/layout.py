"""Layout of a schedule before offsets are planned: owners of bytes, views into them, and lifetimes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cgraph.dtypes.convert import code_of
from cgraph.ir.bands import InPlaceJoin
from cgraph.ir.graph import Node, Op
from cgraph.ir.spec import Bundle, Spec
from cgraph.ir.table import number_of
from cgraph.ir.work import Work
from cgraph.kernels.kernel import ARENA, Pointer, View, contiguous
from cgraph.kernels.views.layout import by_rows
from cgraph.memory.problem import Plan
from cgraph.memory.usage import StepValue, Usage
from cgraph.memory.views import Places
from cgraph.ops.join import Concat
from cgraph.ops.leaf import ConstOp, VarOp
from cgraph.record import Record


class Layout(Record):
    """A schedule with its views.

    Fields
        steps: the nodes that compute, in running order; a step is a position in this list
        views: for each node, its view; the base of its address is the node that owns the bytes (a tuple for a Bundle)
        values: the planner's values: first the owners by step, then the workspaces
        value_of: the index in `values` of each owner
        workspace_of: the index in `values` of each step's workspace
        works: the target's work for each node
        lasting, always: the nodes given to `layout_of`
    """

    steps: tuple[Node, ...]
    views: dict[Node, View | tuple[View, ...]]
    values: tuple[StepValue, ...]
    value_of: dict[Node, int]
    workspace_of: dict[Node, int]
    works: dict[Node, Work]
    lasting: tuple[Node, ...] = ()
    always: frozenset[Node] = frozenset()

    def place(self, usage: Usage, plan: Plan) -> Places:
        """Return the views with their addresses in the arena; views of Vars and Consts stay unchanged."""
        return Places(self.views, {owner: usage.offset(plan, i) for owner, i in self.value_of.items()})

    def workspace(self, node: Node, usage: Usage, plan: Plan) -> View | None:
        """Return the workspace of a step, as bytes."""
        i = self.workspace_of.get(node)
        if i is None:
            return None
        return contiguous(Pointer(ARENA, usage.offset(plan, i)), (self.values[i].nbytes,), "u1")


class NodeFacts:
    """Views and work of nodes on one target, independent of the running order. Changes: computed at first use.

    Planning a graph uses one of these throughout, so that each node is examined once for all orders and rewrites.
    """

    def __init__(self, target: Any) -> None:
        self.target = target
        self.works: dict[Node, Work] = {}
        self.works_of_equals: dict[tuple, Work] = {}
        self.views: dict[Node, View | tuple[View, ...]] = {}
        self.owners: dict[Node, Node] = {}
        self.steps: dict[Node, StepFacts] = {}

    def view(self, node: Node) -> View | tuple[View, ...]:
        """Return the view of a node's value; those of its operands are stored already."""
        view = self.views.get(node)
        if view is None:
            view = self.views[node] = view_of(node, self.views)
            self.owners[node] = owner_of(view)
        return view

    def views_of(self, order: Iterable[Node]) -> dict[Node, View | tuple[View, ...]]:
        """Return the views of all nodes, in their order; operands come before users."""
        views = self.views
        return {node: views[node] if node in views else self.view(node) for node in order}

    def work(self, node: Node) -> Work:
        """Return the target's work for a step: one record for all steps of an equal op on operands of equal specs."""
        work = self.works.get(node)
        if work is None:
            specs = [x.spec for x in node.operands]
            key = (number_of(node.op), *specs)
            work = self.works_of_equals.get(key)
            if work is None:
                work = self.works_of_equals[key] = node.op.work(self.target, *specs)
            self.works[node] = work
        return work

    def step(self, node: Node) -> "StepFacts":
        """Return the facts of a step; the views of its operands are stored already."""
        facts = self.steps.get(node)
        if facts is None:
            facts = self.steps[node] = step_facts(node, self.work(node), self.views)
        return facts


class StepFacts(NamedTuple):
    """Facts of a step that do not depend on the running order.

    Fields
        nbytes, name: bytes and name of its value
        workspace: bytes of its workspace
        overwritable: owners whose exact bytes its result may use
        parts: owners that may be computed inside its result, with their byte offsets
        over: an operand that its result may overlap while the step reads it
    """

    nbytes: int
    name: str
    workspace: int
    overwritable: tuple[Node, ...]
    parts: tuple[tuple[Node, int], ...]
    over: InPlaceJoin | None


def step_facts(node: Node, work: Work, views: dict[Node, View | tuple[View, ...]]) -> StepFacts:
    """Return the facts of one step, from the views of its operands."""
    workspace = work.needs(views[node], [views[x] for x in node.operands]) if work.exact else work.nbytes
    inner = tuple(parts(node, views)) if isinstance(node.op, Concat) else ()
    targets = tuple(overwritable(node, work, views))
    return StepFacts(0 if node.op.writes else node.nbytes, node.title, workspace, targets, inner, work.over)


LEAVES = (VarOp, ConstOp)


def is_leaf(node: Node) -> bool:
    return isinstance(node.op, LEAVES)


def view_of(node: Node, views: dict[Node, View | tuple[View, ...]]) -> View | tuple[View, ...]:
    """Return the view of one node, from those of its operands."""
    if node.operands and type(node.op).alias is not Op.alias:
        alias = node.op.alias(*[views[x] for x in node.operands])
        if alias is not None:
            return alias
    if isinstance(node.spec, Bundle):
        pairs = zip(node.spec.specs, node.spec.offsets)
        return tuple(own_view(spec, Pointer(node, at)) for spec, at in pairs)
    return own_view(node.spec, Pointer(node))


def own_view(spec: Spec, at: Pointer) -> View:
    return contiguous(at, spec.shape, code_of(spec.dtype))


def computes(node: Node, views: Mapping[Node, View | tuple[View, ...]]) -> bool:
    """Return True if the node is a step: neither a leaf nor a view of an existing value."""
    return not is_leaf(node) and (node.op.writes or owner_of(views[node]) is node)


def producers_of(order: Iterable[Node], step_of: Mapping[Node, int]) -> dict[Node, int]:
    """Return, for each node, the step that computes the value it refers to; -1 for leaves."""
    producers: dict[Node, int] = {}
    for node in order:
        producers[node] = step_of[node] if node in step_of else producers[node.operands[0]] if node.operands else -1
    return producers


def owner_of(view: View | tuple[View, ...]) -> Node:
    """Return the node whose bytes a view refers to."""
    first = view[0] if isinstance(view, tuple) else view
    return first.at.base  # type: ignore[return-value]


def layout_of(
    order: Sequence[Node],
    lasting: Iterable[Node],
    always: Iterable[Node],
    facts: NodeFacts,
    rows: Collection[Node] = frozenset(),
) -> Layout:
    """Return the layout of a schedule.

    Parameters
        order: nodes, operands before users
        lasting: nodes whose bytes stay to the end: outputs and sources of update edges
        always: nodes that share their bytes with no other at any step, so that later runs can read them
        facts: facts of nodes that are computed already; others are added
        rows: steps whose values are stored row by row, all planes of one row before the next row
    """
    lasting, always = tuple(lasting), frozenset(always)
    views, owners = facts.views_of(order), facts.owners
    views |= {x: by_rows(Pointer(x), x.shape, code_of(x.dtype)) for x in rows}
    steps = tuple([n for n in order if (owners[n] is n or n.op.writes) and not is_leaf(n)])
    step_of = {node: t for t, node in enumerate(steps)}
    last = last_reads(steps, step_of, owners)
    end = max(len(steps) - 1, 0)
    ends, whole = {owners[n] for n in lasting}, {owners[n] for n in always}
    values: list[StepValue] = []
    workspaces: list[StepValue] = []
    workspace_of: dict[Node, int] = {}
    for t, node in enumerate(steps):
        own, is_permanent = facts.step(node), node in whole
        if rows and (node in rows or any(x in rows for x in node.operands)):
            own = step_facts(node, facts.work(node), views)
        stays = is_permanent or node in ends
        value = StepValue(own.nbytes, 0 if is_permanent else t, own.name, end if stays else last[t], stays)
        values.append(value)
        if not is_permanent and own.overwritable:
            value.overwritable = tuple([step_of[x] for x in own.overwritable if x in step_of])
        if not is_permanent and own.parts:
            value.parts = tuple([(step_of[x], at) for x, at in own.parts if x in step_of and x not in whole])
        if own.over is not None:
            value.over = InPlaceJoin(step_of[node.operands[own.over.fork]], own.over.ahead)
        if own.workspace:
            workspace_of[node] = len(steps) + len(workspaces)
            workspaces.append(StepValue(own.workspace, t, f"{own.name} workspace", t))
    return Layout(steps, views, (*values, *workspaces), step_of, workspace_of, facts.works, lasting, always)


def last_reads(steps: Sequence[Node], step_of: Mapping[Node, int], owners: Mapping[Node, Node]) -> list[int]:
    """Return for each step the last step that reads its value; the step itself if none does."""
    last = list(range(len(steps)))
    for t, node in enumerate(steps):
        for x in node.op.reads(node.operands):
            read = step_of.get(owners[x])
            if read is not None:
                last[read] = t
    return last


def in_order(layout: Layout, order: Sequence[int]) -> list[Node]:
    """Return all nodes of a layout with its steps in another order: leaves first, views directly after what they refer
    to.
    """
    at = {layout.steps[i]: t for t, i in enumerate(order)}
    for node in layout.views:
        if node not in at:
            at[node] = max((at[x] for x in node.operands), default=-1)
    return sorted(layout.views, key=at.__getitem__)


def overwritable(node: Node, work: Work, views: dict) -> list[Node]:
    """Return owners whose exact bytes the node may use: whole, and read by it only as operands that it may
    overwrite.
    """
    if isinstance(node.spec, Bundle) or node.op.writes:
        return []
    owners = []
    permitted = work.overwrites
    for i in sorted(set(permitted)):
        view = views[node.operands[i]]
        owner = owner_of(view)
        if isinstance(view, tuple) or view.at.offset or owner.nbytes != node.nbytes:
            continue
        if not view.in_order_of(views[node]):
            continue
        reads = ((k, views[x]) for k, x in enumerate(node.operands))
        if all((k in permitted and v == view) or owner_of(v) is not owner for k, v in reads):
            owners.append(owner)
    return owners


def parts(node: Node, views: dict) -> list[tuple[Node, int]]:
    """Return owners that may be computed inside a concat result, with their byte offsets."""
    assert isinstance(node.op, Concat)
    out = views[node]
    inner: list[tuple[Node, int]] = []
    owners: set[Node] = set()
    for x, place in zip(node.operands, node.op.places(out, *(x.spec for x in node.operands))):
        view = views[x]
        owner = owner_of(view)
        whole = not isinstance(view, tuple) and not view.at.offset and view.is_contiguous and owner.nbytes == x.nbytes
        if whole and place.is_contiguous and owner not in owners:
            owners.add(owner)
            inner.append((owner, place.at.offset))
    return inner
