"""cg.load: a file becomes a function with names, by its content and its ending, or a refusal says what to do."""

import json

import numpy as np
import pytest
from onnx import helper

import cgraph as cg
from cgraph import sizes
from cgraph.errors import BudgetError, FormatError, GraphError, InputError
from cgraph.formats import load as load_module
from cgraph.formats.keras_graph import load_keras
from cgraph.formats.load import ELSEWHERE, READERS, kind_of, load_model
from cgraph.formats.model import Model
from cgraph.record import replace
from tests.formats.test_darknet import HEADER
from tests.support.onnx_models import FLOAT, INT64, model_of
from tests.support.tflite_models import Network, reference
from tests.support.tolerance import assert_near

W = np.arange(6, dtype="f4").reshape(2, 3)
X = np.array([[1, 2], [3, 4], [5, 6]], "f4")


def dense(batch="batch") -> bytes:
    """Two outputs of a batch whose size is open."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["scores"]), helper.make_node("Neg", ["scores"], ["class"])]
    return model_of(nodes, [("x", FLOAT, (batch, 2))], {"w": W}, ("scores", "class"))


@pytest.fixture
def path(tmp_path):
    (tmp_path / "m.onnx").write_bytes(dense())
    return tmp_path / "m.onnx"


def test_an_onnx_file_with_an_open_batch_is_a_function_of_any_batch(path):
    f = cg.load(path)
    for n in (1, 3, 2, 3):
        (negative,) = f.run(["class"], {"x": X[:n]})
        for results in (f(X[:n]), f(x=X[:n]), f({"x": X[:n]})):
            np.testing.assert_array_equal(results["scores"], X[:n] @ W)
            np.testing.assert_array_equal(results[1], negative)
    assert f.names == ("scores", "class") and [x.name for x in f.inputs] == ["x"] and "batch" in repr(f)


def test_a_bounded_number_of_plans_stays(path, monkeypatch):
    monkeypatch.setattr(sizes, "MOST_KEPT", 2)
    f = cg.load(path)
    for n in range(1, 6):
        f(np.ones((n, 2), "f4"))
    assert repr(f).endswith("2 sizes>")


def test_a_size_that_shapes_gives_is_fixed_and_a_function_knows_its_plan(path):
    for shapes in ({"batch": 3}, {"x": (3, 2)}):
        f = cg.load(path, shapes=shapes, threads=1)
        assert isinstance(f, cg.Function) and f.nbytes >= 0 and f.names == ("scores", "class")
        np.testing.assert_array_equal(f(X)["scores"], X @ W)
        with pytest.raises(InputError):
            f(X[:2])


def test_one_of_two_open_sizes_may_be_fixed(tmp_path):
    node = helper.make_node("Mul", ["x", "x"], ["y"])
    (tmp_path / "m.onnx").write_bytes(model_of([node], [("x", FLOAT, ("n", "length"))]))
    f = cg.load(tmp_path / "m.onnx", shapes={"length": 2})
    assert f.sizes == ("n",) and f(X)["y"].tolist() == (X * X).tolist()
    with pytest.raises(InputError, match="x expects float32"):
        f(X[:, :1])


def test_lengths_of_the_data_go_with_sizes_of_the_call(tmp_path):
    """As for a detector of any batch: how many values are not zero is known only when run."""
    nodes = [helper.make_node("NonZero", ["x"], ["i"])]
    model = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", FLOAT, ("n",))],
        [helper.make_tensor_value_info("i", INT64, None)],
    ), opset_imports=[helper.make_opsetid("", 21)])  # fmt: skip
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    f = cg.load(tmp_path / "m.onnx")
    for x in ([0, 1, 2, 0], [1, 1], [0, 0, 0, 5, 0]):
        assert f({"x": np.array(x, "f4")})["i"].tolist() == [np.nonzero(x)[0].tolist()]


def test_options_of_compile_are_taken_and_checked_at_once(path):
    with pytest.raises(GraphError, match="budgett"):
        cg.load(path, budgett=3)
    with pytest.raises(GraphError, match="memory"):
        cg.load(path, memory=3)
    assert cg.load(path, shapes={"batch": 3}, budget="1MiB")(X)[0].shape == (3, 3)
    assert cg.load(path, engine="reference")(X)[0].shape == (3, 3)
    f = cg.load(path, budget="1 B")
    with pytest.raises(BudgetError):
        f(X)


def test_names_of_sizes_and_operators_are_checked_at_once(tmp_path, path):
    with pytest.raises(FormatError, match="'N' is neither a dimension nor an input. Use one of batch, x"):
        cg.load(path, shapes={"N": 1})
    with pytest.raises(FormatError, match=r"state= needs fixed sizes"):
        cg.load(path, state={"x": "scores"})
    (tmp_path / "odd.onnx").write_bytes(model_of([helper.make_node("Odd", ["x"], ["y"])], [("x", FLOAT, ("n",))]))
    with pytest.raises(FormatError, match="operators are not supported: Odd"):
        cg.load(tmp_path / "odd.onnx")


def test_the_content_decides_whatever_the_file_is_called(tmp_path, path):
    (tmp_path / "model").write_bytes(dense(3))
    np.testing.assert_array_equal(cg.load(tmp_path / "model")(X)["scores"], X @ W)
    raw, value = tflite_network(), np.random.default_rng(3).standard_normal((1, 4, 4, 2)).astype("f4")
    for name in ("m.tflite", "m.onnx", "model.bin"):
        (tmp_path / name).write_bytes(raw)
        f = cg.load(tmp_path / name)
        (want,) = reference(raw, value)
        assert_near(f.run(None, {f.inputs[0].name: value})[0], want, "float32 TFLite")


def tflite_network() -> bytes:
    net = Network()
    x = net.input((1, 4, 4, 2))
    return net.bytes(net.op("TANH", [x]))


KERAS = {
    "class_name": "Functional",
    "config": {
        "layers": [
            {"class_name": "InputLayer", "name": "image", "config": {"batch_input_shape": [None, 2]}},
            {"class_name": "Dense", "name": "scores", "config": {}, "inbound_nodes": [[["image", 0, 0, {}]]]},
        ],
        "input_layers": [["image", 0, 0]],
        "output_layers": [["scores", 0, 0]],
    },
}


def write_keras(path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps(KERAS)
        file.create_dataset("model_weights/scores/scores/kernel:0", data=W)


def write_darknet(path):
    path.write_text("[net]\ninputs=2\n[connected]\noutput=3\nactivation=linear\n")
    values = np.concatenate([np.zeros(3), W.T.ravel()]).astype("<f4")
    path.with_suffix(".weights").write_bytes(HEADER + values.tobytes())


WRITERS = {
    "m.onnx": (lambda path: path.write_bytes(dense(3)), {}),
    "m.tflite": (lambda path: path.write_bytes(tflite_network()), {}),
    "m.h5": (write_keras, {"shapes": {"batch": 3}}),
    "m.cfg": (write_darknet, {"weights": "m.weights"}),
}


@pytest.mark.parametrize("name", WRITERS)
def test_options_of_compile_reach_the_model_of_every_format(tmp_path, monkeypatch, name):
    write, settings = WRITERS[name]
    write(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Model, "compile", lambda self, **options: options)
    options = {"threads": 3, "budget": "1MiB", "memory": "one_each"}
    assert cg.load(name, **settings, **options) == options
    assert cg.load(name, **settings) == {"threads": 0}


@pytest.mark.parametrize("name", ["m.h5", "m.hdf5", "m.keras", "model"])
def test_a_keras_file_is_a_function_of_any_batch(tmp_path, name):
    write_keras(tmp_path / name)
    f = cg.load(tmp_path / name)
    for n in (1, 3):
        np.testing.assert_array_equal(f(image=X[:n])["scores"], X[:n] @ W)
    fixed = cg.load(tmp_path / name, shapes={"batch": 3})
    np.testing.assert_array_equal(fixed.run(["scores"], {"image": X})[0], X @ W)
    with pytest.raises(FormatError, match="'N' is not a size of this network. Pass shapes="):
        cg.load(tmp_path / name, shapes={"N": 3})


def test_open_axes_of_a_keras_file_are_sizes_of_a_call(tmp_path):
    """Axis 1 of the input x is the size ``x.1``."""
    h5py = pytest.importorskip("h5py")
    rows = [
        {"class_name": "InputLayer", "name": "x", "config": {"batch_input_shape": [None, None, 2]}},
        {"class_name": "InputLayer", "name": "y", "config": {"batch_input_shape": [None, None, None, 2]}},
        {"class_name": "GlobalAveragePooling1D", "name": "a", "config": {}, "inbound_nodes": [[["x", 0, 0, {}]]]},
        {"class_name": "GlobalMaxPooling2D", "name": "b", "config": {}, "inbound_nodes": [[["y", 0, 0, {}]]]},
    ]
    ends = {"input_layers": [["x", 0, 0], ["y", 0, 0]], "output_layers": [["b", 0, 0], ["a", 0, 0]]}
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file.attrs["model_config"] = json.dumps({"class_name": "Functional", "config": {"layers": rows, **ends}})
        file.create_group("model_weights")
    path = tmp_path / "m.h5"
    f = cg.load(path)
    assert f.shapes == {"x": ("batch", "x.1", 2), "y": ("batch", 2, "y.1", "y.2")}
    rng = np.random.default_rng(0)
    for n, t, h, w in ((1, 3, 4, 5), (2, 7, 4, 1)):
        x, y = rng.normal(size=(n, t, 2)).astype("f4"), rng.normal(size=(n, 2, h, w)).astype("f4")
        for g in (f, cg.load(path, shapes={"x": (n, t, 2), "y.1": h}), cg.load(path, shapes={"y": y.shape, "x.1": t})):
            found = g(x=x, y=y)
            np.testing.assert_array_equal(found["b"], y.max((2, 3)))
            assert_near(found["a"], x.mean(1), "float32 sums near zero")
    fixed = cg.load(path, shapes={"batch": 1, "x.1": 3, "y.1": 4, "y.2": 5})
    assert fixed.nbytes and fixed.inputs[1].shape == (1, 2, 4, 5)
    for shapes, words in (
        ({"t": 3}, "'t' is not a size of this network. Pass shapes={'batch': 1}; its sizes are batch, x.1, y.1, y.2"),
        ({"x": (1, 3, 4)}, r"input 'x' has the shape \['batch', 'x.1', 2\], not \[1, 3, 4\]"),
        ({"x": 3}, r"not \[3\]. Give one that fits"),
    ):
        with pytest.raises(FormatError, match=words):
            cg.load(path, shapes=shapes)
    with pytest.raises(FormatError, match=r"input 'x' has an open axis. Give its length: shapes={'x.1': 16}"):
        load_keras(path)
    assert [v.shape for v in load_keras(path, 2, sizes={"x.1": 3, "y": (2, 2, 4, 5)}).inputs] == [
        (2, 3, 2),
        (2, 2, 4, 5),
    ]


def test_a_darknet_network_is_loaded_with_its_parameters(tmp_path):
    write_darknet(tmp_path / "net.cfg")
    with pytest.raises(FormatError, match="a network without its parameters. Pass weights='net.weights'"):
        cg.load(tmp_path / "net.cfg")
    f = cg.load(tmp_path / "net.cfg", weights=tmp_path / "net.weights")
    np.testing.assert_array_equal(f(X[:1])[0], X[:1] @ W)
    f = cg.load(tmp_path / "net.cfg", weights=tmp_path / "net.weights", shapes={"batch": 3}, budget="1MiB")
    np.testing.assert_array_equal(f({"input": X})["0.connected"], X @ W)
    with pytest.raises(FormatError, match="Load its .cfg file, with weights= this one"):
        cg.load(tmp_path / "net.weights")


def test_streamed_weights_are_an_option_of_compile(tmp_path):
    (tmp_path / "m.onnx").write_bytes(dense(3))
    f = cg.load(tmp_path / "m.onnx", weights=cg.StreamedWeights(str(tmp_path / "w"), ring="64KiB"))
    np.testing.assert_array_equal(f(X)["scores"], X @ W)


def test_what_does_not_apply_is_refused(tmp_path, path):
    (tmp_path / "m.tflite").write_bytes(tflite_network())
    for name, options, text in (
        ("m.tflite", {"constants": {"n": 1}}, "constants= does not apply to a TFLite file"),
        ("m.onnx", {"weights": "w"}, "weights= does not apply to an ONNX file"),
        ("m.onnx", {"trust": True}, "trust= applies to saved folders only"),
        ("saved", {"budget": "1MiB"}, "budget= changes nothing: a saved function is planned"),
        ("saved", {"shapes": {"n": 1}}, "shapes= changes nothing"),
    ):
        if name == "saved" and not (tmp_path / name).exists():
            x = cg.Var((2,), name="x")
            cg.compile(x + 1, [x]).save(tmp_path / name)
        with pytest.raises(FormatError, match=text):
            cg.load(tmp_path / name, **options)


@pytest.mark.parametrize(("name", "content", "text"), [
    *((f"m{suffix}", b"PK\3\4 and more", why.split(".")[0]) for suffix, why in ELSEWHERE.items()),
    ("m.onnx", b"", "is empty. Download or save it again"),
    ("m.onnx", b"version https://git-lfs.github.com/spec/v1\n", "pointer of Git LFS"),
    ("m.onnx", b"\n <!DOCTYPE html><html>", "is a web page"),
    ("m.bin", b"whatever this is", ".onnx, .tflite, .cfg, .h5, .hdf5, .keras, or a folder of"),
    ("m.onnx", b"whatever this is", "m.onnx"),
    ("m.tflite", b"whatever this is", "m.tflite"),
])  # fmt: skip
def test_a_file_that_is_not_a_model_says_what_it_is(tmp_path, name, content, text):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=text):
        cg.load(tmp_path / name)


def test_a_path_without_a_file_and_a_folder_of_other_things_are_refused(tmp_path):
    with pytest.raises(FormatError, match=r"none.onnx: No such file"):
        cg.load(tmp_path / "none.onnx")
    (tmp_path / "tf").mkdir()
    (tmp_path / "tf" / "saved_model.pb").write_bytes(b"1")
    with pytest.raises(FormatError, match="holds a TensorFlow SavedModel. Convert it to ONNX"):
        cg.load(tmp_path / "tf")
    (tmp_path / "else").mkdir()
    with pytest.raises(FormatError, match="it is a folder without manifest.json: not a saved function"):
        cg.load(tmp_path / "else")


ZIPPED = b"PK\3\4" + bytes(26)
HDF5 = b"\x89HDF\r\n\x1a\n"


@pytest.mark.parametrize(("name", "content", "kind"), [
    ("m.ONNX", b"whatever", "onnx"), ("model", b"\x08\x00\x12", "onnx"), ("model", b"\x08\x3f\x12", "onnx"),
    ("model", b"\x08\x40\x12", None), ("model", b"\x08\x41\x12", None), ("model", b"\x08\xff\x12", None),
    ("model", b"\x08", None), ("model", b"[network]", "darknet"), ("model", b"\x08\x07", None),
    ("model", b"\x0a\x07\x12", None),
    ("model", b"\n [net]\n", "darknet"), ("m.txt", b"[network]", "darknet"), ("m.txt", b"# [net]", None),
    ("m.cfg", b"# a comment", "darknet"), ("m.Keras", b"whatever", "keras"), ("m.onnx", HDF5, "keras"),
    ("m.pt", HDF5, "keras"), ("m.npz", ZIPPED + b"config.json", "keras"), ("m", ZIPPED + b"metadata.json", "keras"),
    ("m", ZIPPED + b"my_config.json", None), ("m.keras", ZIPPED + b"other", "keras"),
    ("m.cfg", b"\x1c\0\0\0TFL3", "tflite"), ("m.pb", b"\x1c\0\0\0TFL3", None), ("m", b"TFL3\0\0\0\0", None),
])  # fmt: skip
def test_a_mark_comes_before_the_ending_and_the_ending_before_a_first_byte(tmp_path, name, content, kind):
    (tmp_path / name).write_bytes(content)
    if kind is None:
        with pytest.raises(FormatError):
            kind_of(tmp_path / name)
    else:
        assert kind_of(tmp_path / name) == kind


APPLIES = {
    "onnx": ("shapes", "constants", "maximum", "state"), "darknet": ("shapes", "weights"), "keras": ("shapes",),
    "tflite": ("shapes",),
}  # fmt: skip


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("setting", ["shapes", "constants", "maximum", "state", "weights", "streamed"])
def test_each_setting_reaches_the_reader_of_a_format_to_which_it_applies(tmp_path, monkeypatch, kind, setting):
    """The others are None. Weights that are streamed are an option of `compile` for every format."""
    calls, value = [], "w" if setting == "weights" else {"a": 1}
    value = cg.StreamedWeights(str(tmp_path / "w")) if setting == "streamed" else value
    name = "weights" if setting == "streamed" else setting
    reader = replace(READERS[kind], read=lambda *given: calls.append(given))
    monkeypatch.setitem(READERS, kind, reader)
    monkeypatch.setattr(load_module, "kind_of", lambda path: kind)
    given = {"shapes": None, "constants": None, "maximum": None, "state": None, "weights": None, name: value}
    if setting == "streamed" or setting in APPLIES.get(kind, ()):
        load_model("model", given, {"threads": 3})
        ((path, settings, options),) = calls
        assert path.name == "model"
        assert options == {"threads": 3} | ({"weights": value} if setting == "streamed" else {})
        others = {x: getattr(settings, x) for x in ("shapes", "constants", "maximum", "state", "weights") if x != name}
        assert not any(others.values()) and (setting == "streamed" or getattr(settings, name) is value)
    else:
        with pytest.raises(FormatError, match=f"^model: {name}= does not apply to {reader.name}. Leave it out"):
            load_model("model", given, {})


def test_state_constants_and_sizes_reach_the_reader_of_an_onnx_file(tmp_path):
    nodes = [helper.make_node("Add", ["x", "total"], ["sum"]), helper.make_node("Reshape", ["sum", "shape"], ["y"])]
    inputs = [("x", FLOAT, ("n", 2)), ("total", FLOAT, ("n", 2)), ("shape", INT64, (2,))]
    (tmp_path / "m.onnx").write_bytes(model_of(nodes, inputs, {}, ("sum", "y")))
    constants = {"shape": np.array([3, 2])}
    f = cg.load(tmp_path / "m.onnx", shapes={"n": 3}, constants=constants, state={"total": "sum"})
    for times in (1, 2):
        np.testing.assert_array_equal(f(x=X, **constants)["y"], times * X)
    assert f.names == ("y",) and list(f.state) == ["total"]
    assert type(f) is cg.Function, "no length is left to be known when it runs"


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ({}, (1, "n", "m")), ({"n": 0}, (1, 0, "m")), ({"m": 4, "x": (5, 6)}, (5, 6)), ({"x": 7}, (7,)),
        ({"x": [2, 3, 4]}, (2, 3, 4)), ({"y": (5,)}, (1, "n", "m")),
    ],
)  # fmt: skip
def test_sizes_are_given_by_the_name_of_a_dimension_or_of_the_input(sizes, found):
    assert load_module.fixed_sizes("x", (1, "n", "m"), sizes) == found


def test_a_darknet_network_has_no_size_but_its_batch(tmp_path):
    write_darknet(tmp_path / "net.cfg")
    for shapes, other in (
        ({"n": 3}, "n"),
        ({"batch": 3, "input": (3, 2)}, "input"),
        ({"m": 1, "batch": 1, "n": 2}, "m"),
    ):
        with pytest.raises(FormatError, match=rf"net\.cfg: '{other}' is not a size .* only 'batch' is"):
            cg.load(tmp_path / "net.cfg", weights=str(tmp_path / "net.weights"), shapes=shapes)
    f = cg.load(tmp_path / "net.cfg", weights=str(tmp_path / "net.weights"), shapes={"batch": 3})
    np.testing.assert_array_equal(f(X)[0], X @ W)


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("setting", ["shapes", "constants", "maximum", "state"])
def test_an_empty_setting_is_one(monkeypatch, kind, setting):
    """It is refused where the setting does not apply; None is none."""
    calls = []
    monkeypatch.setitem(READERS, kind, replace(READERS[kind], read=lambda *given: calls.append(given)))
    monkeypatch.setattr(load_module, "kind_of", lambda path: kind)
    load_model("model", {setting: None}, {})
    if setting in APPLIES[kind]:
        load_model("model", {setting: {}}, {})
        assert len(calls) == 2 and all(getattr(settings, setting) == {} for _, settings, _ in calls)
        return
    with pytest.raises(FormatError, match=f"{setting}= does not apply to"):
        load_model("model", {setting: {}}, {})


def test_outputs_of_a_keras_file_have_the_names_of_a_function_of_one_size(tmp_path):
    """A network may return one result twice."""
    h5py = pytest.importorskip("h5py")
    rows = [
        {"class_name": "InputLayer", "name": "x", "config": {"batch_input_shape": [None, 2]}},
        {"class_name": "ReLU", "name": "y", "config": {}, "inbound_nodes": [[["x", 0, 0, {}]]]},
    ]
    ends = {"input_layers": [["x", 0, 0]], "output_layers": [["y", 0, 0], ["y", 0, 0]]}
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file.attrs["model_config"] = json.dumps({"class_name": "Functional", "config": {"layers": rows, **ends}})
        file.create_group("model_weights")
    f, one = cg.load(tmp_path / "m.h5"), cg.load(tmp_path / "m.h5", shapes={"batch": 3})
    for function in (f, one):
        results = function(X - 3)
        assert results.names[0] == "y" and len(set(results.names)) == 2
        for name in results.names:
            np.testing.assert_array_equal(results[name], np.maximum(X - 3, 0))
