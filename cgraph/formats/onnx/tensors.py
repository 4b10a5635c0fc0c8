"""TensorProto to array: dtypes, declared sizes against stored ones, data inside the proto."""

from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.ir.graph import Node
from cgraph.ir.half import BFLOAT16, FLOAT32, HALVES, converted, known_dtype
from cgraph.ir.spec import LARGEST
from cgraph.ops.arithmetic import astype
from cgraph.ops.leaf import HASHED_NBYTES, Const, ConstOp

DTYPE = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16",
}  # fmt: skip
NUMBER = {known_dtype(name): number for number, name in DTYPE.items()}
_FIELD = {"float32": "float_data", "float64": "double_data", "int64": "int64_data", "uint64": "uint64_data"}
_FIELD |= {"uint32": "uint64_data"}


def dtype_of_number(number: int, what: str = "tensor") -> np.dtype:
    """The NumPy dtype of ONNX's number for one, or FormatError."""
    if number not in DTYPE:
        raise FormatError(f"{what} has ONNX's dtype {dtype_name(number)}; supported are {', '.join(DTYPE.values())}")
    return known_dtype(DTYPE[number])


def dtype_name(number: int) -> str:
    """ONNX's name of a dtype, as ``FLOAT16``."""
    from onnx import TensorProto

    try:
        return TensorProto.DataType.Name(number)
    except ValueError:
        return str(number)


def widened(x: Any) -> Any:
    """A value as importers take it: float32 for what is held in half precision, small constants for good."""
    if isinstance(x, list):
        return [widened(item) for item in x]
    if not isinstance(x, Node) or x.dtype not in HALVES:
        return x
    if isinstance(x.op, ConstOp) and x.nbytes <= HASHED_NBYTES:
        return Const(converted(x.op.array, FLOAT32), name=x.op.label)
    return astype(x, FLOAT32)


def of_package(x: np.ndarray) -> np.ndarray:
    """An array as the onnx package has it: its bfloat16 is that of ml_dtypes."""
    if x.dtype != BFLOAT16:
        return x
    import ml_dtypes

    return x.view(ml_dtypes.bfloat16)


def from_package(x: Any) -> Any:
    """A value that the onnx package has read: numbers of 2 and 4 bits as bytes."""
    few = {"int2": np.int8, "int4": np.int8, "uint2": np.uint8, "uint4": np.uint8}
    return x.astype(few[x.dtype.name]) if isinstance(x, np.ndarray) and x.dtype.name in few else x


def shape_of_proto(proto: Any) -> tuple[int, ...]:
    """A tensor's shape, each axis >= 0 and the bytes within 64 bits, or FormatError."""
    shape = tuple(int(n) for n in proto.dims)
    if any(n < 0 for n in shape) or prod(n for n in shape if n) * 8 > LARGEST:
        raise FormatError(f"tensor {proto.name!r} has the impossible shape {list(shape)}")
    return shape


def array_of(proto: Any) -> np.ndarray:
    """A TensorProto with its data inside as an array. FormatError when data and shape differ."""
    dtype, shape = dtype_of_number(proto.data_type, f"tensor {proto.name!r}"), shape_of_proto(proto)
    if proto.data_location == proto.EXTERNAL:
        raise FormatError(f"tensor {proto.name!r} has its data in another file, which is not allowed here")
    if proto.HasField("raw_data"):
        return raw_array(memoryview(proto.raw_data), dtype, shape, proto.name)
    values = getattr(proto, _FIELD.get(dtype.name, "int32_data"))
    if len(values) != prod(shape):
        raise FormatError(f"tensor {proto.name!r} {dtype}{list(shape)} holds {len(values)} values")
    wide = np.array(values)
    if dtype in HALVES:  # their bits
        return wide.astype(np.uint16).view(dtype).reshape(shape)
    found = wide.astype(dtype).reshape(shape)
    if dtype.kind != "f" and not np.array_equal(found.reshape(-1), wide):
        raise FormatError(f"tensor {proto.name!r} holds values that are no {dtype}")
    return found


def raw_array(raw: memoryview, dtype: np.dtype, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Little-endian bytes as an array that shares them. FormatError when there are too few or too many."""
    need = prod(shape) * dtype.itemsize
    if len(raw) != need:
        raise FormatError(f"tensor {name!r} {dtype}{list(shape)} needs {need} bytes, {len(raw)} are stored")
    return np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)


def sparse_array(proto: Any, allowance: Allowance) -> np.ndarray:
    """A SparseTensorProto as a dense array. FormatError when an index lies outside."""
    values, indices = array_of(proto.values), array_of(proto.indices)
    shape = tuple(int(n) for n in proto.dims)
    if any(n < 0 for n in shape):
        raise FormatError(f"sparse tensor {proto.values.name!r} has the impossible shape {list(shape)}")
    allowance.spend(f"sparse tensor {proto.values.name!r} {list(shape)}", nbytes=prod(shape) * values.dtype.itemsize)
    flat = np.zeros(prod(shape), values.dtype)
    if indices.ndim == 2:
        if indices.shape[1] != len(shape) or np.any(indices < 0) or np.any(indices >= np.array(shape)):
            raise FormatError(f"sparse tensor {proto.values.name!r} has indices outside {list(shape)}")
        indices = np.ravel_multi_index(tuple(indices.T), shape)
    if indices.shape != values.shape or np.any(indices < 0) or np.any(indices >= flat.size):
        raise FormatError(f"sparse tensor {proto.values.name!r} has indices outside {list(shape)}")
    flat[indices] = values
    return flat.reshape(shape)
