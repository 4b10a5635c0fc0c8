"""Copies before ops that read in C order alone: where they must be, and nowhere else."""

import numpy as np

import cgraph as cg
from cgraph.kernels.target import host_target
from cgraph.memory.layout import NodeFacts
from cgraph.passes.make_contiguous import make_contiguous
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
