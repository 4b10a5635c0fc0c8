"""Files that a command reads: whatever is wrong with a .npy or .wav file is an error of one line that names it."""

import argparse
import io
import re
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli.arrays import read_array
from cgraph.cli.model_arguments import constant
from cgraph.cli.sounds import BLOCK, read_sound, samples_of, shape_of_sound
from cgraph.errors import FormatError
from cgraph.formats.npz import read_npy


def npy(header: bytes, data: bytes = bytes(4)) -> bytes:
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + data


def zipped(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, b"x")
    return file.getvalue()


def wav(bits: int, data: bytes, channels: int = 1, declared: int | None = None) -> bytes:
    length = len(data) if declared is None else declared
    form = struct.pack("<IHHIIHH", 16, 1, channels, 8000, 0, channels * bits // 8, bits)
    return b"RIFF" + struct.pack("<I", 36 + length) + b"WAVEfmt " + form + b"data" + struct.pack("<I", length) + data


HEADER = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"
WRONG = {
    "an archive": zipped("a.npy"),
    "a cut archive": b"PK\3\4" + bytes(100),
    "open brackets": npy(b"{'descr': (\n"),
    "signs without end": npy(b"-" * 9000 + b"1"),
    "an unhashable key": npy(b"{[]: 1}"),
    "a long sum": npy(b"(1" + b"+1j" * 3000 + b")"),
    "a huge axis": npy((HEADER % ("<f4", "(9999999999999999999,)")).encode()),
    "a huge product": npy((HEADER % ("<f4", "(1099511627776, 1099511627776)")).encode()),
    "a truth for a size": npy((HEADER % ("<f4", "(True,)")).encode()),
    "too little": npy((HEADER % ("<f4", "(2,)")).encode()),
    "too much": npy((HEADER % ("<f4", "(1,)")).encode(), bytes(8)),
    "objects": npy((HEADER % ("|O", "(1,)")).encode()),
    "texts": npy((HEADER % ("<U1", "(1,)")).encode()),
    "no header": b"\x93NUMPY\1\0",
    "another version": b"\x93NUMPY\x09\0" + bytes(20),
    "bytes that are no text": npy(bytes(range(128, 200))),
    "nothing": b"",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_an_npy_file_is_an_error_that_names_it(name, tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(WRONG[name])
    with pytest.raises(FormatError, match=f"^{re.escape(str(path))}: "):
        read_array(path, cg.Var((1,), name="x"))
    with pytest.raises(argparse.ArgumentTypeError, match=f"^{re.escape(str(path))}: "):
        constant(f"x={path}")


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f2", "|i1", "<u8", ">i4", "|b1", "<c8"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4), (1, 2, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_npy_file_is_the_array_that_numpy_wrote(dtype, shape, order, tmp_path):
    values = np.asarray(np.random.default_rng(0).integers(0, 2, shape).astype(dtype), order=order)
    np.save(tmp_path / "x.npy", values)
    array = read_npy(tmp_path / "x.npy")
    assert array.dtype == values.dtype and array.shape == shape and not array.flags.writeable
    np.testing.assert_array_equal(array, values)


def test_files_that_are_none_are_named(tmp_path):
    for path in (tmp_path, tmp_path / "absent.npy"):
        with pytest.raises(FormatError, match=f"^{re.escape(str(path))}"):
            read_npy(path)


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
