"""The weights of attention as nodes, and its gradient, which recomputes the weights in bands of queries."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from cgraph.ir.graph import Node
from cgraph.kernels.attention.calls import Rule
from cgraph.ops.arithmetic import square
from cgraph.ops.compare import greater, isnan, less_equal, where
from cgraph.ops.control import UNROLLED, scan
from cgraph.ops.elementary import tanh
from cgraph.ops.join import concat, repeat
from cgraph.ops.linear import matmul
from cgraph.ops.pad import pad
from cgraph.ops.shape import arange, moveaxis, reshape, sum_to, swapaxes, zeros_like
from cgraph.ops.softmax import softmax
from cgraph.record import Record

MOST_WEIGHTS = 1 << 20  # elements in memory at a time
SEGMENTS, LEAST_QUERIES = 4, 32  # of causal queries, each with the keys that it sees; the least queries of a segment


class QueryRows(Record, eq=False):
    """Some queries with the values that belong to each.

    Fields
        q, g: queries ``[b, h, m, d]`` and the gradient of their results ``[b, h, m, e]``
        inner: the sum of result times gradient ``[b, h, m, 1]``
        own: int64 ``[b, 1, m, 1]`` or ``[1, 1, m, 1]``, their positions among the keys
    """

    q: Node
    g: Node
    inner: Node
    own: Node


class QuerySegment(Record):
    """The queries ``first .. last``, and their keys ``low .. last``."""

    first: int
    last: int
    low: int

    def of_mask(self, mask: Node) -> Node:
        """Return the part of a mask for these queries and keys."""
        rows = mask[:, :, self.first : self.last] if mask.shape[2] > 1 else mask
        return rows[:, :, :, self.low : self.last] if mask.shape[3] > 1 else rows


def causal_gradients(
    rule: Rule, rows: QueryRows, k: Node, v: Node, mask: Node | None
) -> tuple[Node, Node, Node, Node | None]:
    """Return the gradients of causal attention whose query i is at position i. Hidden keys are not computed.

    The queries are cut into segments, and each segment reads the keys from the first to the last that it sees. Longer
    ones are loops, which are not unrolled, so that the weights of one band are in memory at a time.
    """
    (b, h, m, _), n = rows.q.shape, k.shape[2]
    count = min(SEGMENTS, m // LEAST_QUERIES)
    if m > n or count < 2:
        return attention_gradients(rule, rows, k, v, mask)
    ends = [m * i // count for i in range(count + 1)]
    spans = [QuerySegment(i, j, max(0, i - rule.window + 1) if rule.window else 0) for i, j in zip(ends, ends[1:])]
    parts = []
    for span in spans:
        q, g, inner, own = (x[:, :, span.first : span.last] for x in (rows.q, rows.g, rows.inner, rows.own))
        operands = QueryRows(q, g, inner, own - span.low), k[:, :, span.low : span.last], v[:, :, span.low : span.last]
        share = b * h * (span.last - span.first) * (span.last - span.low) // (UNROLLED + 1)
        most = MOST_WEIGHTS if b * h * m * n <= UNROLLED * MOST_WEIGHTS else min(MOST_WEIGHTS, share)
        parts.append(attention_gradients(rule, *operands, None if mask is None else span.of_mask(mask), most))
    to_q, to_k, to_v, to_mask = zip(*parts)
    masks = None if mask is None or to_mask[0] is None else joined_masks(to_mask, spans, mask)
    return concat(to_q, 2), sum_spans(to_k, spans, k), sum_spans(to_v, spans, v), masks


def sum_spans(parts: Sequence[Node], spans: Sequence[QuerySegment], like: Node) -> Node:
    """Return the sum of arrays that each hold the keys of one span; 0 for keys in none, in the shape of `like`."""
    n = like.shape[2]
    ends = sorted({n, *(end for span in spans for end in (span.low, span.last))} | {0})
    blocks = []
    for low, high in zip(ends, ends[1:]):
        own = [x[:, :, low - s.low : high - s.low] for x, s in zip(parts, spans) if s.low <= low and high <= s.last]
        blocks.append(reduce(add, own) if own else zeros_like(like[:, :, low:high]))
    return concat(blocks, 2)


def joined_masks(parts: Sequence[Node], spans: Sequence[QuerySegment], mask: Node) -> Node:
    """Return the gradient of a float mask from those of its parts."""
    if mask.shape[3] > 1:
        parts = [pad(x, [(0, 0)] * 3 + [(s.low, mask.shape[3] - s.last)]) for x, s in zip(parts, spans)]
    return concat(parts, 2) if mask.shape[2] > 1 else reduce(add, parts)


def attention_gradients(
    rule: Rule, rows: QueryRows, k: Node, v: Node, mask: Node | None, most: int = MOST_WEIGHTS
) -> tuple[Node, Node, Node, Node | None]:
    """Return the gradients of queries, keys, values and a float mask, with about `most` weights at a time."""
    (b, h, m, _), n = rows.g.shape, k.shape[2]
    if b * h * m * n <= most:
        return gradients_at_once(rule, rows, k, v, mask)
    band = max(1, most // (b * h * n))
    parts = [split_bands(x, band) for x in (rows.q, rows.g, rows.inner, rows.own)]
    by_row = mask is not None and mask.shape[2] == m
    if mask is not None and by_row:
        parts.append(split_bands(mask, band, filler=mask.dtype.kind == "b"))
    is_summed = mask is not None and mask.dtype.kind == "f" and not by_row
    start = tuple(zeros_like(x) for x in (k, v, mask) if x is not None)[: 3 if is_summed else 2]

    def one(sums: Any, xs: Any) -> Any:
        to_q, *to_all = gradients_at_once(rule, QueryRows(*xs[:4]), k, v, xs[4] if by_row else mask)
        gradients = [x for x in to_all if x is not None]
        return tuple(a + b for a, b in zip(sums, gradients)), (to_q, *gradients[len(sums) :])

    (to_k, to_v, *to_mask), (to_q, *masks) = scan(one, start, tuple(parts))
    to_mask += [join_bands(x, m) for x in masks]
    return join_bands(to_q, m), to_k, to_v, to_mask[0] if to_mask else None


def split_bands(x: Node, band: int, filler: bool = False) -> Node:
    """Split ``[b, h, m, c]`` into ``[bands, b, h, band, c]``, padded with zeros or, with `filler`, ones."""
    b, h, m, c = x.shape
    missing = -m % band
    x = pad(x, ((0, 0), (0, 0), (0, missing), (0, 0)), constant_values=filler) if missing else x
    return moveaxis(reshape(x, (b, h, (m + missing) // band, band, c)), 2, 0)


def join_bands(x: Node, m: int) -> Node:
    """Join bands along the queries and drop the padding."""
    bands, b, h, band, c = x.shape
    return reshape(moveaxis(x, 0, 2), (b, h, bands * band, c))[:, :, :m]


def gradients_at_once(
    rule: Rule, rows: QueryRows, k: Node, v: Node, mask: Node | None
) -> tuple[Node, Node, Node, Node | None]:
    """Return the gradients, with all weights in memory at once."""
    keys, probabilities = repeat_heads(k, rows.q), weights(rule, rows.q, k, rows.own, mask)
    to_scores = probabilities * (matmul(rows.g, swapaxes(repeat_heads(v, rows.q), 2, 3)) - rows.inner)
    to_products = to_scores
    if rule.softcap:
        to_products = to_scores * (1 - square(tanh(products(rule, rows.q, k) / rule.softcap)))
    to_q = matmul(to_products, keys) * rule.scale
    to_k, to_v = matmul(swapaxes(to_products, 2, 3), rows.q) * rule.scale, matmul(swapaxes(probabilities, 2, 3), rows.g)
    to_mask = sum_to(to_scores, mask.shape) if mask is not None and mask.dtype.kind == "f" else None
    return to_q, sum_heads(to_k, k), sum_heads(to_v, v), to_mask


def repeat_heads(x: Node, q: Node) -> Node:
    """Repeat the heads of keys or values so that each head of the queries has one."""
    repeats = q.shape[1] // x.shape[1]
    return repeat(x, repeats, 1) if repeats > 1 else x


def sum_heads(x: Node, like: Node) -> Node:
    """Sum over the heads that share one head of `like`."""
    b, g, n, c = like.shape
    return x if x.shape[1] == g else reshape(x, (b, g, x.shape[1] // g, n, c)).sum(2)


def products(rule: Rule, q: Node, k: Node) -> Node:
    """Return the scaled products of queries and keys, ``[b, h, m, n]``."""
    return matmul(q, swapaxes(repeat_heads(k, q), 2, 3)) * rule.scale


def weights(rule: Rule, q: Node, k: Node, own: Node, mask: Node | None) -> Node:
    """Return the weight of each key for each query, ``[b, h, m, n]``; `own` holds the queries' positions."""
    x, keys = products(rule, q, k), arange(k.shape[2])
    if rule.softcap:
        x = tanh(x / rule.softcap) * rule.softcap
    if rule.causal:
        x = where(less_equal(keys, own), x, float("-inf"))
    if rule.window:
        x = where(greater(keys, own - rule.window), x, float("-inf"))
    if mask is not None:
        x = where(mask, x, float("-inf")) if mask.dtype.kind == "b" else x + mask
    probabilities = softmax(x, 3)
    return where(isnan(probabilities), 0, probabilities) if rule.safe else probabilities
