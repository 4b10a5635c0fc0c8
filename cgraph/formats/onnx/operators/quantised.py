"""Importers of onnxruntime's quantised operators: pools, softmax, where, dynamic products, attention."""

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.operators.attention import split_heads
from cgraph.formats.onnx.operators.conv import average_pool_of, pool_geometry
from cgraph.formats.onnx.operators.encoders import visible_tokens, with_past_in_one
from cgraph.formats.onnx.operators.quantize import broadcastable, floats, part, quantize_dynamically, subtract_zero
from cgraph.ir.graph import Node

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)  # permutations to channels first and last
Scales = tuple[Node, Node, Node | None, Node | None]


@operator("com.microsoft.NhwcMaxPool")
def nhwc_max_pool(c: Context) -> Node:
    x = cg.transpose(c[0], FIRST)
    window, stride, pad, dilation, ceil = pool_geometry(c, x)
    y = cg.max_pool2d(x, window, stride=stride, pad=pad, ceil=ceil, dilation=dilation)
    return cg.transpose(y, LAST)


@operator("com.microsoft.QLinearAveragePool")
def q_average_pool(c: Context) -> Node:
    x, last = part(c, 0), c.attribute("channels_last", 0)
    if last and x.ndim != 4:
        raise FormatError(f"channels_last is not supported for {x.ndim} axes. Use 4")
    y = average_pool_of(c, cg.transpose(x, FIRST) if last else x)
    return floats(c, 3, cg.transpose(y, LAST) if last else y)


@operator("com.microsoft.QLinearSoftmax")
def q_softmax(c: Context) -> Node:
    """Import QLinearSoftmax: over all axes from `axis` on before opset 13, along one axis since."""
    x, axis = part(c, 0), c.attribute("axis", -1)
    if c.attribute("opset", 13) >= 13:
        return floats(c, 3, cg.softmax(x, axis))
    flat = cg.reshape(x, (int(np.prod(x.shape[: axis % x.ndim])), -1))
    return floats(c, 3, cg.reshape(cg.softmax(flat, -1), x.shape))


@operator("com.microsoft.QLinearWhere")
def q_where(c: Context) -> Node:
    return floats(c, 7, cg.where(c[0], part(c, 1), part(c, 4)))


def product_of_numbers(x: Node, y: Node, scales: Scales, bias: Node | None) -> Node:
    """Return ``(x - zx) @ (y - zy) * (sx * sy) + bias``, with a scale and zero point for `y` or for each column."""
    x_scale, y_scale, x_zero, y_zero = scales
    total = cg.matmul(subtract_zero(x, x_zero, max(x.ndim - 2, 0)), subtract_zero(y, y_zero, y.ndim - 1))
    factor = cg.reshape(x_scale, ()) * broadcastable(y_scale, y, y.ndim - 1, 0)
    product = cg.astype(total, "float32") * factor
    return product if bias is None else product + bias


@operator("com.microsoft.MatMulIntegerToFloat")
def matmul_integer_to_float(c: Context) -> Node:
    return product_of_numbers(c[0], c[1], (c[2], c[3], c.get(4), c.get(5)), c.get(6))


@operator("com.microsoft.DynamicQuantizeMatMul")
def dynamic_matmul(c: Context) -> Node:
    x, scale, zero = quantize_dynamically(c[0])
    return product_of_numbers(x, c[1], (scale, c[2], zero, c.get(3)), c.get(4))


@operator("com.microsoft.QAttention")
def q_attention(c: Context) -> tuple[Node, Node | None]:
    """Import QAttention: a quantised projection to queries, keys and values, then float attention with a past."""
    if c.attribute("do_rotary", 0):
        raise FormatError("do_rotary=1 is not supported. Use a RotaryEmbedding node")
    heads = c.required("num_heads")
    together = product_of_numbers(c[0], c[1], (c[3], c[4], c.get(6), c.get(7)), c[2])
    q, k, v = (split_heads(x, heads) for x in cg.split(together, 3, 2))
    return with_past_in_one(c, (q, k, v), c.get(5), c.get(8))


@operator("com.microsoft.QEmbedLayerNormalization")
def q_embed_layer_norm(c: Context) -> tuple[Node, Node]:
    """Import QEmbedLayerNormalization: the norm of summed embeddings, and the number of visible tokens per sample."""
    words, segments = c[0], c.get(1)
    present = [i for i in (2, 3, 4, 5, 6) if c.value(i) is not None]
    tables = {i: cg.dequantize(c[i], c[i + 6], broadcastable(c[i + 11], c[i], 0, 0)) for i in present}
    total = cg.take(tables[2], words, 0) + tables[3][: words.shape[1]]
    if segments is not None:
        total = total + cg.take(tables[4], segments, 0)
    y = cg.layer_norm(total, tables[5], tables[6], c.attribute("epsilon", 1e-12))
    return y, visible_tokens(c, c.get(7))
