"""Importers of attention, linear attention with a state, rotary embeddings and causal convolution."""

from functools import reduce
from math import sqrt
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic.bounds import Length, Size, node_of
from cgraph.formats.onnx.dynamic.value import (
    Array,
    counts_of,
    cut_to_common,
    fill_padding,
    lengths_of,
    node_in,
    resize_axis,
    with_lengths,
)
from cgraph.formats.onnx.dynamic_ops.operators import prepare_operand
from cgraph.formats.onnx.dynamic_ops.slices import join_along
from cgraph.formats.onnx.tensors import dtype_of_number
from cgraph.ir.graph import Node


def split_heads(x: Node, heads: int) -> Node:
    """Reshape ``[batch, length, heads * size]`` to ``[batch, heads, length, size]``."""
    return cg.transpose(cg.reshape(x, (*x.shape[:2], heads, x.shape[2] // heads)), (0, 2, 1, 3))


def join_heads(x: Node) -> Node:
    """Reshape ``[batch, heads, length, size]`` to ``[batch, length, heads * size]``."""
    return cg.reshape(cg.transpose(x, (0, 2, 1, 3)), (x.shape[0], x.shape[2], x.shape[1] * x.shape[3]))


@operator("Attention")
def attention(c: Context) -> tuple[Array | None, ...]:
    """Import Attention: softmax(q k^T * scale + mask) v per head, with past keys and values first."""
    if c.is_ragged:
        return open_attention(c)
    q, k, v = c[0], c[1], c[2]
    packed = q.ndim == 3
    if packed:
        heads = c.required("q_num_heads"), c.required("kv_num_heads")
        q, k, v = split_heads(q, heads[0]), split_heads(k, heads[1]), split_heads(v, heads[1])
    past = 0
    if c.value(4) is not None:
        past = c[4].shape[2]
        k, v = cg.concat([c[4], k], 2), cg.concat([c[5], v], 2)
    if c.asks(3) or c.attribute("softmax_precision") is not None:
        y, shown_scores = decomposed_attention(c, q, k, v, past)
    else:
        causal = bool(c.attribute("is_causal", 0))
        start = np.full(q.shape[0], past) if causal and past else None
        scale = c.attribute("scale", 1 / sqrt(q.shape[3]))
        mask = lengths_and_mask(c, k.shape[2])
        cap = c.attribute("softcap", 0.0)
        y = cg.scaled_dot_product_attention(q, k, v, mask, causal, scale, start=start, softcap=cap)
        shown_scores = None
    return join_heads(y) if packed else y, k, v, shown_scores


def open_attention(c: Context) -> tuple[Array | None, ...]:
    """Import Attention with dynamic lengths of the batch, the queries or the keys; keys after the length are hidden."""
    if c.asks(3) or c.attribute("softmax_precision") is not None:
        raise FormatError(
            "result 3 and softmax_precision are not supported with a length known only at run time. Give shapes= or "
            "constants= that fix it"
        )
    packed = c.array(0).ndim == 3
    heads = [c.required(f"{name}_num_heads") if packed else 0 for name in ("q", "kv", "kv")]
    if packed:
        for i in range(3):
            prepare_operand(c, c.array(i), (2,), None)  # all heads side by side
    q, k, v = (open_heads(c.array(i), n) for i, n in enumerate(heads))
    past: Length = 0
    if c.value(4) is not None:
        past = lengths_of(c.array(4))[2]
        k, v = (join_along(c, [c.array(i), x], 2) for i, x in ((4, k), (5, v)))
    for x in (q, k, v):
        prepare_operand(c, x, (1, 3), None)  # heads and their size are fixed
    parts, batch = cut_to_common(c.limits, [(node_in(x), 0, lengths_of(x)[0]) for x in (q, k, v)], c.unequal)
    queries = lengths_of(q)[2]
    (key, value), keys = cut_to_common(
        c.limits, [(node, 2, lengths_of(x)[2]) for node, x in zip(parts[1:], (k, v))], c.unequal
    )
    rows, count = parts[0].shape[2], key.shape[2]
    present = [with_lengths(x, {0: batch, 2: keys}) for x in (key, value)]
    key, value = (fill_padding(c.limits, x, 0, (2,)) for x in present)
    mask = open_mask(c, (queries, rows), (keys, count), past)
    scale, cap = c.attribute("scale", 1 / sqrt(key.shape[3])), c.attribute("softcap", 0.0)
    y = cg.scaled_dot_product_attention(parts[0], key, value, mask, False, scale, softcap=cap)
    whole = with_lengths(join_heads(y) if packed else y, {0: batch, 1 if packed else 2: queries})
    return whole, *present, None


def open_heads(x: Array, heads: int) -> Array:
    """Return ``[batch, heads, length, size]``, from ``[batch, length, heads * size]`` if `heads` is not 0."""
    if not heads:
        return x
    return with_lengths(split_heads(node_in(x), heads), {2 if a == 1 else a: n for a, n in counts_of(x).items()})


def open_mask(c: Context, queries: tuple[Length, int], keys: tuple[Length, int], past: Length) -> Node | None:
    """Return the mask ``[…, queries, keys]``, each a length and its maximum, which hides keys after their length."""
    c.spend(nbytes=8 * (queries[1] + keys[1]))
    places, mask = c.limits.steps(keys[1]), None
    inside = [places < node_of(keys[0])] if isinstance(keys[0], Size) else []
    if c.attribute("is_causal", 0):
        c.spend(nbytes=queries[1] * keys[1])
        inside.append(places <= cg.expand_dims(c.limits.steps(queries[1]), 1) + node_of(past))
    if c.value(6) is not None:
        inside.append(cg.less(places, cg.reshape(c[6], (-1, 1, 1, 1))))
    hidden = reduce(cg.logical_and, inside) if inside else None
    if c.value(3) is None:
        return hidden
    mask = c.array(3)
    for axis, (length, room) in ((mask.ndim - 2, queries), (mask.ndim - 1, keys)):
        own = lengths_of(mask)[axis]
        if own != 1:
            c.limits.check_equal(own, length, c.unequal)
            mask = with_lengths(resize_axis(node_in(mask), axis, room), counts_of(mask) | {axis: room})
    node = node_in(mask)
    if hidden is None:
        return node
    return (
        cg.logical_and(node, hidden) if node.dtype == bool else cg.where(hidden, node, np.asarray(-np.inf, node.dtype))
    )


def decomposed_attention(c: Context, q: Node, k: Node, v: Node, past: int) -> tuple[Node, Node]:
    """Return decomposed attention: the result, and the scores or weights that the node outputs."""
    repeats = q.shape[1] // k.shape[1]
    keys, values = (cg.repeat(x, repeats, 1) if repeats > 1 else x for x in (k, v))
    scale = sqrt(c.attribute("scale", 1 / sqrt(q.shape[3])))
    product = cg.matmul(q * scale, cg.swapaxes(keys, 2, 3) * scale)
    cap = c.attribute("softcap", 0.0)
    capped = cg.tanh(product / cap) * cap if cap else product
    masked = with_mask(c, capped, past)
    precision = c.attribute("softmax_precision")
    wide = masked if precision is None else cg.astype(masked, dtype_of_number(precision, "softmax_precision"))
    weights = cg.astype(cg.softmax(wide, -1), q.dtype)
    shown_scores = (product if not cap else capped, capped, masked, weights)[c.attribute("qk_matmul_output_mode", 0)]
    return cg.matmul(weights, values), shown_scores


def lengths_and_mask(c: Context, keys: int) -> Node | None:
    """Return the mask, which also hides keys after the mask or after the length of a sample; None for none."""
    mask = c.get(3)
    if mask is not None and mask.shape[-1] < keys:
        wide = [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1])]
        mask = cg.pad(mask, wide, constant_values=False if mask.dtype == bool else -np.inf)
    if c.value(6) is None:
        return mask
    c.spend(nbytes=8 * keys)
    inside = cg.less(np.arange(keys), cg.reshape(c[6], (-1, 1, 1, 1)))
    if mask is None:
        return inside
    return (
        cg.logical_and(mask, inside) if mask.dtype == bool else cg.where(inside, mask, np.asarray(-np.inf, mask.dtype))
    )


def with_mask(c: Context, scores: Node, past: int) -> Node:
    """Mask scores ``[batch, heads, queries, keys]``: -inf for hidden keys, or add a float mask."""
    queries, keys = scores.shape[2:]
    c.spend(nbytes=8 * (queries + keys) + (queries * keys if c.attribute("is_causal", 0) else 0))
    mask, hidden = lengths_and_mask(c, keys), np.asarray(-np.inf, scores.dtype)
    if mask is not None:
        scores = cg.where(mask, scores, hidden) if mask.dtype == bool else scores + mask
    if c.attribute("is_causal", 0):
        visible = np.arange(keys) <= np.arange(queries)[:, None] + past
        scores = cg.where(visible, scores, hidden)
    return scores


@operator("RotaryEmbedding")
def rotary_embedding(c: Context) -> Node:
    """Import RotaryEmbedding. Source: Su et al. 2021, arXiv:2104.09864."""
    x, cosines, sines = c[0], c[1], c[2]
    packed = x.ndim == 3
    if packed:
        heads = c.attribute("num_heads", 0)
        if not heads:
            raise FormatError(f"num_heads is missing: give it for an operand of {x.ndim} axes")
        x = cg.reshape(x, (*x.shape[:2], heads, x.shape[2] // heads))
    else:
        x = cg.transpose(x, (0, 2, 1, 3))
    size = c.attribute("rotary_embedding_dim", 0) or x.shape[3]
    if c.value(3) is not None:
        at = c.limits.positions(c[3], cosines.shape[0])
        cosines, sines = cg.take(cosines, at, 0), cg.take(sines, at, 0)
    y = rotate(x, cosines, sines, size, bool(c.attribute("interleaved", 0)))
    return cg.reshape(y, c[0].shape) if packed else cg.transpose(y, (0, 2, 1, 3))


def rotate(x: Node, cosines: Node, sines: Node, size: int, pairs: bool) -> Node:
    """Rotate the first `size` elements of each head of ``[batch, length, heads, size]``, in pairs or by halves.

    Cosines and sines are ``[batch, length, size / 2]``.
    """
    part, rest = x[..., :size], x[..., size:]
    cosines, sines = cg.expand_dims(cosines, 2), cg.expand_dims(sines, 2)
    a, b = (part[..., 0::2], part[..., 1::2]) if pairs else (part[..., : size // 2], part[..., size // 2 :])
    real, imaginary = cosines * a - sines * b, sines * a + cosines * b
    y = cg.stack([real, imaginary], -1) if pairs else cg.concat([real, imaginary], -1)
    y = cg.reshape(y, (*x.shape[:3], size))
    return cg.concat([y, rest], -1) if rest.shape[3] else y


@operator("LinearAttention")
def linear_attention(c: Context) -> tuple[Node, Node]:
    """Import LinearAttention: each query reads a state of keys times values, which decays and is updated."""
    heads, kv_heads, rule = (
        c.required("q_num_heads"),
        c.required("kv_num_heads"),
        c.attribute("update_rule", "gated_delta"),
    )
    q, k, v = split_heads(c[0], heads), split_heads(c[1], kv_heads), split_heads(c[2], kv_heads)
    batch, _, length, size = q.shape
    state = c.get(3, None)
    state = cg.zeros((batch, kv_heads, size, v.shape[3]), q.dtype) if state is None else state
    decay = per_position(c.get(4), kv_heads)
    beta = per_position(c.get(5), kv_heads)
    scale = c.attribute("scale", 0.0) or 1 / sqrt(size)
    steps = []
    c.spend(nodes=24 * length)
    for t in range(length):
        key, value = k[:, :, t, :, None], v[:, :, t, None, :]
        if "gated" in rule:
            state = state * cg.exp(cg.swapaxes(decay[:, :, t : t + 1], 2, 3))
        if "delta" in rule:
            value = (value - cg.matmul(cg.swapaxes(key, 2, 3), state)) * beta[:, :, t : t + 1]
        state = state + key * value
        read = cg.repeat(state, heads // kv_heads, 1) if heads != kv_heads else state
        steps.append(cg.matmul(q[:, :, t : t + 1], read) * scale)
    return join_heads(cg.concat(steps, 2)), state


def per_position(x: Node | None, heads: int) -> Any:
    """Reshape ``[batch, length, heads * size]`` to ``[batch, heads, length, size]``; heads is 1 for a shared number."""
    if x is None:
        return None
    return split_heads(x, heads if x.shape[2] % heads == 0 else 1)


@operator("CausalConvWithState")
def causal_conv(c: Context) -> tuple[Node, Node]:
    """Import CausalConvWithState: a depthwise convolution over current and past positions, which are the state."""
    x, f, reach = c[0], c[1], c[1].shape[2] - 1
    past = c.get(3)
    past = cg.zeros((*x.shape[:2], reach), x.dtype) if past is None else past
    sequence = cg.concat([past, x], 2)
    y = cg.conv1d(sequence, f, 1, 0, 1, x.shape[1])
    if c.value(2) is not None:
        y = y + cg.reshape(c[2], (-1, 1))
    kind = c.attribute("activation", "none")
    if kind not in ("none", "silu", "swish"):
        raise FormatError(f"activation {kind!r} is not supported. Use none, silu or swish")
    return y if kind == "none" else cg.swish(y), sequence[:, :, sequence.shape[2] - reach :]
