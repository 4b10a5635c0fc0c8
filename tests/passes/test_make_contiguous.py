"""Copies before ops that read in C order alone: where they must be, and nowhere else."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.kernels.target import host_target
from cgraph.memory.layout import NodeFacts
from cgraph.passes.make_contiguous import make_contiguous, order_results
from tests.support.rewrites import assert_left, assert_same_values, ops_of

X = cg.Var((3, 4), "float64", "x")


def rewrite(outputs):
    return make_contiguous(outputs, NodeFacts(host_target()))


def norm(x: cg.Node) -> cg.Node:
    """An op that reads in C order alone."""
    return cg.layer_norm(x, np.ones(x.shape[-1]), np.zeros(x.shape[-1]))


def copies(*outputs: cg.Node) -> int:
    assert_same_values(rewrite, *outputs)
    return ops_of(rewrite(outputs))["contiguous"]


def test_ops_that_read_strides_get_no_copy():
    assert_left(rewrite, cg.sin(X.T), cg.sum(X[:, ::2], 1), X.T @ X)


def test_what_lies_in_c_order_is_read_as_it_is():
    assert_left(rewrite, norm(X), norm(X[1:]), norm(cg.reshape(X, (4, 3))), norm(cg.sin(X.T)))


def test_what_lies_otherwise_is_copied_once():
    assert copies(norm(X.T)) == 1
    assert copies(norm(X[:, 1:]), norm(X.T), norm(norm(X.T)) + cg.exp(norm(X.T))) == 2


def test_the_views_of_all_nodes_are_known():
    facts = NodeFacts(host_target())
    outputs = (norm(X.T)[::2],)
    (found,) = make_contiguous(outputs, facts)
    assert found in facts.views and all(x in facts.views for x in found.operands)


def test_the_initial_state_of_a_loop_is_copied_from_any_strides():
    rows, wide = cg.Var((9, 3), "float64", "rows"), cg.broadcast_to(cg.Const(np.zeros(3)), (4, 3))
    last, _ = cg.scan(lambda state, row: (state + row, row), wide, rows)
    function = cg.compile([last], [rows])
    assert "contiguous" not in {step.node.name for step in function.compiled.steps}
    values = np.arange(27.0).reshape(9, 3)
    np.testing.assert_array_equal(function(values)[0], np.broadcast_to(values.sum(0), (4, 3)))


LARGE = cg.Var((128, 2, 128), name="large")  # 128 KiB


def results_copied(*outputs: cg.Node) -> list[bool]:
    facts = NodeFacts(host_target())
    found = order_results(make_contiguous(outputs, facts), facts)
    assert all(x in facts.views for x in found)
    return [x is not y and x.op.name == "contiguous" and x.operands[0] is y for x, y in zip(found, outputs)]


def test_large_transposed_results_are_copied():
    turned = [cg.transpose(LARGE, axes) for axes in ((2, 1, 0), (1, 2, 0), (0, 2, 1), (2, 0, 1))]
    assert results_copied(*turned, cg.exp(LARGE), turned[0]) == [True] * 4 + [False, True]
    assert results_copied(cg.transpose(LARGE[::-1]), cg.transpose(LARGE)[:, :, ::-1]) == [True, True]


def test_results_whose_neighbours_are_close_are_left():
    assert not any(results_copied(LARGE, cg.transpose(LARGE, (1, 0, 2)), LARGE[:, :, ::-1], LARGE[:, 0]))
    assert not any(results_copied(cg.broadcast_to(LARGE[:, :1, :1], LARGE.shape)))
    least = cg.Var((64, 256), name="least")  # 64 KiB
    assert results_copied(least.T, cg.transpose(least[:, 1:])) == [True, False]


def names_of(function):
    return {step.node.name for step in function.compiled.steps}


@pytest.mark.parametrize("threads", [1, 2])
def test_budgets_state_and_exports_have_no_copies_of_results(threads):
    x, total = cg.Var((200, 300), name="x"), cg.Var((), name="total").assign(0.0)
    free = cg.compile([x.T, cg.exp(x)], [x], threads=threads)
    limited = cg.compile([x.T, cg.exp(x)], [x], threads=threads, budget="1MiB")
    step = cg.compile(x.T, [x], updates={total: total + 1}, threads=threads)
    exported = cg.compile(x.T, [x], engine=cg.ExportEngine("avx2"))
    assert "contiguous" in names_of(free)
    assert not any("contiguous" in names_of(f) for f in (limited, step, exported))
    value = np.random.default_rng(0).standard_normal((200, 300), "f4")
    for results in (free(value), limited(value), [step(value), np.exp(value)]):
        np.testing.assert_array_equal(results[0], value.T)
    assert free(value)[0].flags.c_contiguous
    np.testing.assert_array_equal(free(value)[1], limited(value)[1])
