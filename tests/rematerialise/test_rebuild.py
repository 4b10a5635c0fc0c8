"""Steps that run more than once: the same bits, the least work within a number of bytes, and what must stay."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph import BudgetError
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.kernels.target import host_target
from cgraph.memory.layout import NodeFacts, layout_of, owner_of
from cgraph.ops.physical.rerun import Rerun
from cgraph.rematerialise.least_work import least_bytes
from cgraph.rematerialise.rebuild import cost_of, dag_of, reruns_of, run_again
from cgraph.rematerialise.segments import in_segments
from cgraph.schedule.dag import least_peak
from tests.rematerialise.test_segments import BATCH, WIDTH, chain
from tests.support.graphs import draw_values, graphs
from tests.support.planned import planned


def least_of(*outputs, inputs, **options):
    """The least budget that a refusal names."""
    with pytest.raises(BudgetError) as refused:
        cg.compile(list(outputs), inputs, recompute=1, **options)
    return int(re.search(r"is (\d+) bytes", str(refused.value))[1])


@settings(max_examples=25)
@given(drawn=graphs(), data=st.data())
def test_any_steps_that_run_again_give_the_same_values(drawn, data):
    loss = cg.sum(cg.square(drawn.outputs[-1]))
    layout = planned(*drawn.outputs, *cg.gradient(loss, drawn.leaves)).layout
    problem, order = reruns_of(layout, 64), list(range(len(layout.steps)))
    for i in data.draw(st.lists(st.sampled_from(order), max_size=12)):
        if problem.until[i] > i:
            order.insert(data.draw(st.integers(order.index(i) + 1, len(order))), i)
    nodes, new = run_again(layout, order)
    place = {node: t for t, node in enumerate(nodes)}
    assert len(place) == len(nodes)
    assert all(place[x] < t for node, t in place.items() for x in node.operands)
    again = layout_of(nodes, [new[x] for x in layout.lasting], (), NodeFacts(host_target()))
    assert len(again.steps) == len(order)
    values = dict(zip(drawn.leaves, draw_values(drawn.leaves)))
    for a, b in zip(evaluate([new[x] for x in layout.lasting], values), evaluate(layout.lasting, values)):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=15)
@given(drawn=graphs())
def test_bytes_in_use_are_those_of_the_plan(drawn):
    loss = cg.sum(cg.square(drawn.outputs[-1]))
    compiled = planned(*drawn.outputs, *cg.gradient(loss, drawn.leaves))
    problem = reruns_of(compiled.layout, 64)
    assert problem.peak(range(len(problem.cost))) <= compiled.nbytes
    order = least_bytes(problem, range(len(problem.cost)), least_peak(problem.dag))
    nodes, new = run_again(compiled.layout, order)
    layout = layout_of(nodes, [new[x] for x in compiled.layout.lasting], (), NodeFacts(host_target()))
    assert reruns_of(layout, 64).peak(range(len(order))) == problem.peak(order)


@settings(max_examples=8)
@given(drawn=graphs(zero_size=False), share=st.floats(0, 1))
def test_update_edges_within_any_bytes_have_the_same_bits(drawn, share):
    loss = cg.sum(cg.square(drawn.outputs[-1]))
    updates = {x: x - g / 64 for x, g in zip(drawn.leaves, cg.gradient(loss, drawn.leaves))}
    free = cg.compile(drawn.outputs, updates=updates)
    least = least_of(*drawn.outputs, inputs=[], updates=updates) if free.nbytes > 1 else 0
    budget = int(least + share * (free.nbytes - least))
    again = cg.compile(drawn.outputs, updates=updates, recompute=budget, engine=CpuEngine(poison=True))
    assert again.nbytes <= budget
    found = []
    for step in (free, again):
        for x, value in zip(drawn.leaves, draw_values(drawn.leaves)):
            x.assign(value)
        results = [array for _ in range(3) for array in step()]
        found.append([*results, *(x.value for x in drawn.leaves)])
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)


def test_outputs_and_calls_of_the_users_functions_run_once():
    """The step before which another may run again: none for a pure one that only steps read, itself for any other."""
    x = cg.Var((64,), name="x")
    called = cg.delay(np.sin, cg.exp(x))
    output = cg.tanh(cg.exp(x) + called)
    layout = planned(called * output, output).layout
    until = dict(zip(layout.steps, reruns_of(layout, 64).until))
    place = {node: t for t, node in enumerate(layout.steps)}
    for node, t in place.items():
        once = not node.op.pure or layout.values[t].lasting
        assert until[node] == (t if once else len(layout.steps))
    assert not all(node.op.pure for node in layout.steps)


def test_extra_work_is_at_most_that_of_segments():
    x, _, loss, gradients = chain(24)
    plain = cg.compile([loss, *gradients], [x])
    layout = plain.compiled.layout
    problem = reruns_of(layout, 64)
    for segments in (3, 6):
        order = in_segments(layout, segments)
        function = cg.compile([loss, *gradients], [x], recompute=problem.peak(order))
        extra = sum(map(cost_of, function.compiled.layout.steps)) - sum(map(cost_of, layout.steps))
        assert 0 < extra <= problem.extra(order)


@pytest.mark.slow
def test_fewer_bytes_than_segments_can_do():
    x, _, loss, gradients = chain(24)
    outputs = [loss, *gradients]
    segments = cg.compile(outputs, [x], recompute=True)
    least = least_of(*outputs, inputs=[x])
    assert least < segments.nbytes
    function = cg.compile(outputs, [x], recompute=least, engine=CpuEngine(poison=True))
    assert function.nbytes <= least
    assert any(isinstance(n.op, Rerun) and isinstance(n.op.op, Rerun) for n in function.compiled.layout.steps)
    values = np.random.default_rng(0).normal(size=(BATCH, WIDTH)).astype("float32")
    for a, b in zip(function(values), cg.compile(outputs, [x])(values)):
        np.testing.assert_array_equal(a, b)


def test_a_first_run_is_put_off_where_that_is_enough():
    x = cg.Var((256, 64), name="x")
    early = cg.cumsum(x, 1)  # read at the end alone
    h = cg.sort(x, 1)
    for _ in range(4):
        h = cg.cumsum(cg.sort(h, 1), 1)
    outputs = [cg.cumsum(early, 0) @ cg.sum(h, 0)]
    plain = cg.compile(outputs, [x], order="depth_first")
    least = cg.compile(outputs, [x], order="depth_first", recompute=plain.nbytes - 1)
    assert len(least.compiled.layout.steps) == len(plain.compiled.layout.steps)
    assert least.nbytes < plain.nbytes


@pytest.mark.parametrize("alignment", [1, 64, 4096])
def test_steps_need_the_bytes_of_their_values_and_workspaces_at_an_alignment(alignment):
    x = cg.Var((2, 3, 9, 7), name="x")
    y = cg.conv2d(cg.exp(x), cg.Var((5, 3, 3, 3)), pad=1)
    layout = planned(cg.concat([cg.sin(y), cg.tanh(y)]), cg.sum(y)).layout
    dag, place = dag_of(layout, alignment), {node: t for t, node in enumerate(layout.steps)}
    assert dag.nbytes == tuple(-(-node.nbytes // alignment) * alignment for node in layout.steps)
    needs = {place[node]: layout.values[i].nbytes for node, i in layout.workspace_of.items()}
    assert any(nbytes % 4096 for nbytes in needs.values())
    assert dag.workspaces == tuple(-(-needs.get(t, 0) // alignment) * alignment for t in range(len(place)))
    assert dag.operands == tuple(tuple(place[o] for o in node.operands if o in place) for node in layout.steps)
    assert dag.lasting == {place[node] for node in layout.lasting}
    (joined,) = (t for t, node in enumerate(layout.steps) if node.op.name == "concat")
    assert set(dag.overwritable[joined]) == set(dag.operands[joined]), "its parts may be computed in it"


@pytest.mark.parametrize("reads", [lambda w, x: w + x, lambda w, x: x - w, lambda w, x: cg.where(x > 0, x, w)])
def test_what_may_fail_runs_first_where_it_stood_and_a_var_is_read_before_it_is_written(reads):
    """The Var may be any operand of the step that reads it."""
    x, at, w = cg.Var((64, 16), name="x"), cg.Var(64, "int64", "at"), cg.Var((64, 16), name="w")
    taken = cg.take(x, at, axis=0)
    read = cg.tanh(reads(w, taken))
    h = read
    for _ in range(3):
        h = cg.tanh(h * 2)
    layout = planned(cg.sum(read * h), updates={w: cg.stop_gradient(h) + w}).layout
    problem = reruns_of(layout, 64)
    names = [node.op.name for node in layout.steps]
    take = names.index("take")
    assert take in problem.firm and problem.until[take] == len(names)
    written = next(t for t, node in enumerate(layout.steps) if node.op.writes)
    assert problem.until[written] == written
    readers = [t for t in range(written) if any(o is w for o in layout.steps[t].operands)]
    assert readers and all(problem.until[t] == written for t in readers)


@pytest.mark.parametrize("shape", [(8, 16, 32), (3, 4, 5)])
def test_the_work_of_a_product_is_its_multiplications_and_what_it_moves(shape):
    m, k, n = shape
    product = cg.Var((m, k)) @ cg.Var((k, n))
    assert cost_of(product) == m * k * n + 8 * (m * k + k * n + m * n)
    conv = cg.conv2d(cg.Var((2, m, 9, 9)), cg.Var((n, m, 3, 3)))
    assert conv.op.multiply_adds(*(x.spec for x in conv.operands)) == 2 * n * 7 * 7 * m * 9


def test_products_of_rounded_or_packed_numbers_are_as_much_work():
    x = cg.Var((8, 64))
    rounded = cg.compile(x @ np.ones((64, 32), "f4"), [x], precision="bf16").compiled.layout.steps
    assert [node.op.multiply_adds(*(y.spec for y in node.operands)) for node in rounded] == [8 * 64 * 32]
    packed = cg.block_matmul(x, np.ones((32, 2, 16), "u1"), np.ones((32, 2), "f4"))
    assert packed.op.multiply_adds(*(y.spec for y in packed.operands)) == 8 * 64 * 32


def test_a_step_may_run_again_until_any_of_the_vars_that_it_reads_is_written():
    a, b, x = (cg.Var((4,), name=name).assign(np.ones(4, "f4")) for name in "abx")
    both, one = cg.sort(a + b), cg.sort(x * 2)
    updates = {a: cg.sort(a) + 1, b: cg.sort(cg.cumsum(b)) * both}
    layout = cg.compile([both, one], [x], updates, threads=1).compiled.layout
    until = reruns_of(layout, 64).until
    writes = {}
    for t, node in enumerate(layout.steps):
        if node.op.writes:
            writes[owner_of(layout.views[node])] = t
    assert set(writes) == {a, b} and writes[a] != writes[b]
    checked = 0
    for t, node in enumerate(layout.steps):
        read = [writes[owner] for x in node.operands if (owner := owner_of(layout.views[x])) in writes]
        later = [w for w in read if w > t]
        if node.op.pure and not node.op.writes and not layout.values[t].lasting:
            assert until[t] == min(later, default=len(layout.steps))
            checked += len(later) > 1
    assert checked
