"""Loops and choices inside a graph: scan and cond."""

from collections.abc import Callable, Sequence
from typing import Any

from cgraph.errors import GraphError, ShapeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.traverse import descendants, post_order
from cgraph.ops.compare import where
from cgraph.ops.join import stack
from cgraph.ops.leaf import ConstOp, Var, as_node
from cgraph.ops.loop import Body, Loop
from cgraph.ops.shape import ViewOp, items, reshape, zeros, zeros_like

UNROLLED = 4  # rounds up to which a loop is written out: nodes that passes can join with their neighbours

Values = Any  # a node, or several as a tuple, or None
Function = Callable[[Values, Values], tuple[Values, Values]]


@public
def scan(f: Function, init: Values, xs: Values = None, length: int | None = None) -> tuple[Values, Values]:
    """A loop over the first axis of `xs`: ``carry, ys[i] = f(carry, xs[i])`` for each i, from ``carry = init``.

    Parameters
        f: given the state and one row, returns the next state, of the same specs, and one row of the result. It is
            called once, with Vars, for a long loop; per round for one of up to `UNROLLED` rounds
        init: the state before the first round: a node or array, or a tuple of them
        xs: a sequence ``[length, ...]``, or a tuple of them, or None
        length: rounds; needed only without `xs`
    Returns
        the last state, and the rows that `f` returned, stacked along a new first axis: each a node, or a tuple or None
        as `f` has it
    Raises
        GraphError: there is nothing to loop over, or `f` returns no pair
        ShapeError: sequences differ in length; the next state has another shape or dtype than the present one
    """
    carry, rows = nodes_of(init), nodes_of(xs)
    count = round_count(rows, length)
    if 0 < count <= UNROLLED:
        return unroll(f, init, xs, carry, rows, count)
    names = [Var(x.shape, x.dtype, f"carry{i}") for i, x in enumerate(carry)]
    row_names = [Var(x.shape[1:], x.dtype, f"row{i}") for i, x in enumerate(rows)]
    after, ys = call_body(f, like(init, names), like(xs, row_names), carry)
    following, results = nodes_of(after), nodes_of(ys)
    if not following and not results:
        raise GraphError("scan: the function has neither a state nor a result")
    if count == 0:
        return init if init is None else like(init, carry), like(ys, [zeros((0, *y.shape), y.dtype) for y in results])
    shared, body = close_body(names, row_names, following, results)
    outputs = items(apply(Loop(body, count), *carry, *rows, *shared))
    return like(init, outputs[: len(carry)]), like(ys, outputs[len(carry) :])


def round_count(rows: Sequence[Node], length: int | None) -> int:
    """How often a loop runs."""
    lengths = {x.shape[0] if x.ndim else -1 for x in rows} | ({length} if length is not None else set())
    if not lengths:
        raise GraphError("scan: give sequences to loop over, or a length")
    if len(lengths) > 1 or min(lengths) < 0:
        named = ", ".join(f"{x.name} {x.spec}" for x in rows)
        raise ShapeError(f"scan: sequences of {named} and the length {length} do not give one number of rounds")
    return lengths.pop()


def unroll(
    f: Function, init: Values, xs: Values, carry: list[Node], rows: list[Node], count: int
) -> tuple[Values, Values]:
    """The loop written out."""
    rows_of_ys: list[list[Node]] = []
    ys: Values = None
    for i in range(count):
        after, ys = call_body(f, like(init, carry), like(xs, [x[i] for x in rows]), carry)
        carry = nodes_of(after)
        rows_of_ys.append(nodes_of(ys))
    return like(init, carry), like(ys, [stack(list(parts)) for parts in zip(*rows_of_ys)])


def call_body(f: Function, state: Values, row: Values, carry: Sequence[Node]) -> tuple[Values, Values]:
    """What `f` returns, its next state checked."""
    answer = f(state, row)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise GraphError(f"scan: the function returns the next state and a row of the result, not {answer!r:.60}")
    after = nodes_of(answer[0])
    if [x.spec for x in after] != [x.spec for x in carry]:
        before, behind = (", ".join(str(x.spec) for x in nodes) or "none" for nodes in (carry, after))
        raise ShapeError(f"scan: the state is {before} before a round and {behind} after it")
    return answer


def close_body(carry: list[Var], rows: list[Var], following: list[Node], ys: list[Node]) -> tuple[list[Node], Body]:
    """What a body reads from outside, and the body with Vars in its place."""
    order = post_order([*following, *ys])
    inner = descendants(order, [*carry, *rows])
    free: set[Node] = set()
    for node in order:
        if isinstance(node.op, ConstOp) or (isinstance(node.op, ViewOp) and all(x in free for x in node.operands)):
            free.add(node)
    read = dict.fromkeys(x for node in order if node in inner for x in node.operands)
    read |= dict.fromkeys([*following, *ys])
    shared = [x for x in read if x not in inner and x not in free]
    new: dict[Node, Node] = {x: Var(x.shape, x.dtype, f"shared{i}") for i, x in enumerate(shared)}
    names: list[Any] = [new[x] for x in shared]
    for node in order:
        if node not in new and (node in free or not node.operands):
            new[node] = node
        elif node not in new and node in inner:
            new[node] = apply(node.op, *(new[x] for x in node.operands))
    return shared, Body(
        tuple(carry), tuple(rows), tuple(names), tuple(new[x] for x in following), tuple(new[y] for y in ys)
    )


@public
def cond(p: Any, f: Callable[..., Values], g: Callable[..., Values], *xs: Any) -> Values:
    """``f(*xs)`` if `p` is true, else ``g(*xs)``: one of two results of equal specs.

    Both are computed, and one is taken; the other gets zeros in place of `xs`, and neither its value nor its gradient,
    NaN and infinity included, shows. So there is no time to be gained, and a Python function in it is called always.

    Parameters
        p: one bool
        f, g: given `xs`, return a node or a tuple of nodes
    Raises
        ShapeError: `p` has several elements, or the results differ
    """
    p = as_node(p).astype(bool)
    if p.size != 1:
        raise ShapeError(f"cond: {p.name} {p.spec} is not one bool")
    p, nodes = reshape(p, ()), [as_node(x) for x in xs]
    first = f(*(where(p, x, zeros_like(x)) for x in nodes))
    other = g(*(where(p, zeros_like(x), x) for x in nodes))
    left, right = nodes_of(first), nodes_of(other)
    if [x.spec for x in left] != [x.spec for x in right]:
        one, two = (", ".join(str(x.spec) for x in nodes) for nodes in (left, right))
        raise ShapeError(f"cond: one function returns {one}, the other {two}")
    return like(first, [where(p, a, b) for a, b in zip(left, right)])


def nodes_of(values: Values) -> list[Node]:
    """One node, several, or none, as a list."""
    if values is None:
        return []
    return [as_node(x) for x in (values if isinstance(values, tuple | list) else (values,))]


def like(pattern: Values, nodes: Sequence[Node]) -> Values:
    """Nodes as `pattern` has them: one, a tuple, or None."""
    if pattern is None:
        return None
    return tuple(nodes) if isinstance(pattern, tuple | list) else nodes[0]
