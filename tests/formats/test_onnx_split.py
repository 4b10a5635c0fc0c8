"""Large tensors left out of a serialised model: what stays, where the rest lies, what fields cost, how deep it goes."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx.split import CUT, DEEPEST, LARGE, MEMBER, MESSAGE, NUMBER, TEXT, WORK, kinds, split_model
from cgraph.formats.onnx.wire import encode_varint

NODE = helper.make_node("Add", ["x", "w"], ["y"], "the node", alpha=2.5, axes=[1, 2, 3])


def model(*tensors, doc=""):
    graph = helper.make_graph([NODE], "g", [], [], list(tensors), doc_string=doc)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def split(proto):
    """What is parsed of a model, and its bytes."""
    raw = proto if isinstance(proto, bytes) else proto.SerializeToString()
    return onnx.ModelProto.FromString(split_model(memoryview(raw), Allowance(0))), raw


@pytest.mark.parametrize(("count", "is_left_out"), [(LARGE // 4 - 1, False), (LARGE // 4, True)])
def test_raw_data_of_a_thousand_bytes_stays_in_the_file(count, is_left_out):
    values = np.arange(count, dtype="f4")
    before, tensor, behind = (numpy_helper.from_array(np.ones(3), "a"), numpy_helper.from_array(values, "w"), None)
    behind = numpy_helper.from_array(np.zeros(2), "b")
    proto = model(before, tensor, behind)
    got, raw = split(proto)
    place = got.graph.initializer[1]
    assert place.HasField("segment") is is_left_out and place.HasField("raw_data") is not is_left_out
    if is_left_out:
        field = raw[place.segment.begin : place.segment.end]
        assert field.endswith(values.tobytes()) and len(field) == values.nbytes + 3
        place.ClearField("segment")
        place.raw_data = values.tobytes()
    assert got == proto


@pytest.mark.parametrize(
    ("kind", "field"),
    [("FLOAT", "float_data"), ("INT64", "int64_data"), ("INT32", "int32_data"), ("DOUBLE", "double_data")],
)
def test_numbers_of_every_field_are_left_out(kind, field):
    tensor = helper.make_tensor("w", getattr(TensorProto, kind), [2000], [1] * 2000)
    assert len(getattr(tensor, field)) == 2000
    got, raw = split(model(tensor))
    place = got.graph.initializer[0]
    assert place.HasField("segment") and not len(getattr(place, field)) and list(place.dims) == [2000]
    whole = onnx.TensorProto.FromString(raw[place.segment.begin : place.segment.end])
    assert list(getattr(whole, field)) == [1] * 2000


def test_messages_that_no_importer_reads_are_not_parsed():
    """All else of the model is; each range of omitted fields side by side is charged once."""
    proto = model(numpy_helper.from_array(np.ones(3), "w"))
    expected = onnx.ModelProto.FromString(proto.SerializeToString())
    entries = {f"{i}": "text " * 9 for i in range(200)}
    for part in (proto, proto.graph, proto.graph.node[0], proto.graph.initializer[0]):
        helper.set_model_props(part, entries)
    proto.graph.value_info.extend(helper.make_tensor_value_info(f"v{i}", 1, [1, "n"]) for i in range(200))
    proto.graph.quantization_annotation.add(tensor_name="w").quant_parameter_tensor_names.add(key="SCALE", value="s")
    proto.training_info.add().algorithm.node.append(NODE)
    got, raw = split(proto)
    assert got == expected and len(raw) > 40_000
    ranges = 4  # of the node, the tensor, the graph and the model
    assert cost(raw)[0] == cost(expected.SerializeToString())[0] + ranges * CUT


def test_data_in_two_fields_is_left_to_its_reader():
    tensor = numpy_helper.from_array(np.arange(500, dtype="f4"), "w").SerializeToString()
    twice = tensor + b"\x4a" + encode_varint(2000) + bytes(2000)
    graph = b"\x2a" + encode_varint(len(twice)) + twice
    got, _ = split(b"\x3a" + encode_varint(len(graph)) + graph)
    assert not got.graph.initializer[0].HasField("segment") and len(got.graph.initializer[0].raw_data) == 2000


def test_long_documentation_is_left_out_and_short_stays():
    for length in (LARGE - 1, LARGE):
        got, _ = split(model(doc="d" * length))
        assert len(got.graph.doc_string) == (length if length < LARGE else 0) and got.graph.node[0] == NODE


def test_a_file_in_segments_is_refused():
    tensor = numpy_helper.from_array(np.ones(3), "w")
    tensor.segment.begin = 0
    with pytest.raises(FormatError, match="a tensor in segments is not supported"):
        split(model(tensor))


def nested(depth):
    """A type of sequences of sequences, below ModelProto, GraphProto and ValueInfoProto: two messages for each."""
    kind = onnx.TypeProto()
    at = kind
    for _ in range(depth):
        at = at.sequence_type.elem_type
    at.tensor_type.elem_type = 1
    body = b"\x12" + encode_varint(kind.ByteSize()) + kind.SerializeToString()
    for tag in (b"\x5a", b"\x3a"):
        body = tag + encode_varint(len(body)) + body
    return body


def test_messages_have_a_deepest_one():
    # the graph, the value, its type and the tensor type are 4; each sequence adds 2
    split_model(memoryview(nested((DEEPEST - 4) // 2)), Allowance(0))
    with pytest.raises(FormatError, match=f"messages are nested more than {DEEPEST} deep"):
        split_model(memoryview(nested((DEEPEST - 4) // 2 + 1)), Allowance(0))


def cost(raw):
    allowance = Allowance(0)
    before = allowance.nbytes, allowance.work
    split_model(memoryview(raw), allowance)
    return before[0] - allowance.nbytes, before[1] - allowance.work


def test_fields_are_charged_by_what_protobuf_makes_of_them():
    assert cost(b"") == (0, 0)
    assert cost(b"\x08\x07") == (NUMBER, WORK)  # the version of the format
    assert cost(b"\x12\x03abc") == (TEXT + 2 * 3, WORK)  # a text
    graph = kinds()["onnx.GraphProto"].nbytes
    assert cost(b"\x3a\x00") == (graph, WORK)
    assert graph == MESSAGE + MEMBER * len(onnx.GraphProto.DESCRIPTOR.fields)
    tensor = kinds()["onnx.TensorProto"].nbytes
    for body, nbytes in (
        (b"\x0a\x03\x01\x02\x03", TEXT + 3 + 3 * NUMBER),  # three lengths
        (b"\x22\x08" + bytes(8), TEXT + 4 * 8),  # two floats
        (b"\x4a\x08" + bytes(8), TEXT + 2 * 8),  # bytes
    ):
        raw = b"\x2a" + bytes([len(body)]) + body
        assert cost(b"\x3a" + bytes([len(raw)]) + raw) == (graph + tensor + nbytes, 3 * WORK)


def test_many_fields_are_refused_before_they_are_parsed():
    allowance = Allowance(0)
    allowance.nbytes = 10 * NUMBER
    split_model(memoryview(b"\x08\x07" * 10), allowance)
    allowance.nbytes = 10 * NUMBER
    with pytest.raises(FormatError, match="its parsed form would take"):
        split_model(memoryview(b"\x08\x07" * 11), allowance)
