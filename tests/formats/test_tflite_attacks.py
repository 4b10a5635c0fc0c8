"""Hostile TFLite files: offsets that lead astray, sizes that lie, much that is described in few bytes."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.errors import FormatError
from cgraph.formats.tflite import load
from cgraph.formats.tflite.wire import LONGEST, Table
from tests.support.hostile import flipped, harmless, refused
from tests.support.tflite_models import Network, ints, written


def small():
    """x + w, then its shape again."""
    net = Network()
    y = net.op("ADD", [net.input((2, 3)), net.constant(np.ones((2, 3), "float32"))])
    return net, net.op("RESHAPE", [y, net.constant(np.array([3, 2], "int32"))])


def model():
    net, y = small()
    return net.bytes(y)


def test_the_small_model_is_read():
    found = load(model())
    np.testing.assert_array_equal(found.compile()(np.ones((2, 3), "f4"))[0], np.full((3, 2), 2.0))
    assert [x.name for x in found.inputs] == ["t0"] and found.names == ("t4",)


def test_a_file_is_read_as_its_bytes_are(tmp_path):
    path = tmp_path / "net.tflite"
    path.write_bytes(model())
    np.testing.assert_array_equal(load(path).compile()(np.ones((2, 3), "f4"))[0], np.full((3, 2), 2.0))
    assert load(path).values["t2"].where == "net.tflite:0 in t2"


def test_a_file_that_is_cut_off_is_refused_or_read():
    """Anywhere: what is left may be padding alone."""
    whole = model()
    for size in range(len(whole)):
        harmless(load, whole[:size])


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_changed_bytes_give_a_model_or_a_typed_error(flips):
    harmless(load, flipped(model(), flips))


def changed(path, value):
    """The small model with the field at a path of its tables replaced."""
    net, y = small()
    root = at = net.root(y)
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return written(root)


TENSOR, CONSTANT, OPERATOR, BUFFER = (2, 0, 0, 0), (2, 0, 0, 1), (2, 0, 3, 0), (4, 1)
REFUSED = {
    "another identifier": (b"\x08\0\0\0TFL2" + bytes(40), "TFL3"),
    "nothing": (b"", "TFL3"),
    "a root outside": (struct.pack("<I4s", 2**31, b"TFL3"), "The file is damaged"),
    "a vtable of odd size": (struct.pack("<I4siHH", 8, b"TFL3", -4, 5, 4), "vtable"),
    "a vtable in front of the file": (struct.pack("<I4si", 8, b"TFL3", 2**30), "The file is damaged"),
    "no graph": (changed((2,), []), "no graph"),
    "a tensor of 2**62 bytes": (changed((*TENSOR, 0), ints(2**31 - 1, 2**31 - 1)), "impossible shape"),
    "a negative axis": (changed((*TENSOR, 0), ints(2, -3)), "impossible shape"),
    "forty axes": (changed((*TENSOR, 0), ints(*[1] * 40)), "impossible shape"),
    "a text": (changed((*TENSOR, 1), ("b", 5)), "STRING"),
    "a dtype that there is not": (changed((*TENSOR, 1), ("b", 99)), "99"),
    "more bytes than its shape": (changed((*CONSTANT, 0), ints(2, 2)), "needs 16 bytes, 24 are stored"),
    "fewer bytes than its shape": (changed((*CONSTANT, 0), ints(2, 3000)), "needs 24000 bytes, 24 are stored"),
    "a buffer that there is not": (changed((*CONSTANT, 2), ("I", 77)), "buffer 77"),
    "an operator without a code": (changed((*OPERATOR, 0), ("I", 9)), "code 9"),
    "an operator that there is not": (changed((1, 0, 3), ("i", 210)), "number 210"),
    "an operator that is not known": (changed((1, 0, 3), ("i", 119)), "WHILE"),
    "a tensor that there is not": (changed((*OPERATOR, 1), ints(0, 55)), "tensor 55"),
    "an operand that nobody computes": (changed((*OPERATOR, 1), ints(0, 4)), "before it is computed"),
    "an operand too few": (changed((*OPERATOR, 1), ints(0)), "operand 1 is missing"),
    "a result too many": (changed((*OPERATOR, 2), ints(2, 4)), "2 results, not 1"),
    "an output that nobody computes": (changed((2, 0, 3), []), "before it is computed"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_wrong_is_said(kind):
    data, match = REFUSED[kind]
    refused(load, data, match)


def test_options_of_another_operator_are_refused():
    net, y = small()
    root = net.root(y)
    root[2][0][3][0] |= {3: ("B", 1), 4: type(root)({0: ("b", 0)})}
    refused(load, written(root), "options 1, not 11")


def network(build):
    """The model of the operators that a function adds."""
    net = Network()
    return net.bytes(build(net))


def whole(net, *numbers):
    return net.constant(np.array(numbers, "int32"))


def test_what_is_computed_while_reading_is_limited():
    """A shape that is the sum of 2**31 numbers."""

    def build(net):
        many = net.op("FILL", [whole(net, 2**31 - 1), net.constant(np.int32(1))], "int32")
        total = net.op("SUM", [many, whole(net, 0)], "int32", keepdims=True)
        return net.op("RESHAPE", [net.input((2,)), total])

    refused(load, network(build), "must be constant")


def test_a_range_of_many_numbers_is_refused():
    numbers = (0, 2**31 - 1, 1)
    made = network(lambda net: net.op("RANGE", [net.constant(np.int32(n)) for n in numbers], "int32"))
    refused(load, made, "computed elements while reading")


def test_one_operator_listed_a_million_times_is_refused():
    """A vector of offsets that all lead to one table takes four bytes for each."""
    net, y = small()
    whole = net.bytes(y)
    graph = Table(memoryview(whole), int(Table(memoryview(whole), struct.unpack_from("<I", whole)[0]).places(2)[0]))
    at, count, begin = graph.place(3), 1_000_000, len(whole) + -len(whole) % 4
    last = begin + 4 + 4 * count  # an operator without fields, behind its vtable
    offsets = last + 4 - (begin + 4 + 4 * np.arange(count))
    file = bytearray(whole) + bytes(begin - len(whole)) + struct.pack("<I", count) + offsets.astype("<u4").tobytes()
    file += struct.pack("<HHi", 4, 4, 4)
    struct.pack_into("<I", file, at, begin - at)
    refused(load, bytes(file), "nodes while reading")


def test_weights_that_many_operators_turn_are_charged():
    """Each convolution makes a copy of its filters: forty of one constant take forty times its bytes."""
    net = Network()
    zeros = [net.constant(np.zeros(shape, "float32")) for shape in ((256, 3, 3, 256), 256)]
    x = net.input((1, 4, 4, 256))
    for _ in range(40):
        x = net.op("CONV_2D", [x, *zeros], stride_w=1, stride_h=1)
    refused(load, net.bytes(x), "bytes while reading")


def test_windows_of_an_input_of_any_size_are_charged():
    """How many elements of each window lie inside is counted while reading."""
    net = Network()
    how = {"scale": 0.1, "zero": 0}
    x = net.input((1, 2**29, 1, 1), "int8", **how)
    options = {"window_h": 2, "window_w": 1, "stride_h": 1, "stride_w": 1}
    refused(load, net.bytes(net.op("AVERAGE_POOL_2D", [x], {"dtype": "int8", **how}, **options)), "while reading")


def test_long_names_are_read_in_part():
    net, y = small()
    root = net.root(y)
    root[2][0][0][0][3] = "x" * 10**6
    assert [len(x.name) for x in load(written(root)).inputs] == [LONGEST]


def test_data_behind_the_tables_is_read_where_it_lies():
    """Large models keep their buffers behind all tables, by offset and size."""
    net, y = small()
    root = net.root(y)
    tail = len(written(root)) + 64
    root[4][1] = type(root[4][1])({1: ("Q", tail), 2: ("Q", 24)})
    file = written(root)
    file += bytes(tail - len(file)) + np.full((2, 3), 5, "f4").tobytes()
    np.testing.assert_array_equal(load(file).compile()(np.ones((2, 3), "f4"))[0], np.full((3, 2), 6.0))
    refused(load, file[:-1], "The file is damaged")


def test_the_file_is_named():
    with pytest.raises(FormatError, match="^model: "):
        load(b"")
