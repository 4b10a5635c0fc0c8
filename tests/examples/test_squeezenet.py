"""SqueezeNet with its real weights agrees with the same network in onnxruntime, and names what pictures show."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.deep_compression import read_deep_compression
from tests.support.data import shared
from tests.support.tolerance import assert_near

PATH = Path(__file__).resolve().parents[2] / "examples" / "squeezenet.py"
WEIGHTS = "squeezenet_v1.0_compressed/compressed_SqueezeNet.net"
PICTURES = ("darknet_dog.jpg", "darknet_eagle.jpg", "cat_shicai.jpg", "darknet_horses.jpg")
ANIMALS = range(398)  # the classes of the 2012 challenge that are animals come first


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("squeezenet_example", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def layers(example):
    return read_deep_compression(shared(WEIGHTS), example.shapes())


@pytest.fixture(scope="module")
def function(example, layers):
    image = cg.Var((1, 3, example.SIZE, example.SIZE), name="image")
    return cg.compile(example.squeezenet(image, layers), [image])


def onnx_session(layers):
    """The same network, built with onnx's own helper."""
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper, numpy_helper

    nodes, weights = [], []

    def conv(x: str, i: int, stride: int = 1, pad: int = 0) -> str:
        weights.extend([numpy_helper.from_array(layers[i][0], f"w{i}"), numpy_helper.from_array(layers[i][1], f"b{i}")])
        nodes.append(helper.make_node("Conv", [x, f"w{i}", f"b{i}"], [f"c{i}"], strides=[stride] * 2, pads=[pad] * 4))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"]))
        return f"r{i}"

    def pool(x: str) -> str:
        pooling = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}
        nodes.append(helper.make_node("MaxPool", [x], [f"{x}p"], **pooling))
        return f"{x}p"

    x = pool(conv("x", 0, 2))
    for fire in range(8):
        few = conv(x, 3 * fire + 1)
        wide = [conv(few, 3 * fire + 2), conv(few, 3 * fire + 3, pad=1)]
        x = f"fire{fire}"
        nodes.append(helper.make_node("Concat", wide, [x], axis=1))
        x = pool(x) if fire in (2, 6) else x
    nodes.append(helper.make_node("GlobalAveragePool", [conv(x, 25, pad=1)], ["y"]))
    graph = helper.make_graph(
        nodes,
        "squeezenet",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 227, 227])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1000, 1, 1])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    return runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def all_pictures():
    return sorted([*shared("pictures").glob("*.jpg"), *shared("mask_rcnn_pictures").glob("*.jpg")])


@pytest.mark.slow
def test_scores_agree_with_onnxruntime(example, layers, function):
    session = onnx_session(layers)
    for path in all_pictures():
        pixels = example.pixels(path)
        want = session.run(None, {"x": pixels})[0].reshape(1, 1000)
        assert_near(function(pixels), want, "float32 networks")


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_of_animals_have_an_animal_among_the_five_best(example, function, name):
    scores = function(example.pixels(shared("pictures") / name))[0]
    assert set(np.argsort(-scores)[:5]) & set(ANIMALS)


def test_the_arena_is_at_the_lower_bound(function):
    assert function.nbytes == function.compiled.lower_bound


@pytest.mark.parametrize("damage", ["cut", "longer", "count"])
def test_a_damaged_file_is_refused(example, tmp_path, damage):
    raw = bytearray(shared(WEIGHTS).read_bytes())
    if damage == "cut":
        raw = raw[: len(raw) // 2]
    if damage == "longer":
        raw += b"\0"
    if damage == "count":
        raw[:4] = b"\xff\xff\xff\xff"
    path = tmp_path / "damaged.net"
    path.write_bytes(raw)
    with pytest.raises(FormatError, match="damaged.net"):
        read_deep_compression(path, example.shapes())
