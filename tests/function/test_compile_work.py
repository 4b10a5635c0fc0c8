"""Compiling takes work in proportion to the graph: counted in calls, since times say nothing on a shared machine."""

import random
from functools import partial

import pytest

import cgraph as cg
from benchmarks.large_graphs import chain
from cgraph.ir.graph import Node, intern
from cgraph.ir.traverse import post_order
from cgraph.kernels.signature import Signature
from cgraph.memory.layout import overwritable, view_of
from cgraph.ops.scan import Scan
from tests.support.calls import calls_during

WALKS = 6  # of the whole graph, by all passes, the planner and the Function together


def wide(count: int) -> list[Node]:
    """Many users of one node, added up in pairs."""
    x = cg.Var((4, 4), name="x")
    found = [cg.cumsum(x * float(i + 1), 0) for i in range(count // 4)]
    while len(found) > 1:
        found = [cg.concat(found[i : i + 2], 0)[:4] for i in range(0, len(found), 2)]
    return found


def mixed(count: int) -> list[Node]:
    """Forks, joins, views, reductions and pointwise ops."""
    rng = random.Random(1)
    found: list[Node] = [cg.Var((4, 6), name="x")]
    for _ in range(count // 2):
        x, y = (found[-rng.randint(1, min(len(found), 20))] for _ in range(2))
        found.append(
            rng.choice((
                lambda x, y: x + y,
                lambda x, y: cg.tanh(x) * y,
                lambda x, y: cg.transpose(cg.cumsum(cg.transpose(x), 0)),
                lambda x, y: cg.softmax(x, -1),
                lambda x, y: cg.concat([x[:2], y[2:]], 0),
                lambda x, y: cg.broadcast_to(cg.sum(x, 1, keepdims=True), x.shape) + y,
            ))(x, y)
        )  # fmt: skip
    return found[-1:]


GRAPHS = (chain, wide, mixed)


@pytest.mark.parametrize("graph", GRAPHS)
def test_twice_the_nodes_take_twice_the_calls(graph):
    sizes = graph(200), graph(400)
    for outputs in sizes:
        cg.compile(outputs)  # kernels are compiled once
    nodes = [len(post_order(outputs)) for outputs in sizes]
    calls = [calls_during(partial(cg.compile, outputs)).total() for outputs in sizes]
    assert calls[1] / calls[0] <= 1.1 * nodes[1] / nodes[0]


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_graph_is_walked_a_fixed_number_of_times(graph):
    outputs = graph(100)
    assert calls_during(partial(cg.compile, outputs))[post_order.__code__] <= WALKS


@pytest.mark.parametrize("graph", GRAPHS)
def test_each_node_is_looked_at_once_by_the_planner(graph):
    outputs = graph(100)
    found: list = []
    calls = calls_during(lambda: found.append(cg.compile(outputs)))
    layout = found[0].compiled.layout
    assert calls[view_of.__code__] == len(layout.views)
    assert calls[overwritable.__code__] == len(layout.steps)


def test_a_node_on_rewritten_operands_of_the_same_specs_infers_nothing():
    y = cg.Var((4, 4), name="x") + 0.0  # which goes, so that all that follows is made anew
    for i in range(20):
        y = cg.cumsum(y, i % 2)
    calls = calls_during(partial(cg.compile, y))
    assert calls[intern.__code__] >= 20 and calls[Scan.infer.__code__] == 0


@pytest.mark.parametrize("graph", (chain, wide))
def test_equal_steps_have_their_kernel_calls_made_once(graph):
    few, many = (calls_during(partial(cg.compile, graph(count))) for count in (200, 400))
    assert 0 < few[Signature.call.__code__] == many[Signature.call.__code__]


def test_each_node_is_looked_at_once_where_update_edges_and_orders_are_planned():
    x, w = cg.Var((8, 8), name="x"), cg.Var((8, 8), name="w")
    loss = cg.sum(cg.square(cg.tanh(x @ w) @ w))
    found: list = []
    calls = calls_during(
        lambda: found.append(cg.compile(loss, x, {w: w - 0.1 * cg.gradient(loss, w)}, order="least_memory"))
    )
    assert calls[overwritable.__code__] == len(found[0].compiled.layout.steps)
