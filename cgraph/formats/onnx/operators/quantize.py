"""Importers of quantisation, dequantisation and quantised products."""

import numpy as np

from cgraph.dtypes.convert import name_of
from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic_ops.operators import keeping
from cgraph.formats.onnx.operators.conv import add_bias, conv_geometry, spatial
from cgraph.formats.onnx.operators.few_bits import kind_of, quantized
from cgraph.formats.onnx.operators.pointwise import converted
from cgraph.formats.onnx.tensors import BITS, dtype_of_number, is_float8, stored_dtype
from cgraph.ir.graph import Node
from cgraph.ops.leaf import ConstOp
from cgraph.ops.shape import axis_of

UINT8 = 2
"""ONNX's number of the dtype."""


def broadcastable(scale: Node, x: Node, axis: int, block: int) -> Node:
    """Reshape a scale or zero point to broadcast to `x`: a scalar, one per element of an axis, or one per block."""
    if scale.ndim == 0 or scale.size == 1:
        return cg.reshape(scale, ())
    axis = axis_of(axis, x.ndim)
    if block:
        count, needed = scale.shape[axis] if scale.ndim == x.ndim else 0, -(-x.shape[axis] // block)
        if block < 0 or count != needed:
            raise FormatError(
                f"{count} blocks of {block} along axis {axis} of {x.shape[axis]} elements do not fit: give {needed}"
            )
        wide = cg.repeat(scale, block, axis)
        return wide[(*[slice(None)] * axis, slice(0, x.shape[axis]))]
    return cg.reshape(scale, (-1, *[1] * (x.ndim - axis - 1)))


def scaled_axes(c: Context) -> tuple[int, ...]:
    """Return the axis of the scales, if there are several."""
    return (c.attribute("axis", 1),) if c[1].size > 1 else ()


@operator("QuantizeLinear", "com.microsoft.QuantizeLinear")
@keeping(scaled_axes)
def quantize(c: Context) -> Node:
    x, axis, block = c[0], c.attribute("axis", 1), c.attribute("block_size", 0)
    zero, number = c.get(2), kind_of(c, 2) or c.attribute("output_dtype", 0)
    x = x if x.dtype.kind == "f" else cg.astype(x, c[1].dtype)
    offset = 0 if zero is None else broadcastable(zero, x, axis, block)
    scale = cg.astype(broadcastable(c[1], x, axis, block), x.dtype)
    if number in BITS:
        return quantized(x, scale, offset, number)
    dtype = stored_dtype(zero) if zero is not None else dtype_of_number(number or UINT8, "the result")
    if is_float8(dtype):
        return converted(c, x / scale + offset, dtype)
    if dtype.kind not in "iu":
        raise FormatError(f"quantization to {name_of(dtype)} is not supported. Use an integer or a float of 8 bits")
    return cg.quantize(x, scale, offset, dtype)


@operator("DequantizeLinear", "com.microsoft.DequantizeLinear")
@keeping(scaled_axes)
def dequantize(c: Context) -> Node:
    x, axis, block = c[0], c.attribute("axis", 1), c.attribute("block_size", 0)
    zero = c.get(2)
    scale, zero = broadcastable(c[1], x, axis, block), 0 if zero is None else broadcastable(zero, x, axis, block)
    return (x - zero) * scale if x.dtype.kind == "f" else cg.dequantize(x, scale, zero)


@operator("DynamicQuantizeLinear")
def dynamic_quantize(c: Context) -> tuple[Node, Node, Node]:
    return quantize_dynamically(c[0])


def quantize_dynamically(x: Node) -> tuple[Node, Node, Node]:
    """Quantise to uint8 with the scale and zero point of the range of elements and 0."""
    low, high = cg.minimum(cg.min(x), 0.0), cg.maximum(cg.max(x), 0.0)
    scale = cg.astype((high - low) / 255.0, "float32")
    scale = cg.where(cg.equal(scale, 0.0), cg.ones_like(scale), scale)
    zero = cg.astype(cg.clip(cg.rint(-low / scale), 0.0, 255.0), "uint8")
    return cg.quantize(x, scale, zero), scale, zero


def subtract_zero(x: Node, zero: Node | None, axis: int) -> Node:
    """Return `x` minus its zero point as int32."""
    x = cg.astype(x, "int32")
    return x if zero is None else x - cg.astype(broadcastable(zero, x, axis, 0), "int32")


@operator("MatMulInteger")
def matmul_integer(c: Context) -> Node:
    x, y = c[0], c[1]
    return cg.matmul(subtract_zero(x, c.get(2), max(x.ndim - 2, 0)), subtract_zero(y, c.get(3), y.ndim - 1))


@operator("ConvInteger")
def conv_integer(c: Context) -> Node:
    return integer_conv(c, subtract_zero(c[0], c.get(2), 1), subtract_zero(c[1], c.get(3), 0))


def integer_conv(c: Context, x: Node, f: Node) -> Node:
    """Convolve integers in float64, which represents all sums of 8-bit products exactly."""
    stride, pad, dilation = conv_geometry(c, x, f.shape[2:])
    x, f = cg.astype(x, "float64"), cg.astype(f, "float64")
    return cg.astype(spatial("conv", x)(x, f, stride, pad, dilation, c.attribute("group", 1)), "int32")


def part(c: Context, i: int, axis: int = 1) -> Node:
    """Dequantise operand i by the scale and zero point in operands i + 1 and i + 2."""
    x, zero = c[i], c.get(i + 2)
    scale = broadcastable(c[i + 1], x, axis, 0)
    return cg.dequantize(x, scale, 0 if zero is None else broadcastable(zero, x, axis, 0))


def floats(c: Context, i: int, x: Node) -> Node:
    """Quantise floats by the scale and zero point in operands i and i + 1."""
    zero = c.get(i + 1)
    dtype = np.dtype("uint8") if zero is None else zero.dtype
    return cg.quantize(x, broadcastable(c[i], x, 1, 0), 0 if zero is None else broadcastable(zero, x, 1, 0), dtype)


@operator("QLinearMatMul")
def q_matmul(c: Context) -> Node:
    """Import QLinearMatMul: as floats where a pass finds the product of bytes in them, else with exact sums."""
    x, y = c[0], c[3]
    has_constant_matrix = y.ndim == 2 and isinstance(y.op, ConstOp)
    if has_constant_matrix or (min(x.ndim, y.ndim) > 1 and has_constant_scales(c)):
        return floats(c, 6, cg.matmul(part(c, 0), part(c, 3, y.ndim - 1)))
    product = cg.matmul(subtract_zero(x, c[2], max(x.ndim - 2, 0)), subtract_zero(y, c[5], y.ndim - 1))
    scale = broadcastable(c[1], x, max(x.ndim - 2, 0), 0) * broadcastable(c[4], y, y.ndim - 1, 0)
    scale = cg.astype(scale, "float64") / cg.astype(c[6], "float64")
    return cg.quantize(cg.astype(product, "float64") * scale, np.float64(1), c[7], c[7].dtype)


def has_constant_scales(c: Context) -> bool:
    """Return True if QLinearMatMul has one constant scale and zero point for each operand and for the result."""
    return all(isinstance(c[i].op, ConstOp) and c[i].size == 1 for i in (1, 2, 4, 5, 6, 7))


@operator("QLinearConv")
def q_conv(c: Context) -> Node:
    if c[0].ndim == 4 and isinstance(c[3].op, ConstOp):
        x, f, bias = part(c, 0), part(c, 3, 0), c.get(8)
        y = cg.conv2d(x, f, *conv_geometry(c, x, f.shape[2:]), c.attribute("group", 1))
        return floats(c, 6, add_bias(y, None if bias is None else cg.dequantize(bias, c[1] * c[4])))
    total = add_bias(integer_conv(c, subtract_zero(c[0], c[2], 1), subtract_zero(c[3], c[5], 0)), c.get(8))
    scale = (
        cg.astype(c[1], "float64") * cg.astype(broadcastable(c[4], total, 1, 0), "float64") / cg.astype(c[6], "float64")
    )
    return cg.quantize(cg.astype(total, "float64") * scale, np.float64(1), c[7], c[7].dtype)


@operator("com.microsoft.QLinearAdd", "com.microsoft.QLinearMul")
def q_pair(c: Context) -> Node:
    x, y = part(c, 0), part(c, 3)
    return floats(c, 6, x + y if c.kind.endswith("Add") else x * y)


@operator("com.microsoft.QLinearConcat")
def q_concat(c: Context) -> Node:
    """Import QLinearConcat: operands are scale and zero point of the result, then each part with its own."""
    return floats(c, 0, cg.concat([part(c, i) for i in range(2, len(c.nodes), 3)], c.required("axis")))


@operator("com.microsoft.QLinearGlobalAveragePool")
def q_global_average(c: Context) -> Node:
    x, first = part(c, 0), 1 if c.attribute("channels_last", 0) else 2
    return floats(c, 3, cg.mean(x, tuple(range(first, first + x.ndim - 2)), keepdims=True))


@operator("com.microsoft.QLinearLeakyRelu", "com.microsoft.QLinearSigmoid")
def q_activation(c: Context) -> Node:
    x = part(c, 0)
    leaky = c.kind.endswith("LeakyRelu")
    return floats(c, 3, cg.leaky_relu(x, c.attribute("alpha", 0.01)) if leaky else cg.sigmoid(x))


@operator("com.microsoft.QGemm")
def q_gemm(c: Context) -> Node:
    """Import QGemm: alpha * A * B + C, with C in units of the sums; float without a result scale."""
    if c.attribute("transA", 0) or c.attribute("alpha", 1.0) != 1.0:
        raise FormatError(
            f"QGemm with transA {c.attribute('transA', 0)} and alpha {c.attribute('alpha', 1.0)} is not supported. "
            "Use transA=0 and alpha=1"
        )
    transposed, bias = c.attribute("transB", 0), c.get(6)
    y = part(c, 3, 0 if transposed else 1)
    product = cg.matmul(part(c, 0), y.T if transposed else y)
    if bias is not None:
        product = product + cg.dequantize(bias, c[1] * c[4])
    return product if c.get(7) is None else floats(c, 7, product)
