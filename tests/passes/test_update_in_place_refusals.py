"""Update edges that must keep a copy, and those that need none: each refusal from its other side."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.passes.update_in_place import update_in_place
from tests.support.tolerance import assert_near


def var(name: str, *shape: int) -> cg.Var:
    return cg.Var(shape, "float64", name)


def with_values(*variables: cg.Var) -> None:
    for i, x in enumerate(variables):
        x.assign(np.random.default_rng(i).normal(size=x.shape))


A, B, C = var("a", 6, 6), var("b", 6, 6), var("c", 6, 6)
NEW = cg.tanh(A) + 1.0
QR = cg.qr(A)[0]
PLACES = cg.Var((4,), "int64", "places").assign(np.array([5, 0, -6, 5]))
ELSEWHERE = cg.Var((4,), "int64", "elsewhere").assign(np.array([0, 1, 2, 0]))
TAKEN = cg.tanh(cg.take(A, PLACES, 0) @ B)
TO_A, TO_B = cg.gradient(cg.sum(TAKEN), [A, B])
TO_NARROW = cg.gradient(cg.sum(cg.square(cg.take(B[:3], ELSEWHERE, 0))), B)

# outputs, update edges, and the Vars that are written in place
EDGES = {
    "one edge": ([], {A: NEW}, {A}),
    "a value of other Vars": ([cg.sum(A)], {A: B @ C}, {A}),
    "a Var that nobody reads": ([], {A: B @ C}, set()),
    "an output that reads the old value": ([cg.sum(A)], {A: NEW}, {A}),
    "an output that reads the new value": ([cg.sum(NEW)], {A: NEW}, {A}),
    "an output that is the new value": ([NEW], {A: NEW}, {A}),
    "one source for two Vars": ([cg.sum(A), cg.sum(C)], {A: B * 2.0, C: B * 2.0}, {A}),
    "a later edge reads the old value": ([], {A: A * 2.0, B: A @ B}, {A}),
    "an output shows the old value": ([A], {A: NEW}, set()),
    "an output shows a view of the old value": ([A[::2]], {A: NEW}, set()),
    "a Var": ([cg.sum(A)], {A: B}, {A}),
    "a view of a Var": ([cg.sum(A)], {A: B.T}, {A}),
    "a view of the Var itself": ([], {A: A.T}, set()),
    "both values in one op": ([cg.sum(NEW * A)], {A: NEW}, set()),
    "an op that reads its Var across": ([], {A: A @ B}, set()),
    "an op that reads its Var turned": ([], {A: A + A.T}, set()),
    "a view of what is computed": ([], {A: cg.sin(B).T}, set()),
    "one of several results": ([], {A: QR}, set()),
    "an op that may fail, which nothing needs": ([], {A: NEW, B: cg.delay(np.negative, B)}, set()),
    "an op that may fail, before": ([], {A: NEW + cg.delay(np.negative, B), C: C * 2.0}, {A}),
    "an op that may fail, behind": ([cg.delay(np.negative, NEW)], {A: NEW}, set()),
    "rows that are taken, and their gradient": ([], {A: A - TO_A, B: B - TO_B}, {A, B}),
    "a gradient alone, whose rows nobody takes": (
        [],
        {A: A - cg.gradient(cg.sum(cg.take(A, PLACES, 0)), A), C: NEW},
        {A},
    ),
    "a gradient at other positions": ([], {B: B - TO_B, C: C - TO_NARROW[0]}, set()),
    "an exchange": ([], {A: B * 1.5, B: A * 0.5}, {A}),
}


@pytest.mark.parametrize("name", EDGES)
def test_which_edges_are_written_in_place(name):
    outputs, updates, written = EDGES[name]
    with_values(A, B, C)
    want = evaluate([*outputs, *updates.values()])
    function = cg.compile(outputs, updates=updates)
    compiled = function.compiled
    bases = [compiled.views[source].at.base for source in compiled.sources]
    assert {x for x, base in zip(compiled.updated, bases) if base is x} == written
    for got, value in zip([*function(), *(x.value for x in updates)], want):
        assert_near(got, value, "float64 formulas near zero")


def test_an_input_is_not_written_in_place_and_the_others_are():
    compiled = cg.compile([], [A], updates={A: A * 2.0, B: B * 2.0}).compiled
    assert [source.op.writes for source in compiled.sources] == [False, True]


def test_a_graph_of_much_work_is_left(monkeypatch):
    with_values(A)
    nodes = 7  # of the graph: its Var, the number, its broadcast, tanh, sum; and what lowering makes of them at most
    monkeypatch.setitem(update_in_place.__globals__, "MOST_WORK", 0)
    function = cg.compile([], updates={A: NEW})
    assert [source.op.writes for source in function.compiled.sources] == [False]
    want = evaluate([NEW])[0]
    function()
    assert_near(A.value, want, "float64 through float32")
    monkeypatch.setitem(update_in_place.__globals__, "MOST_WORK", nodes)
    assert [source.op.writes for source in cg.compile([], updates={A: NEW}).compiled.sources] == [True]


def test_no_order_is_asked_for_that_goes_round_in_a_circle():
    """Each new value is read by what the other one's readers need: one of the two keeps its copy."""
    new_a, new_b = cg.tanh(A), cg.tanh(B)
    outputs = [cg.sum(new_a @ B), cg.sum(new_b @ A)]
    with_values(A, B)
    want = evaluate([*outputs, new_a, new_b])
    function = cg.compile(outputs, updates={A: new_a, B: new_b})
    assert sum(source.op.writes for source in function.compiled.sources) == 1
    for got, value in zip([*function(), A.value, B.value], want):
        assert_near(got, value, "float64 formulas")


@pytest.mark.parametrize("bad", [[0, 1, 7], [7, 0, 1], [-5, 0, 1]])
def test_positions_that_fit_a_longer_axis_are_no_promise_for_a_shorter_one(bad):
    """An update that needs the take from the long table alone is not written before the other has been looked at."""
    long, short, rows = cg.Var((9,), name="long"), cg.Var((4,), name="short"), cg.Var((3,), "int64", "rows")
    w, total = cg.Var((64,), name="w"), cg.Var((), name="total")
    for var in (long, short, w, total):
        var.assign(np.ones(var.shape, "f4"))
    updates = {w: w * 2 + cg.sum(cg.take(long, rows)), total: cg.sum(cg.take(short, rows))}
    function = cg.compile([], [rows], updates=updates)
    with pytest.raises(cg.PositionError):
        function(np.array(bad))
    assert (w.value == 1).all() and total.value == 1
    function(np.array([0, -1, 3]))
    assert (w.value == 5).all() and total.value == 3
