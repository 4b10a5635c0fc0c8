"""Conversion of TensorProtos to arrays, with checks of dtypes and sizes."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from cgraph.dtypes.convert import FLOAT32, convert, is_storage, name_of, resolve_dtype
from cgraph.dtypes.storage import BY_DTYPE
from cgraph.errors import FormatError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx.onnx_messages import messages
from cgraph.formats.onnx.wire import chunks_of_numbers, count_of_numbers
from cgraph.ir.graph import Node
from cgraph.ir.spec import LARGEST
from cgraph.ops.arithmetic import Cast, astype
from cgraph.ops.leaf import HASHED_NBYTES, Const, ConstOp

DTYPE = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16",
    17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
}  # fmt: skip
FIRST_FLOAT8 = 17
NUMBER = {resolve_dtype(name): number for number, name in DTYPE.items() if number < FIRST_FLOAT8}
"""ONNX's numbers of the dtypes that written files may have: floats of 8 bits came with opset 19."""
FLOAT4, POWERS = 23, 24
"""ONNX's numbers of FLOAT4E2M1 and FLOAT8E8M0."""
BITS = {21: 4, 22: 4, FLOAT4: 4, POWERS: 8, 25: 2, 26: 2}
"""Bits of the dtypes that `cgraph.formats.onnx.small` reads: UINT4, INT4, FLOAT4E2M1, FLOAT8E8M0, UINT2, INT2."""
STORED_AS = {21: "uint8", 22: "int8", FLOAT4: "float8_e4m3fn", POWERS: "bfloat16", 25: "uint8", 26: "int8"}
"""The dtypes that represent their values exactly."""
PACKAGE = {21: "uint4", 22: "int4", FLOAT4: "float4_e2m1fn", POWERS: "float8_e8m0fnu", 25: "uint2", 26: "int2"}
"""Their names in ml_dtypes."""
MOST_AXES = 64
_FIELD = {"float32": "float_data", "float64": "double_data", "int64": "int64_data", "uint64": "uint64_data"}
_FIELD |= {"uint32": "uint64_data"}


def dtype_of_number(number: int, what: str = "tensor") -> np.dtype:
    """Return the NumPy dtype of ONNX's number. FormatError if it is not supported."""
    if number not in DTYPE:
        raise FormatError(f"{what} has ONNX's dtype {dtype_name(number)}. Use one of {', '.join(DTYPE.values())}")
    return resolve_dtype(DTYPE[number])


def number_of_dtype(dtype: np.dtype) -> int:
    """Return ONNX's number of a NumPy dtype. FormatError if files of cgraph cannot contain it."""
    if dtype not in NUMBER:
        raise FormatError(
            f"ONNX files cannot contain {name_of(dtype)} here. Convert values with astype, or save with cgraph's own "
            "format (Function.save)"
        )
    return NUMBER[dtype]


def dtype_name(number: int) -> str:
    """Return ONNX's name of a dtype, such as ``FLOAT16``."""
    try:
        return messages().TensorProto.DataType.Name(number)
    except ValueError:
        return str(number)


def widen(x: Any) -> Any:
    """Widen a value of a storage dtype to float32, for importers. Small constants are converted once, except those of 8
    bits, whose dtype importers of quantisation ask for (`stored_dtype`).
    """
    if isinstance(x, list):
        return [widen(item) for item in x]
    if not isinstance(x, Node) or not is_storage(x.dtype):
        return x
    if isinstance(x.op, ConstOp) and x.nbytes <= HASHED_NBYTES and not is_float8(x.dtype):
        return Const(convert(x.op.array, FLOAT32), name=x.op.label)
    return astype(x, FLOAT32)


def is_float8(dtype: np.dtype) -> bool:
    """Return True for a float of 8 bits."""
    return is_storage(dtype) and dtype.itemsize == 1


def stored_dtype(x: Node) -> np.dtype:
    """Return the dtype of a value before `widen`."""
    return x.operands[0].dtype if isinstance(x.op, Cast) and is_storage(x.operands[0].dtype) else x.dtype


def of_package(x: np.ndarray, number: int = 0) -> np.ndarray:
    """Convert an array, perhaps of a dtype number, to the onnx package's dtypes: ml_dtypes' where NumPy has none."""
    storage = BY_DTYPE.get(x.dtype)
    is_foreign = storage is not None and not storage.is_native
    if not is_foreign and number not in PACKAGE:
        return x
    import ml_dtypes

    x = x.view(getattr(ml_dtypes, storage.name)) if storage and is_foreign else x
    return x.astype(getattr(ml_dtypes, PACKAGE[number])) if number in PACKAGE else x


def from_package(x: Any) -> Any:
    """Convert a value of the onnx package to the dtype that stores it here."""
    if not isinstance(x, np.ndarray) or x.dtype.name not in PACKAGE.values():
        return x
    number = next(n for n, name in PACKAGE.items() if name == x.dtype.name)
    return convert(x.astype(FLOAT32), resolve_dtype(STORED_AS[number]))


def field_of(dtype: np.dtype) -> str:
    """Return the field of a TensorProto for values of a dtype that are not raw bytes."""
    return _FIELD.get(dtype.name, "int32_data")


def shape_of_proto(proto: Any) -> tuple[int, ...]:
    """Return the shape of a tensor. FormatError if an axis is negative or the bytes exceed 64 bits."""
    if len(proto.dims) > MOST_AXES:
        raise FormatError(f"tensor {proto.name!r:.60} has {len(proto.dims)} axes; up to {MOST_AXES} are supported")
    shape = tuple(int(n) for n in proto.dims)
    if any(n < 0 for n in shape) or prod(n for n in shape if n) * 8 > LARGEST:
        raise damaged_file(f"tensor {proto.name!r} has the impossible shape {list(shape)}")
    return shape


def array_of(proto: Any) -> np.ndarray:
    """Convert a TensorProto with inner data. FormatError if data and shape differ."""
    dtype, shape = dtype_of_number(proto.data_type, f"tensor {proto.name!r}"), shape_of_proto(proto)
    if proto.data_location == proto.EXTERNAL:
        raise FormatError(
            f"tensor {proto.name!r} has its data in another file, which is not allowed here. Store it in the model"
        )
    if proto.HasField("raw_data"):
        return raw_array(memoryview(proto.raw_data), dtype, shape, proto.name)
    values = getattr(proto, field_of(dtype))
    if len(values) != prod(shape):
        raise damaged_file(f"tensor {proto.name!r} {dtype}{list(shape)} holds {len(values)} values")
    return narrow_exactly(np.array(values), dtype, proto.name).reshape(shape)


def narrow_exactly(wide: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
    """Convert numbers to a narrower dtype. FormatError if it cannot represent one of them."""
    if is_storage(dtype):  # their bits
        return wide.astype(f"u{dtype.itemsize}").view(dtype)
    narrow = wide.astype(dtype)
    if dtype.kind != "f" and not np.array_equal(narrow, wide):
        raise damaged_file(f"tensor {name!r} holds values that {dtype} cannot represent")
    return narrow


def nbytes_of(proto: Any) -> tuple[int, int]:
    """Return the bytes and work of `array_of`: the values from protobuf, and in their dtype."""
    count = sum(len(getattr(proto, name)) for name in {*_FIELD.values(), "int32_data"})
    return 2 * len(proto.raw_data) + 16 * count, 32 * count


def numbers_of(raw: memoryview, dtype: np.dtype, proto: Any, allowance: Allowance) -> np.ndarray:
    """Decode packed varints of a tensor. FormatError unless their number fits the shape."""
    shape, count = shape_of_proto(proto), count_of_numbers(raw)
    packed = -(-prod(shape) * BITS[proto.data_type] // 8) if proto.data_type in BITS else prod(shape)
    if count != packed:
        raise damaged_file(f"tensor {proto.name!r} {dtype}{list(shape)} holds {count} values")
    allowance.spend(f"tensor {proto.name!r:.60}", nbytes=count * dtype.itemsize, work=32 * len(raw))
    numbers, at = np.empty(count, dtype), 0
    for chunk in chunks_of_numbers(raw):
        wide = chunk if dtype.kind == "u" and dtype.itemsize > 2 else chunk.view(np.int64)
        numbers[at : at + len(wide)] = narrow_exactly(wide, dtype, proto.name)
        at += len(wide)
    return numbers


def raw_array(raw: memoryview, dtype: np.dtype, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Return an array that shares little-endian bytes. FormatError unless their number fits the shape."""
    need = prod(shape) * dtype.itemsize
    if len(raw) != need:
        raise damaged_file(f"tensor {name!r} {dtype}{list(shape)} needs {need} bytes, {len(raw)} are stored")
    return np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)


def sparse_array(proto: Any, arrays: Callable[[Any], np.ndarray], allowance: Allowance) -> np.ndarray:
    """Convert a SparseTensorProto to a dense array. FormatError if an index is outside the shape.

    Parameters
        arrays: converts a TensorProto to an array
    """
    name = f"sparse tensor {proto.values.name!r:.60}"
    if len(proto.dims) > MOST_AXES:
        raise FormatError(f"{name} has {len(proto.dims)} axes; up to {MOST_AXES} are supported")
    shape = tuple(int(n) for n in proto.dims)
    if any(n < 0 for n in shape) or prod(n for n in shape if n) * 8 > LARGEST:
        raise damaged_file(f"{name} has the impossible shape {list(shape)}")
    values, indices = arrays(proto.values), arrays(proto.indices)
    if indices.dtype != np.int64 or values.ndim != 1:
        raise damaged_file(f"{name} has indices of {indices.dtype} and values of {values.ndim} axes, not int64 and 1")
    work = indices.nbytes * 3  # flat indices, and comparisons
    allowance.spend(f"{name} {list(shape)}", nbytes=prod(shape) * values.dtype.itemsize + work, work=prod(shape))
    if indices.ndim == 2 and (indices.shape[1] != len(shape) or np.any(indices < 0) or np.any(indices >= shape)):
        raise damaged_file(f"{name} has indices outside {list(shape)}")
    if indices.ndim == 2:
        indices = np.ravel_multi_index(tuple(indices.T), shape)
    if indices.shape != values.shape or np.any(indices < 0) or np.any(indices >= prod(shape)):
        raise damaged_file(f"{name} has indices outside {list(shape)}")
    flat = np.zeros(prod(shape), values.dtype)
    flat[indices] = values
    return flat.reshape(shape)
