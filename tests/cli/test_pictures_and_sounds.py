"""Pictures of another aspect ratio, of 16 bits and turned by their camera; sounds of every width."""

import json
import wave

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main
from cgraph.cli.arrays import read_inputs
from cgraph.cli.pictures import Look
from cgraph.errors import FormatError
from cgraph.formats.npz import read_npz
from cgraph.formats.onnx import save
from tests.support.tolerance import assert_near

Image = pytest.importorskip("PIL.Image")
BYTES = Look("bytes")


def read(path, shape, look=BYTES, dtype="float32"):
    x = cg.Var(shape, dtype, name="x")
    return read_inputs([str(path)], [x], look, {})["x"]


@pytest.fixture
def wide(tmp_path):
    """A picture of 8 rows and 24 columns, its thirds red, green and blue."""
    colours = np.repeat(np.eye(3, dtype="uint8") * 255, 8, axis=0)
    Image.fromarray(np.broadcast_to(colours, (8, 24, 3)).copy()).save(tmp_path / "wide.png")
    return tmp_path / "wide.png"


def test_a_stretched_picture_is_there_whole(wide):
    found = read(wide, (1, 3, 12, 12))[0]
    assert (found[0, :, 0] == 255).all() and (found[2, :, 11] == 255).all()


def test_a_letterbox_keeps_the_ratio_between_grey_bars(wide):
    found = read(wide, (1, 3, 24, 24), Look("bytes", fit="letterbox"))[0]
    assert (found[:, :8] == 114).all() and (found[:, 16:] == 114).all()
    assert (found[0, 8:16, 0] == 255).all() and (found[2, 8:16, 23] == 255).all()


def test_a_crop_is_the_middle(wide):
    found = read(wide, (1, 3, 8, 8), Look("bytes", fit="crop"))[0]
    assert (found[1] == 255).all() and not found[0].any() and not found[2].any()


def test_a_grey_letterbox_is_grey(wide):
    found = read(wide, (1, 24, 24, 1), Look("bytes", fit="letterbox"))[0, :, :, 0]
    assert (found[:8] == 114).all() and (found[16:] == 114).all()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("fit", ["stretch", "letterbox", "crop"])
def test_all_16_bits_of_a_picture_count(tmp_path, channels, fit):
    values = np.linspace(0, 65535, 64).astype("uint16").reshape(8, 8)
    Image.fromarray(values).save(tmp_path / "deep.png")
    found = read(tmp_path / "deep.png", (1, channels, 8, 8), Look("unit", fit=fit))[0]
    assert_near(found, np.broadcast_to(values / 65535, found.shape), "float32 shares")


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_is_turned_as_the_camera_was(tmp_path, orientation):
    upright = np.zeros((8, 8), "uint8")
    upright[:4, :4], upright[:4, 4:] = 200, 100
    turned = {1: upright, 2: upright[:, ::-1], 3: upright[::-1, ::-1], 4: upright[::-1], 5: upright.T}
    turned |= {6: np.rot90(upright), 7: upright[::-1, ::-1].T, 8: np.rot90(upright, -1)}
    picture = Image.fromarray(np.ascontiguousarray(turned[orientation]))
    exif = picture.getexif()
    exif[0x0112] = orientation
    picture.save(tmp_path / "turned.png", exif=exif)
    np.testing.assert_array_equal(read(tmp_path / "turned.png", (1, 1, 8, 8))[0, 0], upright)


def write_sound(path, samples, width, rate=8000):
    """Whole numbers ``[frames, channels]`` of so many bytes each."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(width)
        file.setframerate(rate)
        low = (samples + (128 if width == 1 else 0)).astype("<i8")
        file.writeframes(low.view("u1").reshape(*samples.shape, 8)[..., :width].tobytes())


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_samples_of_every_width_are_from_minus_one_to_one(tmp_path, width):
    half = 1 << (8 * width - 1)
    samples = np.array([-half, -half // 2, -1, 0, 1, half // 2, half - 1])[:, None]
    write_sound(tmp_path / "a.wav", samples, width)
    for shape in ((7,), (1, 7), (1, 1, 7), (1, 7, 1)):
        found = read(tmp_path / "a.wav", shape)
        assert_near(found.reshape(-1), samples[:, 0] / half, "float64 through float32")


def test_channels_go_along_the_axis_of_their_size(tmp_path):
    samples = np.arange(20).reshape(10, 2) * 1000
    write_sound(tmp_path / "a.wav", samples, 2)
    assert_near(read(tmp_path / "a.wav", (1, 2, 10))[0], samples.T / 32768, "float64 through float32")
    assert_near(read(tmp_path / "a.wav", (1, 10, 2))[0], samples / 32768, "float64 through float32")
    for shape in ((20,), (1, 4, 5), (2, 9), (10,)):
        with pytest.raises(FormatError, match="10 samples of 2 channels at 8000 Hz do not fit x"):
            read(tmp_path / "a.wav", shape)


def test_what_is_no_sound_is_refused(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"RIFF\x04\0\0\0WAVE")
    with pytest.raises(FormatError, match=r"a\.wav"):
        read(tmp_path / "a.wav", (7,))


def test_a_sound_decides_an_open_length(tmp_path, capsys):
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("Abs", ["x"], ["y"])],
        "loud",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "samples"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, "samples"])],
    )
    (tmp_path / "net.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    write_sound(tmp_path / "a.wav", np.array([[-16384], [8192], [0]]), 2)
    given = [str(tmp_path / "net.onnx"), "-i", str(tmp_path / "a.wav"), "--save", str(tmp_path / "y.npz")]
    assert main(["run", *given]) == 0
    assert read_npz(tmp_path / "y.npz")["y"].tolist() == [[0.5, 0.25, 0]]


def test_run_takes_the_option(wide, tmp_path, capsys):
    x = cg.Var((1, 3, 8, 8), name="image")
    save(tmp_path / "net.onnx", cg.mean(x, axis=(2, 3)), [x], ["y"])
    given = ["run", str(tmp_path / "net.onnx"), "-i", str(wide), "--json"]
    assert main([*given, "--fit", "crop"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"][0]["top"][0]["class"] == 1
    with pytest.raises(SystemExit):
        main([*given, "--fit", "squash"])


def test_an_interrupt_while_a_command_is_loaded_is_one_line(monkeypatch, capsys):
    def interrupted(names):
        raise KeyboardInterrupt

    monkeypatch.setattr("cgraph.cli.parser_of", interrupted)
    assert main(["info"]) == 130
    assert capsys.readouterr() == ("", "cgraph: interrupted\n")


def test_a_sound_gives_a_model_its_open_size(tmp_path, capsys):
    """Channels have an axis that is open or as long; where they have none, that is said."""
    onnx = pytest.importorskip("onnx")

    def model(*shape):
        given = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
        found = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
        graph = onnx.helper.make_graph([onnx.helper.make_node("Abs", ["x"], ["y"])], "g", [given], [found])
        opsets = [onnx.helper.make_opsetid("", 17)]
        onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx")
        return str(tmp_path / "m.onnx")

    write_sound(tmp_path / "two.wav", np.zeros((30, 2), int), 2)
    write_sound(tmp_path / "one.wav", np.zeros((30, 1), int), 2)
    for shape, name, want in [
        ((1, "c", "n"), "two", [1, 2, 30]),
        ((1, 2, "n"), "two", [1, 2, 30]),
        (("n", 2), "two", [30, 2]),
        ((1, "n"), "one", [1, 30]),
        (("n",), "one", [30]),
    ]:
        assert main(["run", model(*shape), "-i", str(tmp_path / f"{name}.wav"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["outputs"][0]["shape"] == want
    for shape in ((1, "n"), ("n",)):
        assert main(["run", model(*shape), "-i", str(tmp_path / "two.wav")]) == 2
        assert "two.wav: a sound of 2 channels does not fit an input [" in capsys.readouterr().err
    (tmp_path / "one.wav").write_bytes((tmp_path / "one.wav").read_bytes()[:30])
    assert main(["run", model("n"), "-i", str(tmp_path / "one.wav")]) == 2
    assert capsys.readouterr().err.endswith("one.wav: the file is cut off\n")
