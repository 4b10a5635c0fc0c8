"""Keras files: the MLPerf-Tiny networks equal NumPy, crafted files are refused."""

import json
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.keras_apart import read_keras_apart
from cgraph.formats.keras_graph import graph_of, load_keras
from cgraph.formats.keras_h5 import KerasFile, read_keras
from tests.formats.keras_numpy import evaluate_keras
from tests.support.data import shared

h5py = pytest.importorskip("h5py")


@pytest.mark.parametrize("name", ["pretrainedResnet", "vww_96", "str_ww_ref_model"])
def test_mlperf_tiny_networks_equal_numpy(name):
    path = shared(f"mlperf_tiny/{name}.h5")
    graph = load_keras(path, n=2)
    (x,) = graph.inputs
    images = np.random.default_rng(0).normal(size=x.shape).astype(np.float32)
    got = cg.compile(graph.outputs[0], [x])(images)
    want = evaluate_keras(read_keras(path), images.transpose(0, 2, 3, 1))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got.sum(1), 1, rtol=1e-5)


def weights_file(tmp_path, fill) -> str:
    path = str(tmp_path / "x.h5")
    with h5py.File(path, "w") as file:
        fill(file.create_group("model_weights/dense/dense"))
    return path


def test_weights_come_back_by_layer_and_name(tmp_path):
    kernel = np.arange(6, dtype=np.float32).reshape(2, 3)
    path = weights_file(tmp_path, lambda g: g.create_dataset("kernel:0", data=kernel))
    np.testing.assert_array_equal(read_keras(path).weights["dense"]["kernel"], kernel)


def soft(group):
    group["kernel:0"] = h5py.SoftLink("/elsewhere")


def external(group):
    group["kernel:0"] = h5py.ExternalLink("other.h5", "/x")


def other_file(group):
    group.create_dataset("kernel:0", (4,), "f4", external=[("other.bin", 0, 16)])


def virtual(group):
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
    group.create_virtual_dataset("kernel:0", layout)


def shape_bomb(group):
    group.create_dataset("kernel:0", (2**40,), "f4", chunks=(2**20,))


def empty_bomb(group):
    group.create_dataset("kernel:0", (2**20,), "f4", chunks=(2**10,))


def compressed_bomb(group):
    group.create_dataset("kernel:0", data=np.zeros(2**24, np.float32), chunks=(2**24,), compression="gzip")


def words(group):
    group.create_dataset("kernel:0", data=["some", "text"])


def cycle(group):
    group["again"] = group


@pytest.mark.parametrize(
    "fill", [soft, external, other_file, virtual, shape_bomb, empty_bomb, compressed_bomb, words, cycle]
)
def test_files_that_lead_elsewhere_or_declare_too_much_are_refused(tmp_path, fill):
    with pytest.raises(FormatError):
        read_keras(weights_file(tmp_path, fill))


def test_a_link_in_place_of_the_weights_is_refused(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["model_weights"] = h5py.ExternalLink("other.h5", "/")
    with pytest.raises(FormatError, match="ExternalLink"):
        read_keras(path)


@pytest.mark.parametrize("contents", [b"", b"no hdf5", b"\x89HDF\r\n\x1a\n" + bytes(100)])
def test_other_files_are_refused(tmp_path, contents):
    path = tmp_path / "x.h5"
    path.write_bytes(contents)
    with pytest.raises(FormatError):
        read_keras(path)


def test_truncated_files_are_refused(tmp_path):
    path = weights_file(tmp_path, lambda g: g.create_dataset("kernel:0", data=np.ones(1000, np.float32)))
    whole = Path(path).read_bytes()
    for length in range(0, len(whole) - 1, 97):
        Path(path).write_bytes(whole[:length])
        with pytest.raises(FormatError):
            read_keras(path)


def network(*layers: dict) -> KerasFile:
    first = {"class_name": "InputLayer", "name": "in", "config": {"batch_input_shape": [None, 4, 4, 2]}}
    chained = [{**layer, "inbound_nodes": [[[before, 0, 0, {}]]]} for layer, before in zip(layers, ("in", "a", "b"))]
    last = chained[-1]["name"]
    config = {"layers": [first, *chained], "input_layers": [["in", 0, 0]], "output_layers": [[last, 0, 0]]}
    return KerasFile({"class_name": "Functional", "config": config}, {})


def test_a_lambda_layer_is_refused():
    code = {"class_name": "Lambda", "name": "a", "config": {"function": ["4wEAAAA=", None, None]}}
    with pytest.raises(FormatError, match="is a Lambda, which is not known here"):
        graph_of(network(code), 1)


def test_layers_in_any_order_and_keras_order_of_elements():
    flat = {"class_name": "Flatten", "name": "a", "config": {}}
    back = {"class_name": "Reshape", "name": "b", "config": {"target_shape": [2, 8, 2]}}
    file = network(flat, back)
    file.config["config"]["layers"].reverse()
    graph = graph_of(file, 3)
    x = np.random.default_rng(0).normal(size=(3, 2, 4, 4)).astype(np.float32)
    got = cg.compile(graph.outputs[0], graph.inputs, engine="reference")(x)
    np.testing.assert_array_equal(got, x.transpose(0, 2, 3, 1).reshape(3, 2, 8, 2).transpose(0, 3, 1, 2))


def test_layers_that_wait_for_each_other_are_refused():
    one = {"class_name": "ReLU", "name": "a", "config": {}}
    file = network(one)
    file.config["config"]["layers"][1]["inbound_nodes"] = [[["a", 0, 0, {}]]]
    with pytest.raises(FormatError, match="wait for each other"):
        graph_of(file, 1)


def test_a_damaged_description_is_refused(tmp_path):
    path = tmp_path / "x.h5"
    for text in ("{", "[]", json.dumps({"class_name": "Functional", "config": {"layers": [{"name": 1}]}})):
        with h5py.File(path, "w") as file:
            file.attrs["model_config"] = text
        with pytest.raises(FormatError):
            load_keras(path)


def test_a_file_read_apart_is_the_same(tmp_path):
    kernel = np.arange(6, dtype=np.float32).reshape(2, 3)
    path = weights_file(tmp_path, lambda g: g.create_dataset("kernel:0", data=kernel))
    np.testing.assert_array_equal(read_keras_apart(path).weights["dense"]["kernel"], kernel)
    with pytest.raises(FormatError, match="SoftLink"):
        read_keras_apart(weights_file(tmp_path, soft))
    with pytest.raises(FormatError, match="more than 0.001 s"):
        read_keras_apart(path, seconds=0.001)


@pytest.mark.slow
def test_changed_bytes_read_apart_give_arrays_or_a_refusal(tmp_path):
    path = Path(weights_file(tmp_path, lambda g: g.create_dataset("kernel:0", data=np.ones(50, np.float32))))
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(20):
        contents = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            contents[place] ^= int(rng.integers(1, 256))
        path.write_bytes(contents)
        try:
            read_keras_apart(path)
        except FormatError:
            refused += 1
    assert refused
