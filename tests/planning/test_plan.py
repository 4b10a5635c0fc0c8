"""Planning a graph: Vars behind update edges are copied, stored values, checks of every plan, budgets."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.budget.budget import Budget
from cgraph.errors import BudgetError, GraphError, PlanError
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import host_target
from cgraph.memory.auto import auto
from cgraph.memory.layout import NodeFacts
from cgraph.memory.problem import Plan, Problem
from cgraph.ops.loop import Body
from cgraph.ops.physical.stream import Stream
from cgraph.ops.shape import Contiguous
from cgraph.planning import plan as planning
from cgraph.planning.options import CompileOptions, PlanSettings, Request
from cgraph.planning.plan import cached_nodes, check_budget, detach, plan_graph, plan_request, round_of
from cgraph.record import replace
from tests.support.planned import planned


def test_only_values_that_a_changing_node_reads_are_stored():
    a, b, c = (cg.Var((3,), name=name) for name in "abc")
    early = cg.cumsum(a, 0)
    kept, own = cg.cumsum(early, 0), cg.cumsum(b, 0)
    y, z = kept * own, cg.cumprod(c, 0)
    nodes = post_order((y, z))
    assert cached_nodes((b,), nodes) == {kept}
    assert cached_nodes((a, b), nodes) == set(), "everything that is read with it changes"
    assert cached_nodes((a,), nodes) == {own}
    assert cached_nodes((c,), nodes) == cached_nodes((), nodes) == set()
    assert cached_nodes((b,), post_order((a * b,))) == {a}


def test_the_source_of_an_edge_is_copied_if_its_bytes_are_those_of_a_leaf():
    x = cg.Var((2, 3), name="x")
    facts, nodes = NodeFacts(host_target()), post_order((x, x.T, cg.transpose(x * 2, (1, 0))))
    views = facts.views_of(nodes)
    assert all(isinstance(detach(node, views).op, Contiguous) for node in (x, x.T))
    copied = detach(x.T, views)
    assert copied.operands == (x.T,) and copied.shape == (3, 2)
    assert detach(nodes[-1], views) is nodes[-1]


def test_vars_swap_their_values_by_update_edges():
    x, y = (cg.Var((4,), name=name).assign(np.full(4, value, "f4")) for name, value in (("x", 1), ("y", 2)))
    swap = cg.compile([x + y], [], {x: y, y: x})
    for first, second in ((2, 1), (1, 2)):
        np.testing.assert_array_equal(swap()[0], [3] * 4)
        assert x.value.tolist() == [first] * 4 and y.value.tolist() == [second] * 4


@pytest.mark.parametrize("copy", [True, False])
def test_an_update_edge_to_an_input_leaves_the_callers_array(copy):
    x, y = cg.Var((4,), name="x"), cg.Var((4,), name="y")
    y.assign(np.zeros(4, "f4"))
    step = cg.compile([cg.sum(x) + cg.sum(y)], [x], {x: cg.cumsum(x * 2, 0), y: cg.cumsum(y + x, 0)})
    array = np.arange(1, 5, dtype="f4")
    kept = y.value.copy()
    for total in (10, 30):
        assert step(array, copy=copy)[0] == total
        assert array.tolist() == [1, 2, 3, 4] and x.value.tolist() == [2, 6, 12, 20]
        assert y.value.tolist() == np.cumsum(kept + array).tolist()
        kept = y.value.copy()


def test_outputs_and_sources_stay_apart_in_their_order():
    a, b = cg.Var((3,), name="a"), cg.Var((3,), name="b")
    compiled = planned(a + 1, b * 2, updates={b: cg.cumsum(a, 0), a: cg.cumprod(b, 0)})
    assert len(compiled.outputs) == 2 and compiled.updated == (b, a)
    assert [x.op.name for x in compiled.sources] == ["cumsum", "cumprod"]
    assert [x.op.name for x in compiled.outputs] == ["add", "multiply"]


def overlapping(problem: Problem) -> Plan:
    return Plan((0,) * len(problem.operands), int(problem.nbytes.max()), "overlapping")


@pytest.mark.parametrize("proved", [False, True])
def test_a_plan_whose_values_share_bytes_is_refused_whatever_it_claims(proved):
    x = cg.Var((64,), name="x")
    with pytest.raises(PlanError, match="share bytes.* memory strategy overlapping"):
        planned(
            cg.cumsum(x, 0) + cg.cumprod(x, 0), strategy=lambda problem: replace(overlapping(problem), proved=proved)
        )


@pytest.mark.parametrize("most", [2, 1])
def test_schedules_are_replayed_up_to_a_number_of_steps(monkeypatch, most):
    """A graph of two steps is replayed if two are allowed."""
    calls = []
    monkeypatch.setattr(planning, "check_replay", lambda *args: calls.append(args))
    monkeypatch.setattr(planning, "MOST_REPLAYED", most)
    x = cg.Var((64,), name="x")
    y = cg.cumsum(cg.cumsum(x, 0), 0)
    compiled = planned(y)
    assert len(calls) == (most == 2)
    for steps, views, works, workspaces, nbytes, ends, always in calls:
        assert steps == compiled.layout.steps and nbytes == compiled.nbytes and tuple(ends) == (y,)
        assert set(views) >= {x, y} and set(works) >= {y} and workspaces == {} and not always


def test_a_budget_is_met_or_refused_or_the_smallest_plan_is_returned():
    x = cg.Var((1024,), name="x")
    request = Request((cg.cumsum(cg.cumprod(x, 0) + cg.cumsum(x, 0), 0),), (x,), {})
    least = plan_request(request, host_target(), 64, CompileOptions()).nbytes
    for budget, best_effort in ((least, False), (least - 1, True)):
        options = CompileOptions(budget=budget)
        assert plan_request(request, host_target(), 64, options, best_effort).nbytes == least
    with pytest.raises(BudgetError, match=f"the least budget of this graph is {least} bytes"):
        plan_request(request, host_target(), 64, CompileOptions(budget=least - 1))
    with pytest.raises(GraphError, match="no memory strategy 'no'"):
        plan_request(request, host_target(), 64, CompileOptions(memory="no"))


def test_the_order_and_the_changing_vars_are_those_of_the_options():
    x, w = cg.Var((8,), name="x"), cg.Var((8,), name="w")
    packed = cg.cumsum(w, 0)
    request = Request((cg.cumprod(x, 0) * packed,), (x,), {})
    for order in ("depth_first", "breadth_first", "least_memory"):
        compiled = plan_request(request, host_target(), 64, CompileOptions(order=order, changing=(x,)))
        assert compiled.order == order and list(compiled.layout.always) == [packed]


def test_a_budget_counts_the_bytes_that_recompute_allows_too():
    x = cg.Var((64,), name="x")
    settings = PlanSettings(host_target(), 64, auto)
    compiled = plan_graph(Request((cg.cumsum(x, 0),), (x,), {}), settings)
    way = type("Way", (), {"layout": compiled.layout, "usage": compiled.usage})
    for budget in (Budget(), Budget(256), Budget(255, best_effort=True), Budget(None, recompute=256)):
        check_budget((way, compiled.plan), budget)
    for budget in (Budget(255), Budget(256, recompute=255)):
        with pytest.raises(BudgetError, match="1 bytes are missing"):
            check_budget((way, compiled.plan), budget)


def test_offsets_are_multiples_of_the_alignment():
    x = cg.Var((3,), name="x")
    y = cg.cumsum(x, 0)
    for alignment in (64, 256):
        plan = plan_request(Request((y, y * 2, y + 1), (x,), {}), host_target(), alignment, CompileOptions()).plan
        assert all(offset % alignment == 0 for offset in plan.offsets) and plan.nbytes % alignment == 0


def test_a_round_of_a_loop_writes_only_the_state_that_changes():
    state, fixed, row = (cg.Var((3,), name=name) for name in ("state", "fixed", "row"))
    after = cg.cumsum(state + row, 0)
    body = Body((state, fixed), (row,), (), (after, fixed), (after * 2,))
    settings = PlanSettings(host_target(), 64, auto)
    compiled = round_of(settings, body)
    assert [x for x, _ in compiled.updates] == [state] and len(compiled.ys) == 1
    assert compiled.nbytes == compiled.plan.nbytes > 0
    assert compiled.steps[-1].node in (*compiled.plan.outputs, *compiled.plan.sources)


def test_each_region_in_bands_is_checked(monkeypatch):
    """A product of all pixels lies between two chains of convolutions, so no region can contain both."""
    x = cg.Var((1, 8, 32, 32), name="x")
    y, filters = x, np.full((8, 8, 3, 3), 0.1, "f4")
    for _ in range(2):
        for _ in range(3):
            y = cg.relu(cg.conv2d(y, filters, pad=1))
        y = cg.reshape(cg.softmax(cg.reshape(y, (1, -1))), y.shape)
    checked = []
    monkeypatch.setattr(planning, "check_stream", lambda node, target: checked.append(node))
    compiled = cg.compile(cg.sum(y), [x], bands=32).compiled
    regions = [node for node in compiled.layout.steps if isinstance(node.op, Stream)]
    assert len(regions) > 1 and checked == regions


def test_workspaces_are_replayed_too(monkeypatch):
    calls = []
    monkeypatch.setattr(planning, "check_replay", lambda *args: calls.append(args))
    x = cg.Var((4, 3, 16, 16), name="x")
    y = cg.conv2d(cg.exp(x), cg.Var((8, 3, 3, 3)), pad=1)
    compiled = planned(y)
    ((*_, workspaces, nbytes, _, _),) = calls
    (index,) = compiled.layout.workspace_of.values()
    assert workspaces == {y: compiled.usage.offset(compiled.plan, index)} and nbytes == compiled.nbytes


@pytest.mark.parametrize("make", [cg.tanh, cg.cumsum, lambda v: cg.sort(v, 0), lambda v: v @ v.T])
def test_equal_ops_on_operands_of_other_shapes_and_dtypes_in_one_graph(make):
    rng = np.random.default_rng(0)
    inputs = [cg.Var(shape, dtype) for shape in ((5, 6), (6, 5), (5, 6)) for dtype in ("float32", "float64")]
    arrays = [rng.normal(size=x.shape).astype(x.dtype) for x in inputs]
    together = cg.compile([make(x) for x in inputs], inputs)(*arrays)
    for x, array, y in zip(inputs, arrays, together):
        np.testing.assert_array_equal(y, cg.compile(make(x), [x])(array), strict=True)


@pytest.mark.parametrize(("budget", "edges", "fused"), [
    (Budget(), False, True), (Budget(bands=8), False, True), (Budget(recompute=True), False, True),
    (Budget(1 << 20), False, False), (Budget(recompute=1 << 20), False, False), (Budget(), True, False),
])  # fmt: skip
def test_outputs_are_fused_where_no_number_of_bytes_and_no_edge_asks_for_their_order(budget, edges, fused, monkeypatch):
    x, v, calls = cg.Var((64,), name="x"), cg.Var((64,), name="v"), []
    monkeypatch.setattr(planning, "fuse_results", lambda roots, inputs: calls.append(inputs) or roots)
    request = Request((cg.cumsum(x, 0), cg.cumprod(x, 0)), (x,), {v: v * 2} if edges else {})
    plan_graph(request, PlanSettings(host_target(), 64, auto, budget=budget))
    assert calls == ([(x,)] if fused else [])


def test_rounds_of_loops_are_planned_alike_but_without_budget_and_changing_vars(monkeypatch):
    state, rows, settings = cg.Var((8,), name="state"), cg.Var((5, 8), name="rows"), []
    known = planning.round_of
    monkeypatch.setattr(planning, "round_of", lambda own, body: settings.append(own) or known(own, body))
    final, _ = cg.scan(lambda s, row: (cg.cumsum(s + row, 0), s), state, rows)
    own = PlanSettings(host_target(), 128, auto, "breadth_first", (rows,), Budget(1 << 20))
    plan_graph(Request((final,), (rows,), {}), own)
    assert settings == [PlanSettings(host_target(), 128, auto, "breadth_first")]


def test_what_a_budget_changed_is_checked_with_its_own_outputs_and_stored_values(monkeypatch):
    x, w, checked = cg.Var((8,), name="x"), cg.Var((8,), name="w"), []

    def changed(choice, budget, planner):
        (way, plan) = choice
        layout = replace(way.layout, lasting=(x,), always=frozenset({w}))
        return replace(way, layout=layout), plan

    monkeypatch.setattr(planning, "fit_plan", changed)
    monkeypatch.setattr(planning, "check_and_place", lambda choice, *given: checked.append(given) or {})
    settings = PlanSettings(host_target(), 64, auto, changing=(x,), budget=Budget(1 << 20))
    compiled = plan_graph(Request((cg.cumprod(x, 0) * cg.cumsum(w, 0),), (x,), {}), settings)
    ((_, ends, always),) = checked
    assert (ends, always, compiled.outputs) == ((x,), {w}, (x,))


OPTIONS = [{"nbytes": 0}, {"nbytes": 1 << 20}, {"bands": 0}, {"bands": 9}]
OPTIONS += [{"recompute": x} for x in (True, 0.25, 4096)]


@pytest.mark.parametrize("options", [*OPTIONS, {}, {"best_effort": True}])
def test_a_plan_is_fitted_if_an_option_asks_for_bytes(monkeypatch, options):
    x, fitted = cg.Var((8,), name="x"), []
    monkeypatch.setattr(planning, "fit_plan", lambda whole, budget, planner: fitted.append(budget) or whole)
    budget = Budget(**options)
    monkeypatch.setattr(planning, "check_budget", lambda choice, budget: None)
    plan_graph(Request((cg.cumsum(x, 0),), (x,), {}), PlanSettings(host_target(), 64, auto, budget=budget))
    assert fitted == [budget] * (options in OPTIONS)
    assert budget.is_free is (options not in OPTIONS)
