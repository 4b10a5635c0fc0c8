"""From a physical graph to its plan: an order, what shares bytes by permission, offsets; all of it checked.

Order ``auto``: the graph as it is walked, depth first; where some order may need less, the one that `least_memory`
finds is planned too, and the smaller plan is taken. What is searched is limited by counts, not by seconds, so that a
graph has one plan on every machine.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cgraph.budget.bands.build_bands import check_stream
from cgraph.budget.fit import PlanLimits, Planner, fitted
from cgraph.errors import BudgetError, GraphError, bytes_text
from cgraph.ir.graph import Node, apply
from cgraph.ir.rewrite import with_new_operands
from cgraph.ir.traverse import post_order
from cgraph.ir.work import PlacedStep
from cgraph.kernels.kernel import Pointer, View
from cgraph.memory.auto import auto
from cgraph.memory.bounds import lower_bound, operator_breadths
from cgraph.memory.check import check_plan
from cgraph.memory.layout import Layout, NodeFacts, in_order, is_leaf, layout_of, owner_of
from cgraph.memory.permissions import permitted_lower_bound
from cgraph.memory.problem import Plan, Problem, Strategy
from cgraph.memory.replay import check_replay
from cgraph.memory.smallest import Choice, candidates, smallest
from cgraph.memory.steps import steps_of
from cgraph.memory.strategies import STRATEGIES
from cgraph.memory.strategies.exact import exact
from cgraph.memory.usage import Usage, usage_of
from cgraph.ops.leaf import Var
from cgraph.ops.loop import Body
from cgraph.ops.physical.rounds import Round
from cgraph.ops.physical.stream import Stream
from cgraph.ops.shape import Contiguous
from cgraph.passes.loop_bodies import plan_bodies
from cgraph.passes.make_contiguous import make_contiguous
from cgraph.passes.update_in_place import update_in_place
from cgraph.planning.options import CompileOptions, Request
from cgraph.record import Record, replace
from cgraph.rematerialise.rebuild import dag_of
from cgraph.schedule.breadth_first import breadth_first
from cgraph.schedule.costly_first import costly_first
from cgraph.schedule.dag import Dag, least_peak, peak
from cgraph.schedule.eager import eager
from cgraph.schedule.least_memory import least_memory
from cgraph.system.progress import bounds_progress

SCHEDULES = {"breadth_first": breadth_first, "least_memory": least_memory}
ORDERS = ("auto", "depth_first", *SCHEDULES)
MOST_REPLAYED = 20_000  # steps; beyond it the check of every value takes long
STATES = 1_000  # of a search for an order that nobody asked for


class Compiled(Record):
    """A graph on its way to a program: what pictures and reports read.

    Fields
        outputs, sources: physical nodes of the outputs and of the update edges
        updated: the Vars of those edges, in their order
        layout, usage, plan: schedule, planning problem and offsets
        views: where every node's value is
        order: what made the schedule
    """

    outputs: tuple[Node, ...]
    sources: tuple[Node, ...]
    updated: tuple[Var, ...]
    layout: Layout
    usage: Usage
    plan: Plan
    views: Mapping[Node, Any]
    order: str = "depth_first"

    @property
    def steps(self) -> Iterator[PlacedStep]:
        """The steps in running order, each with its places."""
        return steps_of(self.layout, self.usage, self.plan, self.views)

    @property
    def inner(self) -> dict[Node, "Compiled"]:
        """The plans of what steps do in their workspaces: the bodies of loops."""
        works = ((node, self.layout.works[node]) for node in self.layout.steps)
        return {node: work.inner for node, work in works if work.inner is not None}

    @property
    def nbytes(self) -> int:
        """Bytes of the arena: every intermediate value, output, halo and workspace."""
        return self.plan.nbytes

    @property
    def peak_nbytes(self) -> int:
        """The most bytes in use at any step, with what was overwritten and made in place."""
        return lower_bound(self.usage.problem)

    @property
    def lower_bound(self) -> int:
        """No plan of this schedule is smaller, whatever overwrites or is made in place."""
        return permitted_lower_bound(self.usage.values, self.usage.problem.alignment)

    @property
    def plain_lower_bound(self) -> int:
        """No plan of this schedule is smaller if nothing overwrites an operand or is made in place."""
        return lower_bound(usage_of(self.usage.values, self.usage.problem.alignment, False, False).problem)

    @property
    def unshared_nbytes(self) -> int:
        """Bytes if nothing shared: every value has its own."""
        return sum(v.nbytes for v in self.layout.values)


def planned(request: Request, target: Any, alignment: int, options: CompileOptions, is_wish: bool = False) -> Compiled:
    """The plan of a physical graph for one target.

    Parameters
        is_wish: the budget need not be met: where no plan fits, the smallest that is found
    Raises
        GraphError: there is no such strategy or order
        BudgetError: no plan within the budget
    """
    strategy = strategy_named(options.memory)
    return plan_graph(
        request.outputs,
        request.updates,
        target,
        strategy,
        tuple(options.changing),
        alignment,
        options.order,
        request.inputs,
        PlanLimits(options.budget, options.bands, options.recompute, is_wish),
    )


def with_constants(compiled: Compiled, moved: Mapping[Node, Node]) -> Compiled:
    """The same plan of a graph with other constants of the same specs in the place of some."""
    layout, new = compiled.layout, dict(moved)
    for node in layout.views:  # operands before users
        if node not in new:
            new[node] = with_new_operands(node, tuple(new[x] for x in node.operands))

    def renamed(table: Mapping[Node, Any]) -> dict[Node, Any]:
        return {new[node]: entry for node, entry in table.items() if node in new}  # works are known of other nodes too

    def based(view: View) -> View:
        base = view.at.base
        return replace(view, at=Pointer(new[base], view.at.offset)) if isinstance(base, Node) else view

    def viewed(table: Mapping[Node, View | tuple[View, ...]]) -> dict[Node, Any]:
        return renamed({n: tuple(map(based, v)) if isinstance(v, tuple) else based(v) for n, v in table.items()})

    return replace(
        compiled,
        outputs=tuple(new[x] for x in compiled.outputs),
        sources=tuple(new[x] for x in compiled.sources),
        layout=replace(
            layout,
            steps=tuple(new[x] for x in layout.steps),
            views=viewed(layout.views),
            value_of=renamed(layout.value_of),
            workspace_of=renamed(layout.workspace_of),
            works=renamed(layout.works),
            lasting=tuple(new[x] for x in layout.lasting),
            always=frozenset(new[x] for x in layout.always),
        ),
        views=viewed(compiled.views),
    )


def needs_text(compiled: Compiled, limit: str) -> str:
    """What a plan needs, what there is, and what any plan needs."""
    plan, bound = compiled.plan, bytes_text(compiled.lower_bound)
    needed = f"{plan.strategy or 'the plan'} needs {bytes_text(plan.nbytes)}"
    return f"{needed}, {limit}; no plan of this graph needs less than {bound}"


def budget_text(layout: Layout, problem: Problem, plan: Plan, budget: int) -> str:
    """What the smallest plan that was found needs, and where: its bytes are the least budget that is met."""
    starts, breadths = operator_breadths(problem)
    node = layout.steps[int(starts[breadths.argmax()])]
    return (
        f"{plan.strategy or 'the plan'} needs {bytes_text(plan.nbytes)}, the budget is {bytes_text(budget)}: "
        f"{plan.nbytes - budget} bytes are missing; {node.name} at {node.where} has {bytes_text(int(breadths.max()))} "
        f"in use; the least budget of this graph is {plan.nbytes} bytes"
    )


def plan_graph(
    outputs: tuple[Node, ...],
    updates: Mapping[Var, Node],
    target: Any,
    strategy: Strategy,
    changing: tuple[Var, ...],
    alignment: int,
    order: str = "auto",
    inputs: Sequence[Var] = (),
    limits: PlanLimits = PlanLimits(),  # noqa: B008 - frozen
) -> Compiled:
    """Schedule, layout and plan of a physical graph, checked.

    Parameters
        outputs, updates, changing, inputs: as for `compile`
        target: whose kernels run: asked once per node what it does for it
        strategy: what makes the plan
        alignment: bytes that offsets are multiples of
        order: one of `ORDERS`
        limits: what the plan is to fit into
    Raises
        BudgetError: no plan does
    """
    facts, split = NodeFacts(target), len(outputs)
    roots: tuple[Node, ...] = (*outputs, *updates.values())
    roots = plan_bodies(roots, partial(round_of, target, strategy, alignment, order))
    roots = make_contiguous(roots, facts)
    edges = dict(zip(updates, (detach(x, facts.views) for x in roots[split:])))
    outputs, edges = update_in_place(roots[:split], edges, set(updates) - set(inputs), facts)
    ends = (*outputs, *edges.values())
    nodes = post_order(ends)
    always = cached_nodes(changing, nodes)
    initial = layout_of(nodes, ends, always, facts)
    layouts = [
        (name, initial if run is None else layout_of(run, ends, always, facts)) for name, run in runs(initial, order)
    ]
    choice = smallest([way for name, layout in layouts for way in candidates(name, layout, alignment)], strategy)
    best, plan = fitted(choice, limits, Planner(strategy, alignment, facts))
    if limits.most is not None and plan.nbytes > limits.most and not limits.is_wish:
        raise BudgetError(budget_text(best.layout, best.usage.problem, plan, limits.most))
    if best.layout is not choice[0].layout:
        ends, always = best.layout.lasting, set(best.layout.always)
    places = check_and_place((best, plan), target, ends, always)
    return Compiled(ends[:split], ends[split:], tuple(updates), best.layout, best.usage, plan, places, best.order)


def check_and_place(choice: Choice, target: Any, ends: Iterable[Node], always: Iterable[Node]) -> Mapping[Node, Any]:
    """Where every value of a plan lies, after all checks; `ends` and `always` as they were asked for.

    Raises
        PlanError: the plan is unsound
    """
    (best, plan), layout = choice, choice[0].layout
    check_plan(best.usage.problem, plan)
    for node in layout.steps:
        if isinstance(node.op, Stream):
            check_stream(node, target)
    places = layout.place(best.usage, plan)
    if len(layout.steps) > MOST_REPLAYED:
        return places
    views = dict(places)
    workspaces = {node: best.usage.offset(plan, i) for node, i in layout.workspace_of.items()}
    check_replay(layout.steps, views, layout.works, workspaces, plan.nbytes, ends, always)
    return views


def round_of(target: Any, strategy: Strategy, alignment: int, order: str, body: Body) -> Round:
    """One round of a loop: a graph whose update edges give the state, planned as any other."""
    changed = {x: node for x, node in zip(body.carry, body.next) if node is not x}
    compiled = plan_graph(body.ys, changed, target, strategy, (), alignment, order)
    ys, after = (tuple(compiled.views[x] for x in nodes) for nodes in (compiled.outputs, compiled.sources))
    return Round(tuple(compiled.steps), compiled.nbytes, ys, tuple(zip(compiled.updated, after)), compiled)


def strategy_named(memory: str | Strategy) -> Strategy:
    """A strategy by its name. GraphError for a name that there is not."""
    if callable(memory):
        return memory
    if memory == "auto":
        return auto
    if memory not in STRATEGIES:
        raise GraphError(f"there is no memory strategy {memory!r}; there are auto, {', '.join(STRATEGIES)}")
    return exact_watched if memory == "exact" else STRATEGIES[memory]


def exact_watched(problem: Problem, capacity: int | None = None) -> Plan:
    """`exact`, which may take a minute: on a terminal with a line of what is known."""
    with bounds_progress("exact search") as tell:
        return exact(problem, capacity=capacity, tell=tell)


def detach(source: Node, views: Mapping[Node, Any]) -> Node:
    """The source of an update edge with bytes in the arena: a Var's own bytes change while edges are written."""
    return apply(Contiguous(), source) if is_leaf(owner_of(views[source])) else source


def cached_nodes(changing: tuple[Var, ...], order: Sequence[Node]) -> set[Node]:
    """Nodes that do not depend on a changing Var and are read by one that does."""
    if not changing:
        return set()
    cone: set[Node] = set(changing)
    border: set[Node] = set()
    for node in order:
        if any(x in cone for x in node.operands):
            cone.add(node)
            border.update(x for x in node.operands if x not in cone)
    return border


# -- orders -----------------------------------------------------------------------------------------------------------


def runs(layout: Layout, order: str) -> list[tuple[str, list[Node] | None]]:
    """The orders to plan, by name: the nodes of a layout in running order, None for the order they are in."""
    check_order(order)
    if order == "depth_first":
        return [("depth_first", None)]
    dag = dag_of(layout)
    if order != "auto":
        return [(order, in_order(layout, SCHEDULES[order](dag)))]
    orders: list[tuple[str, list[Node] | None]] = [("depth_first", None)]
    walked = peak(dag, range(len(layout.steps)))
    if walked > least_peak(dag):
        better = least_memory(dag, states=STATES, starts=(as_given, eager, costly_first))
        if peak(dag, better) < walked:
            orders.append(("least_memory", in_order(layout, better)))
    return orders


def check_order(order: str) -> None:
    """GraphError for an order that there is not."""
    if order not in ORDERS:
        raise GraphError(f"there is no order {order!r}; there are {', '.join(ORDERS)}")


def as_given(dag: Dag) -> range:
    """The order in which the nodes stand."""
    return range(len(dag.nbytes))
