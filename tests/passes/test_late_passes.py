"""Passes by the ops that they concern: the names are those of classes, and a graph without these ops stays as it is."""

from importlib import import_module

import pytest
from hypothesis import given, settings

import cgraph as cg
from cgraph.ir.graph import Op
from cgraph.ir.late_pass import LatePass
from cgraph.ir.roots import Roots
from cgraph.lowering import pipeline
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pipeline import has_bytes, lower_graph
from cgraph.passes import PASSES
from tests.ops.cases import CASES
from tests.ops.recorded_work import NETWORKS, ROUNDING, TARGETS, logical_nodes
from tests.support.graphs import graphs
from tests.support.networks import networks

LATE = [*PASSES, *(x for x in vars(pipeline).values() if isinstance(x, LatePass))]


def classes(kind=Op):
    for inner in kind.__subclasses__():
        yield inner
        yield from classes(inner)


@pytest.fixture
def every_pass_runs(monkeypatch):
    """Passes run on all graphs; one that its ops do not concern must return the same nodes."""

    def called(self, outputs, *arguments):
        graph = Roots.of(outputs)
        result = self.function(graph, *arguments)
        assert self.concerns(graph) or all(a is b for a, b in zip(result, graph, strict=True)), self.__name__
        return result

    monkeypatch.setattr(LatePass, "__call__", called)


@pytest.mark.parametrize("row", LATE, ids=lambda row: row.__name__)
def test_names_of_ops_are_those_of_one_class_each(row):
    row.function  # noqa: B018 - loads its module
    import_module("cgraph.engine.cpu.engine")
    for name in row.ops:
        found = {kind for kind in classes() if kind.__name__ == name and kind.__module__.startswith("cgraph.")}
        assert len(found) == 1, (name, found)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_without_its_ops_is_left_by_each_pass(every_pass_runs, name, target):
    options = LoweringOptions(pairs=target in ROUNDING)
    lower_graph(tuple(NETWORKS[name]()), TARGETS[target](), options)


def test_a_graph_of_any_op_is_left_by_each_pass_that_is_not_for_it(every_pass_runs):
    target = TARGETS["avx512"]()
    for case in CASES:
        nodes = logical_nodes(case)
        read = {x for node in nodes for x in node.operands}
        lower_graph(tuple(node for node in nodes if node not in read), target, LoweringOptions())


@settings(max_examples=20)
@given(drawn=graphs(most_nodes=15))
def test_a_random_graph_is_left(drawn):
    with pytest.MonkeyPatch.context() as patch:
        every_pass_runs.__wrapped__(patch)
        lower_graph(tuple(drawn.outputs), TARGETS["avx2"](), LoweringOptions())


@settings(max_examples=20)
@given(drawn=networks())
def test_a_random_network_is_left(drawn):
    with pytest.MonkeyPatch.context() as patch:
        every_pass_runs.__wrapped__(patch)
        lower_graph(tuple(drawn[1]), TARGETS["avx2"](), LoweringOptions())


def test_a_graph_without_bytes_is_left_by_the_pass_for_integers():
    graphs_of = [logical_nodes(case) for case in CASES] + [list(build()) for build in NETWORKS.values()]
    plain = [tuple(nodes) for nodes in graphs_of if not has_bytes(tuple(nodes))]
    assert len(graphs_of) > len(plain) > 100
    for nodes in plain:
        assert all(a is b for a, b in zip(pipeline.compute_integers(nodes), nodes, strict=True))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_bytes_are_numbers_of_8_bits(dtype):
    x = cg.Var((3,), dtype)
    assert has_bytes((cg.astype(x, "float32"),))
    assert has_bytes((cg.astype(cg.Var((3,)), dtype),))
    assert not has_bytes((cg.Var((3,)), cg.Var((3,), "bool"), cg.Var((3,), "int16"), cg.Var((3,), "float8_e4m3fn")))
    assert not has_bytes((cg.sort(cg.Var((3,)))[0],)) and not has_bytes(cg.top_k(cg.Var((5,)), 2))
