"""The orders that compile can run a graph in."""

import numpy as np
import pytest
from hypothesis import given, settings

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import GraphError
from cgraph.kernels.target import host_target
from cgraph.memory.auto import auto
from cgraph.planning import orders
from cgraph.planning.options import PlanSettings, Request
from cgraph.planning.orders import ORDERS, SCHEDULES
from cgraph.planning.plan import plan_graph
from cgraph.schedule.costly_first import costly_first
from cgraph.schedule.dag import Dag
from cgraph.schedule.eager import eager
from tests.support.graphs import draw_values, graphs
from tests.support.tolerance import assert_close

every_order = pytest.mark.parametrize("order", ORDERS)


@every_order
@settings(max_examples=20)
@given(drawn=graphs())
def test_every_order_gives_the_same_values(order, drawn):
    values = draw_values(drawn.leaves)
    got = cg.compile(drawn.outputs, drawn.leaves, order=order)(*values)
    for a, b in zip(got, evaluate(drawn.outputs, dict(zip(drawn.leaves, values)))):
        assert_close(a, b)


@settings(max_examples=60)
@given(drawn=graphs())
def test_auto_is_never_larger_than_the_order_of_the_walk(drawn):
    walked, chosen = (
        plan_graph(Request(tuple(drawn.outputs), (), {}), PlanSettings(host_target(), 64, auto, order))
        for order in ("depth_first", "auto")
    )
    assert chosen.nbytes <= walked.nbytes
    assert chosen.lower_bound <= chosen.nbytes


def waiting():
    """A value that waits, when the graph is walked, while a larger one is computed and reduced."""
    x, wide = cg.Var((64,), name="x"), cg.Var((1024,), name="wide")
    return x, wide, cg.cos(x) * cg.sum(cg.exp(wide))


def test_auto_takes_another_order_where_the_plan_gets_smaller():
    x, wide, y = waiting()
    walked, chosen = (
        plan_graph(Request((y,), (), {}), PlanSettings(host_target(), 64, auto, order))
        for order in ("depth_first", "auto")
    )
    assert (walked.order, walked.nbytes) == ("depth_first", 256 + 4096 + 64)
    assert (chosen.order, chosen.nbytes) == ("least_memory", 4096 + 64)
    values = {x: np.linspace(0, 1, 64, dtype="float32"), wide: np.linspace(0, 1, 1024, dtype="float32")}
    assert_close(cg.compile(y, [x, wide])(*values.values()), evaluate([y], values)[0])


@pytest.mark.parametrize("order", SCHEDULES)
def test_an_order_that_is_named_is_the_one_that_is_planned(order):
    """Also where another needs less."""
    y = waiting()[-1]
    found = plan_graph(Request((y,), (), {}), PlanSettings(host_target(), 64, auto, order))
    assert found.order == order
    assert found.nbytes == {"least_memory": 4096 + 64, "breadth_first": 256 + 4096 + 64}[order]


def test_auto_keeps_the_walk_where_nothing_is_gained():
    x = cg.Var((64,))
    for _ in range(20):
        x = cg.tanh(cg.sin(x))
    assert plan_graph(Request((x,), (), {}), PlanSettings(host_target(), 64, auto)).order == "depth_first"


def test_an_order_that_needs_as_much_as_the_walk_is_not_planned(monkeypatch):
    """The bound lies below both, so the search runs, and finds the walk again."""
    counts = []
    monkeypatch.setattr(orders, "least_memory", lambda dag, **_: counts.append(len(dag.nbytes)) or range(counts[-1]))
    plan = plan_graph(Request((waiting()[-1],), (), {}), PlanSettings(host_target(), 64, auto))
    assert plan.order == "depth_first" and len(counts) == 1
    names = []
    original = orders.in_order
    monkeypatch.setattr(orders, "in_order", lambda layout, steps: names.append(steps) or original(layout, steps))
    plan_graph(Request((waiting()[-1],), (), {}), PlanSettings(host_target(), 64, auto))
    assert not names, "no second layout is made"


def test_an_unknown_order_is_refused():
    with pytest.raises(GraphError, match="there is no order 'random'; there are auto, depth_first"):
        cg.compile(cg.sin(cg.Var((2,))), order="random")


def test_a_search_that_nobody_asked_for_is_short_and_begins_with_three_orders(monkeypatch):
    given = []
    monkeypatch.setattr(orders, "least_memory", lambda dag, **options: given.append(options) or range(len(dag.nbytes)))
    plan_graph(Request((waiting()[-1],), (), {}), PlanSettings(host_target(), 64, auto))
    assert given == [{"states": orders.STATES, "starts": (orders.written_order, eager, costly_first)}]
    assert list(orders.written_order(Dag((1, 2, 3), ((), (), (0,))))) == [0, 1, 2]


@pytest.mark.parametrize(("least", "order"), [(1, "least_memory"), (256, "least_memory"), (257, "depth_first")])
def test_auto_searches_only_where_it_may_gain_enough(least, order):
    """The walk takes 256 bytes more than the bound."""
    y = waiting()[-1]
    found = plan_graph(Request((y,), (), {}), PlanSettings(host_target(), 64, auto, least_gain=least))
    assert found.order == order
    named = plan_graph(Request((y,), (), {}), PlanSettings(host_target(), 64, auto, "least_memory", least_gain=least))
    assert named.order == "least_memory"


def large(elements):
    """A value of some elements that waits while a larger one is computed and reduced."""
    x, wide = cg.Var((elements,), name="x"), cg.Var((4 * elements,), name="wide")
    return [x, wide], cg.cos(x) * cg.sum(cg.exp(wide))


@pytest.mark.parametrize(("elements", "order"), [(1023, "depth_first"), (1024, "least_memory")])
def test_a_process_gains_whole_pages(elements, order):
    inputs, y = large(elements)
    assert cg.compile(y, inputs, passes=False).compiled.order == order


@pytest.mark.parametrize("options", [{"budget": 1 << 20}, {"recompute": 1 << 20}, {"bands": 8}, {"recompute": 0.1}])
def test_options_that_ask_for_bytes_search_for_any(options):
    inputs, y = large(64)
    assert cg.compile(y, inputs, passes=False, **options).compiled.order == "least_memory"


def test_exported_code_gains_any_byte():
    inputs, y = large(64)
    assert cg.compile(y, inputs, passes=False, engine=cg.ExportEngine("cortex-m7")).compiled.order == "least_memory"
