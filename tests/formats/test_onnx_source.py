"""Opened ONNX models: tensors beside the model, ranges of bytes, data that stays in the file, errors that name it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cgraph.errors import FormatError, InputError, PositionError, UnavailableError
from cgraph.formats.onnx.source import Source, open_source, parse_offset
from cgraph.formats.unspecified import UnknownError


def model(*tensors):
    graph = helper.make_graph([], "g", [], [], list(tensors))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()


def beside(location="w.bin", shape=(2,), **entries):
    """A float32 tensor in another file."""
    proto = TensorProto(name="w", data_type=1, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        proto.external_data.add(key=key, value=str(value))
    return proto


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "w.bin").write_bytes(np.arange(6, dtype="<f4").tobytes())
    return tmp_path


def opened(folder, *tensors):
    (folder / "net.onnx").write_bytes(model(*tensors))
    return open_source(folder / "net.onnx")


def first_of(source):
    return source.array(source.proto.graph.initializer[0]).tolist()


@pytest.mark.parametrize("links", [1, 2])
def test_tensors_of_a_model_that_is_a_link_are_beside_the_file(folder, links):
    opened(folder, beside(length=8))
    path = folder / "net.onnx"
    for i in range(links):
        (folder / f"links {i}").mkdir()
        link = folder / f"links {i}" / f"other {i}.onnx"
        link.symlink_to(path)
        path = link
    assert first_of(open_source(path)) == [0, 1]
    (path.parent / "w.bin").write_bytes(np.arange(6, 12, dtype="<f4").tobytes())
    assert first_of(open_source(path)) == [0, 1]


@pytest.mark.parametrize(
    ("shape", "entries", "want"),
    [
        ((6,), {}, [0, 1, 2, 3, 4, 5]),
        ((2,), {"offset": 16}, [4, 5]),
        ((2,), {"offset": 4, "length": 8}, [1, 2]),
        ((2,), {"length": 8, "checksum": "any"}, [0, 1]),
        ((0,), {"offset": 24}, []),
        ((0,), {"offset": 24, "length": 0}, []),
    ],
)
def test_a_tensor_beside_the_model_is_a_range_of_its_file(folder, shape, entries, want):
    source = opened(folder, beside(shape=shape, **entries))
    assert source.array(source.proto.graph.initializer[0]).tolist() == want
    assert list(source.files) == ["w.bin"] and source.name == "net.onnx"


@pytest.mark.parametrize(
    ("entries", "match"),
    [
        ({"offset": 20}, "needs 8 bytes, 4 are stored"),
        ({"offset": 20, "length": 8}, "tensor 'w' ends at 28, 'w.bin' has 24 bytes"),
        ({"offset": 25}, "tensor 'w' ends at 25, 'w.bin' has 24 bytes"),
        ({"offset": "-4"}, "tensor 'w' has '-4' where a number of bytes belongs"),
        ({"length": "8.0"}, "tensor 'w' has '8.0' where"),
        ({"other": 1}, "tensor 'w' has unknown or repeated entries"),
    ],
)
def test_ranges_that_do_not_fit_are_refused(folder, entries, match):
    source = opened(folder, beside(**entries))
    with pytest.raises(FormatError, match=match):
        source.array(source.proto.graph.initializer[0])


def test_entries_stand_once_and_a_model_of_bytes_has_no_folder(folder):
    twice = beside()
    twice.external_data.add(key="offset", value="0")
    twice.external_data.add(key="offset", value="4")
    nowhere = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    source = opened(folder, twice, nowhere)
    for proto in source.proto.graph.initializer:
        with pytest.raises(FormatError, match="tensor 'w' has unknown or repeated entries of external data"):
            source.array(proto)
    source = open_source(model(beside()))
    with pytest.raises(FormatError, match="tensor 'w' lies in another file, but the model was given as bytes"):
        source.array(source.proto.graph.initializer[0])


def test_each_file_is_mapped_once_and_adds_to_the_allowance_once(folder):
    source = opened(folder, beside(length=8), beside(offset=8, length=8))
    before = source.budget.file_nbytes
    for proto in source.proto.graph.initializer:
        source.array(proto)
    assert source.budget.file_nbytes - before == 24
    assert source.allowance().file_nbytes == len(source.data) + 24
    source.forget()
    assert source.array(source.proto.graph.initializer[1]).tolist() == [2, 3]


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "INT64", "UINT8", "UINT4", "FLOAT16"])
def test_large_tensors_are_read_from_the_file(kind, raw):
    number = getattr(TensorProto, kind)
    values = np.arange(3000).reshape(30, 100) % 16
    if raw and kind != "UINT4":
        tensor = numpy_helper.from_array(values.astype(helper.tensor_dtype_to_np_dtype(number)), "w")
    else:
        tensor = helper.make_tensor("w", number, values.shape, values.reshape(-1))
    source = open_source(model(tensor))
    assert source.proto.graph.initializer[0].HasField("segment")
    got = source.array(source.proto.graph.initializer[0])
    assert got.shape == (30, 100)
    np.testing.assert_array_equal(got, values)
    assert source.array(numpy_helper.from_array(values, "small")).shape == (30, 100)


def test_data_that_stands_twice_or_in_another_field_is_refused():
    source = open_source(model(helper.make_tensor("w", 7, [2000], range(2000))))
    proto = source.proto.graph.initializer[0]
    proto.raw_data = b"1"
    with pytest.raises(FormatError, match="tensor 'w' has its data twice"):
        source.array(proto)
    proto.ClearField("raw_data")
    proto.data_type = 1
    with pytest.raises(FormatError, match="tensor 'w' of float32 holds its values in a field of another dtype"):
        source.array(proto)


def test_errors_name_the_file_as_it_was_given():
    source = Source(None, memoryview(b""), None, label="some/net.onnx")
    kinds = [(FormatError, FormatError), (PositionError, PositionError), (KeyError, FormatError)]
    for error, want in kinds:
        with pytest.raises(want, match="^some/net.onnx: .*why") as caught, source.named():
            raise error("why")
        assert type(caught.value) is want
    for error in (InputError, UnavailableError):
        with pytest.raises(error, match="^why"), source.named():
            raise error("why")
    with pytest.raises(UnknownError) as caught, source.named():
        raise UnknownError("why", {"x": 3}, ["c"], ["m"])
    error = caught.value
    assert (error.reason, error.shapes, error.constants, error.maximum) == (
        "some/net.onnx: why",
        {"x": 3},
        ("c",),
        ("m",),
    )


def test_what_is_no_model_is_refused(tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"\x0a\xff")
    with pytest.raises(FormatError, match=r"net\.onnx: "):
        open_source(tmp_path / "net.onnx")
    with pytest.raises(FormatError, match="^bytes: this is not an ONNX model: it has no graph"):
        open_source(b"", "bytes")
    with pytest.raises(FormatError, match="^the model: this is not an ONNX model"):
        open_source(onnx.ModelProto(producer_name="x").SerializeToString())
    raw = bytearray(model())
    source = open_source(raw)
    assert source.data.readonly and source.folder is None and source.proto.graph.name == "g"


def test_parsing_is_charged_again_with_each_allowance():
    source = open_source(model(*[numpy_helper.from_array(np.ones(3), f"w{i}") for i in range(50)]))
    assert source.parsed_nbytes > 50 * 48
    before = source.budget.nbytes
    assert source.allowance().nbytes == before


@pytest.mark.parametrize("text", ["", "-1", "1.0", "0x1", "1" * 19, "\u0661", " 1", "1_0"])
def test_a_number_of_bytes_is_decimal(text):
    with pytest.raises(FormatError, match="tensor 'w' has .* where a number of bytes belongs"):
        parse_offset(text, "w")
    assert parse_offset("007", "w") == 7 and parse_offset("9" * 18, "w") == 10**18 - 1


def test_strings_beside_large_data_stand_twice():
    """Strings are no data that is left in the file, so both are there."""
    tensor = numpy_helper.from_array(np.zeros(1000, "f4"), "w")
    tensor.string_data.append(b"text")
    source = open_source(model(tensor))
    assert source.proto.graph.initializer[0].HasField("segment")
    with pytest.raises(FormatError, match="tensor 'w' has its data twice"):
        source.array(source.proto.graph.initializer[0])
