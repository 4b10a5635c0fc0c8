"""A pass is imported and run for a graph with an op that it concerns."""

import sys
from importlib import import_module

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.ir.late_pass import LatePass
from cgraph.ir.roots import Roots
from cgraph.ops.arithmetic import Add
from cgraph.ops.conv import Conv2d

X = cg.Var((1, 8, 9, 9))


def test_a_pass_concerns_its_ops_and_their_subclasses():
    row = LatePass("cgraph.passes.drop_taps", "Conv")
    conv = cg.conv2d(X, cg.Var((4, 8, 3, 3)))
    assert type(conv.op) is Conv2d and row.concerns(Roots([conv]))
    assert not row.concerns(Roots([X + 1]))
    assert LatePass("cgraph.passes.drop_taps").concerns(Roots([X]))
    assert LatePass("cgraph.passes.drop_taps", "Sub", "Add").concerns(Roots([apply(Add(), X, X)]))


def test_a_module_is_imported_when_a_graph_has_an_op_of_its_pass(monkeypatch):
    monkeypatch.delitem(sys.modules, "cgraph.passes.drop_taps", raising=False)
    row = LatePass("cgraph.passes.drop_taps", "Conv")
    graph = Roots([X + 1])
    assert row(graph) is graph and "cgraph.passes.drop_taps" not in sys.modules
    row((cg.conv2d(X, cg.Var((4, 8, 3, 3))),))
    assert "cgraph.passes.drop_taps" in sys.modules


def test_a_pass_has_the_name_of_its_function_and_takes_further_arguments(monkeypatch):
    module = import_module("cgraph.passes.bound_rows")
    monkeypatch.setattr(module, "given", lambda roots, *arguments: (*roots, *arguments), raising=False)
    row = LatePass("cgraph.passes.bound_rows:given")
    assert (row.__name__, row.module) == ("given", "cgraph.passes.bound_rows")
    assert row((X,), 1, "two") == (X, 1, "two")
    assert LatePass("cgraph.passes.bound_rows").__name__ == "bound_rows"


def test_arguments_are_not_read_where_a_pass_is_not_concerned():
    row = LatePass("cgraph.passes.bound_rows:missing", "Prefix")
    assert tuple(row((X,), None)) == (X,)
