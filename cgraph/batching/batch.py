"""The walk that batches a graph: each node that depends on the examples becomes one op on all of them.

An op without a rule (`cgraph.batching.rules`) is applied to one example after another by a loop inside the graph, so
every op can be batched.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cgraph.batching.rules import RULES, SAMPLEWISE, expand
from cgraph.ir.graph import Node, apply
from cgraph.ir.origin import keeps_origin
from cgraph.ir.rewrite import with_new_operands
from cgraph.ir.roots import New
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import at_origins, post_order
from cgraph.ops.control import scan
from cgraph.ops.family import Pointwise
from cgraph.ops.leaf import Var
from cgraph.ops.loop import Body, Loop
from cgraph.ops.shape import Item, items, moveaxis, reshape

Values = Node | tuple[Node, ...]
"""A batched value; for a Bundle the batched value of each result."""


@keeps_origin
def batch(outputs: Sequence[Node], new: Mapping[Node, Node], batched: Mapping[Node, Node], size: int) -> list[Node]:
    """Return the outputs for all examples, along a new first axis; one that does not depend on them is repeated.

    Parameters
        new: values that replace nodes and are equal for all examples
        batched: for nodes that differ from example to example, the values of all, ``[size, ...]``
        size: number of examples
    """
    alike, values = New(new), dict[Node, Values](batched)
    for node in at_origins(post_order(outputs)):
        if node in values or node in new:
            continue
        flags = [x in values for x in node.operands]
        if not any(flags):
            operands = tuple(alike[x] for x in node.operands)
            replacement = with_new_operands(node, operands)
            if replacement is not node:
                alike[node] = replacement
        elif isinstance(node.op, Item):
            values[node] = values[node.operands[0]][node.op.index]  # type: ignore[index]
        else:
            xs: list[Any] = [values[x] if flag else alike[x] for x, flag in zip(node.operands, flags)]
            values[node] = batched_node(node, xs, flags, size)
    return [values[x] if x in values else expand(alike[x], size) for x in outputs]  # type: ignore[misc]


def batched_node(node: Node, xs: list[Node], flags: list[bool], size: int) -> Values:
    """Return a node for all examples: by its op's rule, or by a loop over them."""
    op = node.op
    if isinstance(op, Loop):
        return batched_loop(op, xs, flags, size)
    if isinstance(op, Pointwise):
        return apply(op, *[x if flag else expand(x, size) for x, flag in zip(xs, flags)])
    rule: Callable[..., Node | None] | None = RULES.get(type(op))
    result = rule(op, xs, flags, size) if rule is not None else None
    if result is None and isinstance(op, SAMPLEWISE) and flags[0] and not any(flags[1:]):
        result = samplewise(node, xs)
    if result is None:
        return one_by_one(node, xs, flags, size)
    return items(result) if isinstance(result.spec, Bundle) else result


def samplewise(node: Node, xs: list[Node]) -> Node:
    """Return an op that treats the rows of its first axis alike, with the examples' rows joined to one axis."""
    x = xs[0]
    result = apply(node.op, reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:])), *xs[1:])
    return reshape(result, (*x.shape[:2], *result.shape[1:]))


def one_by_one(node: Node, xs: list[Node], flags: list[bool], size: int) -> Values:
    """Return a node for all examples, computed by a loop over them."""

    def example(_: None, rows: tuple[Node, ...]) -> tuple[None, Any]:
        parts = iter(rows)
        result = apply(node.op, *[next(parts) if flag else x for x, flag in zip(xs, flags)])
        return None, items(result) if isinstance(result.spec, Bundle) else result

    return scan(example, None, tuple(x for x, flag in zip(xs, flags) if flag), size)[1]


def batched_loop(op: Loop, xs: list[Node], flags: list[bool], size: int) -> tuple[Node, ...]:
    """Return a loop whose state is that of all examples."""
    body = op.body
    count = len(body.carry)
    rows = slice(count, count + len(body.xs))
    carried = [x if flag else expand(x, size) for x, flag in zip(xs[:count], flags)]
    sequences = [moveaxis(x, 1, 0) if flag else x for x, flag in zip(xs[rows], flags[rows])]
    is_batched = [True] * count + flags[count:]
    variables = [
        Var((size, *x.shape) if flag else x.shape, x.dtype, x.name) for x, flag in zip(body.inputs, is_batched)
    ]
    pairs = list(zip(body.inputs, variables, is_batched))
    results = batch(
        body.results, {x: y for x, y, flag in pairs if not flag}, {x: y for x, y, flag in pairs if flag}, size
    )
    inner = Body(
        tuple(variables[:count]), tuple(variables[rows]), tuple(variables[rows.stop :]),
        tuple(results[:count]), tuple(results[count:]),
    )  # fmt: skip
    loop = apply(Loop(inner, op.length, op.backward, op.states), *carried, *sequences, *xs[rows.stop :])
    return tuple(x if i < count else moveaxis(x, 1, 0) for i, x in enumerate(items(loop)))
