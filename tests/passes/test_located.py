"""What passes make says which line of the user's code it comes from."""

import numpy as np

import cgraph as cg
from cgraph.formats.onnx import load, save
from cgraph.ops.physical.in_place import InPlace
from cgraph.ops.physical.rerun import Rerun

F = np.ones((16, 16, 3, 3), "float32")


def network():
    x = cg.Var((1, 16, 12, 12), name="x")
    y = cg.relu(cg.conv2d(x, F, 1, 1)) * 2
    return x, cg.sum(cg.tanh(y) + 1, axis=1)


def test_physical_nodes_keep_the_line_that_asked_for_them():
    x, y = network()
    function = cg.compile(y, [x])
    first = network.__code__.co_firstlineno
    lines = {node.origin[:2] for node in function.compiled.layout.steps}
    assert lines == {(__file__, first + 2), (__file__, first + 3)}


def descent():
    x, w = cg.Var((8, 16), name="x"), cg.Var((16, 4), name="w")
    loss = cg.sum(cg.tanh(x @ w))
    return x, loss, {w: w - 0.1 * cg.gradient(loss, w)}


def test_sources_that_are_written_into_their_vars_keep_it_too():
    x, loss, updates = descent()
    function = cg.compile(loss, [x], updates)
    first = descent.__code__.co_firstlineno
    steps = function.compiled.layout.steps
    assert any(isinstance(node.op, InPlace) for node in steps)
    assert {node.origin[:2] for node in steps} <= {(__file__, first + 2), (__file__, first + 3)}


def deep():
    x = h = cg.Var((32, 64), name="x")
    for _ in range(20):
        h = cg.tanh(h * 2)
    return x, cg.sum(h * h)


def test_what_runs_again_keeps_it_too():
    x, loss = deep()
    function = cg.compile([loss, cg.gradient(loss, x)], [x], recompute=True)
    again = {node.origin[:2] for node in function.compiled.layout.steps if isinstance(node.op, Rerun)}
    assert again == {(__file__, deep.__code__.co_firstlineno + 3)}


def test_physical_nodes_of_an_imported_model_keep_its_nodes_numbers(tmp_path):
    x, y = network()
    save(tmp_path / "net.onnx", y, [x])
    function = load(tmp_path / "net.onnx").compile()
    assert {node.origin[0] for node in function.compiled.layout.steps} == {"net.onnx"}
    assert len({node.origin[1] for node in function.compiled.layout.steps}) > 1
