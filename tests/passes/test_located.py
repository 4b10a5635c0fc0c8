"""What passes make says which line of the user's code it comes from."""

import numpy as np

import cgraph as cg
from cgraph.formats.onnx import load, save

F = np.ones((16, 16, 3, 3), "float32")


def network():
    x = cg.Var((1, 16, 12, 12), name="x")
    y = cg.relu(cg.conv2d(x, F, 1, 1)) * 2
    return x, cg.sum(cg.tanh(y) + 1, axis=1)


def test_physical_nodes_keep_the_line_that_asked_for_them():
    x, y = network()
    function = cg.compile(y, [x])
    first = network.__code__.co_firstlineno
    lines = {node.origin for node in function.compiled.layout.steps}
    assert lines == {(__file__, first + 2), (__file__, first + 3)}


def test_physical_nodes_of_an_imported_model_keep_its_nodes_numbers(tmp_path):
    x, y = network()
    save(tmp_path / "net.onnx", y, [x])
    function = load(tmp_path / "net.onnx").compile()
    assert {node.origin[0] for node in function.compiled.layout.steps} == {"net.onnx"}
    assert len({node.origin[1] for node in function.compiled.layout.steps}) > 1
