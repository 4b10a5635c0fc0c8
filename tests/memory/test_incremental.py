"""Which steps run again: replayed over bytes that carry the name of what was written there, and when.

A step that runs must find the present values of all that it reads, and callers those of all that is kept; nothing runs
that could have stayed.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.ir.graph import Node
from cgraph.kernels.target import host_target
from cgraph.memory.auto import auto
from cgraph.memory.incremental import FULL, IncrementalPlan, StepSelection, cut_out
from cgraph.memory.incremental_tables import tables_of
from cgraph.memory.layout import owner_of
from cgraph.memory.problem import Strategy
from cgraph.memory.strategies import STRATEGIES
from cgraph.memory.tables import Lists, Tables
from cgraph.planning.compiled import Compiled
from cgraph.planning.options import PlanSettings, Request
from cgraph.planning.plan import plan_graph
from cgraph.system.bounded_cache import most_of
from tests.support.graphs import graphs

NOBODY = -1


def plan(outputs: list[Node], changing: tuple = (), strategy: Strategy = auto) -> Compiled:
    return plan_graph(Request(tuple(outputs), (), {}), PlanSettings(host_target(), 4, strategy, changing=changing))


def recompute_of(compiled: Compiled, variables: list[Node]) -> IncrementalPlan:
    return IncrementalPlan(len(compiled.layout.steps), variables, partial(tables_of, compiled, variables))


class Memory:
    """The arena of a graph; every byte holds the name of a value: its step, and the last run that could change it."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled, self.layout, self.usage = compiled, compiled.layout, compiled.usage
        self.bytes = np.full(compiled.nbytes, NOBODY, np.int64)
        self.run_count = 0
        sources: dict[Node, set[Node]] = {}
        for node in self.layout.views:
            sources[node] = {node} if not node.operands or not node.op.pure else set()
            sources[node].update(*(sources[x] for x in node.operands))
        self.sources = [sources[node] for node in self.layout.steps]
        self.since: dict[Node, int] = {}

    def span(self, value: int) -> slice:
        at = self.usage.offset(self.compiled.plan, value)
        return slice(at, at + self.layout.values[value].nbytes)

    def names(self, value: int) -> np.ndarray:
        """What the bytes of a value hold when it is up to date; those of a part made inside it are the part's."""
        since = max((self.since.get(x, 0) for x in self.sources[value]), default=0)
        found = np.full(self.layout.values[value].nbytes, since * len(self.layout.values) + value, np.int64)
        for part, whole in enumerate(self.usage.inside):
            if whole == value:
                at = self.span(part).start - self.span(value).start
                found[at : at + self.layout.values[part].nbytes] = self.names(part)
        return found

    def holds(self, value: int) -> bool:
        return np.array_equal(self.bytes[self.span(value)], self.names(value))

    def run(self, steps: tuple[int, ...] | None, changed: frozenset[Node]) -> None:
        self.run_count += 1
        impure = {node for node in self.layout.views if not node.op.pure}
        self.since |= dict.fromkeys(changed | impure, self.run_count)
        for t in range(len(self.layout.steps)) if steps is None else steps:
            node = self.layout.steps[t]
            owners = (owner_of(self.layout.views[x]) for x in node.operands)
            assert all(self.holds(self.layout.value_of[x]) for x in owners if x in self.layout.value_of), (t, node)
            if node in self.layout.workspace_of:
                self.bytes[self.span(self.layout.workspace_of[node])] = NOBODY
            parts = [p for p, whole in enumerate(self.usage.inside) if whole == t]
            kept = [(p, self.bytes[self.span(p)].copy()) for p in parts]
            self.bytes[self.span(t)] = self.names(t)
            for p, was in kept:
                self.bytes[self.span(p)] = was
        for node in self.layout.lasting:
            owner = owner_of(self.layout.views[node])
            assert owner not in self.layout.value_of or self.holds(self.layout.value_of[owner]), node


@settings(max_examples=80)
@given(
    drawn=graphs(impure=True),
    changing=st.integers(0, 4),
    strategy=st.sampled_from(("auto", "greedy_in_order_blocks", "one_each")),
    changes=st.lists(st.integers(0, 15), min_size=1, max_size=8),
)
def test_every_step_finds_the_present_values_of_what_it_reads(drawn, changing, strategy, changes):
    compiled = plan(drawn.outputs, tuple(drawn.leaves[changing : changing + 1]), STRATEGIES.get(strategy, auto))
    recompute, memory = recompute_of(compiled, drawn.leaves), Memory(compiled)
    steps = recompute.steps(None, frozenset(drawn.leaves))
    assert steps.run is None
    memory.run(steps.run, frozenset(drawn.leaves))
    for mask in changes:
        changed = frozenset(x for i, x in enumerate(drawn.leaves) if mask >> i & 1)
        steps = recompute.steps(steps.after, changed)
        memory.run(steps.run, changed)
        alone = strategy == "one_each" and set(compiled.usage.shared) <= {NOBODY}
        if alone and steps.run is not None:  # nothing is overwritten, so what did not change stays
            impure = {node for node in compiled.layout.views if not node.op.pure}
            assert steps.run == tuple(t for t in range(recompute.count) if memory.sources[t] & (changed | impure))


def test_what_is_remembered_is_asked_for_once_and_equal_states_are_one():
    x, w = cg.Var((8,), name="x"), cg.Var((8,), name="w")
    recompute = recompute_of(plan([cg.cumsum(x, 0), cg.cumsum(w, 0)]), [x, w])
    first = recompute.steps(FULL, frozenset([x]))
    assert recompute.steps(FULL, frozenset([x])) is first
    assert {first.run, recompute.steps(first.after, frozenset([w])).run} == {(0,), (1,)}
    assert recompute.steps(first.after, frozenset([x, w])).run is None
    assert recompute.steps(first.after, frozenset()).run == ()
    assert len(recompute.states) == 1


@settings(max_examples=60)
@given(drawn=graphs(), changes=st.lists(st.integers(0, 15), min_size=2, max_size=8))
def test_an_answer_that_is_kept_is_the_one_for_its_state_and_its_changes(drawn, changes):
    """Each state is asked about with all changes, after all others."""
    compiled = plan(drawn.outputs)
    kept, states = recompute_of(compiled, drawn.leaves), [FULL]
    sets = [frozenset(x for i, x in enumerate(drawn.leaves) if mask >> i & 1) for mask in changes]
    for changed in sets:
        states.append(kept.steps(states[-1], changed).after)
    for state in states:
        for changed in sets:
            assert kept.steps(state, changed) == recompute_of(compiled, drawn.leaves).steps(state, changed)


def test_values_that_are_gone_are_computed_again_whatever_was_asked_before():
    x, w = cg.Var((8,), name="x"), cg.Var((8,), name="w")
    recompute = recompute_of(plan([cg.cumsum(x, 0), cg.cumsum(w, 0)]), [x, w])
    nothing = frozenset()
    assert recompute.steps(FULL, nothing).run == ()
    assert recompute.steps(frozenset([0]), nothing).run == (1,)
    assert recompute.steps(frozenset([1]), nothing).run == (0,)
    assert recompute.steps(frozenset(), nothing).run == (0, 1)
    assert recompute.steps(FULL, nothing).run == ()


@settings(max_examples=40)
@given(drawn=graphs(impure=True), mask=st.integers(0, 15))
def test_a_steady_run_leaves_the_state_that_it_begins_in(drawn, mask):
    plans = recompute_of(plan(drawn.outputs), drawn.leaves)
    changed = frozenset(x for i, x in enumerate(drawn.leaves) if mask >> i & 1)
    steady = plans.steady(changed)
    assert steady is not None
    again = plans.steps(steady.after, changed)
    assert (again.run, again.after) == (steady.run, steady.after)


def test_plans_of_many_steps_have_no_steady_run(monkeypatch):
    x = cg.Var((8,), name="x")
    monkeypatch.setattr("cgraph.memory.incremental.MOST_STEPS", 0)
    assert recompute_of(plan([cg.cumsum(x, 0)]), [x]).steady(frozenset([x])) is None


def test_no_more_answers_are_remembered_than_said(monkeypatch):
    monkeypatch.setattr("cgraph.system.bounded_cache.MOST_ENTRIES", 3)
    monkeypatch.setattr("cgraph.system.bounded_cache.LEAST_ENTRIES", 1)
    leaves = [cg.Var((8,), name=f"x{i}") for i in range(8)]
    recompute = recompute_of(plan([cg.cumsum(x, 0) for x in leaves]), leaves)
    for i, x in enumerate(leaves):
        assert recompute.steps(FULL, frozenset([x])).run == (i,)
        assert max(map(len, (recompute.answers, recompute.cones, recompute.states))) <= 3


def lasting(x: cg.Var, w: cg.Var) -> dict[str, Node]:
    """Graphs of a Var that changes and one that does not, whose values could share bytes in every way."""
    early, late = cg.sin(w), cg.cos(w)
    both = cg.concat([x, x])
    return {
        "overwrites": cg.exp(early) + x,
        "overwrites twice": cg.exp(cg.tanh(early)) * x + early * x,
        "has parts": cg.concat([early, late]) * both,
        "is a part": cg.concat([early * x, late]),
        "is a part and is read": cg.concat([early, late]) * both + cg.concat([early * x, x]),
        "sums": cg.cumsum(cg.concat([early, late]), 0) + both,
    }


@pytest.mark.parametrize("name", lasting(cg.Var((64,)), cg.Var((64,))))
def test_what_later_runs_must_find_has_its_bytes_alone_at_every_step(name):
    """It takes no operand's bytes and no parts in, is there from first to last step, and nobody takes its own."""
    x, w = cg.Var((64,), name="x"), cg.Var((64,), name="w")
    compiled = plan([lasting(x, w)[name]], (x,))
    layout = compiled.layout
    owners = {owner_of(layout.views[node]) for node in layout.always}
    values = [layout.value_of[owner] for owner in owners if owner in layout.value_of]
    assert values
    for i in values:
        value = layout.values[i]
        assert (value.overwritable, value.parts) == ((), ())
        assert (value.step, value.last, value.lasting) == (0, len(layout.steps) - 1, True)
        assert compiled.usage.shared[i] == compiled.usage.inside[i] == NOBODY
        assert i not in compiled.usage.shared and i not in compiled.usage.inside


def test_what_was_overwritten_runs_again_unless_it_was_to_be_kept():
    x, w = cg.Var((64,), name="x"), cg.Var((64,), name="w")
    y = cg.cumsum(w, 0)
    outputs = [cg.cumsum(y, 0) + cg.cumsum(x, 0)]  # the second sum has the bytes of the first, or of `y`
    assert recompute_of(plan(outputs), [x, w]).steps(FULL, frozenset([x])).run in (None, (0, 1, 2, 3))
    kept = plan(outputs, (x,))
    steps = recompute_of(kept, [x, w]).steps(FULL, frozenset([x])).run
    assert [kept.layout.steps[t].name for t in steps] == ["cumsum", "add"]


def test_holes_are_cut_out_of_a_span():
    assert cut_out((2, 9), []) == [(2, 9)]
    assert cut_out((2, 9), [(2, 4), (5, 6)]) == [(4, 5), (6, 9)]
    assert cut_out((2, 9), [(3, 9)]) == [(2, 3)]
    assert cut_out((2, 9), [(2, 9)]) == []
    assert cut_out((2, 9), [(3, 7), (4, 5)]) == [(2, 3), (7, 9)]
    assert cut_out((2, 2), []) == []


@st.composite
def nested_tables(draw):
    """Values in 16 bytes, some of them made inside later ones, and these again inside others."""
    spans: list[tuple[int, int]] = []
    parts: list[list[int]] = []
    for _ in range(draw(st.integers(1, 7))):
        low = draw(st.integers(0, 15))
        high = draw(st.integers(low + 1, 16))
        inside: list[int] = []
        for x in range(len(spans)):
            free = not any(x in one for one in (*parts, inside))
            apart = all(spans[x][1] <= spans[y][0] or spans[y][1] <= spans[x][0] for y in inside)
            if free and apart and low <= spans[x][0] and spans[x][1] <= high and draw(st.integers(0, 3)):
                inside.append(x)
        spans.append((low, high))
        parts.append(inside)
    count = len(spans)
    nothing = np.full(count, -1, np.int64)
    return Tables(
        np.array(spans, np.int64), Lists.of([[]] * count), Lists.of(parts), nothing, np.array([], np.int64),
        np.zeros((count, 1), np.uint8),
    )  # fmt: skip


@settings(max_examples=400)
@given(tables=nested_tables(), data=st.data())
def test_a_value_survives_while_every_byte_of_it_is_its_own_or_that_of_a_part_that_survives(tables, data):
    """Byte by byte, over two runs of any steps: a part of a part that is overwritten takes both wholes with it."""
    count, parts = len(tables.segments), tables.parts.tolist()
    recompute = IncrementalPlan(count, [], lambda: tables)
    writer = np.full(16, -1)
    held: frozenset[int] = frozenset()
    for _ in range(2):
        order = sorted(data.draw(st.frozensets(st.integers(0, count - 1))))
        for t in order:
            own = np.zeros(16, bool)
            own[slice(*tables.segments[t])] = True
            for part in parts[t]:
                own[slice(*tables.segments[part])] = False
            writer[own] = t
        whole = {}
        for t, (low, high) in enumerate(tables.segments.tolist()):
            inside = {byte for part in parts[t] for byte in range(*tables.segments[part])}
            own_bytes = set(range(low, high)) - inside
            there = t in held or t in order
            whole[t] = there and all(writer[i] == t for i in own_bytes) and all(whole[part] for part in parts[t])
        held = recompute._survivors(order, held)
        assert held == {t for t, is_whole in whole.items() if is_whole}


@pytest.mark.parametrize("most", [1, 2])
def test_runs_are_planned_up_to_a_number_of_steps(most, monkeypatch):
    """Two steps: each depends on one Var, so only both Vars together run all of them."""
    monkeypatch.setattr("cgraph.memory.incremental.MOST_STEPS", most)
    x, w = cg.Var((8,), name="x"), cg.Var((8,), name="w")
    plans = recompute_of(plan([cg.cumsum(x, 0), cg.cumprod(w, 0)]), [x, w])
    both = frozenset([x, w])
    assert plans.count == 2
    assert [plans.runs_all(changed) for changed in (both, frozenset([x]), frozenset([w]), frozenset())] == [
        most == 2, False, False, False,
    ]  # fmt: skip
    assert plans.steps(None, both) == StepSelection(None, FULL if most == 2 else None)
    assert (plans.steady(both) is not None) == (most == 2)
    assert plans.valid_values(None) == frozenset() and plans.valid_values(FULL) == {0, 1}


@pytest.mark.parametrize(("steps", "variables"), [(3, 100_000), (100_000, 3), (2_000, 40), (0, 0)])
def test_a_function_remembers_fewer_answers_the_more_steps_it_has(steps, variables):
    plan = IncrementalPlan(steps, range(variables), lambda: pytest.fail("no table is needed"))
    for kept in (plan.states, plan.answers, plan.cones):
        for i in range(most_of(steps) + 3):
            kept.keep(i, i)
        assert len(kept) == most_of(steps)
