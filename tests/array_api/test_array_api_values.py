"""Values of lazy arrays: the walk stops at values, the structure has positions and no values, and who gets one."""

import gc

import numpy as np
import pytest

from cgraph import array_api as xp
from cgraph.array_api import values
from cgraph.array_api.values import (
    FUNCTIONS,
    ONE_THREAD,
    Leaf,
    compile_structure,
    compute,
    known_value,
    leaf,
    of_node,
    walk,
)
from cgraph.function import compile
from cgraph.ops.leaf import Var

X = np.arange(5.0)


def lazy():
    return xp.asarray(X) * 2.0


def test_a_leaf_holds_its_value_and_is_a_var_of_its_spec():
    node = leaf(X)
    assert isinstance(node, Leaf) and node.spec == Var((5,), "float64").spec and known_value(node) is X
    assert known_value(Var((5,))) is None and of_node(node) is None


def test_the_walk_lists_operands_first_and_stops_at_what_has_a_value():
    a = lazy()
    b = a + a
    order, found = walk(b.node)
    assert order[-1] is b.node and [n.op.name for n in order].count("add") == 1
    places = {id(n): i for i, n in enumerate(order)}
    assert all(places[id(x)] < places[id(n)] for n in order if id(n) not in found for x in n.operands)
    assert len(places) == len(order) and sorted(v.shape for v in found.values()) == [(), (5,)]
    a.value  # noqa: B018 - computes it
    order, found = walk(b.node)
    assert len(order) == 2 and [v.tolist() for v in found.values()] == [(2 * X).tolist()]


@pytest.mark.parametrize("seed", range(4))
def test_nodes_that_are_shared_at_any_depth_come_before_all_their_readers(seed):
    rng = np.random.default_rng(seed)
    arrays, want = [lazy(), xp.asarray(X) + 1.0], [2 * X, X + 1]
    for _ in range(10):
        i, j = rng.integers(max(len(arrays) - 4, 0), len(arrays), 2)
        arrays.append(arrays[i] - arrays[j] if rng.random() < 0.5 else arrays[i] + arrays[j])
        want.append(want[i] - want[j] if arrays[-1].node.op.name == "subtract" else want[i] + want[j])
    for x in (arrays[-1], arrays[-1] - (arrays[-1] + arrays[0]), arrays[0] - arrays[-1]):
        order, found = walk(x.node)
        places = {id(n): i for i, n in enumerate(order)}
        assert len(places) == len(order)
        assert all(places[id(y)] < places[id(n)] for n in order if id(n) not in found for y in n.operands)
    np.testing.assert_array_equal(arrays[-1].value, want[-1])


def test_the_array_of_a_node_ends_with_it():
    a = lazy()
    node = a.node
    assert of_node(node) is a and known_value(node) is None
    a.value  # noqa: B018 - computes it
    assert of_node(node) is a and known_value(node).tolist() == (2 * X).tolist()
    del a
    gc.collect()
    assert of_node(node) is None


def test_a_run_computes_living_arrays_below_and_no_others():
    below, other = lazy(), lazy()
    above = below + 1.0
    compute(above)
    assert not below.is_lazy and not above.is_lazy and other.is_lazy
    np.testing.assert_array_equal(below.value, 2 * X)
    np.testing.assert_array_equal(above.value, 2 * X + 1)


def test_an_array_rebound_to_another_node_keeps_its_new_value():
    a = lazy()
    b = a + 1.0
    a[0] = 50.0
    np.testing.assert_array_equal(b.value, 2 * X + 1)
    np.testing.assert_array_equal(a.value, [50, 2, 4, 6, 8])


def test_equal_structures_of_other_values_share_a_function_and_other_orders_do_not():
    def difference(x, y, swap):
        a, b = xp.asarray(x), xp.asarray(y)
        return np.asarray((b - a) if swap else (a - b)).tolist()

    assert difference(X, X + 1, False) == [-1] * 5
    before = len(FUNCTIONS)
    assert difference(X * 3, X, False) == (2 * X).tolist() and len(FUNCTIONS) == before
    twice = xp.asarray(X)
    assert np.asarray(twice - twice).tolist() == [0] * 5
    assert len(FUNCTIONS) == before + 1


def test_small_graphs_run_on_one_thread(monkeypatch):
    asked = []

    def compiled(*args, threads):
        asked.append(threads)
        return compile(*args, threads=threads)

    monkeypatch.setattr(values, "compile", compiled)
    for n in (8, ONE_THREAD, ONE_THREAD + 1):
        x = xp.asarray(np.full(n, 3.0))
        y = x + x
        order, leaf_values = walk(y.node)
        (got,) = compile_structure(order, leaf_values, [y.node])(*leaf_values.values())
        assert got.shape == (n,) and (got == 6).all()
    assert asked == [1, 1, 0]


@pytest.mark.parametrize(("n", "threads"), [(8, 1), (ONE_THREAD, 1), (ONE_THREAD + 1, 0)])
def test_large_values_between_small_ones_run_on_several_threads(n, threads, monkeypatch):
    asked = []
    monkeypatch.setattr(values, "compile", lambda *args, threads: asked.append(threads))
    y = xp.sum(xp.broadcast_to(xp.asarray([3.0]), (n,)) + xp.asarray([1.0]))
    order, leaf_values = walk(y.node)
    compile_structure(order, leaf_values, [y.node])
    assert asked == [threads] and all(x.size == 1 for x in leaf_values.values())
