"""Numbers as small integers with a scale and a zero point, and products of such numbers."""

from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.names import cg
from cgraph.formats.onnx.operators.conv import biased, moves, spatial
from cgraph.formats.onnx.tensors import dtype_of_number
from cgraph.ir.graph import Node
from cgraph.ops.shape import axis_of


def fitting(scale: Node, x: Node, axis: int, block: int) -> Node:
    """A scale or zero point so that it broadcasts to `x`: one number, one along an axis, or one for each block."""
    if scale.ndim == 0 or scale.size == 1:
        return cg.reshape(scale, ())
    axis = axis_of(axis, x.ndim)
    if block:
        wide = cg.repeat(scale, block, axis)
        return wide[(*[slice(None)] * axis, slice(0, x.shape[axis]))]
    return cg.reshape(scale, (-1, *[1] * (x.ndim - axis - 1)))


def quantized(x: Node, scale: Any, zero: Any, dtype: np.dtype) -> Node:
    """round(x / scale) + zero, held within the dtype; halves go to the even number."""
    limits = np.iinfo(dtype)
    whole = cg.rint(x / cg.astype(scale, x.dtype))
    if zero is not None:
        whole = whole + cg.astype(zero, x.dtype)
    return cg.astype(cg.clip(whole, float(limits.min), float(limits.max)), dtype)


@operator("QuantizeLinear")
def quantize(c: Context) -> Node:
    x, axis, block = c[0], c.attribute("axis", 1), c.attribute("block_size", 0)
    number = c.attribute("output_dtype", 0)
    zero = c.get(2)
    dtype = zero.dtype if zero is not None else dtype_of_number(number, "the result") if number else np.dtype("uint8")
    if dtype.kind not in "iu":
        raise FormatError(f"quantization to {dtype} is not supported")
    x = x if x.dtype.kind == "f" else cg.astype(x, c[1].dtype)
    zero = None if zero is None else fitting(zero, x, axis, block)
    return quantized(x, fitting(c[1], x, axis, block), zero, dtype)


@operator("DequantizeLinear")
def dequantize(c: Context) -> Node:
    x, axis, block = c[0], c.attribute("axis", 1), c.attribute("block_size", 0)
    scale = fitting(c[1], x, axis, block)
    whole = cg.astype(x, "int32")
    if c.value(2) is not None:
        whole = whole - cg.astype(fitting(c[2], x, axis, block), "int32")
    return cg.astype(whole, scale.dtype) * scale


@operator("DynamicQuantizeLinear")
def dynamic_quantize(c: Context) -> tuple[Node, Node, Node]:
    """To uint8 with a scale and zero point from the smallest and largest element, 0 included."""
    x = c[0]
    low, high = cg.minimum(cg.min(x), 0.0), cg.maximum(cg.max(x), 0.0)
    scale = cg.astype((high - low) / 255.0, "float32")
    scale = cg.where(cg.equal(scale, 0.0), cg.ones_like(scale), scale)
    zero = cg.astype(cg.clip(cg.rint(-low / scale), 0.0, 255.0), "uint8")
    return quantized(x, scale, zero, np.dtype("uint8")), scale, zero


def centred(x: Node, zero: Node | None, axis: int) -> Node:
    """`x` less its zero point, as int32."""
    x = cg.astype(x, "int32")
    return x if zero is None else x - cg.astype(fitting(zero, x, axis, 0), "int32")


@operator("MatMulInteger")
def matmul_integer(c: Context) -> Node:
    x, y = c[0], c[1]
    return cg.matmul(centred(x, c.get(2), max(x.ndim - 2, 0)), centred(y, c.get(3), y.ndim - 1))


@operator("ConvInteger")
def conv_integer(c: Context) -> Node:
    return integer_conv(c, centred(c[0], c.get(2), 1), centred(c[1], c.get(3), 0))


def integer_conv(c: Context, x: Node, f: Node) -> Node:
    """In float64, which holds every sum of products of 8-bit numbers exactly."""
    stride, pad, dilation = moves(c, x, f.shape[2:])
    x, f = cg.astype(x, "float64"), cg.astype(f, "float64")
    return cg.astype(spatial("conv", x)(x, f, stride, pad, dilation, c.attribute("group", 1)), "int32")


@operator("QLinearMatMul")
def q_matmul(c: Context) -> Node:
    x, y = c[0], c[3]
    product = cg.matmul(centred(x, c[2], max(x.ndim - 2, 0)), centred(y, c[5], y.ndim - 1))
    scale = fitting(c[1], x, max(x.ndim - 2, 0), 0) * fitting(c[4], y, y.ndim - 1, 0)
    scale = cg.astype(scale, "float64") / cg.astype(c[6], "float64")
    return quantized(cg.astype(product, "float64") * scale, np.float64(1), c[7], c[7].dtype)


@operator("QLinearConv")
def q_conv(c: Context) -> Node:
    total = biased(integer_conv(c, centred(c[0], c[2], 1), centred(c[3], c[5], 0)), c.get(8))
    scale = cg.astype(c[1], "float64") * cg.astype(fitting(c[4], total, 1, 0), "float64") / cg.astype(c[6], "float64")
    return quantized(cg.astype(total, "float64") * scale, np.float64(1), c[7], c[7].dtype)
