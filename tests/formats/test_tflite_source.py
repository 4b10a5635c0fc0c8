"""Tensors of TFLite files: shapes, dtypes, buffers, scales and zero points, and each that is not read, by name."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.tflite.schema import RESOURCE
from cgraph.formats.tflite.source import MOST_AXES, TfliteSource, dtype_of_number
from tests.support.tflite_models import NUMBER, Network, Table, ints, written


def opened(change=lambda net: None, root=lambda table: None):
    """A file of one constant [[1, 2, 3], [4, 5, 6]], its network and root changed before it is written."""
    net = Network()
    number = net.constant(np.arange(1, 7, dtype="i4").reshape(2, 3))
    change(net)
    table = net.root(number)
    root(table)
    return TfliteSource(memoryview(written(table)), "net.tflite")


def test_a_constant_is_a_view_of_the_file():
    source = opened()
    tensor = source.tensor(0)
    assert (tensor.number, tensor.name, tensor.shape, tensor.dtype) == (0, "t0", (2, 3), np.int32)
    assert tensor.array.tolist() == [[1, 2, 3], [4, 5, 6]] and tensor.quantised is None
    assert np.shares_memory(tensor.array, np.frombuffer(source.data, "u1")) and source.tensor(0) is tensor
    for index in (-1, 1):
        with pytest.raises(FormatError, match=f"tensor {index} is outside the 1 tensors of the file"):
            source.tensor(index)


def change(field, value):
    return lambda net: net.tensors[0].__setitem__(field, value)


REFUSED = {
    "a negative size": (change(0, ints(-1, 3)), r"tensor 't0' has the impossible shape \[-1, 3\]"),
    "many axes": (change(0, ints(*[1] * (MOST_AXES + 1))), "impossible shape"),
    "a huge size": (change(0, ints(*[2**30] * 3)), "impossible shape"),
    "another size": (change(0, ints(2, 2)), r"tensor 't0' int32\[2, 2\] needs 16 bytes, 24 are stored"),
    "another dtype": (change(1, ("b", 4)), r"tensor 't0' int64\[2, 3\] needs 48 bytes, 24 are stored"),
    "text": (change(1, ("b", 5)), "tensor 't0' has the dtype STRING, which is not supported"),
    "no dtype": (change(1, ("b", 99)), "tensor 't0' has the dtype 99"),
    "a buffer": (change(2, ("I", 2)), "tensor 't0' lies in buffer 2 of 2"),
    "sparse": (change(6, Table()), "a sparse tensor of 2 axes and 0 axes of blocks lacks levels"),
    "elsewhere": (change(10, ("I", 1)), "tensor 't0' is in another file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_named_with_its_tensor(name):
    act, match = REFUSED[name]
    with pytest.raises(FormatError, match=match):
        opened(act).tensor(0)


def test_a_tensor_may_lack_its_name_shape_and_contents():
    def bare(net):
        net.tensors[0] = Table({1: ("b", 2)})

    tensor = opened(bare).tensor(0)
    assert (tensor.name, tensor.shape, tensor.array) == ("tensor0", (), None)
    assert opened(change(0, ints(*[1] * (MOST_AXES - 2), 2, 3))).tensor(0).shape[-2:] == (2, 3)


def described(shape=(2, 3), dtype="int8", **scale):
    net = Network()
    number = net.tensor(shape, dtype, **scale)
    return TfliteSource(memoryview(written(net.root(number))), "net").tensor(0)


@pytest.mark.parametrize("offset", [0, 1])
def test_offsets_that_mean_none_leave_the_contents_in_the_table(offset):
    """An offset of 0 is absent; 1 is what writers put before they know it."""

    def with_place(net):
        net.buffers[-1] |= {1: ("Q", offset), 2: ("Q", 24)}

    assert opened(with_place).tensor(0).array.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_contents_behind_the_file_are_those_at_the_offset():
    behind = np.arange(11, 17, dtype="i4").tobytes()

    def elsewhere(offset):
        def change(net):
            net.buffers[-1] = Table({1: ("Q", offset), 2: ("Q", len(behind))})

        return change

    net = Network()
    number = net.constant(np.zeros((2, 3), "i4"))
    elsewhere(2**32)(net)
    start = len(written(net.root(number)))
    elsewhere(start)(net)
    source = TfliteSource(memoryview(written(net.root(number)) + behind), "net.tflite")
    assert source.tensor(0).array.tolist() == [[11, 12, 13], [14, 15, 16]]


def test_scales_and_zero_points_of_one_or_of_an_axis():
    one = described(scale=0.5, zero=-3).quantised
    assert (one.scale, one.zero, one.is_signed) == (0.5, 125, True)
    assert described(dtype="uint8", scale=0.5, zero=3).quantised.zero == 3
    many = described(scale=[1.0, 2.0, 3.0], zero=(0, 1)).quantised
    assert many.axis == 1 and many.scales.tolist() == [1, 2, 3] and many.zeros.tolist() == [0]
    assert described(scale=[1.0, 2.0], zero=([1, 2], 0)).quantised.zeros.tolist() == [1, 2]
    assert described(dtype="float32", scale=0.5).quantised is None and described().quantised is None
    long = described(dtype="int32", scale=0.5)
    assert long.quantised is None and (long.integers.scale, long.integers.limits) == (0.5, (-(2**31), 2**31 - 1))
    words = described(dtype="int16", scale=0.5).quantised
    assert (words.is_wide, words.dtype, words.zero, words.limits) == (True, np.int16, 0, (-(2**15), 2**15 - 1))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"scale": 0.0}, "has scales that are not finite and positive"),
        ({"scale": np.inf}, "has scales that are not finite and positive"),
        ({"scale": [1.0, 2.0], "zero": (0, 1)}, r"\[2, 3\] has 2 scales along axis 1"),
        ({"scale": [1.0, 2.0], "zero": (0, 2)}, r"\[2, 3\] has 2 scales along axis 2"),
        ({"scale": 0.5, "zero": 128}, "has a zero point outside int8"),
        ({"scale": 0.5, "zero": -129}, "has a zero point outside int8"),
        ({"scale": 0.5, "zero": -1, "dtype": "uint8"}, "has a zero point outside uint8"),
        ({"scale": 0.5, "zero": 1 << 15, "dtype": "int16"}, "has a zero point outside int16"),
    ],
)
def test_scales_that_mean_nothing_are_refused(options, match):
    with pytest.raises(FormatError, match=f"tensor 't0' {match}"):
        described(**options)


@pytest.mark.parametrize("zero", [-128, 127])
def test_zero_points_reach_the_ends_of_their_dtype(zero):
    assert described(scale=0.5, zero=zero).quantised.zero == zero + 128


def test_operators_are_named_by_the_larger_of_two_numbers():
    codes = [
        Table({0: ("b", 0), 3: ("i", 0)}),
        Table({0: ("b", 127), 3: ("i", 128)}),
        Table({0: ("b", 19)}),
        Table({0: ("b", 32), 1: "mine", 3: ("i", 32)}),
        Table({0: ("b", 127), 3: ("i", 9999)}),
    ]
    source = opened(root=lambda table: table.__setitem__(1, codes))
    names = [source.operator_name(i) for i in range(5)]
    assert names == ["ADD", "CUMSUM", "RELU", "CUSTOM 'mine'", "number 9999"]
    with pytest.raises(FormatError, match="an operator has the code 5 of 5"):
        source.operator_name(5)


def test_what_is_no_model_is_refused():
    for data in (b"", b"\x10\0\0\0TFL2" + bytes(20)):
        with pytest.raises(FormatError, match="this is not a TFLite model: bytes 4 to 8 are"):
            TfliteSource(memoryview(data), "net")
    with pytest.raises(FormatError, match="this is not a TFLite model: it has no graph"):
        opened(root=lambda table: table.__setitem__(2, []))
    with pytest.raises(FormatError, match="tensor 'x' has the dtype COMPLEX128"):
        dtype_of_number(11, "x")
    assert dtype_of_number(9, "x") == np.int8 and dtype_of_number(RESOURCE, "x") == np.int32


@pytest.mark.parametrize(
    ("signature", "axes"),
    [(None, ()), ((), ()), ((2, 3), ()), ((-1, 3), (0,)), ((2, -1), (1,)), ((-1, -1), (0, 1)), ((-1,), ()),
     ((-1, 3, -1), ())],
)  # fmt: skip
def test_axes_are_open_where_a_signature_of_the_shape_has_no_size(signature, axes):
    """One of another number of axes says nothing."""
    tensor = opened(lambda net: None if signature is None else change(7, ints(*signature))(net)).tensor(0)
    assert tensor.open_axes == axes and tensor.shape == (2, 3)


def with_details(dtype, **fields):
    """A tensor whose table of scales has these fields: 2 scales, 3 zero points, 4 the kind of further details."""
    names = {"scales": 2, "zeros": 3, "kind": 4, "axis": 6}

    def change(net):
        net.tensors[0][1] = ("b", NUMBER[dtype])
        net.tensors[0][4] = Table({names[name]: x for name, x in fields.items()})
        net.tensors[0][2] = ("I", 0)

    return opened(change).tensor(0)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_scales_without_zero_points_are_around_0(dtype):
    form = with_details(dtype, scales=np.float32([0.5])).integers
    assert (form.scale, form.zeros.tolist(), form.zero) == (0.5, [0], 128 if dtype == "int8" else 0)
    many = with_details(dtype, scales=np.float32([1, 2]), axis=("i", 0)).integers
    assert many.scales.tolist() == [1, 2] and many.zeros.tolist() == [0] and many.axis == 0


@pytest.mark.parametrize("dtype", ["int8", "int32", "float32", "int64", "bool"])
@pytest.mark.parametrize("fields", [{}, {"zeros": np.array([3])}, {"scales": np.zeros(0, "f4")}], ids=str)
def test_a_table_without_scales_is_no_quantisation(dtype, fields):
    tensor = with_details(dtype, **fields)
    assert tensor.quantised is None and tensor.integers is None


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "float16"])
def test_scales_of_other_dtypes_say_nothing(dtype):
    tensor = with_details(dtype, scales=np.float32([0.5]), zeros=np.array([3]), kind=("B", 1))
    assert tensor.quantised is None and tensor.integers is None and tensor.dtype == dtype


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_further_details_of_a_quantisation_are_refused(dtype):
    assert with_details(dtype, scales=np.float32([0.5]), kind=("B", 0)).quantised.scale == 0.5
    with pytest.raises(FormatError, match="tensor 't0' is quantised in a way that is not supported. Use scales"):
        with_details(dtype, scales=np.float32([0.5]), kind=("B", 1))


@pytest.mark.parametrize(("scales", "zeros", "is_read"), [
    ((1.0, 2.0), (0, 0), True), ((1.0, 2.0), (5, 6), True), ((1.0, 2.0), (5,), True), ((1.0,), (5, 6), False),
    ((1.0, 2.0), (5, 5, 5), True), ((1.0, 2.0), (5, 5, 6), False), ((1.0, np.nan), (0,), False),
    ((1.0, -1.0), (0,), False), ((np.inf, 1.0), (0,), False), ((1.0, 0.0), (0,), False),
])  # fmt: skip
def test_each_scale_is_positive_and_has_a_zero_point(scales, zeros, is_read):
    fields = {"scales": np.float32(scales), "zeros": np.array(zeros), "axis": ("i", 0)}
    if is_read:
        form = with_details("int8", **fields).quantised
        same = len(set(zeros)) == 1
        assert form.scales.tolist() == list(scales) and form.zeros.tolist() == list(zeros[:1] if same else zeros)
        return
    with pytest.raises(FormatError, match="not finite and positive, or fewer zero points than scales"):
        with_details("int8", **fields)
