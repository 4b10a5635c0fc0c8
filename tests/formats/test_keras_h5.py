"""Keras files: the MLPerf-Tiny networks equal NumPy, crafted files are refused."""

import json
import os
import zlib
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats import keras_graph, keras_h5
from cgraph.formats.allowance import Allowance
from cgraph.formats.keras_apart import read_keras_apart
from cgraph.formats.keras_graph import load_keras
from cgraph.formats.keras_h5 import KerasFile, StoredArray, description, read_keras, text_of
from cgraph.formats.keras_windows import window_pad
from cgraph.kernels.mapped import mapping_of
from tests.formats.keras_numpy import evaluate_keras
from tests.support.data import shared
from tests.support.tolerance import assert_near

h5py = pytest.importorskip("h5py")


@pytest.mark.parametrize("name", ["pretrainedResnet", "vww_96", "str_ww_ref_model"])
def test_mlperf_tiny_networks_equal_numpy(name):
    path = shared(f"mlperf_tiny/{name}.h5")
    graph = load_keras(path, n=2)
    (x,) = graph.inputs
    images = np.random.default_rng(0).normal(size=x.shape).astype(np.float32)
    got = cg.compile(graph.outputs[0], [x])(images)
    want = evaluate_keras(read_keras(path), images.transpose(0, 2, 3, 1))
    assert_near(got, want, "float32 networks")
    assert_near(got.sum(1), 1, "float32 sums")


def weights_file(tmp_path, fill) -> str:
    path = str(tmp_path / "x.h5")
    with h5py.File(path, "w") as file:
        fill(file.create_group("model_weights/dense/dense"))
    return path


def test_weights_come_back_by_layer_and_name(tmp_path):
    kernel = np.arange(6, dtype=np.float32).reshape(2, 3)
    path = weights_file(tmp_path, lambda g: g.create_dataset("kernel:0", data=kernel))
    np.testing.assert_array_equal(read_keras(path).weights["dense"]["kernel"], kernel)


def test_texts_and_arrays_have_one_allowance(tmp_path, monkeypatch):
    """What each costs is within the limit; both together are not."""

    def fill(group):
        group.create_dataset("kernel:0", data=np.ones((300, 300), "f4"), chunks=(300, 300), compression="gzip")
        group.file.attrs["model_config"] = json.dumps({"class_name": "Sequential", "names": ["a"] * 2000})

    path, spent = weights_file(tmp_path, fill), []
    spend = Allowance.spend

    def note(self, what, nbytes=0, **others):
        spent.append(nbytes)
        spend(self, what, nbytes, **others)

    monkeypatch.setattr(Allowance, "spend", note)
    read_keras(path)
    assert spent[-1] > 10_000 and sum(spent[:-1]) > 10_000
    monkeypatch.setattr("cgraph.formats.allowance.NBYTES_AT_LEAST", sum(spent) - 2 * os.path.getsize(path) - 1)
    with pytest.raises(FormatError, match="would take .* bytes while reading"):
        read_keras(path)


KERNEL = np.arange(600, dtype=np.float32).reshape(20, 30)


@pytest.mark.parametrize("read", [read_keras, read_keras_apart])
@pytest.mark.parametrize(
    ("options", "is_mapped"),
    [({}, True), ({"chunks": (7, 11)}, False), ({"chunks": (20, 30), "compression": "gzip", "shuffle": True}, False)],
)
def test_arrays_stay_in_the_file_where_they_lie_there_whole(tmp_path, read, options, is_mapped):
    path = weights_file(tmp_path, lambda g: g.create_dataset("kernel:0", data=KERNEL, **options))
    found = read(path).weights["dense"]["kernel"]
    assert (mapping_of(found) is not None) is is_mapped
    np.testing.assert_array_equal(found, KERNEL)


CHUNKED = {
    "plain": {},
    "gzip": {"compression": "gzip"},
    "gzip and shuffle": {"compression": "gzip", "shuffle": True},
    "a checksum": {"fletcher32": True},
    "all": {"compression": "gzip", "shuffle": True, "fletcher32": True},
}


@pytest.mark.parametrize("options", CHUNKED)
@pytest.mark.parametrize(
    "x", [KERNEL[:19, :29], KERNEL[:7, :3].astype(">i2"), KERNEL > 30, KERNEL[:1, :5].astype("u1")]
)
def test_chunks_are_unpacked_to_what_the_library_reads(tmp_path, options, x):
    """Chunks that do not divide the array, along axes of other lengths."""
    chunks = (min(4, x.shape[0]), min(7, x.shape[1]))
    path = weights_file(tmp_path, lambda g: g.create_dataset("kernel:0", data=x, chunks=chunks, **CHUNKED[options]))
    found = read_keras(path).weights["dense"]["kernel"]
    np.testing.assert_array_equal(found, x)
    assert found.dtype == x.dtype.newbyteorder("=")


def test_chunks_that_are_not_stored_hold_the_fill_value(tmp_path):
    def fill(group):
        group.create_dataset("kernel:0", (9, 10), "f4", chunks=(2, 3), fillvalue=7)[3, 4] = 1

    want = np.full((9, 10), 7, "f4")
    want[3, 4] = 1
    np.testing.assert_array_equal(read_keras(weights_file(tmp_path, fill)).weights["dense"]["kernel"], want)


def written_chunk(filters: list[int], raw: bytes, mask: int = 0, count: int = 1000):
    """A dataset of one chunk with these stored bytes."""

    def fill(group):
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((count,))
        for number in filters:
            properties.set_filter(number, h5py.h5z.FLAG_OPTIONAL, (4,))
        space, kind = h5py.h5s.create_simple((count,)), h5py.h5t.IEEE_F32LE
        h5py.h5d.create(group.id, b"kernel:0", kind, space, properties).write_direct_chunk((0,), raw, mask)

    return fill


DEFLATE, SHUFFLE, FLETCHER32, LZF = 1, 2, 3, 32000
CHUNKS = {
    "more than its size": ([DEFLATE], zlib.compress(bytes(4010)), "more than its 4004 bytes"),
    "a little more than its size": ([DEFLATE], zlib.compress(bytes(4001)), "unpacks to 4001 bytes, not 4000"),
    "less than its size": ([DEFLATE], zlib.compress(bytes(3999)), "unpacks to 3999 bytes, not 4000"),
    "cut off": ([DEFLATE], zlib.compress(KERNEL.tobytes())[:-9], "truncated"),
    "damaged": ([DEFLATE], b"nonsense", "damaged"),
    "packed twice": ([DEFLATE, DEFLATE], zlib.compress(zlib.compress(bytes(4000))), "each once"),
    "packed in another way": ([LZF], bytes(4000), "32000"),
    "another checksum": ([FLETCHER32], bytes(4000) + b"\1\0\0\0", "its checksum differs"),
    "no room for a checksum": ([FLETCHER32], b"\0", "its checksum differs|declares"),
    "more stored than it can need": ([DEFLATE], bytes(8000), "stores 8,000 bytes"),
}


@pytest.mark.parametrize("name", CHUNKS)
def test_a_chunk_that_does_not_unpack_to_its_size_is_refused(tmp_path, name):
    filters, raw, match = CHUNKS[name]
    with pytest.raises(FormatError, match=match):
        read_keras(weights_file(tmp_path, written_chunk(filters, raw)))


@pytest.mark.parametrize("mask", range(4))
def test_a_filter_that_was_left_out_is_not_undone(tmp_path, mask):
    x = KERNEL.reshape(-1)
    raw = x.tobytes() if mask & 1 else x.view("u1").reshape(-1, 4).T.tobytes()
    raw = raw if mask & 2 else zlib.compress(raw)
    path = weights_file(tmp_path, written_chunk([SHUFFLE, DEFLATE], raw, mask, count=600))
    np.testing.assert_array_equal(read_keras(path).weights["dense"]["kernel"], x)


def test_numbers_of_other_bits_than_numpys_are_refused(tmp_path):
    def fill(group):
        kind = h5py.h5t.IEEE_F32LE.copy()
        kind.set_ebias(120)
        space = h5py.h5s.create_simple((3,))
        h5py.h5d.create(group.id, b"kernel:0", kind, space)
        group["kernel:0"][...] = [1, 2, 3]

    with pytest.raises(FormatError, match="bit layout other than float64"):
        read_keras(weights_file(tmp_path, fill))


@pytest.mark.parametrize("read", [read_keras, read_keras_apart])
@pytest.mark.parametrize("code", [">f4", "<f8", "<f2", "i1", ">i8"])
@pytest.mark.parametrize("userblock", [0, 512])
def test_arrays_of_any_dtype_come_back_in_this_machines_order(tmp_path, read, code, userblock):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", userblock_size=userblock) as file:
        file.create_dataset("model_weights/dense/dense/kernel:0", data=KERNEL[0].astype(code))
    found = read(path).weights["dense"]["kernel"]
    assert found.dtype == np.dtype(code).newbyteorder("=") and found.dtype.isnative
    np.testing.assert_array_equal(found, KERNEL[0].astype(code))


def test_a_place_outside_the_file_is_refused():
    for offset, shape in ((-4, (2,)), (0, (3,)), (8, (1,)), (2**62, (1,))):
        with pytest.raises(FormatError, match="outside the file"):
            StoredArray(offset, "<f4", shape).array(memoryview(bytes(8)))


@pytest.mark.parametrize("read", [read_keras, read_keras_apart])
@pytest.mark.parametrize("path", ["a\0b", "missing.h5", "."])
def test_a_path_that_is_no_file_is_refused(read, path):
    with pytest.raises(FormatError):
        read(path)


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="not a regular file"):
        read_keras(tmp_path / "pipe")


@pytest.mark.parametrize("value", [np.zeros(3), 7, np.bytes_(b"[]"), "[" * 50_000, "{"])
def test_a_description_that_is_no_text_of_an_object_is_refused(tmp_path, value):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.attrs["model_config"] = value
    with pytest.raises(FormatError):
        read_keras(tmp_path / "x.h5")


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


@pytest.mark.parametrize("target", ["/model_weights/dense/dense/bias:0", "/model_weights/dense", "/elsewhere"])
def test_a_soft_link_is_refused_wherever_it_leads(target, tmp_path):
    """To an array or a group of the same file, or to nothing."""

    def fill(group):
        group.create_dataset("bias:0", data=np.zeros(4, np.float32))
        group["kernel:0"] = h5py.SoftLink(target)

    with pytest.raises(FormatError, match="'kernel:0' is a SoftLink"):
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


def test_a_damaged_description_is_refused(tmp_path):
    path = tmp_path / "x.h5"
    for text in ("{", "[]", json.dumps({"class_name": "Functional", "config": {"layers": [{"name": 1}]}})):
        with h5py.File(path, "w") as file:
            file.attrs["model_config"] = text
        with pytest.raises(FormatError):
            load_keras(path)


AXES = [(n, w, step, d) for n in (5, 8) for w in (1, 3) for step in (1, 2, 3) for d in (1, 2)]
"""Elements, window, stride and dilation of one axis."""


@pytest.mark.parametrize("rows", AXES)
def test_padding_along_one_axis_does_not_depend_on_the_other_one(rows):
    """As many results as strides fit; the odd element of padding lies behind."""
    for columns in AXES:
        n, w, step, d = zip(rows, columns)
        x = cg.Var((1, 2, *n))
        pad = window_pad({"padding": "same", "strides": list(step)}, x, list(w), list(d))
        for axis, (size, window, stride, dilation) in enumerate((rows, columns)):
            before, behind = pad[axis], pad[2 + axis]
            count = (size + before + behind - (window - 1) * dilation - 1) // stride + 1
            assert count == -(-size // stride) and behind - before in (0, 1)
            assert before + behind == 0 or (count - 1) * stride + (window - 1) * dilation + 1 == size + before + behind


@pytest.mark.parametrize("read", [read_keras, read_keras_apart])
def test_a_description_may_have_a_fixed_length_and_layers_may_lie_at_the_root(tmp_path, read):
    """As h5py writes bytes, and as Keras writes weights alone."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.attrs["model_config"] = np.bytes_(b'{"class_name": "x"}')
        file.create_dataset("dense/dense/kernel:0", data=KERNEL)
    found = read(tmp_path / "x.h5")
    assert found.config == {"class_name": "x"} and list(found.weights) == ["dense"]
    np.testing.assert_array_equal(found.weights["dense"]["kernel"], KERNEL)
    assert found.nbytes == (tmp_path / "x.h5").stat().st_size and not found.numbered


def test_arrays_have_their_last_name_where_all_of_their_layer_are_in_one_group(tmp_path):
    """Otherwise their path in the layer tells them apart."""
    names = ["a/a/kernel:0", "a/a/bias:0", "b/x/kernel:0", "b/y/kernel:0", "c/c/cell/kernel:0", "d/kernel"]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for i, name in enumerate(names):
            file.create_dataset(f"model_weights/{name}", data=np.float32([i]))
    found = {
        layer: {name: int(x[0]) for name, x in some.items()}
        for layer, some in read_keras(tmp_path / "x.h5").weights.items()
    }
    assert found == {
        "a": {"kernel": 0, "bias": 1}, "b": {"x/kernel": 2, "y/kernel": 3}, "c": {"kernel": 4}, "d": {"kernel": 5},
    }  # fmt: skip


def compound(group):
    group.create_dataset("kernel:0", data=np.zeros(3, [("a", "f4"), ("b", "i4")]))


def complex_numbers(group):
    group.create_dataset("kernel:0", data=np.zeros(3, "c8"))


def nothing_at_all(group):
    group["kernel:0"] = h5py.Empty("f4")


def declared_only(group):
    group.create_dataset("kernel:0", (1000,), "f4")


def linked_group(group):
    group.file["model_weights/again"] = group


NOT_ARRAYS = {
    compound: "only numbers are read", complex_numbers: "only numbers are read", words: "only numbers are read",
    nothing_at_all: "only numbers are read", declared_only: "kernel:0 declares 3.91 KiB and stores 0 B",
    linked_group: "contains itself or is nested too deep", virtual: "stores its contents in other files",
    other_file: "stores its contents in other files", cycle: "contains itself or is nested too deep",
    external: "'kernel:0' is a ExternalLink",
}  # fmt: skip


@pytest.mark.parametrize("fill", NOT_ARRAYS, ids=lambda f: f.__name__)
def test_what_is_no_array_of_numbers_in_this_file_is_named(tmp_path, fill):
    with pytest.raises(FormatError, match=NOT_ARRAYS[fill]):
        read_keras(weights_file(tmp_path, fill))


def test_named_types_are_not_arrays_and_are_left_out(tmp_path):
    def fill(group):
        group["type"] = np.dtype("f4")
        group.create_dataset("kernel:0", data=KERNEL)

    assert list(read_keras(weights_file(tmp_path, fill)).weights["dense"]) == ["kernel"]


@pytest.mark.parametrize("missing", [0, 1])
def test_as_many_groups_in_groups_and_objects_as_the_limits_say_are_read(tmp_path, monkeypatch, missing):
    """Of three groups and two arrays; the root has the depth 0."""

    def fill(group):
        group.create_dataset("inner/kernel:0", data=KERNEL)
        group.create_dataset("bias:0", data=KERNEL)

    path = weights_file(tmp_path, fill)  # model_weights/dense/dense/inner
    monkeypatch.setattr(keras_h5, "MOST_DEPTH", 3 - missing)
    if missing:
        with pytest.raises(FormatError, match="nested too deep"):
            read_keras(path)
    else:
        assert list(read_keras(path).weights["dense"]) == ["dense/bias", "dense/inner/kernel"]
    monkeypatch.undo()
    monkeypatch.setattr(keras_h5, "MOST_OBJECTS", 5 - missing)
    if missing:
        with pytest.raises(FormatError, match="more than 4 groups and arrays"):
            read_keras(path)
    else:
        read_keras(path)


def test_each_group_and_array_is_charged_with_the_length_of_its_path(tmp_path, monkeypatch):
    path, spent = weights_file(tmp_path, lambda g: g.create_dataset("kernel:0", data=KERNEL)), []
    monkeypatch.setattr(Allowance, "spend", lambda self, what, nbytes=0, **more: spent.append((what, nbytes)))
    read_keras(path)
    assert [nbytes - keras_h5.OBJECT for what, nbytes in spent if what == "its table of contents"] == [
        len("dense"), len("dense/dense"), len("dense/dense/kernel:0"),
    ]  # fmt: skip


@pytest.mark.parametrize("apart", [False, True])
def test_a_networks_file_is_read_here_or_apart_within_a_time(tmp_path, monkeypatch, apart):
    config = {"class_name": "Sequential", "config": {"layers": [
        {"class_name": "InputLayer", "config": {"name": "in", "batch_shape": [None, None, 3]}}]}}  # fmt: skip
    calls, file = [], KerasFile(config, {})
    monkeypatch.setattr(keras_graph, "read_keras_model", lambda *given: calls.append(given) or file)
    monkeypatch.setattr(keras_graph, "read_keras_apart", lambda *given: calls.append(given) or file)
    graph = load_keras("net.h5", 4, apart, 7.5, {"in.1": 2, "batch": 9})
    assert calls == [("net.h5", 7.5)] if apart else calls == [("net.h5",)]
    assert graph.inputs[0].shape == (4, 2, 3), "n is the size of the batch"


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_description_is_no_longer_than_its_file(tmp_path, more):
    text = b'{"class_name": "x"}'
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.attrs["model_config"] = np.bytes_(text)
        if more >= 0:
            assert description(file, len(text) + more) == text
            return
        with pytest.raises(FormatError, match=r"model_config is \|S19 \(\), not a text"):
            description(file, len(text) + more)


def test_a_description_is_bytes_or_a_text():
    assert text_of(b"\xff{") == b"\xff{" and text_of("é\ud800") == "é?".encode()
    for value in (7, None, ["text"], np.array([b"text"])):
        with pytest.raises(FormatError, match=f"is of type {type(value).__name__}, not a text. Save the model again"):
            text_of(value)
