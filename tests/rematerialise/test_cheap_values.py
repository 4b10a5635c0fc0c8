"""A share of the work: what follows in one pass from what waits anyway is computed again, with the same bits."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
import nn
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.kernels.target import host_target
from cgraph.memory.layout import NodeFacts, layout_of
from cgraph.ops.physical.rerun import Rerun
from cgraph.passes import rewrite_graph
from cgraph.rematerialise import cheap_values
from cgraph.rematerialise.cheap_values import LEAST, CheapSearch
from cgraph.rematerialise.rebuild import reruns_of, run_again
from cgraph.rematerialise.reruns import rerun_positions
from nn.losses import cross_entropy
from tests.support.graphs import draw_values, graphs
from tests.support.planned import planned

WIDTH, BATCH, DEPTH = 64, 512, 6
LAYER = WIDTH * BATCH * 4


def stepped(function: str, recompute: float) -> tuple[nn.Step, list[np.ndarray]]:
    """A training step of some layers after three runs, and all that it gave and left."""
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(BATCH, WIDTH)).astype("float32"), rng.integers(0, 10, BATCH)
    layers = [layer for _ in range(DEPTH) for layer in (nn.Linear(WIDTH, WIDTH), nn.Activation(function))]
    model = nn.initialise(nn.Sequential(*layers, nn.Linear(WIDTH, 10)), 0)
    engine = CpuEngine(poison=True)
    step = nn.training_step(model, cross_entropy, nn.Optimiser(), samples, recompute=recompute, engine=engine)
    losses = [np.array(step(*samples)[0]) for _ in range(3)]
    return step, [*losses, *(x.value for x in model.parameters().values())]


@pytest.mark.parametrize("function", ["gelu", "swish", "softplus", "hard_swish"])
def test_an_activation_waits_as_its_operand_alone(function):
    (plain, found), (again, same) = (stepped(function, share) for share in (False, 0.9))
    assert again.function.nbytes <= plain.function.nbytes - (DEPTH - 2) * LAYER
    for a, b in zip(found, same):
        np.testing.assert_array_equal(a, b)


def test_a_step_of_training_does_so_unless_told_otherwise():
    def again(**options):
        x = np.zeros((BATCH, WIDTH), "float32")
        layers = [layer for _ in range(DEPTH) for layer in (nn.Linear(WIDTH, WIDTH), nn.Activation("gelu"))]
        model = nn.initialise(nn.Sequential(*layers), 0)
        step = nn.training_step(model, nn.losses.quadratic, None, (x, x), **options)
        return [n for n in step.function.compiled.layout.steps if isinstance(n.op, Rerun)]

    assert again() and not again(recompute=False)


def test_a_value_that_follows_from_nothing_that_waits_stays():
    step, _ = stepped("relu", 0.9)
    assert not [n for n in step.function.compiled.layout.steps if isinstance(n.op, Rerun)]


@pytest.mark.parametrize(("between", "again"), [(lambda h, w: h @ w, False), (lambda h, w: h + w, True)])
def test_a_cheap_value_is_computed_again_only_if_all_that_it_needs_is_cheap(between, again, monkeypatch):
    """tanh of a product, whose gradient reads the result alone: the product does not wait."""
    monkeypatch.setattr(cheap_values, "LEAST", 1)
    h, weights = cg.Var((8, 8), name="x"), [cg.Var((8, 8), name=f"w{i}") for i in range(4)]
    for w in weights:
        h = cg.tanh(between(h, w))
    layout = planned(*cg.gradient(cg.sum(cg.square(h)), weights)).layout
    order = cheap_values.cheap_again(layout, reruns_of(layout, 64), 0.9)
    names = {layout.steps[order[place]].op.name for place in rerun_positions(order)}
    assert "matmul" not in names and ("tanh" in names) == again


@settings(max_examples=60)
@given(drawn=graphs(), share=st.sampled_from([0.01, 0.1, 0.9]))
def test_the_new_order_is_one_means_the_same_and_costs_no_more_than_its_share(drawn, share):
    loss = cg.sum(cg.square(drawn.outputs[-1]))
    layout = planned(*drawn.outputs, *cg.gradient(loss, drawn.leaves)).layout
    problem = reruns_of(layout, 64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cheap_values, "LEAST", 1)
        order = cheap_values.cheap_again(layout, problem, share)
    assert problem.extra(order) <= share * problem.own
    nodes, new = run_again(layout, order)
    place = {node: i for i, node in enumerate(nodes)}
    assert all(place[x] < i for node, i in place.items() for x in node.operands)
    assert len(layout_of(nodes, [new[x] for x in layout.lasting], (), NodeFacts(host_target())).steps) == len(order)
    values = dict(zip(drawn.leaves, draw_values(drawn.leaves)))
    for a, b in zip(evaluate([new[x] for x in layout.lasting], values), evaluate(layout.lasting, values)):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=60)
@given(drawn=graphs(zero_size=False))
def test_update_edges_of_random_graphs_have_the_same_bits(drawn):
    loss = cg.sum(cg.square(drawn.outputs[-1]))
    updates = {x: x - g / 64 for x, g in zip(drawn.leaves, cg.gradient(loss, drawn.leaves))}
    found = []
    for recompute in (False, 0.9):
        for x, value in zip(drawn.leaves, draw_values(drawn.leaves)):
            x.assign(value)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cheap_values, "LEAST", 1)
            step = cg.compile(drawn.outputs, updates=updates, recompute=recompute, engine=CpuEngine(poison=True))
        results = [array for _ in range(3) for array in step()]
        found.append([*results, *(x.value for x in drawn.leaves)])
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)


def unlike_sizes(large: int) -> tuple[list[cg.Node], list[cg.Var]]:
    """Gradients of layers whose activations are cheap, below a value of so many elements that is read at the end."""
    x, z = cg.Var((BATCH, WIDTH), name="x"), cg.Var((large,), name="z")
    weights = [cg.Var((WIDTH, WIDTH), name=f"w{i}") for i in range(DEPTH)]
    kept = cg.exp(z)
    y = x * cg.max(kept)
    for w in weights:
        y = cg.gelu(y @ w)
    gradients = cg.gradient(cg.sum(cg.square(y)), weights)
    return [*gradients, kept * cg.sum(gradients[0])], [x, z, *weights]


def test_a_plan_stays_as_it_is_where_cheap_values_save_less_than_a_twentieth(monkeypatch):
    def nbytes(large: int, share: float | bool) -> int:
        outputs, inputs = unlike_sizes(large)
        return cg.compile(outputs, inputs, recompute=share).nbytes

    least = 0
    for large in (1 << 20, 1 << 21, 1 << 22):
        plain, cheap = nbytes(large, False), nbytes(large, 0.5)
        assert cheap == plain or cheap <= plain * 19 / 20
        with monkeypatch.context() as patched:
            patched.setattr("cgraph.budget.fit_reruns.WORTH", 1.0)
            least += plain * 19 / 20 < nbytes(large, 0.5) < plain
    assert least, "none of these plans could have saved so little"


@pytest.mark.parametrize(("of", "functions"), [
    (cg.exp, 1), (lambda x: cg.exp(cg.sin(x)), 2), (lambda x: cg.exp(x) + cg.sin(x) * cg.tanh(x), 3),
    (lambda x: x * x, 0), (cg.sqrt, 0), (lambda x: abs(-x), 0), (lambda x: cg.power(x, x), 1),
    (lambda x: cg.sqrt(cg.log(x) - cg.floor(x)), 1),
    (lambda x: cg.sum(cg.exp(x)), 0), (lambda x: cg.exp(x) + cg.exp(x), 1),
])  # fmt: skip
@pytest.mark.parametrize("shape", [(5,), (3, 40)])
def test_each_function_of_a_step_costs_the_same_for_each_element(of, functions, shape):
    """The last step of a graph, whose pointwise ops are one; the work of reading and writing comes on top."""
    (node,) = rewrite_graph((of(cg.Var(shape)),))
    assert cheap_values.functions_of(node) == cheap_values.FUNCTION * functions * math.prod(shape)


def search_over(reads: list[list[int]], waiting: set[int] = frozenset(), **facts) -> CheapSearch:
    """A search over cheap steps that read these; the turn is the last one, after which some values wait."""
    search, count = object.__new__(CheapSearch), len(reads)
    steps = [cg.tanh(cg.Var((4,))) for _ in reads]
    for i in facts.get("costly", ()):
        steps[i] = cg.Var((4, 4)) @ cg.Var((4, 4))
    values = [SimpleNamespace(last=count if i in waiting else count - 1, lasting=False) for i in range(count)]
    search.layout = SimpleNamespace(steps=steps)
    search.forward = SimpleNamespace(reads=reads, values=values, turn=count - 1, pinned=facts.get("pinned", set()))
    search.problem = SimpleNamespace(until=facts.get("until", [99] * count))
    search.first = {}
    return search


CHAIN = [[], [0], [1], [2], [3]]


def test_up_to_three_steps_run_again_for_one_value():
    search = search_over(CHAIN, {0})
    assert [search.runs(t, 9) for t in (1, 2, 3)] == [[1], [2, 1], [3, 2, 1]]
    assert search.runs(4, 9) == [], "four steps are too many"
    assert search_over([[], [0, 0], [1, 0], [2, 1]], {0}).runs(3, 9) == [3, 2, 1], "each once"
    last = search_over(CHAIN, {0})
    last.forward.values[3].lasting = True
    assert last.runs(4, 9) == [4], "a value that stays is there"


@pytest.mark.parametrize(
    ("facts", "at", "runs"),
    [
        ({}, 9, [2, 1]),
        ({"costly": [1]}, 9, []),
        ({"costly": [2]}, 9, []),
        ({"pinned": {1}}, 9, []),
        ({"pinned": {0, 3}}, 9, [2, 1]),
        ({"until": [9, 9, 8, 9, 9]}, 7, [2, 1]),
        ({"until": [9, 9, 8, 9, 9]}, 8, []),
        ({"until": [9, 8, 9, 9, 9]}, 8, []),
    ],
)
def test_none_runs_again_if_one_of_them_is_costly_or_may_not(facts, at, runs):
    assert search_over(CHAIN, {0}, **facts).runs(2, at) == runs


def test_values_run_again_before_their_first_read_behind_the_turn():
    search = search_over([[], [0], [1]])
    search.forward.turn = 0
    for steps, at, first in (([1], 7, {0: 7}), ([1], 5, {0: 5}), ([1, 2], 6, {0: 5})):
        search.read(steps, at)
        assert search.first == first, "step 1 comes after the turn"


@pytest.mark.parametrize(("share", "steps"), [(0.6, [1, 2, 0]), (0.59, [1, 2]), (0.25, [1]), (0.1, [2]), (0.09, [])])
def test_large_values_of_least_work_for_each_byte_are_taken_as_far_as_the_share_allows(share, steps):
    """Step 3 is not cheap, and step 4 is a byte too small; what is too much work lets others have their turn."""
    search, work = search_over([[]] * 5), {0: 30, 1: 20, 2: 10, 3: 0, 4: 1}
    search.forward.waiting, search.problem.own, search.work = set(work), 100, work.__getitem__
    for value, nbytes in zip(search.forward.values, (LEAST, 4 * LEAST, LEAST, LEAST, LEAST - 1)):
        value.nbytes = nbytes
    assert search.cheap_steps(share) == steps
