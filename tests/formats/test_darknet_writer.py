"""Written weights of Darknet: the networks of Demand Layering beside ONNX Runtime, what a seed draws, what is given."""

import re

import numpy as np
import pytest

from cgraph.errors import ShapeError
from cgraph.formats import darknet, onnx
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Var
from tests.support.data import shared
from tests.support.tolerance import assert_near, near

MIB = 2**20
SIZES = {  # layers, MiB of the file, MiB of the largest layer: Table I of Ji et al. 2022, "Demand Layering"
    "yolov3": (107, 236.5, 18.0),
    "yolov4": (162, 245.8, 18.0),
    "yolov4-p6": (305, 487.2, 36.0),
    "resnet152": (206, 219.6, 9.0),
    "densenet201": (306, 65.6, 5.9),
}
CLASSIFIERS = ("resnet152", "densenet201")  # their outputs are shares of 125 classes
SIDE = {"yolov4-p6": 128}  # the least that its strides allow; 96 for the others


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_those_of_the_paper(name):
    model = darknet.load(shared(f"darknet_demand/{name}.cfg"))
    layers, whole, largest = SIZES[name]
    parameters = [v for v in post_order(model.outputs) if isinstance(v, Var) and v is not model.inputs[0]]
    by_layer: dict[str, int] = {}
    for var in parameters:
        layer = var.name.split(".")[0]
        by_layer[layer] = by_layer.get(layer, 0) + var.spec.nbytes
    assert len(model.values) == layers
    assert round((20 + sum(by_layer.values())) / MIB, 1) == whole
    assert round(max(by_layer.values()) / MIB, 1) == largest


def thin(text: str, side: int) -> str:
    """The same network of an eighth of the channels, for smaller pictures; heads keep theirs."""
    text = re.sub(r"^(width|height)\s*=\s*\d+", lambda m: f"{m[1]}={side}", text, flags=re.M)
    return re.sub(
        r"^filters\s*=\s*(\d+)", lambda m: f"filters={int(m[1]) // 8 if int(m[1]) % 8 == 0 else m[1]}", text, flags=re.M
    )


def lively(config):
    """Shifts of their own and small scales, so that values neither vanish nor grow over two hundred layers."""
    rng, found = np.random.default_rng(0), {}
    for node in post_order(darknet.load(config).outputs):
        kind = node.name.rpartition(".")[2]
        if isinstance(node, Var) and kind in ("bias", "scale"):
            found[node.name] = rng.normal(0, 0.5, node.shape) if kind == "bias" else np.full(node.shape, 0.7)
    return found


@pytest.mark.parametrize("name", SIZES)
def test_a_written_network_computes_what_onnxruntime_does(name, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    config = tmp_path / "net.cfg"
    side = SIDE.get(name, 96)
    config.write_text(thin(shared(f"darknet_demand/{name}.cfg").read_text(), side))
    darknet.write_weights(tmp_path / "net.weights", config, lively(config), seed=1)
    model = darknet.load(config, tmp_path / "net.weights")
    onnx.save(tmp_path / "net.onnx", model.outputs, model.inputs)
    x = np.random.default_rng(0).random((1, 3, side, side), np.float32)
    want = runtime.InferenceSession(tmp_path / "net.onnx").run(None, {"input": x})
    for got, expected in zip(model.compile()(x), want, strict=True):
        assert_near(got, expected, "float32 deep networks")
        assert expected.std() > 1e-3 or name in CLASSIFIERS


CONFIG = "[net]\nheight=4\nwidth=4\nchannels=2\n[convolutional]\nfilters=3\nsize=3\nbatch_normalize=1\n"
CONFIG += "[local]\nfilters=2\n[connected]\noutput=2\n"


def test_a_written_file_holds_what_its_seed_draws_and_what_was_given(tmp_path):
    (tmp_path / "net.cfg").write_text(CONFIG)
    x = np.random.default_rng(0).random((1, 2, 4, 4), np.float32)
    darknet.write_weights(tmp_path / "w", tmp_path / "net.cfg", seed=3)
    drawn, written = (
        darknet.load(tmp_path / "net.cfg", **o).compile()(x)[0] for o in ({"seed": 3}, {"weights": tmp_path / "w"})
    )
    np.testing.assert_array_equal(drawn, written)
    free = darknet.load(tmp_path / "net.cfg")
    names = [v.name for v in post_order(free.outputs) if isinstance(v, Var) and v is not free.inputs[0]]
    values = {
        v: np.random.default_rng(i).random(k, np.float32) for i, v in enumerate(names) for k in [var_shape(free, v)]
    }
    darknet.write_weights(tmp_path / "w", tmp_path / "net.cfg", values)
    for var in post_order(free.outputs):
        if isinstance(var, Var) and var.name in values:
            var.assign(values[var.name])
    np.testing.assert_array_equal(
        darknet.load(tmp_path / "net.cfg", tmp_path / "w").compile(engine="reference")(x)[0],
        free.compile(engine="reference")(x)[0],
    )


def var_shape(model, name):
    return next(v.shape for v in post_order(model.outputs) if isinstance(v, Var) and v.name == name)


def test_an_array_of_another_shape_is_refused_and_leaves_the_old_file(tmp_path):
    (tmp_path / "net.cfg").write_text(CONFIG)
    darknet.write_weights(tmp_path / "w", tmp_path / "net.cfg")
    before = (tmp_path / "w").read_bytes()
    with pytest.raises(ShapeError, match=r"2.connected.bias has the shape \[3\]; give an array of shape \[2\]"):
        darknet.write_weights(tmp_path / "w", tmp_path / "net.cfg", {"2.connected.bias": np.zeros(3)})
    assert (tmp_path / "w").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.cfg", "w"]


def test_drawn_filters_keep_the_variance_of_what_passes_through(tmp_path):
    (tmp_path / "net.cfg").write_text("[net]\nheight=9\nwidth=9\nchannels=64\n[convolutional]\nfilters=256\nsize=3\n")
    darknet.write_weights(tmp_path / "w", tmp_path / "net.cfg", seed=1)
    filters = np.fromfile(tmp_path / "w", "<f4")[5 + 256 :]
    assert filters.size == 256 * 64 * 9
    assert filters.std() == near(np.sqrt(2 / (64 * 9)), "drawn deviations")


def test_a_file_has_the_header_of_version_0_2_then_parameters_in_order(tmp_path):
    (tmp_path / "net.cfg").write_text("[net]\ninputs=2\n[connected]\noutput=1\nbatch_normalize=1\n")
    values = {"0.connected.weights": np.array([[1.0, 2.0]]), "0.connected.bias": np.array([3], "int64")}
    darknet.write_weights(tmp_path / "w", tmp_path / "net.cfg", values)
    raw = (tmp_path / "w").read_bytes()
    with pytest.raises(
        ShapeError, match=r"0.connected.weights has the shape \[2, 1\]; give an array of shape \[1, 2\]"
    ):
        darknet.write_weights(tmp_path / "w", tmp_path / "net.cfg", {"0.connected.weights": np.zeros((2, 1))})
    assert raw[:20] == bytes.fromhex("00000000 02000000 00000000 00000000 00000000")
    assert np.frombuffer(raw[20:], "<f4").tolist() == [3, 1, 2, 1, 0, 1]  # then what training starts from


def test_given_values_draw_nothing_and_the_seed_is_zero_unless_told(tmp_path):
    (tmp_path / "net.cfg").write_text("[net]\ninputs=3\n" + "[connected]\noutput=3\n" * 2)
    path = tmp_path / "w"

    def drawn(number, values=None, **seed):
        darknet.write_weights(path, tmp_path / "net.cfg", values, **seed)
        return np.fromfile(path, "<f4")[5:].reshape(2, 12)[number, 3:]

    want = drawn(0)
    np.testing.assert_array_equal(drawn(0, seed=0), want)
    assert not np.array_equal(drawn(0, seed=1), want) and not np.array_equal(drawn(1), want)
    np.testing.assert_array_equal(drawn(1, {"0.connected.weights": np.zeros((3, 3))}), want)


def test_arrays_of_any_dtype_and_order_of_memory_are_written_row_by_row(tmp_path):
    (tmp_path / "net.cfg").write_text("[net]\ninputs=3\n[connected]\noutput=2\n")
    matrix = np.arange(6).reshape(2, 3)
    for weights in (
        np.asfortranarray(matrix),
        matrix.astype(">f8"),
        np.repeat(matrix, 2, 1)[:, ::2],
        matrix[::-1][::-1],
    ):
        values = {"0.connected.weights": weights, "0.connected.bias": np.arange(9, 5, -2)}
        darknet.write_weights(tmp_path / "w", tmp_path / "net.cfg", values)
        assert np.fromfile(tmp_path / "w", "<f4")[5:].tolist() == [9, 7, *range(6)]
