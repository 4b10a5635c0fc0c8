"""Compiled equals reference on random graphs: every strategy, poison, threads, incremental runs, update edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.engine.cpu.engine import POISON, CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.memory.strategies import STRATEGIES
from tests.support.graphs import draw_values, graphs
from tests.support.tolerance import assert_close


@settings(max_examples=60)
@given(drawn=graphs(impure=True))
def test_compiled_equals_reference(drawn):
    values = draw_values(drawn.leaves)
    got = cg.compile(drawn.outputs, drawn.leaves)(*values)
    want = evaluate(drawn.outputs, dict(zip(drawn.leaves, values)))
    for a, b in zip(got, want):
        assert_close(a, b)


@pytest.mark.parametrize("memory", sorted(STRATEGIES))
@settings(max_examples=15)
@given(drawn=graphs())
def test_every_strategy_gives_the_bits_of_one_each(memory, drawn):
    values = draw_values(drawn.leaves)
    want = cg.compile(drawn.outputs, drawn.leaves, memory="one_each")(*values)
    got = cg.compile(drawn.outputs, drawn.leaves, memory=memory)(*values)
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=40)
@given(drawn=graphs())
def test_poisoned_bytes_are_never_read(drawn):
    values = draw_values(drawn.leaves)
    want = cg.compile(drawn.outputs, drawn.leaves)(*values)
    got = cg.compile(drawn.outputs, drawn.leaves, engine=CpuEngine(poison=True))(*values)
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=25)
@given(drawn=graphs(), threads=st.sampled_from((2, 3, 7)))
def test_any_number_of_threads_gives_the_same_bits(drawn, threads):
    values = draw_values(drawn.leaves)
    want = cg.compile(drawn.outputs, drawn.leaves, threads=1)(*values)
    got = cg.compile(drawn.outputs, drawn.leaves, threads=threads)(*values)
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=25)
@given(drawn=graphs())
def test_passes_keep_the_values(drawn):
    values = draw_values(drawn.leaves)
    want = cg.compile(drawn.outputs, drawn.leaves, passes=False)(*values)
    got = cg.compile(drawn.outputs, drawn.leaves)(*values)
    for a, b in zip(got, want):
        assert_close(a, b)


@settings(max_examples=30)
@given(drawn=graphs(zero_size=False, impure=True), changing=st.booleans(), changes=st.lists(st.integers(0, 15)))
def test_impure_nodes_run_once_in_every_run(drawn, changing, changes):
    for x, value in zip(drawn.leaves, draw_values(drawn.leaves)):
        x.assign(value)
    function = cg.compile(drawn.outputs, changing=drawn.leaves[:1] * changing)
    impure = [n.op.function for n in post_order(drawn.outputs) if not n.op.pure]
    for mask in [15, *changes]:
        for i, (x, value) in enumerate(zip(drawn.leaves, draw_values(drawn.leaves, mask))):
            if mask >> i & 1:
                x.assign(value)
        before = [f.calls for f in impure]
        function()
        assert [f.calls for f in impure] == [n + 1 for n in before]


@settings(max_examples=60)
@given(drawn=graphs(zero_size=False), seed=st.integers(0, 99), changes=st.lists(st.integers(0, 15), max_size=6))
def test_incremental_runs_equal_full_ones(drawn, seed, changes):
    for x, value in zip(drawn.leaves, draw_values(drawn.leaves)):
        x.assign(value)
    function = cg.compile(drawn.outputs)
    for step, mask in enumerate([15, *changes]):
        for i, (x, value) in enumerate(zip(drawn.leaves, draw_values(drawn.leaves, seed + step))):
            if mask >> i & 1:
                x.assign(value)
        want = cg.compile(drawn.outputs)()
        for a, b in zip(function(), want):
            np.testing.assert_array_equal(a, b)


@settings(max_examples=40)
@given(
    drawn=graphs(zero_size=False),
    changing=st.integers(0, 3),
    poison=st.booleans(),
    changes=st.lists(st.integers(0, 15), min_size=1, max_size=5),
)
def test_incremental_runs_find_what_they_need_among_poisoned_bytes(drawn, changing, poison, changes):
    """Dead ones are poisoned by the engine, or before each run all that nothing is known to be held in."""
    for x, value in zip(drawn.leaves, draw_values(drawn.leaves)):
        x.assign(value)
    function = cg.compile(drawn.outputs, changing=drawn.leaves[changing:][:1], engine=CpuEngine(poison=poison))
    for step, mask in enumerate([15, *changes]):
        for i, (x, value) in enumerate(zip(drawn.leaves, draw_values(drawn.leaves, step))):
            if mask >> i & 1:
                x.assign(value)
        if not poison:
            poison_what_is_not_held(function)
        for a, b in zip(function(), cg.compile(drawn.outputs)()):
            np.testing.assert_array_equal(a, b)


def poison_what_is_not_held(function):
    """Fill the arenas of a Function, but for the values that its next run may use again."""
    recompute, compiled = function.incremental, function.compiled
    for held in function._idle:
        values = recompute.valid_values(held.state)
        kept = np.zeros(function.nbytes, bool)
        for i in values:
            at = compiled.usage.offset(compiled.plan, i)
            kept[at : at + compiled.layout.values[i].nbytes] = True
        held.instance.arena[~kept] = POISON


@settings(max_examples=40)
@given(
    drawn=graphs(zero_size=False, impure=True),
    changing=st.integers(0, 3),
    changes=st.lists(st.integers(0, 15), max_size=5),
)
def test_incremental_runs_with_changing_vars_equal_full_ones(drawn, changing, changes):
    for x, value in zip(drawn.leaves, draw_values(drawn.leaves)):
        x.assign(value)
    function = cg.compile(drawn.outputs, changing=[drawn.leaves[changing % len(drawn.leaves)]])
    for step, mask in enumerate([15, *changes]):
        for i, (x, value) in enumerate(zip(drawn.leaves, draw_values(drawn.leaves, step))):
            if mask >> i & 1:
                x.assign(value)
        for a, b in zip(function(), cg.compile(drawn.outputs)()):
            np.testing.assert_array_equal(a, b)


@settings(max_examples=40)
@given(drawn=graphs(zero_size=False), data=st.data())
def test_update_edges_write_all_at_once(drawn, data):
    for x, value in zip(drawn.leaves, draw_values(drawn.leaves)):
        x.assign(value)
    updates = {}
    for x in drawn.leaves:
        fitting = [n for n in drawn.nodes if n.spec == x.spec]
        same = [n for n in updates.values() if n.spec == x.spec]
        updates[x] = data.draw(st.sampled_from(same if same and data.draw(st.booleans()) else fitting))
    function = cg.compile(drawn.outputs, updates=updates)
    for _ in range(3):
        want = evaluate([*drawn.outputs, *updates.values()])
        got = function()
        for a, b in zip([*got, *(x.value for x in updates)], want):
            assert_close(a, b)
            if not np.all(np.isfinite(b)):
                return
        for x, b in zip(updates, want[len(drawn.outputs) :]):
            x.assign(b)
