"""Loops and conditionals inside a graph: scan and cond."""

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

UNROLLED = 4  # loops up to this length are unrolled, so that passes can fuse their nodes

Values = Any  # a node, or several as a tuple, or None
Function = Callable[[Values, Values], tuple[Values, Values]]


@public
def scan(f: Function, init: Values, xs: Values = None, length: int | None = None) -> tuple[Values, Values]:
    """Loop over the first axis of `xs`: ``carry, ys[i] = f(carry, xs[i])`` for each i, starting with ``carry = init``.

    Parameters
        f: takes the state and one row, and returns the next state, of the same specs, and one row of the result. A loop
            of more than `UNROLLED` rounds calls it once, with Vars; a shorter one calls it in each round
        init: the initial state: a node or array, or a tuple of them
        xs: a sequence ``[length, ...]``, a tuple of sequences, or None
        length: number of rounds; needed only without `xs`
    Returns
        the final state, and the rows that `f` returned, stacked along a new first axis; each is a node, a tuple or
        None, as `f` returns it
    Raises
        GraphError: neither `xs` nor `length` is given, or `f` does not return a pair
        ShapeError: sequences differ in length, or the next state differs from the current one in shape or dtype
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
        raise GraphError("scan: the function returned neither a state nor a result; return (state, row)")
    if count == 0:
        return init if init is None else like(init, carry), like(ys, [zeros((0, *y.shape), y.dtype) for y in results])
    shared, body = close_body(names, row_names, following, results)
    outputs = items(apply(Loop(body, count), *carry, *rows, *shared))
    return like(init, outputs[: len(carry)]), like(ys, outputs[len(carry) :])


def round_count(rows: Sequence[Node], length: int | None) -> int:
    """Return the number of rounds of a loop."""
    lengths = {x.shape[0] if x.ndim else -1 for x in rows} | ({length} if length is not None else set())
    if not lengths:
        raise GraphError("scan has nothing to loop over; pass xs or length=")
    if len(lengths) > 1 or min(lengths) < 0:
        named = ", ".join(f"{x.name} {x.spec}" for x in rows)
        raise ShapeError(f"scan: the first axes of {named} and length={length} differ; pass sequences of one length")
    return lengths.pop()


def unroll(
    f: Function, init: Values, xs: Values, carry: list[Node], rows: list[Node], count: int
) -> tuple[Values, Values]:
    """Build the rounds of a short loop one by one."""
    rows_of_ys: list[list[Node]] = []
    ys: Values = None
    for i in range(count):
        after, ys = call_body(f, like(init, carry), like(xs, [x[i] for x in rows]), carry)
        carry = nodes_of(after)
        rows_of_ys.append(nodes_of(ys))
    return like(init, carry), like(ys, [stack(list(parts)) for parts in zip(*rows_of_ys)])


def call_body(f: Function, state: Values, row: Values, carry: Sequence[Node]) -> tuple[Values, Values]:
    """Call `f` and check its result. ShapeError if the next state has other specs."""
    answer = f(state, row)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise GraphError(f"scan: the function returned {answer!r:.60}; return a pair (next state, row of the result)")
    after = nodes_of(answer[0])
    if [x.spec for x in after] != [x.spec for x in carry]:
        before, after_ = (", ".join(str(x.spec) for x in nodes) or "none" for nodes in (carry, after))
        raise ShapeError(
            f"scan: the state is {before} before a round and {after_} after it; return equal shapes and dtypes"
        )
    return answer


def close_body(carry: list[Var], rows: list[Var], following: list[Node], ys: list[Node]) -> tuple[list[Node], Body]:
    """Return the outside values that a body reads, and the body with Vars in their place."""
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
    """Return ``f(*xs)`` if `p` is True, else ``g(*xs)``: one of two results of equal specs.

    Both branches are computed, and one is selected. The other branch receives zeros in place of `xs`, so its NaN and
    infinities appear neither in the value nor in the gradient. Nothing is saved by `cond`, and Python functions in both
    branches are called at every run.

    Parameters
        p: one bool
        f, g: take `xs` and return a node or a tuple of nodes
    Raises
        ShapeError: `p` has several elements, or the branches differ in their specs
    """
    p = as_node(p).astype(bool)
    if p.size != 1:
        raise ShapeError(
            f"cond: the condition {p.name} {p.spec} has {p.size} elements; reduce it with any or all, or use where"
        )
    p, nodes = reshape(p, ()), [as_node(x) for x in xs]
    first = f(*(where(p, x, zeros_like(x)) for x in nodes))
    other = g(*(where(p, zeros_like(x), x) for x in nodes))
    left, right = nodes_of(first), nodes_of(other)
    if [x.spec for x in left] != [x.spec for x in right]:
        one, two = (", ".join(str(x.spec) for x in nodes) for nodes in (left, right))
        raise ShapeError(f"cond: one function returns {one}, the other {two}; return equal shapes and dtypes")
    return like(first, [where(p, a, b) for a, b in zip(left, right)])


def nodes_of(values: Values) -> list[Node]:
    """Return one node, several or none as a list."""
    if values is None:
        return []
    return [as_node(x) for x in (values if isinstance(values, tuple | list) else (values,))]


def like(pattern: Values, nodes: Sequence[Node]) -> Values:
    """Arrange nodes as `pattern` is: one node, a tuple, or None."""
    if pattern is None:
        return None
    return tuple(nodes) if isinstance(pattern, tuple | list) else nodes[0]
