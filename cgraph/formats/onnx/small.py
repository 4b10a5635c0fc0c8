"""Numbers that no array has: integers of 2 and 4 bits, floats of 4 bits (FLOAT4E2M1), powers of 2 (FLOAT8E8M0).

Each is stored in a dtype that represents it exactly: int8, uint8, float8_e4m3fn, bfloat16. Conversions read and write
them, and ops that move values; the result of any other operator could be outside their range.

Source: onnx.proto, TensorProto: the first number is in the lowest bits of a byte; the last byte may be partly unused.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from cgraph.dtypes.convert import resolve_dtype
from cgraph.errors import FormatError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.onnx.graph import graphs_of
from cgraph.formats.onnx.tensors import BITS, FLOAT4, POWERS, STORED_AS, dtype_name, dtype_of_number, shape_of_proto

CONVERSIONS = {"Cast": (0,), "CastLike": (0, 1), "DequantizeLinear": (0, 1, 2), "QuantizeLinear": (1, 2)}
"""Operators and the indices of their inputs that may be such numbers."""
MOVES = frozenset(
    ("Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Gather", "Slice", "Split")
)
"""Operators whose results have the dtype of their first input."""
FEW = "which has numbers of {}; only Cast, DequantizeLinear and ops that move values may read them. Insert a Cast"
SIGN = 0x80
# bits of float8_e4m3fn for 0, 0.5, 1, 1.5, 2, 3, 4 and 6, then for the negative ones
E2M1 = np.array([0x00, 0x30, 0x38, 0x3C, 0x40, 0x44, 0x48, 0x4C], np.uint8)
E2M1 = np.concatenate([E2M1, E2M1 | SIGN])
SMALLEST, NAN = 0x40, 0x7FC0  # bits of bfloat16: 2**-127, which is subnormal, and a NaN


def storage_dtype(number: int, what: str) -> np.dtype:
    """Return the dtype that stores values of an ONNX dtype. FormatError if it is not supported."""
    return resolve_dtype(STORED_AS[number]) if number in STORED_AS else dtype_of_number(number, what)


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
    number = proto.data_type
    shape, bits = shape_of_proto(proto), BITS[number]
    count, each = prod(shape), 8 // bits
    if len(raw) != -(-count // each):
        what = f"{dtype_name(number)}{list(shape)}"
        raise damaged_file(f"tensor {proto.name!r} {what} needs {-(-count // each)} bytes, {len(raw)} are stored")
    allowance.spend(f"tensor {proto.name!r} {list(shape)}", nbytes=3 * each * len(raw))
    packed, stored = np.frombuffer(raw, np.uint8)[:, None], resolve_dtype(STORED_AS[number])
    high = packed << np.arange(8 - bits, -1, -bits).astype(np.uint8)  # moves each number to the highest bits of a byte
    wide = high.reshape(-1)[:count]
    if number == FLOAT4:
        return E2M1[wide >> 4].view(stored).reshape(shape)
    if number == POWERS:
        return powers_of_two(wide).view(stored).reshape(shape)
    return (wide.view(stored) >> (8 - bits)).reshape(shape)


def powers_of_two(exponents: np.ndarray) -> np.ndarray:
    """Return the bits of bfloat16 of 2 to the power of ``exponents - 127``; 255 is NaN."""
    bits = exponents.astype(np.uint16) << 7
    bits[exponents == 0], bits[exponents == 255] = SMALLEST, NAN
    return bits


def check_readers(graph: Any) -> dict[str, int]:
    """Return the dtype numbers of all values, at any depth, that no array has.

    Raises
        FormatError: an operator that is neither a conversion nor a move reads one, or a sub-graph returns one
    """
    dtypes: dict[str, int] = {}
    waiting: list[tuple[Any, bool]] = [(graph, True)]
    while waiting:
        part, is_main = waiting.pop()
        dtypes |= {v.name: v.type.tensor_type.elem_type for v in part.input if v.type.tensor_type.elem_type in BITS}
        dtypes |= {t.name: t.data_type for t in part.initializer if t.data_type in BITS}
        for node in part.node:
            check_reader(node, dtypes)
            number = number_of_result(node, dtypes)
            dtypes |= dict.fromkeys(node.output, number) if number in BITS else {}
            waiting.extend((inner, False) for inner in graphs_of(node))
        for v in part.output:
            if v.name in dtypes and not is_main:
                raise FormatError(f"output {v.name!r} is one {reason(dtypes[v.name])}")
    return dtypes


def check_reader(node: Any, dtypes: Mapping[str, int]) -> None:
    """Raise FormatError if a node reads a number that no array has and neither converts nor moves it."""
    places = (0,) if node.op_type in MOVES else CONVERSIONS.get(node.op_type, ())
    for i, name in enumerate(node.input):
        if name in dtypes and (node.domain or i not in places):
            raise FormatError(f"{node.op_type} reads {name!r}, {reason(dtypes[name])}")


def reason(number: int) -> str:
    """Return why few operators read values of a dtype number."""
    return FEW.format(f"{BITS[number]} bits" if number != POWERS else "exponents alone")


def number_of_result(node: Any, dtypes: Mapping[str, int]) -> int:
    """Return the dtype number of a node's results if it is one that no array has, else any other."""
    names, numbers = [*node.input, "", "", ""], {a.name: a.i for a in node.attribute}
    if node.op_type in MOVES:
        return dtypes.get(names[0], 0)
    if node.op_type == "Constant":
        return next((a.t.data_type for a in node.attribute if a.name == "value"), 0)
    if node.op_type == "CastLike":
        return dtypes.get(names[1], 0)
    if node.op_type == "QuantizeLinear":
        return dtypes.get(names[2], 0) if names[2] else numbers.get("output_dtype", 0)
    return numbers.get("to", 0) if node.op_type == "Cast" else 0
