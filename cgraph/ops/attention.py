"""Scaled dot-product attention: a mean of values weighted by the match of keys and queries."""

from functools import partial
from math import inf, prod, sqrt
from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.attention.calls import AttentionViews, Rule, attention_calls, attention_nbytes
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.ops.attention_weights import QueryRows, attention_gradients, causal_gradients, repeat_heads, weights
from cgraph.ops.family import common_dtype, float_dtype
from cgraph.ops.leaf import as_node
from cgraph.ops.linear import matmul
from cgraph.ops.shape import arange, broadcast_to, reshape, zeros
from cgraph.record import Record


class Attention(Op):
    """``softmax(q @ k.T * scale, masked) @ v`` of each head, without an array of all scores.

    Operands
        q: ``[b, h, m, d]``
        k, v: ``[b, g, n, d]`` and ``[b, g, n, e]``; each of their heads serves ``h / g`` adjacent heads of `q`
        mask: with `has_mask`, ``[b, h, m, n]``, where any axis may be 1; bool (False hides a key) or added to the
            scores
        start: with `has_start`, int64 ``[b]``: position of the first query among the keys; 0 without it
    Fields
        scale: factor of the products
        causal: a query sees keys up to its own position
        window: a query sees at most this many of these keys, the last ones, its own position included; 0 for all
        softcap: scores become ``softcap * tanh(scores / softcap)`` before masking; 0 to disable
        safe: all weights of a query are 0 where its softmax is NaN: where its largest score is NaN or an infinity
    Result
        ``[b, h, m, e]``; NaN for a query that sees no key, 0 if `safe`
    """

    scale: float
    causal: bool = False
    window: int = 0
    has_mask: bool = False
    has_start: bool = False
    softcap: float = 0.0
    safe: bool = False

    def infer(self, q: Spec, k: Spec, v: Spec, *rest: Spec) -> Spec:
        if q.dtype.kind != "f" or {k.dtype, v.dtype} != {q.dtype}:
            raise DTypeError(f"queries are {q.dtype}, keys {k.dtype}, values {v.dtype}; convert all to one float dtype")
        (b, h, m, d), (g, n), e = q.shape, k.shape[1:3], v.shape[3]
        if k.shape != (b, g, n, d) or v.shape != (b, g, n, e) or not g or h % g or not n:
            raise ShapeError(
                f"queries {[*q.shape]}, keys {[*k.shape]} and values {[*v.shape]} do not fit; "
                "pass queries [b, h, m, d], keys [b, g, n, d] and values [b, g, n, e] with n > 0 and h a multiple of g"
            )
        mask, start = self.rest(rest)
        if mask and (mask.ndim != 4 or any(x not in (1, y) for x, y in zip(mask.shape, (b, h, m, n)))):
            raise ShapeError(
                f"mask {mask} does not broadcast to {[b, h, m, n]}; use axes of these lengths or of length 1"
            )
        if mask and mask.dtype not in (np.dtype(bool), q.dtype):
            raise DTypeError(f"mask is {mask.dtype}, but must be bool or {q.dtype}; convert it with astype")
        if start and start != Spec((b,), np.dtype("int64")):
            raise ShapeError(f"start is {start}, but must be int64[{b}]; pass one position for each batch element")
        if self.window < 0 or (self.window or start) and not self.causal:
            raise ShapeError(f"window={self.window} or start without causal=True; pass causal=True or leave them out")
        if not 0 <= self.softcap < inf:
            raise ShapeError(f"softcap is {self.softcap}, but must be finite and >= 0; pass 0 to disable it")
        return Spec((b, h, m, e), q.dtype)

    def rest(self, operands: Any) -> tuple[Any, Any]:
        """Return the mask and the start among the remaining operands, None where absent."""
        remaining = iter(operands)
        return next(remaining) if self.has_mask else None, next(remaining) if self.has_start else None

    def meaning(self, q, k, v, *rest):
        mask, start = self.rest(rest)
        repeats = q.shape[1] // k.shape[1]
        k, v = (np.repeat(x, repeats, 1) for x in (k, v))
        scores = self.product(q * np.asarray(self.scale, q.dtype), np.swapaxes(k, 2, 3))
        if self.softcap:
            cap = np.asarray(self.softcap, q.dtype)
            scores = np.tanh(scores / cap) * cap
        if self.causal:
            first = 0 if start is None else start[:, None, None, None]
            own, key = first + np.arange(q.shape[2])[:, None], np.arange(k.shape[2])
            visible = key <= own
            scores = np.where(visible & (key > own - self.window) if self.window else visible, scores, -np.inf)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
        with np.errstate(invalid="ignore"):  # all scores of a row may be -inf
            weights = np.exp(scores - scores.max(3, keepdims=True))
            weights = weights / weights.sum(3, keepdims=True)
        if self.safe:
            weights = np.where(np.isnan(weights), 0, weights).astype(weights.dtype)
        return self.product(weights, v).astype(q.dtype)

    @staticmethod
    def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ``x @ y``."""
        return np.matmul(x, y)

    def multiply_adds(self, q: Spec, k: Spec, v: Spec, *rest: Spec) -> int:
        return prod(q.shape[:3]) * k.shape[2] * (q.shape[3] + v.shape[3])

    def work(self, target: Target, q: Spec, k: Spec, v: Spec, *rest: Spec) -> Work:
        if not prod((*q.shape[:3], v.shape[3])):
            return Work(lambda out, *xs: [], strided=True)
        nbytes = attention_nbytes(target, code_of(q.dtype), q.shape, k.shape[1], v.shape[3])
        overwrites = (0,) if q.shape[3] == v.shape[3] else ()
        return Work(partial(self.calls, target), nbytes, overwrites, strided=True)

    def calls(
        self, target: Target, out: View, q: View, k: View, v: View, *rest: View, workspace: View | None = None
    ) -> list[Call]:
        return attention_calls(target, out, AttentionViews(q, k, v, *self.rest(rest)), self.rule, workspace)

    @property
    def rule(self) -> Rule:
        return Rule(self.scale, self.causal, self.window, self.softcap, self.safe)

    def written_out(self, q: Node, k: Node, v: Node, *rest: Node) -> Node:
        """Return an equivalent expression that computes all weights at once, for targets without this op."""
        mask, start = self.rest(rest)
        return matmul(weights(self.rule, q, k, positions(q.shape[2], start), mask), repeat_heads(v, q))

    def grad(self, node, g):
        q, k, v, *rest = node.operands
        mask, start = self.rest(rest)
        rows = QueryRows(q, g, (g * node).sum(3, keepdims=True), positions(q.shape[2], start))
        gradients = causal_gradients if self.causal and start is None else attention_gradients
        to_q, to_k, to_v, to_mask = gradients(self.rule, rows, k, v, mask)
        return to_q, to_k, to_v, *(to_mask,) * self.has_mask, *(None,) * self.has_start


def positions(m: int, start: Node | None) -> Node:
    """Return the positions of `m` queries: int64 ``[b, 1, m, 1]``, or ``[1, 1, m, 1]`` without a start."""
    own = reshape(arange(m), (1, 1, m, 1))
    return own if start is None else reshape(start, (-1, 1, 1, 1)) + own


@public
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    causal: bool = False,
    scale: float | None = None,
    *,
    window: int = 0,
    start: Any = None,
    softcap: float = 0.0,
    safe: bool = False,
) -> Node:
    """Return ``softmax(query @ key.T * scale + mask) @ value``, computed in bands of queries.

    The array of all scores is never in memory.

    Parameters
        query, key, value: ``[..., m, d]``, ``[..., n, d]``, ``[..., n, e]``. Leading axes broadcast. The last leading
            axis counts heads; keys and values may have fewer heads than queries, each serving equally many adjacent
            ones
        mask: added to the products, or bool, where False hides a key; broadcasts to ``[..., m, n]``
        causal: hide keys after a query's own position; the position of query i is `start` + i
        scale: factor of the products; ``1 / sqrt(d)`` by default
        window: with `causal`, the number of keys that a query sees at most, the last ones; 0 for all
        start: with `causal`, integers that broadcast to the leading axes without the heads; 0 by default
        softcap: replace scaled products by ``softcap * tanh(product / softcap)`` before masking; 0 to disable
        safe: give all keys a weight of 0 where softmax is NaN: for a query that sees no key, or whose largest score is
            NaN or infinite
    Returns
        ``[..., m, e]``; NaN for a query that sees no key, 0 if `safe`
    Raises
        ShapeError: shapes do not fit; `window` or `start` without `causal`; a negative or infinite `softcap`
    Source
        Vaswani et al. 2017, arXiv:1706.03762; Ainslie et al. 2023, arXiv:2305.13245 (shared heads);
        Gemma Team 2024, arXiv:2408.00118 (softcap)
    """
    q, k, v = matrices_of(query, key, value)
    dtype = q.dtype
    if mask is not None:
        mask = as_node(mask)
        mask = mask if mask.dtype.kind == "b" else mask.astype(dtype)
    lead = Leading.of(q, k, v, mask)
    (m, d), (n, e) = q.shape[-2:], v.shape[-2:]
    shape = (*lead.batch, lead.heads, m, e)[lead.new :]
    if not n or not prod(shape):
        return zeros(shape, dtype)
    operands = [lead.four_axes(q, lead.heads), lead.four_axes(k, lead.groups), lead.four_axes(v, lead.groups)]
    if mask is not None:
        operands.append(lead.mask(mask, m, n))
    if start is not None:
        operands.append(reshape(broadcast_to(as_node(start).astype("int64"), lead.batch), (-1,)))
    factor = 1 / sqrt(max(d, 1)) if scale is None else float(scale)
    op = Attention(factor, bool(causal), int(window), mask is not None, start is not None, float(softcap), bool(safe))
    return reshape(apply(op, *operands), shape)


def matrices_of(query: Any, key: Any, value: Any) -> tuple[Node, Node, Node]:
    """Return queries, keys and values of one float dtype. ShapeError if their last two axes do not fit."""
    dtype = float_dtype(common_dtype(query, key, value))
    q, k, v = (as_node(x).astype(dtype) for x in (query, key, value))
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"queries {q.spec}, keys {k.spec} and values {v.spec} do not fit; "
            "pass queries [..., m, d], keys [..., n, d] and values [..., n, e]"
        )
    return q, k, v


class Leading(Record):
    """The broadcast axes before the matrices.

    Fields
        batch: all of them except the last
        heads, groups: the last one, of queries and of keys
        new: number of axes of length 1 that were added and that the result does not have
    """

    batch: tuple[int, ...]
    heads: int
    groups: int
    new: int

    @staticmethod
    def of(q: Node, k: Node, v: Node, mask: Node | None) -> "Leading":
        shapes = [x.shape[:-2] for x in (q, k, v)]
        heads, groups = q.shape[:-2][-1:], max(shapes[1][-1:], shapes[2][-1:])
        is_shared = bool(heads and groups) and heads[0] > groups[0]
        if is_shared:
            if not groups[0] or heads[0] % groups[0]:
                raise ShapeError(
                    f"{heads[0]} heads of queries are not a multiple of {groups[0]} of keys; repeat keys and values"
                )
            shapes = [shapes[0], *((*x[:-1], heads[0]) for x in shapes[1:])]
        shapes += [mask.shape[:-2]] if mask is not None else []
        try:
            lead = np.broadcast_shapes(*shapes)
        except ValueError:
            raise ShapeError(
                f"leading axes {', '.join(map(str, shapes))} do not broadcast; use equal lengths or 1"
            ) from None
        new = max(2 - len(lead), 0)
        *batch, last = (1,) * new + lead
        return Leading(tuple(batch), last, groups[0] if is_shared else last, new)

    def four_axes(self, x: Node, heads: int) -> Node:
        """Reshape ``[..., rows, columns]`` to ``[batch, heads, rows, columns]``."""
        return reshape(broadcast_to(x, (*self.batch, heads, *x.shape[-2:])), (prod(self.batch), heads, *x.shape[-2:]))

    def mask(self, x: Node, m: int, n: int) -> Node:
        """Reshape a mask in the same way; its axes of length 1 stay where possible."""
        x = reshape(x, (1,) * (len(self.batch) + 3 - x.ndim) + x.shape)
        if len(self.batch) > 1:
            x = broadcast_to(x, (*self.batch, *x.shape[-3:]))
            x = reshape(x, (prod(self.batch), *x.shape[-3:]))
        if any(a not in (1, b) for a, b in zip(x.shape[1:], (self.heads, m, n))):
            raise ShapeError(
                f"mask {x.spec} does not broadcast to {[*self.batch, self.heads, m, n]}; use equal lengths or 1"
            )
        return x
