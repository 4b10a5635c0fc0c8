"""Reverse-mode differentiation: the walk from results to sources that collects gradients of operands.

It is part of `cgraph.ops` because a loop, which is an op, differentiates its body with it.
"""

from collections.abc import Sequence
from typing import Any

from cgraph.dtypes.convert import computing_dtype
from cgraph.errors import DTypeError, GraphError, NoGradientError, ShapeError
from cgraph.ir.graph import Node, Op, locates_errors
from cgraph.ir.origin import NAME, keeps_origin
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import descendants, post_order
from cgraph.ops.shape import Item, items, ones_like, zeros_like


@locates_errors
def pullback(ys: Sequence[Node], seeds: Sequence[Node], xs: Sequence[Node]) -> list[Node]:
    """Return the gradient of the sum of all ``ys * seeds`` with respect to each of `xs`, in one walk.

    Parameters
        ys: float nodes
        seeds: for each y, the gradient with respect to it, of its shape
        xs: float nodes; the gradient is zero for those on which no y depends
    Raises
        NoGradientError, ShapeError, DTypeError: as for `gradient`
    """
    for x in xs:
        if computing_dtype(a_node(x).dtype).kind not in "fc":
            raise DTypeError(
                f"{x.name} {x.spec} is not a float, so there is no gradient with respect to it; convert it with astype"
            )
    sums: dict[Any, Node] = {}
    for y, seed in zip(ys, seeds):
        add_to(sums, y, seed_of(y, seed))
    gradients_of = gradients(ys, xs, sums)
    return [gradients_of[x] if x in gradients_of else zeros_like(x) for x in xs]


def a_node(x: Any) -> Node:
    """Return `x`. GraphError if it is not a node."""
    if not isinstance(x, Node):
        raise GraphError(f"{x!r:.60} is not a node; wrap numbers and arrays as cg.Const(x)")
    return x


def seed_of(y: Node, seed: Node | None) -> Node:
    """Return the seed of y, ones by default. ShapeError or DTypeError if it does not fit."""
    if computing_dtype(a_node(y).dtype).kind not in "fc":
        raise DTypeError(f"{y.name} {y.spec} is not a float, so it has no gradient; convert it with astype")
    if seed is None:
        if y.dtype.kind == "c":
            raise DTypeError(f"{y.name} {y.spec} is complex; pass seed=, or differentiate its real part")
        if y.size != 1:
            raise ShapeError(f"{y.name} {y.spec} has {y.size} elements; pass seed=, or differentiate its sum")
        return ones_like(y)
    if a_node(seed).spec != y.spec:
        raise ShapeError(f"seed {seed.spec} does not fit {y.name} {y.spec}; pass a seed of the same shape and dtype")
    return seed


@keeps_origin
def gradients(ys: Sequence[Node], xs: Sequence[Node], sums: dict[Any, Node]) -> dict[Any, Node]:
    """Extend `sums`, which holds the gradients of `ys`, by those of all nodes between `xs` and `ys`.

    New nodes are named by the node whose gradient is passed on: ``gradient of blocks.0``.
    """
    order = post_order(ys)
    relevant = descendants(order, xs)
    for node in reversed(order):
        if not any(x in relevant for x in node.operands):
            continue
        NAME.set(f"gradient of {node.label}" if node.label else "")
        g = gradient_of(node, sums)
        if g is None:
            continue
        if isinstance(node.op, Item):
            add_to(sums, (node.operands[0], node.op.index), g)
            continue
        for x, gx in zip(node.operands, operand_gradients(node, g)):
            if gx is not None and x in relevant and computing_dtype(x.dtype).kind in "fc":
                add_to(sums, x, gx)
    return sums


def operand_gradients(node: Node, g: Any) -> "tuple[Node | None, ...]":
    """Return the op's gradients. A NoGradientError names the op, its operands and the user's line."""
    try:
        return node.op.grad(node, g)
    except NoGradientError as error:
        named = ", ".join(f"{x.name} {x.spec}" for x in node.operands)
        advice = ". Apply cg.stop_gradient to its result" if type(node.op).grad is Op.grad else ""
        raise NoGradientError(f"{error} (made at {node.where} of {named}){advice}") from None


def gradient_of(node: Node, sums: dict[Any, Node]) -> Any:
    """Return the accumulated gradient of a node; for a Bundle, one for each result, zeros where unused."""
    if not isinstance(node.spec, Bundle):
        return sums.get(node)
    results = items(node)
    parts = [sums.get((node, i)) for i in range(len(results))]
    if all(g is None for g in parts):
        return None
    return tuple(zeros_like(x) if g is None else g for g, x in zip(parts, results))


def add_to(sums: dict[Any, Node], key: Any, g: Node) -> None:
    """Add a gradient to the sum under `key`."""
    sums[key] = sums[key] + g if key in sums else g
