"""recompute: the same bits with fewer bytes; the square-root bound on a deep chain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
import nn
from cgraph import BudgetError
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.kernels.target import host_target
from cgraph.memory.layout import NodeFacts, layout_of, owner_of
from cgraph.ops.physical.rerun import Rerun
from cgraph.rematerialise.rebuild import run_again
from cgraph.rematerialise.segments import Forward, in_segments
from nn.layer import initialise
from nn.losses import cross_entropy
from nn.step import training_step
from tests.support.graphs import draw_values, graphs
from tests.support.planned import planned

WIDTH, BATCH = 64, 32
LAYER = WIDTH * BATCH * 4


def chain(depth):
    """A deep network of equal layers: input, weights, loss, gradients."""
    rng = np.random.default_rng(0)
    x = cg.Var((BATCH, WIDTH), name="x")
    weights = [cg.Var(WIDTH, name=f"w{i}") for i in range(depth)]
    h = x
    for w in weights:
        w.assign(rng.normal(1, 0.1, WIDTH).astype("float32"))
        h = cg.tanh(h * w)
    loss = cg.sum(h * h)
    return x, weights, loss, cg.gradient(loss, weights)


def layers_in_use(depth, recompute):
    x, _, loss, gradients = chain(depth)
    return cg.compile([loss, *gradients], [x], recompute=recompute).nbytes / LAYER


def steps_again(function):
    return [node for node in function.compiled.layout.steps if isinstance(node.op, Rerun)]


def test_bytes_grow_like_the_square_root_of_the_depth():
    small, large = (layers_in_use(n, True) for n in (16, 144))
    assert small <= 2 * 4 + 2
    assert large <= 2 * 12 + 4


def test_bytes_grow_like_the_depth_without():
    for depth in (16, 144):
        assert layers_in_use(depth, False) >= depth


def test_every_forward_value_is_computed_at_most_twice():
    x, _, loss, gradients = chain(64)
    plain, again = (cg.compile([loss, *gradients], [x], recompute=r).compiled.layout.steps for r in (False, True))
    assert len(plain) < len(again) <= len(plain) + 64


def test_a_training_step_gives_the_same_bits():
    values = np.random.default_rng(1).normal(size=(BATCH, WIDTH)).astype("float32")
    found = []
    for recompute in (False, True):
        x, weights, loss, gradients = chain(20)
        updates = {w: w - 0.01 * g for w, g in zip(weights, gradients)}
        step = cg.compile(loss, [x], updates=updates, recompute=recompute, engine=CpuEngine(poison=True))
        losses = [step(values) for _ in range(3)]
        found.append((losses, [w.value for w in weights]))
        assert bool(steps_again(step)) == recompute
    (losses, weights), (losses_again, weights_again) = found
    np.testing.assert_array_equal(losses, losses_again)
    for a, b in zip(weights, weights_again):
        np.testing.assert_array_equal(a, b)


def test_random_numbers_are_drawn_again_as_they_were():
    found = []
    for recompute in (False, True):
        x, key = cg.Var((BATCH, WIDTH), name="x"), cg.Var(2, "uint32", "key").assign(cg.random_key(5))
        keys = cg.split_key(key, 13)
        h = x
        for k in keys[1:]:
            h = cg.tanh(cg.dropout(h, k, 0.3) * 1.5)
        g = cg.gradient(cg.sum(h), x)
        step = cg.compile(g, [x], updates={key: keys[0]}, recompute=recompute)
        values = np.random.default_rng(1).normal(size=x.shape).astype("float32")
        found.append([step(values) for _ in range(2)] + [key.value])
        assert bool(steps_again(step)) == recompute
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)


def test_a_network_trains_with_the_same_bits():
    rng = np.random.default_rng(2)
    pictures = rng.normal(size=(4, 2, 8, 8)).astype("float32")
    answers = rng.integers(0, 3, 4)
    found = []
    for recompute in (False, True):
        blocks = [nn.ConvNorm(2, 2, 3, pad=1, function="tanh") for _ in range(6)]
        model = initialise(nn.Sequential(*blocks, nn.Dropout(0.2), nn.FullyConnected(2 * 64, 3)), 0)
        step = training_step(model, cross_entropy, nn.Optimiser(), (pictures, answers), recompute=recompute)
        losses = [step(pictures, answers) for _ in range(3)]
        found.append([losses, *(p.value for p in model.parameters().values())])
        assert bool(steps_again(step.function)) == recompute
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=60)
@given(drawn=graphs(), segments=st.integers(2, 6))
def test_the_new_order_is_one_and_means_the_same(drawn, segments):
    loss = cg.sum(cg.square(drawn.outputs[-1]))
    layout = planned(*drawn.outputs, *cg.gradient(loss, drawn.leaves)).layout
    order, new = run_again(layout, in_segments(layout, segments))
    place = {node: i for i, node in enumerate(order)}
    assert len(place) == len(order)
    assert all(place[x] < i for node, i in place.items() for x in node.operands)
    steps = layout_of(order, [new[x] for x in layout.lasting], (), NodeFacts(host_target())).steps
    assert len(layout.steps) <= len(steps) <= 2 * len(layout.steps)
    values = dict(zip(drawn.leaves, draw_values(drawn.leaves)))
    for a, b in zip(evaluate([new[x] for x in layout.lasting], values), evaluate(layout.lasting, values)):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=60)
@given(drawn=graphs())
def test_gradients_of_random_graphs_have_the_same_bits(drawn):
    values = draw_values(drawn.leaves)
    loss = cg.sum(cg.square(drawn.outputs[-1]))
    wanted = [*drawn.outputs, *cg.gradient(loss, drawn.leaves)]
    plain = cg.compile(wanted, drawn.leaves)
    again = cg.compile(wanted, drawn.leaves, recompute=True, engine=CpuEngine(poison=True))
    assert again.nbytes <= plain.nbytes
    for a, b in zip(plain(*values), again(*values)):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=60)
@given(drawn=graphs(zero_size=False))
def test_update_edges_of_random_graphs_have_the_same_bits(drawn):
    loss = cg.sum(cg.square(drawn.outputs[-1]))
    updates = {x: x - g / 64 for x, g in zip(drawn.leaves, cg.gradient(loss, drawn.leaves))}
    found = []
    for recompute in (False, True):
        for x, value in zip(drawn.leaves, draw_values(drawn.leaves)):
            x.assign(value)
        step = cg.compile(drawn.outputs, updates=updates, recompute=recompute, engine=CpuEngine(poison=recompute))
        results = [array for _ in range(3) for array in step()]
        found.append([*results, *(x.value for x in drawn.leaves)])
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)


def test_incremental_runs_of_a_recomputing_function_equal_full_ones():
    x, weights, loss, gradients = chain(12)
    x.assign(np.random.default_rng(1).normal(size=x.shape).astype("float32"))
    function = cg.compile([loss, *gradients], recompute=True)
    assert steps_again(function)
    for i in (3, 3, 11, 0):
        weights[i].assign(weights[i].value * np.float32(1.1))
        for a, b in zip(function(), cg.compile([loss, *gradients])()):
            np.testing.assert_array_equal(a, b)


def test_a_budget_recomputes_no_more_than_it_needs():
    x, _, loss, gradients = chain(64)
    least, most = (cg.compile([loss, *gradients], [x], recompute=r).nbytes for r in (True, False))
    functions = [cg.compile([loss, *gradients], [x], recompute=n) for n in (most, (least + most) // 2, least)]
    counts = [len(f.compiled.layout.steps) for f in functions]
    assert not steps_again(functions[0])
    assert counts[0] < counts[1] < counts[2]
    assert functions[1].nbytes <= (least + most) // 2


def test_a_budget_that_no_segments_fit_is_refused():
    x, _, loss, gradients = chain(8)
    with pytest.raises(BudgetError, match="the budget is 1000 B"):
        cg.compile([loss, *gradients], [x], recompute=1000)


def test_a_graph_in_which_nothing_waits_stays_as_it_is():
    x = cg.Var((4, 4), name="x")
    function = cg.compile(cg.sin(x) @ x, [x], recompute=True)
    assert not steps_again(function)


def test_segments_are_of_about_equal_bytes_that_wait():
    x, _, loss, gradients = chain(16)
    forward = Forward(planned(loss, *gradients).layout)
    layers = sorted(forward.waiting)
    assert layers == [*range(1, 32, 2), 32] and forward.turn == 32  # the result of each layer, and the squares
    assert forward.cuts(4) == [5, 11, 17, 23]  # behind a layer, once half a segment of 17 / 4 values is full
    assert [len(steps) for steps in forward.dropped(4)] == [4, 4, 4, 4]
    assert all(steps == sorted(set(steps)) for steps in forward.dropped(4))


def test_a_step_that_must_not_run_twice_is_in_no_segment():
    _, _, loss, gradients = chain(16)
    layout = planned(loss, *gradients).layout
    dropped = [t for steps in Forward(layout).dropped(4) for t in steps]
    for pinned in dropped:
        forward = Forward(layout)
        forward.pinned = {pinned}
        assert pinned not in [t for steps in forward.dropped(4) for t in steps]


@pytest.mark.parametrize("reads", [lambda w, x: w + x, lambda w, x: x - w, lambda w, x: cg.where(x > 0, x, w)])
def test_outputs_impure_steps_and_readers_of_a_var_that_is_written_up_to_the_turn_are_pinned(reads):
    """The Var may be any operand of the step that reads it; a Var that is not written pins nothing."""
    x, w, other = (cg.Var((4, 4), name=name) for name in ("x", "w", "other"))
    called = cg.delay(np.sin, cg.exp(x) * other)
    output = cg.tanh(reads(w, called))
    layout = planned(output, cg.sum(cg.square(output)), updates={w: cg.exp(output)}).layout
    steps = list(enumerate(layout.steps))
    once = {t for t, node in steps if layout.values[t].lasting or not node.op.pure or node.op.writes}
    readers = {t for t, node in steps if any(x is w for x in node.operands)}
    (written,) = (t for t, node in steps if node.op.writes)
    for turn, pinned in [(len(steps) - 1, once | readers), (written - 1, once - {written})]:
        forward = Forward(layout)
        forward.turn = turn
        assert forward.pinned == {t for t in pinned if t <= turn}
    assert readers - once and len(once | readers) < len(steps)


@pytest.mark.parametrize("read", [lambda w: w, lambda w: w[1], lambda w: w.T[:, :1].T])
def test_steps_that_read_a_var_or_a_view_of_it_run_again_before_it_is_written(read):
    x, w, last = (cg.Var((WIDTH, WIDTH), name=name) for name in ("x", "w", "last"))
    h: cg.Node = x
    for _ in range(6):
        h = cg.tanh(h + read(w))
    loss = cg.sum(h * h)
    layout = planned(loss, updates={w: w * cg.tanh(h), last: cg.gradient(loss, x)}).layout
    order, steps = in_segments(layout, 3), list(enumerate(layout.steps))
    (written,) = (t for t, node in steps if node.op.writes)
    readers = {t for t, node in steps if t != written and any(owner_of(layout.views[y]) is w for y in node.operands)}
    runs = [i for i, t in enumerate(order) if t in readers]
    assert len(runs) > len(readers) and max(runs) < order.index(written)


def test_cuts_lie_where_fewest_bytes_must_be_kept():
    x = cg.Var((BATCH, WIDTH), name="x")
    w = cg.Var((BATCH, WIDTH), name="w")
    h: cg.Node = x
    for _ in range(6):
        for _ in range(3):
            h = cg.tanh(h * w)
        narrow = cg.tanh(cg.mean(h, 1, keepdims=True))
        h = cg.tanh(cg.broadcast_to(narrow, x.shape) * w)
    loss = cg.sum(h * h)
    forward = Forward(planned(loss, cg.gradient(loss, w)).layout)
    for segments in (2, 3, 6):  # of which a narrow value lies in the second half of each
        cuts = forward.cuts(segments)
        assert len(cuts) >= segments - 1 and cuts == sorted(set(cuts))
        across = forward.bytes_across(list(enumerate(forward.last)))
        assert {across[t] for t in cuts} == {BATCH * 4}  # one number for each row


def test_the_steps_of_each_segment_run_again_the_last_segment_first():
    x, _, loss, gradients = chain(16)
    layout = planned(loss, *gradients).layout
    counts = {2: [8, 8], 3: [4, 6, 5, 5], 4: [4, 4, 4, 4], 5: [2, 4, 3, 3, 3, 3, 3]}
    for segments, again in counts.items():
        dropped, order = Forward(layout).dropped(segments), in_segments(layout, segments)
        assert [len(steps) for steps in dropped] == again
        repeats = [t for i, t in enumerate(order) if t in order[:i]]
        assert repeats == [t for steps in reversed(dropped) for t in steps]
