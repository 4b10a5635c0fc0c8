"""TensorProtos as arrays: every field and dtype, ends of integer ranges, sizes that do not fit, sparse tensors."""

import ml_dtypes
import numpy as np
import pytest
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper

import cgraph as cg
from cgraph.dtypes.convert import resolve_dtype
from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx import tensors
from cgraph.formats.onnx.tensors import (
    DTYPE,
    MOST_AXES,
    array_of,
    dtype_of_number,
    from_package,
    narrow_exactly,
    number_of_dtype,
    numbers_of,
    of_package,
    raw_array,
    shape_of_proto,
    sparse_array,
    stored_dtype,
    widen,
)
from cgraph.formats.onnx.wire import encode_varint
from cgraph.ops.leaf import HASHED_NBYTES, Const, ConstOp, Var

PLAIN = {number: name for number, name in DTYPE.items() if resolve_dtype(name).names is None}


def ends(name):
    dtype = np.dtype(name)
    if dtype.kind == "b":
        return np.array([True, False])
    bounds = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    return np.array([bounds.min, 0, 1, bounds.max], dtype)


@pytest.mark.parametrize("number", PLAIN)
@pytest.mark.parametrize("raw", [True, False])
def test_the_ends_of_every_dtype_come_back(number, raw):
    want = ends(PLAIN[number])
    proto = helper.make_tensor("w", number, [1, want.size], want.tobytes() if raw else want, raw=raw)
    got = array_of(proto)
    assert got.dtype == want.dtype == dtype_of_number(number) and number_of_dtype(got.dtype) == number
    np.testing.assert_array_equal(got, want[None])


@pytest.mark.parametrize("number", [17, 18, 19, 20])
@pytest.mark.parametrize("raw", [True, False])
def test_all_floats_of_8_bits_come_back(number, raw):
    bits = np.arange(256, dtype="u1")
    data = {"raw_data": bits.tobytes()} if raw else {"int32_data": bits}
    x = Const(array_of(TensorProto(data_type=number, dims=[256], **data)))
    want = bits.view(helper.tensor_dtype_to_np_dtype(number)).astype("f4")
    np.testing.assert_array_equal(cg.compile(widen(x), [])(), want)
    assert stored_dtype(widen(x)) == x.dtype == dtype_of_number(number)


def test_bits_of_bfloat16_are_its_number():
    proto = TensorProto(data_type=16, dims=[2], int32_data=[0x3FC0, 0xC000])
    x = Const(array_of(proto))
    np.testing.assert_array_equal(cg.compile(x.astype("float32"), [])(), [1.5, -2])
    wide = widen(x)
    assert isinstance(wide.op, ConstOp) and wide.op.array.tolist() == [1.5, -2]
    assert widen([x, None, 3])[1:] == [None, 3] and widen([x])[0].dtype == np.float32
    plain, opened = Const(np.ones(2, "f4")), Var((2,), "bfloat16")
    assert widen(plain) is plain and widen(opened).dtype == np.float32 and widen(opened).operands == (opened,)


@pytest.mark.parametrize(("number", "values"), [(3, [128]), (3, [-129]), (2, [-1]), (2, [256]), (9, [2]), (4, [65536])])
def test_values_that_a_dtype_cannot_represent_are_refused(number, values):
    proto = TensorProto(name="w", data_type=number, dims=[1], int32_data=values)
    with pytest.raises(FormatError, match=f"tensor 'w' holds values that {DTYPE[number]} cannot represent"):
        array_of(proto)


def test_floats_are_rounded_and_infinities_stay():
    got = narrow_exactly(np.array([1e-50, np.inf, np.nan]), np.dtype("f4"), "w")
    np.testing.assert_array_equal(got, np.array([0, np.inf, np.nan], "f4"))


def test_data_and_shape_must_agree():
    with pytest.raises(FormatError, match=r"tensor 'w' float32\[2, 2\] holds 3 values"):
        array_of(TensorProto(name="w", data_type=1, dims=[2, 2], float_data=[1, 2, 3]))
    with pytest.raises(FormatError, match=r"tensor 'w' float64\[3\] needs 24 bytes, 16 are stored"):
        array_of(TensorProto(name="w", data_type=11, dims=[3], raw_data=bytes(16)))
    with pytest.raises(FormatError, match="tensor 'w' has its data in another file"):
        array_of(TensorProto(name="w", data_type=1, data_location=TensorProto.EXTERNAL))
    assert array_of(TensorProto(data_type=1, dims=[0, 3])).shape == (0, 3)
    assert array_of(TensorProto(data_type=7, int64_data=[5])).shape == ()


def test_shapes_are_of_this_world():
    assert shape_of_proto(TensorProto(dims=[1] * MOST_AXES)) == (1,) * MOST_AXES
    assert shape_of_proto(TensorProto(dims=[2**59, 0])) == (2**59, 0)
    with pytest.raises(FormatError, match="tensor 'w' has 65 axes; up to 64"):
        shape_of_proto(TensorProto(name="w", dims=[1] * (MOST_AXES + 1)))
    for dims in ([-1], [2, -3], [2**60, 2**4], [2**60, 0, 2**4]):
        with pytest.raises(FormatError, match="tensor 'w' has the impossible shape"):
            shape_of_proto(TensorProto(name="w", dims=dims))


def test_dtypes_that_are_not_supported_are_named():
    with pytest.raises(FormatError, match="tensor 'w' has ONNX's dtype STRING. Use one of float32, uint8"):
        dtype_of_number(TensorProto.STRING, "tensor 'w'")
    with pytest.raises(FormatError, match="tensor has ONNX's dtype 99"):
        dtype_of_number(99)
    with pytest.raises(FormatError, match="ONNX files cannot contain complex128 here"):
        number_of_dtype(np.dtype("complex128"))


def test_raw_arrays_share_their_bytes_in_little_endian_order():
    raw = bytearray(np.array([1, 258], "<i2").tobytes())
    got = raw_array(memoryview(raw), np.dtype("i2"), (2, 1), "w")
    raw[0] = 7
    assert got.tolist() == [[7], [258]]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32", "uint64", "bool"])
def test_packed_numbers_are_decoded(dtype):
    values = [0, 1, int(ends(dtype)[-1]), int(ends(dtype)[0])]
    number = {name: number for number, name in DTYPE.items()}[dtype]
    raw = b"".join(encode_varint(v % 2**64) for v in values)
    proto = TensorProto(name="w", data_type=number, dims=[2, 2])
    allowance = Allowance(0)
    before = allowance.nbytes, allowance.work
    got = numbers_of(memoryview(raw), np.dtype(dtype), proto, allowance)
    assert got.tolist() == values and got.dtype == dtype
    assert before[0] - allowance.nbytes == 4 * np.dtype(dtype).itemsize and before[1] - allowance.work == 32 * len(raw)
    with pytest.raises(FormatError, match=r"tensor 'w' .*\[2, 2\] holds 5 values"):
        numbers_of(memoryview(raw + b"\x01"), np.dtype(dtype), proto, Allowance(0))


def test_values_of_the_package_onnx_are_of_its_dtypes():
    half = Const(np.ones(2, "f4"), "bfloat16").op.array
    assert of_package(half, 16).dtype == ml_dtypes.bfloat16 and of_package(half, 16).tolist() == [1, 1]
    plain = np.ones(2, "f2")
    assert of_package(plain, 1) is plain and from_package(plain) is plain and from_package(None) is None
    stored = {"uint4": "uint8", "int4": "int8", "float4_e2m1fn": "float8_e4m3fn", "float8_e8m0fnu": "bfloat16"}
    stored |= {"uint2": "uint8", "int2": "int8"}
    for number, (name, want) in zip((21, 22, 23, 24, 25, 26), stored.items()):
        few = np.array([1, 0.5], getattr(ml_dtypes, name))
        held = from_package(few)
        assert held.dtype == resolve_dtype(want) and of_package(held, number).dtype == few.dtype
        assert of_package(held, number).tobytes() == few.tobytes()


def sparse(dims, values, indices):
    make = numpy_helper.from_array
    return SparseTensorProto(dims=dims, values=make(np.array(values), "w"), indices=make(np.array(indices), "i"))


@pytest.mark.parametrize("indices", [[5, 2], [[1, 2], [0, 2]]])
def test_a_sparse_tensor_is_zero_beside_its_values(indices):
    got = sparse_array(sparse([2, 3], [7.0, 8.0], indices), array_of, Allowance(0))
    assert got.tolist() == [[0, 0, 8], [0, 0, 7]] and got.dtype == np.float64


def test_of_several_values_at_one_index_of_a_sparse_tensor_the_last_counts():
    """The standard has each index once; whoever repeats one gets an element of the file, not a sum."""
    assert sparse_array(sparse([3], [7.0, 8.0, 9.0], [2, 1, 2]), array_of, Allowance(0)).tolist() == [0, 8, 9]


@pytest.mark.parametrize(
    ("dims", "values", "indices", "match"),
    [
        ([2, 3], [7.0], [6], "indices outside"),
        ([2, 3], [7.0], [-1], "indices outside"),
        ([2, 3], [7.0], [[0, 3]], "indices outside"),
        ([2, 3], [7.0], [[-1, 0]], "indices outside"),
        ([2, 3], [7.0], [[0, 0, 0]], "indices outside"),
        ([2, 3], [7.0, 8.0], [1], "indices outside"),
        ([2, 3], [7.0], np.array([1], "i4"), "indices of int32 and values of 1 axes"),
        ([2, 3], [[7.0]], [1], "values of 2 axes"),
        ([-2, 3], [7.0], [1], "impossible shape"),
        ([1] * 65, [7.0], [0], "has 65 axes"),
        ([2**60, 2**4], [7.0], [0], "impossible shape"),
        ([2**60, 0, 2**4], [], np.zeros(0, "i8"), "impossible shape"),
        ([0, 3], [7.0], [0], "indices outside"),
        ([2**20, 2**20], [7.0], [0], "would take"),
    ],
)
def test_a_sparse_tensor_that_does_not_fit_is_refused(dims, values, indices, match):
    with pytest.raises(FormatError, match=f"sparse tensor 'w'.*{match}"):
        sparse_array(sparse(dims, values, indices), array_of, Allowance(0))


def test_reading_costs_the_values_twice():
    assert tensors.nbytes_of(TensorProto(raw_data=bytes(10))) == (20, 0)
    assert tensors.nbytes_of(TensorProto(float_data=[1, 2], uint64_data=[3], int32_data=[4])) == (64, 128)


def test_a_sparse_tensor_may_have_many_axes_or_no_elements():
    got = sparse_array(sparse([1] * (MOST_AXES - 1) + [2], [7.0], [1]), array_of, Allowance(0))
    assert got.shape == (1,) * (MOST_AXES - 1) + (2,) and got.reshape(-1).tolist() == [0, 7]
    for shape in ([0], [2, 0, 3], [0, 2**20, 2**20]):
        empty = sparse(shape, np.zeros(0), np.zeros(0, "i8"))
        assert sparse_array(empty, array_of, Allowance(0)).shape == tuple(shape)


def test_small_constants_are_widened_once_and_larger_ones_in_the_graph():
    for count, is_constant in ((HASHED_NBYTES // 2, True), (HASHED_NBYTES // 2 + 1, False)):
        x = Const(np.arange(count, dtype="f4"), "bfloat16")
        wide = widen(x)
        assert isinstance(wide.op, ConstOp) is is_constant and wide.dtype == np.float32
        want = x.op.array.view("u2").astype("u4") << 16
        np.testing.assert_array_equal(cg.compile(wide, [])(), want.view("f4"))
