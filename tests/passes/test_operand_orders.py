"""Every pattern is found in either order of the operands of each of its sums, products, maxima and minima."""

import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.ir.roots import Roots, rebuild
from cgraph.ops.arithmetic import Add, Maximum, Minimum, Multiply
from cgraph.passes import rewrite_graph
from tests.passes import (
    test_fuse_attention,
    test_fuse_epilogues,
    test_fuse_gelu,
    test_fuse_group_norm,
    test_fuse_layer_norm,
    test_fuse_matmul,
    test_fuse_rms_norm,
    test_fuse_rotary,
)
from tests.support.rewrites import assert_same_values, ops_of

BY_NAME = (test_fuse_group_norm, test_fuse_layer_norm, test_fuse_rms_norm, test_fuse_rotary)
NODES = {f"{module.__name__}, {name}": node for module in BY_NAME for name, node in module.FORMS.items()}
NODES |= {f"epilogue, {name}": node for name, node in test_fuse_epilogues.TAKEN.items()}
NODES |= {f"matmul, {name}": node for name, node in test_fuse_matmul.JOINED.items()}
NODES |= {f"gelu, {name}": form(test_fuse_gelu.X) for name, form in (test_fuse_gelu.ERF | test_fuse_gelu.TANH).items()}


def attention(form):
    q, k, v = test_fuse_attention.operands()
    return cg.softmax(form(test_fuse_attention.products(q, k)), -1) @ v


NODES |= {f"attention, {name}": attention(form) for name, form in test_fuse_attention.FORMS.items()}


def in_other_orders(node):
    """The graph once for each commutative op, with the operands of that op exchanged."""
    graph = Roots.of((node,))
    for turned in graph.order:
        if isinstance(turned.op, Add | Multiply | Maximum | Minimum) and turned.operands[0] is not turned.operands[1]:

            def exchange(n, new, turned=turned):
                return apply(n.op, new[n.operands[1]], new[n.operands[0]]) if n is turned else None

            yield rebuild(graph, exchange)[0]


@pytest.mark.parametrize("name", NODES)
def test_an_exchange_of_operands_changes_no_fusion_and_no_values(name):
    want = ops_of(rewrite_graph((NODES[name],)))
    for node in in_other_orders(NODES[name]):
        assert ops_of(rewrite_graph((node,))) == want
        assert_same_values(rewrite_graph, node)
