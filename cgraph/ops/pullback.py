"""The walk of reverse mode: from results down, asking each op for the gradient of its operands.

It stands among the ops because a loop, which is one, asks it for the gradient of its body.
"""

from collections.abc import Sequence
from typing import Any

from cgraph.errors import DTypeError, GraphError, NoGradientError, ShapeError
from cgraph.ir.graph import Node, locates_errors
from cgraph.ir.half import computing_dtype
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import descendants, post_order
from cgraph.ops.shape import Item, items, ones_like, zeros_like


@locates_errors
def pullback(ys: Sequence[Node], seeds: Sequence[Node], xs: Sequence[Node]) -> list[Node]:
    """The gradient of the sum of all ``ys * seeds`` with respect to each of `xs`: one walk for several results.

    Parameters
        ys: float nodes
        seeds: for each of them the gradient with respect to it, of its shape
        xs: float nodes; zeros for those that no result depends on
    Raises
        NoGradientError, ShapeError, DTypeError: as for `gradient`
    """
    for x in xs:
        if computing_dtype(a_node(x).dtype).kind not in "fc":
            raise DTypeError(f"{x.name} {x.spec} is no float, so there is no gradient with respect to it")
    sums: dict[Any, Node] = {}
    for y, seed in zip(ys, seeds):
        add_to(sums, y, seed_of(y, seed))
    gradients_of = gradients(ys, xs, sums)
    return [gradients_of[x] if x in gradients_of else zeros_like(x) for x in xs]


def a_node(x: Any) -> Node:
    """`x`, or GraphError."""
    if not isinstance(x, Node):
        raise GraphError(f"{x!r:.60} is no node; numbers and arrays are one as cg.Const(x)")
    return x


def seed_of(y: Node, seed: Node | None) -> Node:
    if computing_dtype(a_node(y).dtype).kind not in "fc":
        raise DTypeError(f"{y.name} {y.spec} is no float, so it has no gradient")
    if seed is None:
        if y.dtype.kind == "c":
            raise DTypeError(f"{y.name} {y.spec} is complex; give a seed, or take the gradient of a real part")
        if y.size != 1:
            raise ShapeError(f"{y.name} {y.spec} has {y.size} elements; give a seed, or take the gradient of its sum")
        return ones_like(y)
    if a_node(seed).spec != y.spec:
        raise ShapeError(f"seed {seed.spec} for {y.name} {y.spec}")
    return seed


def gradients(ys: Sequence[Node], xs: Sequence[Node], sums: dict[Any, Node]) -> dict[Any, Node]:
    """`sums`, which has the gradients of `ys`, with those of every node between `xs` and `ys`."""
    order = post_order(ys)
    relevant = descendants(order, xs)
    for node in reversed(order):
        if not any(x in relevant for x in node.operands):
            continue
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
    """What the op says. NoGradientError names the op, its operands and the user's line."""
    try:
        return node.op.grad(node, g)
    except NoGradientError as error:
        named = ", ".join(f"{x.name} {x.spec}" for x in node.operands)
        raise NoGradientError(f"{error} (made at {node.where} of {named})") from None


def gradient_of(node: Node, sums: dict[Any, Node]) -> Any:
    """What has been added up for a node; for a Bundle, one per result, zeros where nobody asked."""
    if not isinstance(node.spec, Bundle):
        return sums.get(node)
    results = items(node)
    parts = [sums.get((node, i)) for i in range(len(results))]
    if all(g is None for g in parts):
        return None
    return tuple(zeros_like(x) if g is None else g for g, x in zip(parts, results))


def add_to(sums: dict[Any, Node], key: Any, g: Node) -> None:
    sums[key] = sums[key] + g if key in sums else g
