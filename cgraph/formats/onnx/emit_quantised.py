"""Emitters of ONNX nodes for quantised values (QDQ) and Gemm."""

from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.onnx.emit import Emitted, emitter, ints, node
from cgraph.ir.graph import Node
from cgraph.ops.leaf import ConstOp
from cgraph.ops.shape import BroadcastTo, Reshape

SMALL = ("int8", "uint8")


@emitter("quantize")
def quantize(x: Node) -> Emitted:
    check(x, x.operands[0], SMALL)
    return linear("QuantizeLinear", x)


@emitter("dequantize")
def dequantize(x: Node) -> Emitted:
    check(x.operands[0], x, (*SMALL, "int32"))
    return linear("DequantizeLinear", x)


def check(whole: Node, floats: Node, dtypes: tuple[str, ...]) -> None:
    """Raise FormatError if the operators of the written opset do not support a dtype."""
    if floats.dtype.name != "float32" or whole.dtype.name not in dtypes:
        raise FormatError(
            f"ONNX does not quantise {floats.dtype} as {whole.dtype} in the written opset. Use float32 with "
            f"{' or '.join(dtypes)}"
        )


def linear(kind: str, x: Node) -> Emitted:
    """Emit a conversion with one scale and zero point, or one per element of an axis."""
    v, scale, zero = x.operands
    axis, count = axis_of(scale)
    if axis_of(zero) not in ((axis, count), (0, 1)):
        raise FormatError(
            f"the axis of a zero point ({axis_of(zero)[1]} values along axis {axis_of(zero)[0]}) differs from that of "
            f"its scale ({count} along axis {axis}), which ONNX does not support. Use one axis"
        )
    shape = (count,) if count > 1 else ()
    along = {"axis": axis} if count > 1 else {}
    return node(kind, v, flat(scale, shape), flat(zero, shape), **along)


def axis_of(x: Node) -> tuple[int, int]:
    """Return the axis of a scale and its length; 0 and 1 for a single scale."""
    plain = x.operands[0] if isinstance(x.op, BroadcastTo) else x
    shape = (1,) * (x.ndim - plain.ndim) + plain.shape
    long = [(i, n) for i, n in enumerate(shape) if n > 1]
    if len(long) > 1:
        raise FormatError(f"a scale {plain.spec} has several axes, which ONNX does not support. Use one axis")
    return long[0] if long else (0, 1)


def flat(x: Node, shape: tuple[int, ...]) -> Any:
    """Return a scale or zero point in ONNX's shape: ``[]`` or ``[n]``."""
    plain = x.operands[0] if isinstance(x.op, BroadcastTo) else x
    if isinstance(plain.op, ConstOp):
        array = plain.op.array.reshape(-1)
        return np.broadcast_to(array, shape).copy() if shape else array.reshape(())
    wide = node("Reshape", plain, ints([-1] if plain.size > 1 else []))
    return node("Expand", wide, ints(shape)) if plain.size == 1 and shape else wide


def gemm(x: Node) -> Emitted | None:
    """Match a @ b + row of two matrices."""
    if x.op.name != "add" or x.ndim != 2:
        return None
    for product, added in (x.operands, x.operands[::-1]):
        row = added.operands[0] if isinstance(added.op, BroadcastTo) else added
        row = row.operands[0] if isinstance(row.op, Reshape) and row.operands[0].ndim == 1 else row
        if product.op.name == "matmul" and row.shape == x.shape[1:] and x.dtype.kind == "f":
            return node("Gemm", *product.operands, row)
    return None
