"""Detection of attention written with plain ops: products of queries and keys, masked, their softmax, its product with
values.
"""

from collections.abc import Callable
from math import inf

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.arithmetic import Add, Cast, Multiply, TrueDivide
from cgraph.ops.attention import scaled_dot_product_attention
from cgraph.ops.compare import Invert, Isnan, Where, logical_not
from cgraph.ops.diagonal import Triangle
from cgraph.ops.elementary import Tanh
from cgraph.ops.leaf import ConstOp
from cgraph.ops.linear import Matmul
from cgraph.ops.shape import BroadcastTo, Reshape, Transpose, number_of, reshape, swapaxes, unbroadcast
from cgraph.ops.softmax import Softmax
from cgraph.passes.patterns import is_closed
from cgraph.record import Record, replace

HIDDEN = -1e30  # a score with this added, or replaced by it, has no weight beside a visible one


class Scores(Record, eq=False):
    """The operand of a softmax, as far as the ops above it have been recognised.

    Fields
        at: the next node to examine
        scale: factor of the products
        causal: no query sees a later key
        later: the largest number that hides a later key
        mask: another mask, added or bool; None if there is none
        negated: the mask is True where a key is hidden
        softcap: products times their factor become ``softcap * tanh(product / softcap)``; 0 for no cap
        safe: weights that are NaN are replaced by 0
    """

    at: Node
    scale: float = 1.0
    causal: bool = False
    later: float = -inf
    mask: Node | None = None
    negated: bool = False
    softcap: float = 0.0
    safe: bool = False


def fuse_attention(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """softmax(q @ k * scale, capped, masked) @ v -> one op, if no other node reads the values in between: fewer
    bytes.

    Values change in the last places. A constant mask that hides all later keys becomes `causal`; repeated heads of keys
    become shared ones. Not detected: several masks beside the causal one; a bool mask beside a causal one of finite
    numbers, where a query whose earlier keys are all hidden sees the later ones; attention whose weights another node
    reads, as in a backward part written with plain ops.

    Weights that are NaN may be replaced by 0, as torch exports its attention: then numbers that are added to hide
    later keys stay a mask, because their sums with scores that are NaN or infinite are NaN.
    """
    graph = Roots.of(outputs)
    if Softmax not in graph.kinds or not graph.has(Matmul):
        return outputs
    own = graph.is_inner

    def change(node: Node, new: New) -> Node | None:
        scores = scores_of(node, graph) if isinstance(node.op, Matmul) else None
        return None if scores is None else fuse(scores, new[node.operands[1]], new, own)

    return rebuild(graph, change)


def fuse(scores: Scores, values: Node, new: New, own: Callable[[Node], bool]) -> Node:
    """Return the op that computes these scores, their softmax and its product with `values`."""
    (q, left), (k, right) = (without_factor(x, own) for x in scores.at.operands)
    mask = None if scores.mask is None else new[scores.mask]
    if mask is not None and scores.negated:
        mask = logical_not(mask)
    keys = with_turned_axes(new[k])
    few = shared_heads(keys), shared_heads(values)
    if few[0].shape[:-2] == few[1].shape[:-2]:
        keys, values = few
    scale = scores.scale * left * right
    return scaled_dot_product_attention(
        new[q], keys, values, mask, scores.causal, scale, softcap=scores.softcap, safe=scores.safe
    )


def scores_of(product: Node, graph: Roots) -> Scores | None:
    """Return the scores whose softmax is the left side of a product, down to the products of queries and keys."""
    weights, own = product.operands[0], graph.is_inner
    whole = without_replaced_nan(weights)
    if type(whole.op) is not Softmax or whole.op.axis != whole.ndim - 1 or not own(weights):
        return None
    if whole is not weights and not is_closed(graph, weights, whole.operands):
        return None
    scores: Scores | None = Scores(whole.operands[0], safe=whole is not weights)
    while scores is not None and own(scores.at) and not isinstance(scores.at.op, Matmul):
        rule = RULES.get(type(scores.at.op))
        scores = rule(scores) if rule else None
    return scores if scores is not None and own(scores.at) and scores.at.operands[0].shape[-1] else None


def without_replaced_nan(x: Node) -> Node:
    """where(isnan(y), 0, y), where(~isnan(y), y, 0): return y; another node as it is."""
    if not isinstance(x.op, Where):
        return x
    condition, y, zero = x.operands
    if isinstance(condition.op, Invert):
        condition = condition.operands[0]
    else:
        y, zero = zero, y
    return y if isinstance(condition.op, Isnan) and condition.operands[0] is y and number_of(zero) == 0 else x


# -- ops between products and softmax
# -----------------------------------------------------------------------------------
def take_factor(s: Scores) -> Scores | None:
    """scores * c, scores / c, by a number; tanh(scores) * c"""
    divides = isinstance(s.at.op, TrueDivide)
    for x, c in (s.at.operands, s.at.operands[::-1])[: 1 if divides else 2]:
        value = number_of(c)
        if value is None or value <= 0:
            continue
        if isinstance(x.op, Tanh):
            return None if divides or s.softcap or s.scale != 1.0 else replace(s, at=x, softcap=value, scale=value)
        return replace(s, at=x, scale=s.scale / value if divides else s.scale * value)
    return None


def take_added(s: Scores) -> Scores | None:
    """scores + mask"""
    if s.scale != 1.0 or s.softcap:  # the mask is scaled, or capped, too
        return None
    for x, mask in (s.at.operands, s.at.operands[::-1]):
        if type(x.op) in RULES or isinstance(x.op, Matmul):
            later = number_of_later_keys(mask)
            if later is not None and not s.safe:
                return causal(s, x, later)
            return replace(s, at=x, mask=unbroadcast(mask)) if s.mask is None else None
    return None


def take_choice(s: Scores) -> Scores | None:
    """where(seen, scores, -inf), where(hidden, -inf, scores)"""
    if s.softcap:
        return None
    visible, x, other = s.at.operands
    value, negated = number_of(other), False
    if value is None:
        x, value, negated = other, number_of(x), True
    if value is None:
        return None
    if value < HIDDEN and not negated and is_lower_triangle(visible):
        return causal(s, x, value)
    if value != -inf or s.mask is not None or s.later > -inf:
        return None
    return replace(s, at=x, mask=unbroadcast(visible), negated=negated)


def causal(s: Scores, at: Node, later: float) -> Scores | None:
    """Return scores whose later keys are hidden by a number; None beside a bool mask if that number is finite."""
    if later > -inf and s.mask is not None and s.mask.dtype == bool:
        return None
    return replace(s, at=at, causal=True, later=max(s.later, later))


def take_cap(s: Scores) -> Scores | None:
    """tanh(scores), if a factor has followed"""
    return replace(s, at=s.at.operands[0]) if s.softcap else None


RULES: dict[type, Callable[[Scores], Scores | None]] = {
    Tanh: take_cap,
    Multiply: take_factor,
    TrueDivide: take_factor,
    Add: take_added,
    Where: take_choice,
}


def without_factor(x: Node, own: Callable[[Node], bool]) -> tuple[Node, float]:
    """Return queries or keys, and the number that they are multiplied by."""
    if isinstance(x.op, Multiply) and own(x):
        for y, c in (x.operands, x.operands[::-1]):
            value = number_of(c)
            if value is not None:
                return y, value
    return x, 1.0


def with_turned_axes(x: Node) -> Node:
    """Return the node with its last two axes exchanged; the operand itself if the node is such a transpose.

    A reshape of the axes before these stays after the transpose.
    """
    if isinstance(x.op, Reshape) and isinstance(x.operands[0].op, Transpose):
        source = x.operands[0]
        if source.shape[-2:] == x.shape[-2:]:
            return reshape(with_turned_axes(source), (*x.shape[:-2], x.shape[-1], x.shape[-2]))
    if isinstance(x.op, Transpose):
        *rest, a, b = x.op.axes
        if (*rest, b, a) == tuple(range(x.ndim)):
            return x.operands[0]
    return swapaxes(x, -1, -2)


def shared_heads(x: Node) -> Node:
    """Return ``[b, g, n, d]`` for ``[b, g * repeats, n, d]`` if each head is repeated `repeats` times in a row."""
    wide = x.operands[0] if isinstance(x.op, Reshape) else x
    if x.ndim != 4 or wide.ndim != 5 or not isinstance(wide.op, BroadcastTo):
        return x
    (b, h, n, d), narrow = x.shape, wide.operands[0]
    groups = narrow.shape[1] if narrow.ndim == 5 else 0
    if narrow.shape != (b, groups, 1, n, d) or wide.shape != (b, groups, h // max(groups, 1), n, d):
        return x
    source = narrow.operands[0] if isinstance(narrow.op, Reshape) else narrow
    return source if source.shape == (b, groups, n, d) else x


# -- constants ---------------------------------------------------------------------------------------------------------
def is_lower_triangle(x: Node) -> bool:
    """Return True for a known bool ``[..., m, n]`` that is True on the main diagonal and below it."""
    x = unbroadcast(x)
    while isinstance(x.op, Cast):
        x = x.operands[0]
    if isinstance(x.op, Triangle):
        return x.op.offset == 0 and not x.op.upper and number_of(x.operands[0]) not in (None, 0.0)
    return isinstance(x.op, ConstOp) and is_triangle(x.op.array != 0)


def number_of_later_keys(x: Node) -> float | None:
    """Return the largest number that hides a later key in `x` ``[..., m, n]``, which is 0 on the main diagonal and
    below it.

    None if `x` is another matrix, or does not hide every later key.
    """
    x = unbroadcast(x)
    if isinstance(x.op, Where):
        visible, zero, low = x.operands
        value = number_of(low)
        hides = number_of(zero) == 0 and value is not None and value < HIDDEN and is_lower_triangle(visible)
        return value if hides else None
    if not isinstance(x.op, ConstOp) or not is_triangle(x.op.array == 0):
        return None
    value = float(x.op.array.max(initial=-inf, where=x.op.array != 0))
    return value if value < HIDDEN else None


def is_triangle(visible: np.ndarray) -> bool:
    """Return True if the array ``[..., m, n]`` is one matrix that is True exactly on and below its main diagonal."""
    if visible.ndim < 2 or visible.size != visible.shape[-1] * visible.shape[-2]:
        return False
    return bool((visible.reshape(visible.shape[-2:]) == (np.tri(*visible.shape[-2:]) > 0)).all())
