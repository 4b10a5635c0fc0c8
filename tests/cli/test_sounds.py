"""Sounds as inputs: samples of every width, channels along their axis, open lengths, memory, and broken files."""

import json
import struct
import tracemalloc
import wave

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main
from cgraph.cli.arrays import read_inputs
from cgraph.cli.pictures import Look
from cgraph.cli.sounds import BLOCK, from_pcm, read_sound, samples_of, shape_of_sound
from cgraph.errors import FormatError
from cgraph.formats.npz import read_npz
from tests.support.tolerance import assert_near


def read(path, shape, dtype="float32"):
    return read_inputs([str(path)], [cg.Var(shape, dtype, name="x")], Look("bytes"), {})["x"]


def wav(bits: int, data: bytes, channels: int = 1, declared: int | None = None) -> bytes:
    length = len(data) if declared is None else declared
    form = struct.pack("<IHHIIHH", 16, 1, channels, 8000, 0, channels * bits // 8, bits)
    return b"RIFF" + struct.pack("<I", 36 + length) + b"WAVEfmt " + form + b"data" + struct.pack("<I", length) + data


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


@pytest.mark.parametrize("bits", [40, 48, 64, 1024])
def test_samples_wider_than_32_bits_are_refused_by_their_number_of_bits(bits, tmp_path):
    (tmp_path / "x.wav").write_bytes(wav(bits, bytes(10 * bits)))
    with pytest.raises(FormatError, match=rf"x\.wav: samples of {bits} bits; those of 8, 16, 24 and 32 bits are read"):
        samples_of(tmp_path / "x.wav")


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("channels", [1, 2, 7])
def test_a_sound_is_converted_in_blocks_to_the_same_numbers(width, channels, tmp_path):
    """Of several blocks, whose bytes are no multiple of a frame; what is cut off within a frame does not count."""
    frames = 2 * BLOCK // (width * channels) + 5
    raw = np.random.default_rng(width).integers(0, 256, (frames, channels, width), dtype=np.uint8)
    (tmp_path / "x.wav").write_bytes(wav(8 * width, raw.tobytes() + bytes(width * channels - 1), channels))
    samples, rate = samples_of(tmp_path / "x.wav")
    numbers = sum(raw[..., i].astype("i8") << (8 * i) for i in range(width))
    half = 1 << (8 * width - 1)
    signed = numbers - half if width == 1 else np.where(numbers >= half, numbers - 2 * half, numbers)
    assert samples.dtype == np.float32 and rate == 8000
    np.testing.assert_array_equal(samples, (signed.T / half).astype("f4"))


def test_a_sound_takes_the_bytes_of_its_numbers_and_a_block(tmp_path):
    count = 16 << 20
    (tmp_path / "x.wav").write_bytes(wav(8, bytes(count)))
    (tmp_path / "cut.wav").write_bytes(wav(8, bytes(100), declared=0xFFFFFF00))
    for name, frames in (("x.wav", count), ("cut.wav", 100)):
        tracemalloc.start()
        samples, _ = samples_of(tmp_path / name)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert samples.shape == (1, frames) and peak < 4 * frames + 24 * BLOCK


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("bits", [8, 16, 24, 32])
def test_a_file_that_ends_early_has_the_frames_that_are_whole(bits, channels, tmp_path):
    nbytes = channels * bits // 8  # of a frame
    (tmp_path / "x.wav").write_bytes(wav(bits, bytes(6 * nbytes - 1), channels, declared=0xFFFFFF00))
    assert samples_of(tmp_path / "x.wav")[0].shape == (channels, 5)


@pytest.mark.parametrize("order", [(2, 1 << 20), (1 << 20, 2)])
def test_a_sound_is_read_into_the_input_itself(order, tmp_path):
    (tmp_path / "x.wav").write_bytes(wav(16, np.arange(2 << 20, dtype="<i2").tobytes(), 2))
    tracemalloc.start()
    values = read_sound(tmp_path / "x.wav", cg.Var(order, name="x"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert values.shape == order and values.flags.c_contiguous and peak < values.nbytes + 16 * BLOCK
    frames = values if order[1] == 2 else values.T
    assert (frames[1] * 32768).tolist() == [2, 3] and (frames[-1] * 32768).tolist() == [-2, -1]


def test_a_sound_of_more_numbers_than_its_file_may_cost_is_refused(tmp_path):
    """Of 8 bits, whose numbers take four times their bytes; its shape is read all the same."""
    count = 33 << 20
    with open(tmp_path / "x.wav", "wb") as file:
        file.write(wav(8, b"", declared=count))
        file.truncate(file.tell() + count)
    assert shape_of_sound(tmp_path / "x.wav", (1, "n")) == (1, count)
    for read in (samples_of, lambda path: read_sound(path, cg.Var((count,), name="x"))):
        with pytest.raises(FormatError, match=rf"x\.wav: a sound of {count} samples would take 138,412,032 bytes"):
            read(tmp_path / "x.wav")


def test_a_header_that_declares_more_samples_than_its_outer_chunk_has_is_refused(tmp_path):
    raw = bytearray(wav(8, bytes(10)))
    raw[4:8] = np.array([36 + 1], "<u4").tobytes()
    (tmp_path / "x.wav").write_bytes(raw)
    with pytest.raises(FormatError, match=r"x\.wav: its header declares 10 samples, but they end earlier"):
        samples_of(tmp_path / "x.wav")


def test_changed_sounds_are_read_or_refused(tmp_path):
    rng, whole = np.random.default_rng(0), wav(16, bytes(200), 2)
    for _ in range(300):
        raw = bytearray(whole)
        for at in rng.integers(0, 60, 2):
            raw[at] = rng.integers(256)
        (tmp_path / "x.wav").write_bytes(raw[: rng.integers(len(raw) + 1)] if rng.random() < 0.3 else raw)
        try:
            samples_of(tmp_path / "x.wav")
        except FormatError as error:
            assert str(error).startswith(f"{tmp_path / 'x.wav'}: ")


@pytest.mark.parametrize(
    ("raw", "channels", "width", "want"),
    [
        (bytes([0, 128, 192, 255]), 1, 1, [[-1, 0, 0.5, 127 / 128]]),
        (bytes([0, 0x80, 0, 0x40]), 1, 2, [[-1, 0.5]]),
        (bytes([0, 0x80, 0, 0x40, 9]), 2, 2, [[-1], [0.5]]),
        (bytes([0, 0, 0x40, 0, 0, 0xC0]), 2, 3, [[0.5], [-0.5]]),
        (bytes([0, 0, 0, 0x40, 0, 0, 0, 0xC0, 0, 0, 0, 0x20, 0, 0, 0, 0]), 2, 4, [[0.5, 0.25], [-0.5, 0]]),
        (b"", 2, 2, [[], []]),
        (bytes(3), 2, 2, [[], []]),
    ],
)
def test_bytes_are_whole_frames_lowest_byte_first(raw, channels, width, want):
    np.testing.assert_array_equal(from_pcm(raw, channels, width), np.reshape(want, (channels, -1)))


def test_the_shape_of_an_input_follows_from_its_axes(tmp_path):
    write_sound(tmp_path / "one.wav", np.zeros((30, 1), int), 2)
    write_sound(tmp_path / "two.wav", np.zeros((30, 2), int), 2)
    one, two = (
        {shape: shape_of_sound(tmp_path / name, shape) for shape in shapes}
        for name, shapes in (
            ("one.wav", [("n",), (1, "n"), ("b", "c", "n"), ()]),
            ("two.wav", [("c", "n"), (2, "n"), ("n", 2), ("b", 1, 2, "n"), ("b", "n", 2), (2, 2)]),
        )
    )
    assert one == {("n",): (30,), (1, "n"): (1, 30), ("b", "c", "n"): (1, 1, 30), (): ()}
    assert two == {
        ("c", "n"): (2, 30), (2, "n"): (2, 30), ("n", 2): (30, 2), ("b", 1, 2, "n"): (1, 1, 2, 30),
        ("b", "n", 2): (1, 30, 2), (2, 2): (30, 2),
    }  # fmt: skip
    for shape in (("n",), (3, "n"), ()):
        with pytest.raises(FormatError) as error:
            shape_of_sound(tmp_path / "two.wav", shape)
        assert str(error.value) == (
            f"{tmp_path / 'two.wav'}: a sound of 2 channels does not fit an input [{','.join(map(str, shape))}]. "
            "Mix it to one channel"
        )


def test_samples_and_rate_are_those_of_the_file(tmp_path):
    write_sound(tmp_path / "a.wav", np.array([[16384, 0], [-32768, 8192]]), 2, rate=44100)
    samples, rate = samples_of(tmp_path / "a.wav")
    assert samples.tolist() == [[0.5, -1.0], [0.0, 0.25]] and samples.dtype == np.float32 and rate == 44100


def test_a_folder_or_nothing_is_no_sound(tmp_path):
    with pytest.raises(FormatError) as error:
        samples_of(tmp_path)
    assert str(error.value) == f"{tmp_path}: it is not a regular file"
    with pytest.raises(FileNotFoundError):
        samples_of(tmp_path / "missing.wav")
