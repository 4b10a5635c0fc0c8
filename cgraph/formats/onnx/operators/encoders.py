"""Importers of onnxruntime's operators for encoders: attention with its projections or heads, embeddings."""

from collections.abc import Sequence
from itertools import accumulate
from math import sqrt

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.operators.attention import join_heads, split_heads
from cgraph.ir.graph import Node

Three = tuple[Node, Node, Node]  # queries, keys and values


@operator("com.microsoft.Attention")
def projected_attention(c: Context) -> tuple[Node, Node | None]:
    """Import Attention: a projection to queries, keys and values, then attention with a past."""
    if c.attribute("do_rotary", 0) or c.attribute("past_present_share_buffer", 0):
        raise FormatError(
            "do_rotary=1 and past_present_share_buffer=1 are not supported. Export the model without them"
        )
    together = cg.matmul(c[0], c[1])
    together = together if c.value(2) is None else together + c[2]
    sizes = c.attribute("qkv_hidden_sizes") or [together.shape[2] // 3] * 3
    heads = c.required("num_heads")
    q, k, v = (split_heads(x, heads) for x in cg.split(together, list(accumulate(sizes[:2])), 2))
    return with_past_in_one(c, (q, k, v), c.get(3), c.get(4), c.get(5))


def with_past_in_one(
    c: Context, qkv: Three, mask: Node | None, past: Node | None, bias: Node | None = None
) -> tuple[Node, Node | None]:
    """Return the attention ``[batch, queries, heads * size]``, and all keys and values in one array.

    Parameters
        past: earlier keys and values ``[2, batch, heads, length, size]``
    """
    pasts = (None, None) if past is None else (past[0], past[1])
    y, k, v = attend(c, qkv, mask, pasts, bias)
    return y, cg.stack([k, v], 0) if c.asks(1) else None


def attend(
    c: Context, qkv: Three, mask: Node | None, past: Sequence[Node | None], bias: Node | None
) -> tuple[Node, Node, Node]:
    """Return the attention ``[batch, queries, heads * size]``, and the keys and values with the past before them.

    Parameters
        mask: what `visible_keys` takes
        bias: added to the products; broadcasts to ``[batch, heads, queries, keys]``
    """
    q, *current = qkv
    k, v = (x if before is None else cg.concat([before, x], 2) for x, before in zip(current, past))
    length = 0 if past[0] is None else past[0].shape[2]
    scale = c.attribute("scale", 0.0) or 1 / sqrt(q.shape[3])
    causal = bool(c.attribute("unidirectional", 0))
    start = np.full(q.shape[0], length) if causal and length else None
    if mask is not None:
        low = np.float32(c.attribute("mask_filter_value", -10000.0))
        visible = visible_keys(mask, q.shape[0], q.shape[2], k.shape[2])
        hidden = cg.astype(cg.where(visible, np.float32(0), low), q.dtype)
        bias = hidden if bias is None else bias + hidden
    return join_heads(cg.scaled_dot_product_attention(q, k, v, bias, causal, scale, start=start)), k, v


def visible_keys(mask: Node, batch: int, queries: int, keys: int) -> Node:
    """Return True for each key that a query sees, ``[batch, 1, 1 or queries, keys]``.

    Parameters
        mask: not 0 for keys that are seen, ``[batch, keys]`` or ``[batch, queries, keys]``; or the lengths of samples
            ``[batch]``; or their ends, then their starts ``[2 * batch]``
    """
    places = np.arange(keys)
    if mask.shape in ((batch,), (2 * batch,)):
        ends = cg.reshape(mask[:batch], (batch, 1, 1, 1))
        before_end = cg.less(places, ends)
        if mask.shape == (batch,):
            return before_end
        return cg.logical_and(before_end, places >= cg.reshape(mask[batch:], ends.shape))
    if mask.shape == (batch, keys):
        mask = cg.expand_dims(mask, 1)
    if mask.shape not in ((batch, 1, keys), (batch, queries, keys)):
        raise FormatError(
            f"a mask {mask.spec} is not supported: give [batch], [2 * batch], [batch, keys] or [batch, queries, keys]"
        )
    return cg.expand_dims(cg.not_equal(mask, np.zeros((), mask.dtype)), 1)


@operator("com.microsoft.MultiHeadAttention")
def multi_head_attention(c: Context) -> tuple[Node, Node, Node]:
    """Import MultiHeadAttention: attention of queries, keys and values, which may be packed in one operand."""
    if c.asks(3) or any(c.value(i) is not None for i in (8, 9)):
        raise FormatError("a shared buffer of the past, cache_indirection and the result qk are not supported")
    return attend(c, heads_of(c), c.get(4), (c.get(6), c.get(7)), c.get(5))


def heads_of(c: Context) -> Three:
    """Return queries, keys and values ``[batch, heads, length, size]``, with their parts of the bias."""
    heads = c.required("num_heads")
    if c.value(3) is not None and (c.value(1) is None or c.value(2) is None):
        raise FormatError(
            "a bias of packed queries, keys and values is not supported. Export the model without packing"
        )
    if c.value(1) is None:
        return tuple(split_parts(c[0]))  # type: ignore[return-value]
    parts = [c[0], *(split_parts(c[1]) if c.value(2) is None else [c[1], c[2]])]
    if c.value(3) is not None:
        parts = [x if x.ndim == 4 else x + bias for x, bias in zip(parts, split_bias(c[3], parts, heads))]
    q, k, v = (x if x.ndim == 4 else split_heads(x, heads) for x in parts)
    return q, k, v


def split_parts(x: Node) -> list[Node]:
    """Return the parts ``[batch, heads, length, size]`` of ``[batch, length, heads, parts, size]``."""
    return [cg.transpose(x[:, :, :, i], (0, 2, 1, 3)) for i in range(x.shape[3])]


def split_bias(bias: Node, parts: Sequence[Node], heads: int) -> list[Node]:
    """Return the bias of each part: as long as its last axis, or as all heads of one that is split already."""
    sizes = [x.shape[2] if x.ndim == 3 else heads * x.shape[3] for x in parts]
    return cg.split(bias, list(accumulate(sizes[:-1])), 0)


@operator("com.microsoft.EmbedLayerNormalization")
def embed_layer_norm(c: Context) -> tuple[Node, Node, Node]:
    """Import EmbedLayerNormalization: the norm of summed embeddings, visible tokens per sample, and the sum."""
    positions = c[3][: c[0].shape[1]]
    if c.value(8) is not None:
        positions = cg.take(c[3], c.limits.positions(c[8], c[3].shape[0]), 0)
    total = cg.take(c[2], c.limits.positions(c[0], c[2].shape[0]), 0) + positions
    if c.value(1) is not None:
        total = total + cg.take(c[4], c.limits.positions(c[1], c[4].shape[0]), 0)
    y = cg.layer_norm(total, c[5], c[6], c.attribute("epsilon", 1e-12))
    return y, visible_tokens(c, c.get(7)), total


def visible_tokens(c: Context, mask: Node | None) -> Node:
    """Return the number of tokens of each sample that a mask ``[batch, length]`` shows; 0 without a mask."""
    return cg.zeros((c[0].shape[0],), "int32") if mask is None else cg.astype(cg.sum(mask, 1), "int32")
