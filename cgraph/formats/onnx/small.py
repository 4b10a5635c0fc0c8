"""Integers of 2 and 4 bits, which files pack into bytes. Here each takes a byte; only conversions may read them.

The result of any other operator would have 2 or 4 bits too, but a byte is not limited to their range.

Source: onnx.proto, TensorProto: the first number is in the lowest bits of a byte; the last byte may be partly unused.
"""

from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx.graph import graphs_of
from cgraph.formats.onnx.tensors import BITS, dtype_name, dtype_of_number, shape_of_proto

STORED_AS = {21: np.dtype("uint8"), 22: np.dtype("int8"), 25: np.dtype("uint8"), 26: np.dtype("int8")}
READERS = {("Cast", 0), ("CastLike", 0), ("DequantizeLinear", 0), ("DequantizeLinear", 2)}
"""Operators and the indices of their inputs that may be such integers."""
FEW = "which has numbers of 2 or 4 bits; only Cast and DequantizeLinear may read them"


def storage_dtype(number: int, what: str) -> np.dtype:
    """Return the dtype that stores values of an ONNX dtype. FormatError if it is not supported."""
    return STORED_AS[number] if number in STORED_AS else dtype_of_number(number, what)


def packed_bytes(proto: Any) -> bytes:
    """Return the bytes of a tensor inside the proto. FormatError if a number does not fit a byte."""
    if proto.HasField("raw_data"):
        return proto.raw_data
    try:
        return bytes(proto.int32_data)
    except ValueError:
        raise damaged_file(f"tensor {proto.name!r} holds values outside 0 to 255") from None


def unpack(raw: Any, proto: Any, allowance: Allowance) -> np.ndarray:
    """Unpack the bytes of a tensor. FormatError if their number is wrong."""
    shape, bits = shape_of_proto(proto), BITS[proto.data_type]
    count, each = prod(shape), 8 // bits
    if len(raw) != -(-count // each):
        what = f"{dtype_name(proto.data_type)}{list(shape)}"
        raise damaged_file(f"tensor {proto.name!r} {what} needs {-(-count // each)} bytes, {len(raw)} are stored")
    allowance.spend(f"tensor {proto.name!r} {list(shape)}", nbytes=3 * each * len(raw))
    packed = np.frombuffer(raw, np.uint8)[:, None]
    high = packed << np.arange(8 - bits, -1, -bits).astype(np.uint8)  # moves each number to the highest bits of a byte
    wide = high.reshape(-1)[:count].view(STORED_AS[proto.data_type])
    return (wide >> (8 - bits)).reshape(shape)


def check_readers(graph: Any) -> None:
    """Raise FormatError if an operator other than a conversion reads integers of 2 or 4 bits, at any depth."""
    waiting: list[tuple[Any, frozenset[str]]] = [(graph, frozenset())]
    while waiting:
        part, small_names = waiting.pop()
        kinds = {v.name: v.type.tensor_type.elem_type for v in part.input}
        kinds |= {t.name: t.data_type for t in part.initializer}
        small_names = small_names | {name for name, number in kinds.items() if number in BITS}
        for node in part.node:
            for i, name in enumerate(node.input):
                if name in small_names and (node.domain or (node.op_type, i) not in READERS):
                    raise FormatError(f"{node.op_type} reads {name!r}, {FEW}")
            waiting.extend((inner, small_names) for inner in graphs_of(node))
        for v in part.output:
            if v.name in small_names:
                raise FormatError(f"output {v.name!r} is one {FEW}")
