"""All passes in their order: what one prepares the next finds, values stay, a rewritten graph stays as it is."""

import numpy as np
import pytest
from hypothesis import given, settings

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import ConstOp
from cgraph.passes import PASSES, rewrite_graph
from tests.support.graphs import graphs
from tests.support.rewrites import assert_keeps_values, assert_left, assert_same_values, ops_of

X = cg.Var((2, 3, 8, 8), name="x")


@settings(max_examples=40)
@given(drawn=graphs(most_nodes=15))
def test_random_graphs_keep_their_values(drawn):
    assert_keeps_values(rewrite_graph, drawn)


def test_every_pass_is_there_once():
    names = [rewrite.__name__ for rewrite in PASSES]
    assert len(set(names)) == len(names) == 24
    assert names[0] == "tidy_loops" and names[-1] == "fuse_pointwise"


def test_constants_are_folded_before_a_norm_is_folded_into_a_convolution():
    f = cg.Const(np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype("f4"))
    four = cg.Const(np.arange(1.0, 5, dtype="f4"))
    y = cg.relu(cg.batch_norm(cg.conv2d(X, f * 2, 1, 1), four, four, four, four + 1))
    (root,) = rewrite_graph((y,))
    assert ops_of([root]) == {"conv_epilogue": 1}
    assert all(isinstance(x.op, ConstOp) for x in root.operands[1:])
    assert_same_values(rewrite_graph, y)


def test_powers_are_products_before_pointwise_ops_are_fused_and_attention_is_found_first():
    x = cg.Var((4, 5))
    (root,) = rewrite_graph((cg.exp(x**3) + 0,))
    assert len(ops_of([root])) == 1 and "power" not in root.name
    q = cg.Var((1, 2, 5, 4))
    scores = cg.softmax(q @ cg.swapaxes(q, -1, -2) * 0.5, -1)
    assert ops_of(rewrite_graph((scores @ q,)))["attention"] == 1


def test_a_graph_without_anything_to_do_is_left():
    x, y = cg.Var((4, 4)), cg.Var((4, 4))
    assert_left(rewrite_graph, x @ y, cg.sort(x), x)


@pytest.mark.parametrize("count", [0, 3])
def test_outputs_keep_their_order_and_number(count):
    x = cg.Var((3,))
    outputs = tuple(cg.exp(x * float(i + 2)) for i in range(count))
    got = rewrite_graph(outputs)
    assert len(got) == count and [g.spec for g in got] == [o.spec for o in outputs]
    if count:
        assert_same_values(rewrite_graph, *outputs, apply(outputs[0].op, x))
        assert len(post_order(got)) >= count
