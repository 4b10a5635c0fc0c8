"""Names of layers, of a file's nodes and of variables are on every step, through all passes, in all that is shown."""

import json

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.memory.files import plan_text
from cgraph.view.diagram import diagram_of
from cgraph.view.planned import memory_of

CONVOLUTIONS = 4


def network():
    layers = [nn.ConvNorm(8, 8, 3, pad="same") for _ in range(CONVOLUTIONS)]
    return nn.initialise(nn.Sequential(nn.Input((8, 64, 64)), *layers, nn.GlobalAvgPool(), nn.Linear(8, 3)), 0)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    weights = np.full((8, 8, 3, 3), 0.01, "float32")
    nodes, value = [], "image"
    for i in range(CONVOLUTIONS):
        nodes.append(helper.make_node("Conv", [value, "w"], [f"c{i}"], name=f"/features/{i}/Conv", pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"], name=f"/features/{i}/Relu"))
        value = f"r{i}"
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (1, 8, 64, 64)) for n in ("image", value)]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")])
    path = tmp_path_factory.mktemp("names") / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def test_the_steps_of_a_network_have_the_paths_of_their_layers():
    function = nn.compile(network()).function
    names = [node.origin.name for node in function.compiled.layout.steps]
    assert set(names) <= set(network().layers()) | {"Sequential"}
    assert {f"parts.{i}" in name for i in range(1, CONVOLUTIONS + 1) for name in names} == {True, False}
    assert all(any(name.startswith(f"parts.{i}") for name in names) for i in range(1, CONVOLUTIONS + 1))


def test_layers_within_layers_and_shared_layers_have_their_first_path():
    shared = nn.Linear(4, 4)
    model = nn.initialise(nn.Sequential(nn.Residual(shared), nn.Activation("tanh"), shared), 0)
    y = model(cg.Var((2, 4), name="x"))
    assert y.operands[0].origin.name == "parts.0.body"  # the product of the second use
    assert nn.Activation("tanh")(cg.Var((2,))).origin.name == "Activation"
    assert cg.sin(cg.Var((2,))).origin.name == ""  # no name is left behind


@pytest.mark.parametrize("share", [1, 1.5])
def test_the_steps_of_a_file_have_its_nodes_names_with_and_without_a_budget(file, share):
    whole = cg.load(file)
    function = cg.load(file, budget=int(whole.nbytes / share))
    steps = function.compiled.layout.steps
    assert all(node.origin.name.startswith("/features/") for node in steps if node.op.name not in ("to_blocked",))
    assert all(box.name.startswith("/features/") for box in memory_of(function).boxes if "to_blocked" not in box.name)
    titles = [x.name for x in diagram_of(function).items if x.kind == "op"]
    assert any("/features/3/Relu (" in title for title in titles)


def test_reports_traces_plans_and_errors_name_the_files_nodes(file, tmp_path):
    function = cg.load(file)
    assert "/features/1/" in str(function.report())
    function.trace(tmp_path / "trace.json", np.ones((1, 8, 64, 64), "float32"))
    assert "/features/1/" in (tmp_path / "trace.json").read_text()
    plan = json.loads(plan_text(function.compiled.usage.problem, function.plan))
    assert any("/features/1/" in json.dumps(operand) for operand in plan["operands"])
    with pytest.raises(cg.BudgetError, match=r"net\.onnx:\d+ in /features/\d/"):
        cg.load(file, budget=1)


def test_a_layer_that_does_not_fit_is_named():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(5, 4))
    with pytest.raises(cg.ShapeError, match=r"matmul at test_names\.py:\d+ in parts\.1: "):
        model(cg.Var((2, 4)))


def test_gradients_updates_and_the_loss_of_a_training_step_are_named():
    model = nn.initialise(nn.Sequential(nn.Input((4,)), nn.Linear(4, 8), nn.Activation("tanh"), nn.Linear(8, 2)), 0)
    batch = np.ones((8, 4), "float32"), np.zeros(8, "int32")
    step = nn.training_step(model, nn.losses.cross_entropy, nn.Optimiser(nn.optim.Adam()), batch)
    names = {node.origin.name for node in step.function.compiled.layout.steps}
    assert {"loss", "gradient of loss", "gradient of parts.3", "update of parts.1.weight"} <= names
    known = ("parts.", "loss", "gradient of ", "update of ")
    assert [name for name in names if name and not name.startswith(known)] == []


def test_gradients_of_a_script_have_the_names_of_its_variables():
    x = cg.Var((4,), name="x")
    hidden = cg.tanh(x)
    total = cg.sum(hidden * hidden)
    (slope,) = cg.gradient(total, [x])
    assert slope.label == "gradient of hidden" and slope.place.startswith("test_names.py:")
    assert cg.sin(slope).origin.name == ""  # no name is left behind
