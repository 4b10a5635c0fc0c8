"""Keras files read in a child process: what it sends is what comes back, and what a broken one sends is refused."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats import keras_apart
from cgraph.formats.allowance import Allowance
from cgraph.formats.keras_apart import SENT, SENT_TIMES, last_line, read_keras_apart, receive, send
from cgraph.formats.keras_h5 import Contents, StoredArray

h5py = pytest.importorskip("h5py")


def weights_file(tmp_path, fill) -> str:
    path = str(tmp_path / "x.h5")
    with h5py.File(path, "w") as file:
        fill(file.create_group("model_weights/dense/dense"))
    return path


def soft(group):
    group["kernel:0"] = h5py.SoftLink("/elsewhere")


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


ROWS = {
    "nothing": {},
    "another kind of rows": {"config": {}, "numbered": False, "arrays": [1]},
    "objects": {"config": {}, "numbered": False, "arrays": [["a", "b", "|O", [1], None]]},
    "a negative size": {"config": {}, "numbered": False, "arrays": [["a", "b", "<f4", [-1], None]]},
    "two negative sizes": {"config": {}, "numbered": False, "arrays": [["a", "b", "u1", [-1, -2], 0]]},
    "more than was sent": {"config": {}, "numbered": False, "arrays": [["a", "b", "<f4", [9], None]]},
    "a place that is not a number": {"config": {}, "numbered": False, "arrays": [["a", "b", "<f4", [1], "x"]]},
}


@pytest.mark.parametrize("name", ROWS)
def test_what_a_broken_child_hands_back_is_refused(name):
    text = json.dumps(ROWS[name]).encode()
    with pytest.raises(FormatError, match="the reader returned|lies outside"):
        receive(io.BytesIO(len(text).to_bytes(8, "little") + text), Allowance(100)).file(memoryview(bytes(8)))


def sent(contents):
    file = io.BytesIO()
    send(contents, file)
    return file


def test_what_is_sent_is_received_in_its_order():
    turned = np.arange(6, dtype=">i2").reshape(2, 3).T
    arrays = {
        ("a", "kernel"): turned,
        ("a", "bias"): StoredArray(16, "<f4", (2, 0)),
        ("b", "x/kernel"): np.array(2.5),
        ("b", "none"): np.zeros((0, 3), "u1"),
        ("b", "last"): np.array([7], "u1"),
    }
    for numbered in (False, True):
        got = receive(sent(Contents({"class_name": "é"}, arrays, numbered)), Allowance(0))
        assert got.config == {"class_name": "é"} and got.numbered is numbered and list(got.arrays) == list(arrays)
    assert got.arrays["a", "bias"] == arrays["a", "bias"]
    for key, want in arrays.items():
        if isinstance(want, np.ndarray):
            assert (got.arrays[key].dtype, got.arrays[key].shape) == (want.dtype, want.shape)
            np.testing.assert_array_equal(got.arrays[key], want)


def test_fewer_bytes_than_an_array_has_are_refused():
    whole = sent(Contents({}, {("a", "kernel"): np.ones(3, "f4")})).getvalue()
    with pytest.raises(FormatError, match="the reader returned fewer than the 12 bytes of kernel of layer a"):
        receive(io.BytesIO(whole[:-1]), Allowance(0))
    with pytest.raises(FormatError, match="its description is not JSON"):
        receive(io.BytesIO(whole[:20]), Allowance(0))


def test_a_description_has_a_longest_length():
    most = SENT + SENT_TIMES * 100
    for length, match in ((most, "its description is not JSON"), (most + 1, f"a description of {most + 1:,} bytes")):
        with pytest.raises(FormatError, match=match):
            receive(io.BytesIO(length.to_bytes(8, "little") + b"{"), Allowance(100))


def test_arrays_are_charged_before_they_are_made():
    allowance = Allowance(0)
    rows = {"config": {}, "numbered": False, "arrays": [["a", "b", "<f8", [1000, 2**20], None]]}
    text = json.dumps(rows).encode()
    with pytest.raises(FormatError, match="an array would take 8,388,608,000 bytes"):
        receive(io.BytesIO(len(text).to_bytes(8, "little") + text), allowance)


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"", "reading it failed"),
        (b" \n\n", "reading it failed"),
        (b"first\nlast\n", "last"),
        (b"x" * 5000, "x" * 1000),
        (b"\xff", "\ufffd"),
    ],
    ids=["empty", "blank", "two", "long", "bytes"],
)
def test_the_last_line_of_a_complaint_is_its_message(raw, line):
    assert last_line(io.BytesIO(raw)) == line


def test_a_child_that_fails_is_told_with_its_reason_and_the_file(tmp_path):
    path = tmp_path / "x.h5"
    path.write_bytes(b"no hdf5")
    with pytest.raises(FormatError, match=r"x\.h5: .*no readable Keras file") as error:
        read_keras_apart(path)
    assert "Traceback" not in str(error.value)


def test_a_child_that_crashes_is_told_by_its_signal(tmp_path, monkeypatch):
    (tmp_path / "x.h5").write_bytes(b"any")
    monkeypatch.setattr(keras_apart, "run_module", lambda *_: -11)
    with pytest.raises(FormatError, match=r"x\.h5: reading it ended by SIGSEGV: the file is damaged or too large"):
        read_keras_apart(tmp_path / "x.h5")


@pytest.mark.parametrize(("error", "text"), [(FormatError("it is broken"), "it is broken"), (MemoryError(), "memory")])
def test_a_child_limits_itself_by_the_size_of_its_file_and_tells_why_it_failed(
    tmp_path, monkeypatch, capsys, error, text
):
    def fail(path):
        assert limits, "the file is read within limits"
        raise error

    path, limits = tmp_path / "x.h5", []
    with path.open("wb") as file:
        file.truncate(3 * keras_apart.PIECE + 5)
    monkeypatch.setattr(keras_apart, "limit_process", lambda *given: limits.append(given))
    monkeypatch.setattr(keras_apart, "model_contents", fail)
    monkeypatch.setattr(keras_apart.sys, "argv", ["keras_apart", str(path)])
    assert keras_apart.main() == 1
    assert limits == [(keras_apart.MEMORY + keras_apart.TIMES * (3 * keras_apart.PIECE + 5), keras_apart.PROCESSOR + 3)]
    assert text in capsys.readouterr().err


def test_what_a_child_hands_back_is_charged_to_its_file(tmp_path, monkeypatch):
    allowances = []
    path = weights_file(tmp_path, lambda g: g.create_dataset("kernel:0", data=np.ones(500, "f4"), chunks=(500,)))
    monkeypatch.setattr(
        keras_apart, "receive", lambda file, allowance: allowances.append(allowance) or Contents({}, {})
    )
    monkeypatch.setattr(keras_apart, "run_module", lambda *given: 0)
    assert read_keras_apart(path).weights == {}
    assert [x.file_nbytes for x in allowances] == [Path(path).stat().st_size]


def test_a_child_gets_the_whole_path_and_the_time_that_is_left_to_it(tmp_path, monkeypatch):
    calls = []
    path = Path(weights_file(tmp_path, lambda g: None))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(keras_apart, "run_module", lambda *given: calls.append(given))
    with pytest.raises(FormatError, match=r"^x\.h5: reading it took more than 7 s. Raise seconds= for a larger file$"):
        read_keras_apart(path.name, 7)
    ((module, words, answer, complaint, seconds),) = calls
    assert (module, words, seconds) == ("cgraph.formats.keras_apart", [str(path)], 7) and answer is not complaint
