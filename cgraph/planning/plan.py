"""Plan a physical graph: an order, permissions to share bytes, offsets; all of it checked."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from cgraph.budget.bands.streamed_rows import is_by_rows
from cgraph.budget.budget import Budget
from cgraph.budget.planner import Planner
from cgraph.budget.refusal import plan_refusal
from cgraph.errors import PlanError
from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import Roots
from cgraph.ir.traverse import post_order
from cgraph.late import LateModule
from cgraph.memory.check import check_plan
from cgraph.memory.layout import NodeFacts, is_leaf, owner_of
from cgraph.memory.replay import check_replay
from cgraph.memory.smallest import Choice
from cgraph.ops.leaf import Var
from cgraph.ops.loop import Body
from cgraph.ops.physical.planned_body import PlannedBody
from cgraph.ops.physical.stream import Stream
from cgraph.ops.shape import Contiguous
from cgraph.passes.fuse_results import fuse_results
from cgraph.passes.loop_bodies import plan_bodies
from cgraph.passes.make_contiguous import make_contiguous, order_results
from cgraph.passes.update_in_place import update_in_place
from cgraph.planning.compiled import Compiled
from cgraph.planning.options import CompileOptions, PlanSettings, Request
from cgraph.planning.orders import layouts_of
from cgraph.planning.strategy import strategy_named
from cgraph.record import replace

check_stream = LateModule("cgraph.budget.bands.build_bands").check_stream
fit_plan = LateModule("cgraph.budget.fit").fit_plan
MOST_REPLAYED = 20_000  # steps; beyond it the check of every value takes long


def plan_request(
    request: Request,
    target: Any,
    alignment: int,
    options: CompileOptions,
    best_effort: bool = False,
    moves_results: bool = False,
    least_gain: int = 1,
) -> Compiled:
    """Plan a physical graph for one target.

    Parameters
        best_effort: if no plan fits in the budget, return the smallest one
        moves_results: runs compute large results in callers' arrays
        least_gain: bytes; without options that ask for bytes, a search for another order must be able to gain as many
    Raises
        GraphError: a strategy or order of this name does not exist
        BudgetError: no plan fits in the budget
    """
    budget = Budget(options.budget, options.bands, options.recompute, best_effort)
    strategy = strategy_named(options.memory)
    changing, gain = tuple(options.changing), least_gain if budget.is_free else 1
    settings = PlanSettings(target, alignment, strategy, options.order, changing, budget, moves_results, gain)
    return plan_graph(request, settings)


def plan_graph(request: Request, settings: PlanSettings) -> Compiled:
    """Return the schedule, layout and plan of a physical graph, checked.

    Raises
        BudgetError: no plan fits in the budget
    """
    facts, split = NodeFacts(settings.target), len(request.outputs)
    roots, is_free = request.roots, settings.budget.limit is None and not request.updates
    if is_free and settings.target.code != "ptx":
        roots = Roots.of(fuse_results(roots, request.inputs))
    roots = plan_bodies(roots, partial(round_of, replace(settings, changing=(), budget=Budget(), moves_results=False)))
    roots = make_contiguous(roots, facts)
    if is_free and settings.moves_results:
        roots = Roots.of(order_results(roots, facts))
    edges = dict(zip(request.updates, (detach(x, facts.views) for x in roots[split:])))
    outputs, edges = update_in_place(roots[:split], edges, set(request.updates) - set(request.inputs), facts)
    ends = (*outputs, *edges.values())
    planner, nodes = Planner(settings.strategy, settings.alignment, facts), post_order(ends)
    always = cached_nodes(settings.changing, nodes)
    layouts = layouts_of(planner.layout(nodes, ends, always), settings.order, planner, settings.least_gain)
    whole = planner.smallest([way for name, layout in layouts for way in planner.candidates(name, layout)])
    asks_for_bytes = not settings.budget.is_free or is_by_rows(whole[0].layout)
    choice = fit_plan(whole, settings.budget, planner) if asks_for_bytes else whole
    check_budget(choice, settings.budget)
    if choice[0].layout is not whole[0].layout:
        ends, always = choice[0].layout.lasting, set(choice[0].layout.always)
    places = check_and_place(choice, settings.target, ends, always)
    (best, plan), updated = choice, tuple(request.updates)
    return Compiled(ends[:split], ends[split:], updated, best.layout, best.usage, plan, places, best.order)


def check_budget(choice: Choice, budget: Budget) -> None:
    """Raise BudgetError if the plan exceeds the budget, unless the smallest plan is accepted."""
    best, plan = choice
    if budget.limit is not None and plan.nbytes > budget.limit and not budget.best_effort:
        raise plan_refusal(best.layout, best.usage.problem, plan, budget.limit)


def check_and_place(choice: Choice, target: Any, ends: Iterable[Node], always: Iterable[Node]) -> Mapping[Node, Any]:
    """Check a plan, and return the address of every value; `ends` and `always` are those of the layout.

    Raises
        PlanError: the plan is wrong
    """
    (best, plan), layout = choice, choice[0].layout
    try:
        check_plan(best.usage.problem, plan)
    except PlanError as error:
        strategy = f" {plan.strategy}" if plan.strategy else ""
        raise PlanError(f"{error}. Correct the memory strategy{strategy}, or pass memory='auto'") from None
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


def round_of(settings: PlanSettings, body: Body) -> PlannedBody:
    """Plan one round of a loop: a graph whose update edges give the state."""
    changed = {x: node for x, node in zip(body.carry, body.next) if node is not x}
    compiled = plan_graph(Request(body.ys, (), changed), settings)
    ys, after = (tuple(compiled.views[x] for x in nodes) for nodes in (compiled.outputs, compiled.sources))
    return PlannedBody(tuple(compiled.steps), compiled.nbytes, ys, tuple(zip(compiled.updated, after)), compiled)


def detach(source: Node, views: Mapping[Node, Any]) -> Node:
    """Copy the source of an update edge into the arena if it is a Var, whose bytes change while edges are written."""
    return apply(Contiguous(), source) if is_leaf(owner_of(views[source])) else source


def cached_nodes(changing: Iterable[Var], order: Iterable[Node]) -> set[Node]:
    """Return the nodes that do not depend on a changing Var and are read by a node that does."""
    cone: set[Node] = set(changing)
    border: set[Node] = set()
    if not cone:
        return border
    for node in order:
        if any(x in cone for x in node.operands):
            cone.add(node)
            border.update(x for x in node.operands if x not in cone)
    return border
