"""Importers of onnxruntime's operators for decoders: attention with a cache, skip layer norm, rotary embedding."""

from math import sqrt
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.operators.attention import join_heads, rotate, split_heads
from cgraph.ir.graph import Node

MISSING = ("smooth_softmax", "qk_output", "k_quant_type", "v_quant_type")
"""Attributes that are not supported; their defaults are ``NONE`` and 0."""


@operator("com.microsoft.GroupQueryAttention")
def group_query_attention(c: Context) -> tuple[Node, Node, Node]:
    """Import GroupQueryAttention: causal attention with shared heads, which writes new keys and values into the cache.

    The past is a buffer of the maximum number of tokens. Without a past, or with an empty one, the current tokens are
    all tokens.
    """
    asked = [name for name in MISSING if c.attribute(name, 0) not in (0, 0.0, -1, "NONE")]
    more = [i for i in range(10, 14) if c.value(i) is not None]
    if asked or more:
        raise FormatError(f"{asked[0] if asked else f'operand {more[0]}'} is not supported")
    heads, groups = c.required("num_heads"), c.required("kv_num_heads")
    q, k, v = parts(c, heads, groups)
    batch, _, length, size = q.shape
    empty = c.value(3) is None or c[3].shape[2] == 0
    start = cg.maximum(cg.astype(cg.reshape(c[5], (-1,)), "int64") + (1 - length), 0)
    start = cg.zeros((batch,), "int64") if empty else start
    if c.attribute("do_rotary", 0):
        c.spend(nodes=4 * batch)
        cosines, sines = (rows_from(c[i], start, length) for i in (7, 8))
        pairs = bool(c.attribute("rotary_interleaved", 0))
        q, k = (swap(rotate(swap(x), cosines, sines, 2 * cosines.shape[2], pairs)) for x in (q, k))
    keys, values = (x if empty else cg.set_rows(c[i], start, x, 2) for i, x in ((3, k), (4, v)))
    scale = c.attribute("scale", 0.0) or 1 / sqrt(size)
    window = max(c.attribute("local_window_size", -1), 0)
    cap = c.attribute("softcap", 0.0)
    y = cg.scaled_dot_product_attention(q, keys, values, None, True, scale, window=window, start=start, softcap=cap)
    return join_heads(y), keys, values


def parts(c: Context, heads: int, groups: int) -> tuple[Node, Node, Node]:
    """Return queries, keys and values ``[batch, heads, length, size]``, which may be packed in one operand."""
    if c.value(1) is not None:
        return split_heads(c[0], heads), split_heads(c[1], groups), split_heads(c[2], groups)
    together = split_heads(c[0], heads + 2 * groups)
    return together[:, :heads], together[:, heads : heads + groups], together[:, heads + groups :]


def rows_from(table: Node, start: Node, count: int) -> Node:
    """Return ``[batch, count, columns]``: consecutive rows of a table from each sample's position on."""
    return cg.stack([cg.take_rows(table, start[i], count) for i in range(start.shape[0])], 0)


def swap(x: Node) -> Node:
    """Swap the axes of heads and positions."""
    return cg.transpose(x, (0, 2, 1, 3))


@operator("com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization")
def skip_layer_norm(c: Context) -> tuple[Any, ...]:
    """Import SkipLayerNormalization and its simplified form (RMS norm): the norm of a sum, and the sum."""
    simplified, eps = "Simplified" in c.kind, c.attribute("epsilon", 1e-12)
    bias = c.get(3 if simplified else 4)
    total = c[0] + c[1]
    total = total if bias is None else total + bias
    if c.asks(1) or c.asks(2):
        raise FormatError("the outputs mean and inv_std_var are not supported. Remove them")
    if simplified:
        return cg.rms_norm(total, c[2], eps), None, None, total
    shift = c.get(3)
    shift = cg.zeros(total.shape[-1:], total.dtype) if shift is None else shift
    return cg.layer_norm(total, c[2], shift, eps), None, None, total


@operator("com.microsoft.RotaryEmbedding")
def rotary_embedding(c: Context) -> Node:
    """Import RotaryEmbedding of com.microsoft: positions precede the tables, and heads come first in four axes."""
    x, heads = c[0], c.attribute("num_heads", 0)
    size = c.attribute("rotary_embedding_dim", 0)
    packed = x.ndim == 3
    if packed:
        heads = heads or x.shape[2] // (size or 2 * c[2].shape[1])
        x = cg.reshape(x, (*x.shape[:2], heads, x.shape[2] // heads))
    else:
        x = swap(x)
    batch, length = x.shape[:2]
    places = c[1]
    if places.size == 1:
        c.spend(nbytes=8 * length)
        places = cg.reshape(places, (1, 1)) + np.arange(length)
    places = c.limits.positions(cg.broadcast_to(places, (batch, length)), c[2].shape[0])
    cosines, sines = (cg.take(c[i], places, 0) for i in (2, 3))
    y = rotate(x, cosines, sines, size or x.shape[3], bool(c.attribute("interleaved", 0)))
    return cg.reshape(y, c[0].shape) if packed else swap(y)
