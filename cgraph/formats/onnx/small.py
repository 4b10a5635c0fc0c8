"""Whole numbers of 2 and 4 bits, which files pack into bytes. Here each has a byte; conversions alone may read them.

No other operator may, for its result would have 2 or 4 bits too, and here be a byte that is not held in their range.

Source: onnx.proto, TensorProto: the first number lies in the lowest bits of a byte; the last byte may have room left.
"""

from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx.graph import graphs_of
from cgraph.formats.onnx.tensors import BITS, dtype_name, dtype_of_number, shape_of_proto

STORED_AS = {21: np.dtype("uint8"), 22: np.dtype("int8"), 25: np.dtype("uint8"), 26: np.dtype("int8")}
READERS = {("Cast", 0), ("CastLike", 0), ("DequantizeLinear", 0), ("DequantizeLinear", 2)}
"""Operators and the places of their inputs that may be such numbers."""
FEW = "which has numbers of 2 or 4 bits; Cast and DequantizeLinear alone may read them"


def storage_dtype(number: int, what: str) -> np.dtype:
    """In which dtype values of ONNX's dtype of this number are held, or FormatError."""
    return STORED_AS[number] if number in STORED_AS else dtype_of_number(number, what)


def packed_bytes(proto: Any) -> bytes:
    """The bytes of a tensor that has them inside. FormatError for numbers that are no bytes."""
    if proto.HasField("raw_data"):
        return proto.raw_data
    try:
        return bytes(proto.int32_data)
    except ValueError:
        raise FormatError(f"tensor {proto.name!r} holds values that are no bytes") from None


def unpack(raw: Any, proto: Any, allowance: Allowance) -> np.ndarray:
    """A tensor's packed bytes as numbers. FormatError when there are too few or too many bytes."""
    shape, bits = shape_of_proto(proto), BITS[proto.data_type]
    count, each = prod(shape), 8 // bits
    if len(raw) != -(-count // each):
        what = f"{dtype_name(proto.data_type)}{list(shape)}"
        raise FormatError(f"tensor {proto.name!r} {what} needs {-(-count // each)} bytes, {len(raw)} are stored")
    allowance.spend(f"tensor {proto.name!r} {list(shape)}", nbytes=3 * each * len(raw))
    packed = np.frombuffer(raw, np.uint8)[:, None]
    high = packed << np.arange(8 - bits, -1, -bits).astype(np.uint8)  # each number in the highest bits of a byte
    wide = high.reshape(-1)[:count].view(STORED_AS[proto.data_type])
    return (wide >> (8 - bits)).reshape(shape)


def check_readers(graph: Any) -> None:
    """FormatError where something other than a conversion reads a number of 2 or 4 bits, in sub-graphs too."""
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
