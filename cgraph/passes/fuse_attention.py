"""Detection of attention written with plain ops: products of queries and keys, masked, their softmax, its product with
values.
"""

from collections.abc import Callable, Iterator
from functools import partial, reduce
from math import inf
from operator import add, and_

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.arithmetic import Add, Multiply, TrueDivide
from cgraph.ops.attention import scaled_dot_product_attention
from cgraph.ops.compare import Invert, Isnan, Where
from cgraph.ops.elementary import Tanh
from cgraph.ops.linear import Matmul
from cgraph.ops.shape import (
    BroadcastTo,
    Reshape,
    Transpose,
    number_of,
    reshape,
    swapaxes,
    unbroadcast,
)
from cgraph.ops.softmax import Softmax
from cgraph.passes.attention_masks import HIDDEN, Mask, applied, is_lower_triangle, number_of_later_keys
from cgraph.passes.patterns import is_closed
from cgraph.record import Record, replace


class Scores(Record, eq=False):
    """The operand of a softmax, as far as the ops above it have been recognised.

    Fields
        at: the next node to examine
        turned: it has keys before queries
        lead: the leading axes of the node that has most of them, length 1 left out
        scale: factor of the products
        factor: factors of each query's products; None if there are none
        causal: no query sees a later key
        later: the largest number that hides a later key
        masks: other masks, all added or all bool
        softcap: products times their factor become ``softcap * tanh(product / softcap)``; 0 for no cap
        safe: weights that are NaN are replaced by 0
        whole: the shape of the scores above a reshape that splits queries or keys; empty if nothing does
    """

    at: Node
    turned: bool = False
    lead: tuple[int, ...] = ()
    scale: float = 1.0
    factor: Mask | None = None
    causal: bool = False
    later: float = -inf
    masks: tuple[Mask, ...] = ()
    softcap: float = 0.0
    safe: bool = False
    whole: tuple[int, ...] = ()


def fuse_attention(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """softmax(q @ k * scale, capped, masked) @ v -> one op, if no other node reads the values in between: fewer
    bytes.

    Any of these arrays may have its last two axes exchanged, as in ``v.T @ softmax(...).T``, and other leading axes.
    Several masks become one, their sum. Factors of each query's products become factors of the query. Numbers may be
    added to scores whose queries and keys have several axes, as relative positions of rows and of columns are.

    Values change in the last places. A constant mask that hides all later keys becomes `causal`; repeated heads of keys
    become shared ones. Not detected: a bool mask beside numbers that are added; a bool mask beside a causal one of
    finite numbers, where a query whose earlier keys are all hidden sees the later ones; attention whose weights another
    node reads, as in a backward part written with plain ops.

    Weights that are NaN may be replaced by 0, as torch exports its attention: then numbers that are added to hide
    later keys stay a mask, because their sums with scores that are NaN or infinite are NaN.
    """
    graph = Roots.of(outputs)
    if Softmax not in graph.kinds or not graph.has(Matmul):
        return outputs

    def change(node: Node, new: New) -> Node | None:
        for side in (0, 1) if isinstance(node.op, Matmul) and node.size else ():
            scores = scores_of(node.operands[side], side == 1, graph)
            if scores is not None:
                return fuse(scores, node, side == 1, new, graph.is_inner)
        return None

    return rebuild(graph, change)


def fuse(scores: Scores, node: Node, turned: bool, new: New, own: Callable[[Node], bool]) -> Node:
    """Return the op that computes these scores, their softmax and its product with values.

    Parameters
        node: the product; with `turned`, of values and weights with exchanged axes
    """
    (a, left), (b, right) = (without_factor(x, new, own) for x in scores.at.operands)
    queries, keys = (with_turned_axes(b), a) if scores.turned else (a, with_turned_axes(b))
    values = with_turned_axes(new[node.operands[0]]) if turned else new[node.operands[1]]
    lead = leading_axes(scores, values)
    q, k, v = (with_leading_axes(x, lead) for x in (queries, keys, values))
    few = shared_heads(k), shared_heads(v)
    if few[0].shape[:-2] == few[1].shape[:-2]:
        k, v = few
    if scores.factor is not None:
        q = q * applied(scores.factor, lead, new)
    parts = [applied(x, lead, new) for x in scores.masks]
    mask = reduce(and_ if parts[0].dtype == bool else add, parts) if parts else None
    scale = scores.scale * left * right
    y = scaled_dot_product_attention(q, k, v, mask, scores.causal, scale, softcap=scores.softcap, safe=scores.safe)
    return reshape(swapaxes(y, -1, -2) if turned else y, node.shape)


def scores_of(weights: Node, turned: bool, graph: Roots) -> Scores | None:
    """Return the scores whose softmax is a side of a product, down to the products of queries and keys.

    Parameters
        turned: the weights have keys before queries, as on the right side of a product
    """
    s = Scores(weights, turned)
    while graph.is_inner(s.at) and (below := look_through(s)):
        s = below
    whole = without_replaced_nan(s.at)
    if type(whole.op) is not Softmax or whole.op.axis != whole.ndim - 1 - s.turned or not graph.is_inner(s.at):
        return None
    is_safe = whole is not s.at
    if is_safe and not is_closed(graph, s.at, whole.operands):
        return None
    return down_to_product(replace(s, at=whole.operands[0], safe=is_safe), graph)


def down_to_product(s: Scores, graph: Roots) -> Scores | None:
    """Return the product of queries and keys and the steps after it; None if a node is not computed from one."""
    if not graph.is_inner(s.at):
        return None
    if s.whole:
        rule = SPLIT_RULES.get(type(s.at.op))
        return next((x for x in map(partial(down_to_product, graph=graph), rule(s) if rule else ()) if x), None)
    lead = tuple(n for n in s.at.shape[:-2] if n != 1)
    s = replace(s, lead=max(lead, s.lead, key=len))
    if isinstance(s.at.op, Matmul):
        return s if s.at.operands[0].shape[-1] else None
    rule = RULES.get(type(s.at.op))
    ways = (down_to_product(x, graph) for x in rule(s)) if rule else ()
    return next((x for x in ways if x is not None), None)


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


# -- ops between products and softmax, each as what it may be ----------------------------------------------------------
def take_factor(s: Scores) -> Iterator[Scores]:
    """scores * c, scores / c, by a number; scores * c for each query; tanh(scores) * c"""
    divides = isinstance(s.at.op, TrueDivide)
    for x, c in (s.at.operands, s.at.operands[::-1])[: 1 if divides else 2]:
        value, row = number_of(c), unbroadcast(c)
        if value is None:
            if not divides and s.factor is None and not s.softcap and is_for_queries(row, s.turned):
                yield replace(s, at=x, factor=Mask(row, s.at.shape[:-2], s.turned))
        elif value > 0 and not isinstance(x.op, Tanh):
            yield replace(s, at=x, scale=s.scale / value if divides else s.scale * value)
        elif value > 0 and not divides and not s.softcap and s.scale == 1.0 and s.factor is None:
            yield replace(s, at=x, softcap=value, scale=value)


def take_added(s: Scores) -> Iterator[Scores]:
    """scores + mask"""
    if s.scale != 1.0 or s.factor or s.softcap:  # the mask is scaled, or capped, too
        return
    is_free = is_free_sum(s)
    for x, mask in (s.at.operands, s.at.operands[::-1]):
        later = None if s.safe or s.turned else number_of_later_keys(mask)
        if later is not None:
            yield from causal(s, x, later)
        elif is_free:
            yield replace(s, at=x, masks=(*s.masks, Mask(unbroadcast(mask), s.at.shape[:-2], s.turned)))


def take_choice(s: Scores) -> Iterator[Scores]:
    """where(seen, scores, -inf), where(hidden, -inf, scores)"""
    visible, x, other = s.at.operands
    value, negated = number_of(other), False
    if value is None:
        x, value, negated = other, number_of(x), True
    if value is None or s.softcap or s.factor:  # a factor below 0 gives hidden keys all weight
        return
    if value < HIDDEN and not negated and not s.turned and is_lower_triangle(visible):
        yield from causal(s, x, value)
    elif value == -inf and s.later == -inf and all(m.node.dtype == bool for m in s.masks):
        yield replace(s, at=x, masks=(*s.masks, Mask(unbroadcast(visible), s.at.shape[:-2], s.turned, negated)))


def causal(s: Scores, at: Node, later: float) -> Iterator[Scores]:
    """Yield scores whose later keys are hidden by a number; none with a bool mask if that number is finite."""
    if later == -inf or all(x.node.dtype != bool for x in s.masks):
        yield replace(s, at=at, causal=True, later=max(s.later, later))


def take_cap(s: Scores) -> Iterator[Scores]:
    """tanh(scores), if a factor has followed"""
    if s.softcap:
        yield replace(s, at=s.at.operands[0])


def take_view(s: Scores) -> Iterator[Scores]:
    """scores under other leading axes; scores with queries and keys exchanged; sums of scores with more axes"""
    below = look_through(s)
    if below is not None:
        yield below
    elif isinstance(s.at.op, Reshape) and is_free_sum(s):
        yield replace(s, at=s.at.operands[0], whole=s.at.shape)


def is_free_sum(s: Scores) -> bool:
    """Return True if numbers may be added to scores: nothing has scaled or capped them, and no mask is bool."""
    return s.scale == 1.0 and not s.factor and not s.softcap and all(x.node.dtype != bool for x in s.masks)


def take_added_parts(s: Scores) -> Iterator[Scores]:
    """scores + numbers, where queries or keys have several axes"""
    for x, y in (s.at.operands, s.at.operands[::-1]):
        mask, last = unbroadcast(y), s.masks[-1] if s.masks else None
        if last is not None and last.parts == s.at.shape:
            yield replace(s, at=x, masks=(*s.masks[:-1], replace(last, more=(*last.more, mask))))
        else:
            own = Mask(mask, s.whole[:-2], s.turned, parts=s.at.shape, whole=s.whole)
            yield replace(s, at=x, masks=(*s.masks, own))


def take_joined(s: Scores) -> Iterator[Scores]:
    """scores whose queries and keys have one axis each, below those that have several"""
    if s.at.operands[0].shape == s.whole:
        yield replace(s, at=s.at.operands[0], whole=())


def look_through(s: Scores) -> Scores | None:
    """Return the operand of a reshape of leading axes, or of a transpose of the last two."""
    if not isinstance(s.at.op, Reshape | Transpose):
        return None
    x = s.at.operands[0]
    if isinstance(s.at.op, Reshape):
        return replace(s, at=x) if x.shape[-2:] == s.at.shape[-2:] else None
    return replace(s, at=x, turned=not s.turned) if turns_last_axes(s.at.op) else None


RULES: dict[type, Callable[[Scores], Iterator[Scores]]] = {
    Tanh: take_cap,
    Multiply: take_factor,
    TrueDivide: take_factor,
    Add: take_added,
    Where: take_choice,
    Reshape: take_view,
    Transpose: take_view,
}


SPLIT_RULES: dict[type, Callable[[Scores], Iterator[Scores]]] = {Add: take_added_parts, Reshape: take_joined}


def is_for_queries(x: Node, turned: bool) -> bool:
    """Return True if numbers that are broadcast to scores are the same for all keys."""
    return x.ndim < 1 + turned or x.shape[-1 - turned] == 1


def turns_last_axes(op: Transpose) -> bool:
    """Return True if a transpose exchanges the last two axes and no others."""
    n = len(op.axes)
    return n > 1 and op.axes == (*range(n - 2), n - 1, n - 2)


# -- operands ----------------------------------------------------------------------------------------------------------
def leading_axes(s: Scores, values: Node) -> tuple[int, ...]:
    """Return the leading axes of the op: those of the products, unless others split them further."""
    own = s.at.shape[:-2]
    most = max(s.lead, tuple(n for n in values.shape[:-2] if n != 1), key=len)
    return most if len(most) > sum(n != 1 for n in own) else own


def with_leading_axes(x: Node, lead: tuple[int, ...]) -> Node:
    """Return an array under other leading axes."""
    return reshape(x, (*lead, *x.shape[-2:]))


def without_factor(x: Node, new: New, own: Callable[[Node], bool]) -> tuple[Node, float]:
    """Return queries or keys in the new graph, and the number that they are multiplied by, perhaps before a view."""
    if isinstance(x.op, Multiply) and own(x):
        for y, c in (x.operands, x.operands[::-1]):
            value = number_of(c)
            if value is not None:
                return new[y], value
    if isinstance(x.op, Reshape | Transpose) and own(x):
        y, value = without_factor(x.operands[0], new, own)
        return (new[x], value) if value == 1.0 else (apply(x.op, y), value)
    return new[x], 1.0


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
