"""Graphs are well formed where operands are older than their users; the error names both nodes of a cycle."""

import pytest

import cgraph as cg
from cgraph.errors import GraphError
from cgraph.ir.check import check_graph


@pytest.fixture
def cyclic():
    """A node whose second operand was replaced by a newer one."""
    x = cg.Var((2,), name="x")
    old = cg.sin(x) * cg.cos(x)
    newer = cg.exp(x + 5)
    old.operands = old.operands[0], newer
    return old, newer


def test_graphs_as_functions_build_them_are_well_formed():
    x = cg.Var((2,))
    shared = cg.sin(x)
    check_graph([])
    check_graph([x])
    check_graph([shared * shared + x, shared])
    check_graph(iter([x, shared]))


def test_an_operand_newer_than_its_user_is_an_error_with_both_names(cyclic):
    old, newer = cyclic
    with pytest.raises(GraphError, match="the graph has a cycle; use scan or an update edge") as caught:
        check_graph([old])
    text = str(caught.value)
    assert text.startswith(f"{old!r} reads {newer!r}, which is newer")


def test_cycles_are_refused_deep_below_any_output(cyclic):
    old, _ = cyclic
    good = cg.Var((2,))
    with pytest.raises(GraphError, match="cycle"):
        check_graph([good, cg.tanh(cg.exp(old)) + 1])
    with pytest.raises(GraphError, match="cycle"):
        cg.compile([cg.tanh(old)])
