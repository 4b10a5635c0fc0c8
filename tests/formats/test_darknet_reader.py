"""The reader of Darknet networks: its input, the results it returns and names, batches, steps, errors of layers."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats import darknet
from cgraph.formats.allowance import Allowance
from cgraph.formats.darknet.config import Section
from cgraph.formats.darknet.parameters import FreeParameters, RandomParameters, StoredParameters
from cgraph.formats.darknet.reader import check_supported, input_of, source


def load(folder, text, **options):
    (folder / "net.cfg").write_text(text)
    return darknet.load(folder / "net.cfg", **options)


def net(**options):
    return Section("net", -1, 1, options)


def test_an_image_is_rows_by_channels_by_height_by_width_with_three_channels_unless_told():
    x = input_of(net(height="4", width="5", channels="2"), 3)
    assert (x.shape, x.name, str(x.dtype)) == ((3, 2, 4, 5), "input", "float32")
    assert input_of(net(height="4", width="5"), 1).shape == (1, 3, 4, 5)
    assert input_of(net(inputs="7"), 6).shape == (6, 7)
    for half in ("height", "width"):
        missing = {"height": "width", "width": "height"}[half]
        with pytest.raises(FormatError, match=rf"\[net\] in line 1 \(layer -1\): the option {missing} is missing"):
            input_of(net(**{half: "4"}), 1)


def test_the_source_of_parameters_is_a_file_before_a_seed(tmp_path):
    path = tmp_path / "w"
    path.write_bytes(bytes(16))
    assert isinstance(source(path, 3, 100)(Allowance(0)), StoredParameters)
    drawn = source(None, 0, "2KiB")(Allowance(0))  # 0 is a seed
    assert isinstance(drawn, RandomParameters) and drawn.left == 2048
    assert isinstance(source(None, None, 100)(Allowance(0)), FreeParameters)


def test_batches_and_time_steps_multiply_the_rows(tmp_path):
    text = "[net]\nheight=2\nwidth=3\nchannels=1\n{}[dropout]\n"
    assert load(tmp_path, text.format(""), batch=4).inputs[0].shape == (4, 1, 2, 3)
    assert load(tmp_path, text.format("time_steps=3\n"), batch=4).inputs[0].shape == (12, 1, 2, 3)
    with pytest.raises(FormatError, match="time_steps=0 must be at least 1"):
        load(tmp_path, text.format("time_steps=0\n"))


def test_the_last_layer_is_returned_and_every_layer_has_a_name(tmp_path):
    model = load(tmp_path, "[net]\nheight=2\nwidth=2\nchannels=2\n[activation]\nactivation=relu\n[avgpool]\n", batch=2)
    assert model.names == ("1.avgpool",) and list(model.values) == ["0.activation", "1.avgpool"]
    assert model.outputs[0] is model.values["1.avgpool"] and model.values["0.activation"].shape == (2, 2, 2, 2)
    x = np.arange(-8, 8, dtype="f4").reshape(2, 2, 2, 2)
    (got,) = model.compile(engine="reference")(x)
    np.testing.assert_array_equal(got, np.maximum(x, 0).mean((2, 3), keepdims=True))


def test_layers_that_detect_are_the_outputs_in_their_order(tmp_path):
    yolo = "[yolo]\nclasses=1\nnum=1\n"
    model = load(tmp_path, f"[net]\nheight=2\nwidth=2\nchannels=6\n{yolo}[dropout]\n{yolo}{yolo}[dropout]\n")
    assert [model.values[f"{i}.yolo"] for i in (0, 2, 3)] == list(model.outputs)


def test_kinds_that_are_not_supported_are_counted_and_a_network_has_layers():
    kinds = ["crop", "what", "else", "what"]
    sections = [Section(kind, i, i, {}) for i, kind in enumerate(kinds)]
    with pytest.raises(FormatError, match=r"^n.cfg: 2 kinds of layers .*: \[else\], \[what\] \(2 times\)$"):
        check_supported(sections, "n.cfg")
    with pytest.raises(FormatError, match="^n.cfg: there are no layers"):
        check_supported([], "n.cfg")
    check_supported(sections[:1], "n.cfg")


def test_an_error_names_the_file_and_the_layer(tmp_path):
    text = "[net]\nheight=2\nwidth=2\nchannels=2\n[dropout]\n[maxpool]\nsize=2\nstride=2\n[route]\nlayers=0,1\n"
    with pytest.raises(
        FormatError, match=r"net.cfg: \[route\] in line 9 \(layer 2\): concat at net.cfg:9 in 2.route"
    ) as error:
        load(tmp_path, text)
    assert str(error.value).count("(layer 2)") == 1
    with pytest.raises(FormatError, match=r"net.cfg: \[crop\] in line 5 \(layer 0\): 9 x 2 pixels"):
        load(tmp_path, "[net]\nheight=2\nwidth=2\nchannels=2\n[crop]\ncrop_height=9\ncrop_width=2\n")


def test_weights_that_no_layer_takes_are_refused(tmp_path):
    (tmp_path / "w").write_bytes(bytes(16 + 4 * 3))
    text = "[net]\ninputs=2\n[connected]\noutput=1\n"
    assert load(tmp_path, text, weights=tmp_path / "w").outputs[0].shape == (1, 1)
    with pytest.raises(FormatError, match="w: 12 bytes are left after the last layer"):
        load(tmp_path, "[net]\ninputs=2\n[dropout]\n", weights=tmp_path / "w")
