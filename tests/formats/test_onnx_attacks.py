"""Hostile ONNX files: external data that leaves its folder, sizes that lie, bytes that are flipped."""

import os

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from cgraph.formats import allowance
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx import load
from cgraph.formats.onnx.graph import OnnxGraphBuilder
from cgraph.formats.onnx.operators import control
from cgraph.formats.onnx.split import split_model
from cgraph.formats.onnx.wire import encode_varint
from tests.support.hostile import flipped, harmless, refused

WEIGHTS = np.arange(8, dtype="float32")


def external(location, offset=None, length=None, shape=(8,), **more):
    """A model whose weights lie in another file."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    entries = {"location": location, "offset": offset, "length": length, **more}
    for key, value in entries.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    return with_weights(tensor, shape)


def with_weights(tensor, shape):
    """A model that adds a tensor to its input."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1,))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [tensor],
    )
    return helper.make_model(graph)


@pytest.fixture
def folder(tmp_path):
    """A folder with weights, beside another file that must not be read."""
    inner = tmp_path / "models"
    (inner / "data").mkdir(parents=True)
    (inner / "w.bin").write_bytes(WEIGHTS.tobytes())
    (inner / "data" / "w.bin").write_bytes(bytes(4) + WEIGHTS.tobytes())
    (tmp_path / "secret").write_bytes(WEIGHTS.tobytes())
    return inner


def saved(folder, model):
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(
    ("location", "options"),
    [
        ("w.bin", {}),
        ("./w.bin", {"length": 32}),
        ("data/w.bin", {"offset": 4}),
        ("data/w.bin", {"offset": 4, "length": 32}),
    ],
)
def test_weights_in_the_folder_or_below_are_read(folder, location, options):
    found = load(saved(folder, external(location, **options)))
    np.testing.assert_array_equal(found.values["w"].op.array, WEIGHTS)


ESCAPES = {
    "the folder above": "../secret",
    "above, behind a folder that exists": "data/../../secret",
    "above, behind a folder that does not": "a/../../secret",
    "the root": "/etc/hostname",
    "another system's path": "..\\secret",
    "a zero byte": "w.bin\0x",
    "nothing": "",
    "the folder itself": ".",
    "a folder": "data",
    "an empty part": "data//w.bin",
    "a file that is not there": "other.bin",
    "a device": "../../../../../../dev/zero",
}


@pytest.mark.parametrize("name", ESCAPES)
def test_a_path_that_leaves_the_folder_is_refused(folder, name):
    refused(load, saved(folder, external(ESCAPES[name])), "external data")


def test_a_symbolic_link_is_refused(folder):
    (folder / "link.bin").symlink_to(folder.parent / "secret")
    (folder / "links").symlink_to(folder.parent)
    refused(load, saved(folder, external("link.bin")), "external data")
    refused(load, saved(folder, external("links/secret")), "external data")


def test_a_hard_link_is_refused(folder):
    os.link(folder.parent / "secret", folder / "hard.bin")
    refused(load, saved(folder, external("hard.bin")), "hard links")


def test_a_pipe_is_refused_without_waiting_for_it(folder):
    os.mkfifo(folder / "pipe")
    refused(load, saved(folder, external("pipe")), "regular file")


RANGES = {
    "an offset behind the end": {"offset": 1 << 40},
    "a length behind the end": {"offset": 4, "length": 32},
    "a length that overflows": {"offset": 2**62, "length": 2**62},
    "less than the shape needs": {"length": 16},
    "more than the shape needs": {"shape": (4,), "length": 32},
    "a negative offset": {"offset": -4},
    "a number with a sign": {"offset": "+0"},
    "a number of other digits": {"offset": "٣"},
    "a number of a thousand digits": {"length": "9" * 1000},
    "a shape of terabytes": {"shape": (1 << 40,)},
    "a shape that overflows": {"shape": (1 << 40, 1 << 40)},
    "an unknown entry": {"__class__": "x"},
}


@pytest.mark.parametrize("name", RANGES)
def test_a_range_that_does_not_fit_is_refused(folder, name):
    refused(load, saved(folder, external("w.bin", **RANGES[name])))


def test_entries_given_twice_are_refused(folder):
    model = external("w.bin")
    model.graph.initializer[0].external_data.add(key="location", value="../secret")
    refused(load, saved(folder, model), "repeated")


def test_bytes_have_no_folder(folder):
    refused(load, external("w.bin").SerializeToString(), "given as bytes")


def raw(dims, data, data_type=TensorProto.FLOAT):
    return TensorProto(name="w", data_type=data_type, dims=dims, raw_data=data)


TENSORS = {
    "terabytes declared, nothing stored": raw((1 << 40,), b""),
    "a negative axis": raw((-8,), WEIGHTS.tobytes()),
    "a shape that overflows": raw((1 << 62, 1 << 62), WEIGHTS.tobytes()),
    "too little": raw((8,), WEIGHTS.tobytes()[:-1]),
    "too much": raw((7,), WEIGHTS.tobytes()),
    "too much, and large": raw((512,), bytes(4096)),
    "an unknown dtype": raw((8,), WEIGHTS.tobytes(), 99),
    "strings": TensorProto(name="w", data_type=TensorProto.STRING, dims=(1,), string_data=[b"x"]),
    "values that the dtype cannot hold": TensorProto(name="w", data_type=TensorProto.INT8, dims=(1,), int32_data=[999]),
}


@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_whose_size_lies_is_refused(name):
    refused(load, with_weights(TENSORS[name], (8,)).SerializeToString())


def test_a_sparse_tensor_of_terabytes_is_refused():
    model = with_weights(numpy_helper.from_array(WEIGHTS, "v"), (8,))
    indices = helper.make_tensor("i", TensorProto.INT64, (1,), [0])
    values = helper.make_tensor("w", TensorProto.FLOAT, (1,), [1.0])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [1 << 40]))
    refused(load, model.SerializeToString(), "sparse")
    model.graph.sparse_initializer[0].dims[:] = [4]
    model.graph.sparse_initializer[0].indices.int64_data[:] = [-1]
    refused(load, model.SerializeToString(), "outside")


def test_two_large_tensors_of_one_name_are_refused():
    model = with_weights(numpy_helper.from_array(np.zeros(1024, "float32"), "w"), (1024,))
    model.graph.initializer.append(model.graph.initializer[0])
    refused(load, model.SerializeToString(), "two initialisers")


@pytest.mark.parametrize(
    "body", [b"", b"nonsense", b"\x3a", b"\x3a\xff\xff\xff\xff\x7f", b"\x08" + b"\xff" * 11, b"\x0b"]
)
def test_what_is_no_model_is_refused(body):
    refused(load, body)


@pytest.mark.parametrize("name", [b"Relu", b"hidden", b"x"])
def test_a_name_that_is_no_text_is_refused(name):
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["hidden"]), helper.make_node("Relu", ["hidden"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2,))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    body = helper.make_model(graph).SerializeToString()
    refused(load, body.replace(name, b"\xff" * len(name)), "UTF-8")


def test_a_graph_in_itself_a_thousand_times_is_refused():
    inner = b""
    for _ in range(1000):  # a node with a sub-graph with a node …
        attribute = b"\x0a\x01g\xa0\x01\x05" + b"\x32" + encode_varint(len(inner)) + inner
        step = b"\x22\x02If" + b"\x2a" + encode_varint(len(attribute)) + attribute
        inner = b"\x0a" + encode_varint(len(step)) + step
    refused(load, b"\x3a" + encode_varint(len(inner)) + inner)


BOMBS = {
    "Range": [np.int64(0), np.int64(1 << 40), np.int64(1)],
    "OneHot": [np.array([0]), np.int64(1 << 40), np.array([0, 1])],
    "HannWindow": [np.int64(1 << 40)],
    "MelWeightMatrix": [np.int64(1 << 30), np.int64(1 << 30), np.int64(8000), np.float32(0), np.float32(4000)],
    "Resize": [np.zeros((1, 1, 2, 2), "float32"), None, None, np.array([1, 1, 1 << 40, 1 << 40])],
    "Upsample": [np.zeros((1, 1, 2, 2), "float32"), np.array([1, 1, 1e12, 1e12], "float32")],
    "AffineGrid": [np.zeros((1, 2, 3), "float32"), np.array([1, 1, 1 << 20, 1 << 20])],
    "DFT": [np.zeros((1, 4, 1), "float32"), np.int64(1 << 40)],
    "Tile": [WEIGHTS, np.array([1 << 62])],
    "Expand": [WEIGHTS[:1], np.array([1 << 40, 1 << 40])],
    "Pad": [WEIGHTS, np.array([1 << 62, 1 << 62])],
    "Reshape": [WEIGHTS, np.array([1 << 40, 8])],
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_small_file_that_asks_for_terabytes_is_refused(kind):
    constants = [(f"c{i}", x) for i, x in enumerate(BOMBS[kind])]
    graph = helper.make_graph(
        [helper.make_node(kind, [name if x is not None else "" for name, x in constants], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(x), name) for name, x in constants if x is not None],
    )
    opset = helper.make_opsetid("", 9 if kind == "Upsample" else 21)
    refused(load, helper.make_model(graph, opset_imports=[opset]).SerializeToString())


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("If", {"then_branch": 1, "else_branch": [2, 3]}),
        ("Loop", {"body": "x"}),
        ("Softmax", {"axis": "x"}),
        ("Softmax", {"axis": 0.5}),
        ("Concat", {"axis": 0.5}),
        ("Concat", {"axis": [0]}),
        ("Transpose", {"perm": 1.5}),
        ("Flatten", {"axis": [1]}),
        ("Cast", {"to": -7}),
        ("Cast", {}),
        ("LeakyRelu", {"alpha": "x"}),
        ("Conv", {"pads": [1], "kernel_shape": "x"}),
    ],
)
def test_an_attribute_of_another_kind_is_refused(kind, attributes):
    model = with_weights(numpy_helper.from_array(WEIGHTS, "w"), (8,))
    model.graph.node.append(helper.make_node(kind, ["y", "y"][: 2 if kind == "Conv" else 1], ["z"], **attributes))
    refused(load, model.SerializeToString(), f"in {kind}")


def test_a_loop_without_end_is_refused(monkeypatch):
    """After a number of iterations, which is the same question for 300 as for the 10,000 that are allowed."""
    assert control.MOST_TRIPS <= 10_000
    monkeypatch.setattr(control, "MOST_TRIPS", 300)
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("c", TensorProto.BOOL, ()),
        ],
        [helper.make_tensor_value_info("d", TensorProto.BOOL, ())],
    )
    model = with_weights(numpy_helper.from_array(WEIGHTS, "w"), (8,))
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "go"))
    model.graph.node.append(helper.make_node("Loop", ["", "go"], [], body=body))
    refused(load, model.SerializeToString(), "iterations")


def test_a_function_that_calls_itself_is_refused():
    call = helper.make_node("F", ["v"], ["w"], domain="mine")
    model = with_weights(numpy_helper.from_array(WEIGHTS, "w"), (8,))
    model.functions.append(helper.make_function("mine", "F", ["v"], ["w"], [call], [helper.make_opsetid("", 21)]))
    model.graph.node.append(helper.make_node("F", ["y"], ["z"], domain="mine"))
    refused(load, model.SerializeToString(), "deep")


def example():
    """A small model with large and small tensors, a sub-graph and attributes."""
    branch = helper.make_graph(
        [helper.make_node("Relu", ["a"], ["r"])], "b", [], [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)]
    )
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node("Reshape", ["h", "shape"], ["a"]),
            helper.make_node("If", ["c"], ["s"], then_branch=branch, else_branch=branch),
            helper.make_node("Conv", ["s", "f"], ["y"], pads=[1, 1, 1, 1]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 32))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(np.ones((32, 16), "float32"), "w"),
            numpy_helper.from_array(np.array([2, 1, 4, 4]), "shape"),
            numpy_helper.from_array(np.array(True), "c"),
            numpy_helper.from_array(np.ones((1, 1, 3, 3), "float32"), "f"),
        ],
    )
    return helper.make_model(graph).SerializeToString()


EXAMPLE = example()


def test_the_model_without_its_tensors_is_still_a_model():
    small = split_model(memoryview(EXAMPLE), Allowance(len(EXAMPLE)))
    assert len(small) < len(EXAMPLE) - 2000
    proto = onnx.load_from_string(small)
    assert [t.HasField("segment") for t in proto.graph.initializer] == [True, False, False, False]
    assert [t.name for t in proto.graph.initializer] == ["w", "shape", "c", "f"]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes_give_a_model_or_a_typed_error(flips):
    harmless(load, flipped(EXAMPLE, flips))


@given(st.lists(st.tuples(st.floats(0, 0.2) | st.floats(0.9, 1), st.integers(1, 255)), min_size=1, max_size=3))
def test_flipped_bytes_outside_the_weights_give_a_model_or_a_typed_error(flips):
    harmless(load, flipped(EXAMPLE, flips))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_model_or_a_typed_error(body):
    harmless(load, body)


@given(st.floats(0, 1))
def test_a_model_that_is_cut_off_gives_a_typed_error(share):
    harmless(load, EXAMPLE[: int(share * (len(EXAMPLE) - 1))])


def test_a_shape_of_more_axes_than_numpy_broadcasts_is_refused():
    model = with_weights(numpy_helper.from_array(np.ones(1, "f4"), "w"), (1,))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(60, "i8"), "shape"))
    model.graph.node.append(helper.make_node("Expand", ["y", "shape"], ["z"]))
    refused(load, model.SerializeToString(), "in Expand.*60 axes")


def test_more_nodes_than_a_file_may_have_are_refused_before_one_is_built(monkeypatch):
    """A node takes a kilobyte, so building as many as are allowed first would take most of the memory."""
    monkeypatch.setattr(OnnxGraphBuilder, "node", lambda *args: pytest.fail("a node is built"))
    assert allowance.NODES_AT_LEAST <= 50_000
    monkeypatch.setattr(allowance, "NODES_AT_LEAST", 5000)
    relus = [helper.make_node("Relu", ["x"], [f"v{i}"]) for i in range(6000)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1,)) for name in ("x", "v0")]
    model = helper.make_model(helper.make_graph(relus, "g", ends[:1], ends[1:]))
    refused(load, model.SerializeToString(), r"would take 6,000 nodes while reading")
