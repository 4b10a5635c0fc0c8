"""Loops with a number of rounds and choices inside a graph: scan, fori and cond."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, GraphError, ShapeError
from cgraph.ir.graph import Node, apply, next_serial, public
from cgraph.ops.closure import close
from cgraph.ops.conditional import Conditional
from cgraph.ops.join import stack
from cgraph.ops.leaf import Var, as_node
from cgraph.ops.loop import Body, Loop
from cgraph.ops.nested import Values, like, nodes_of, ordered, structure
from cgraph.ops.shape import items, reshape, zeros
from cgraph.ops.while_loop import condition_node, next_state, while_loop

UNROLLED = 4  # loops up to this length are unrolled, so that passes can fuse their nodes

Function = Callable[[Values, Values], tuple[Values, Values]]


@public
def scan(f: Function, init: Values, xs: Values = None, length: int | None = None) -> tuple[Values, Values]:
    """Loop over the first axis of `xs`: ``carry, ys[i] = f(carry, xs[i])`` for each i, starting with ``carry = init``.

    Parameters
        f: takes the state and one row, and returns the next state, of the same specs, and one row of the result. A loop
            of more than `UNROLLED` rounds calls it once, with Vars; a shorter one calls it in each round
        init: the initial state: a node or array, nested tuples, lists and dicts of them, or None
        xs: a sequence ``[length, ...]``, several of them nested in the same way, or None
        length: number of rounds; needed only without `xs`
    Returns
        the final state, and the rows that `f` returned, stacked along a new first axis; both are nested as `f` returns
        them
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
    following, ys = call_body(f, like(init, names), like(xs, row_names), init, carry)
    results = nodes_of(ys)
    if not following and not results:
        raise GraphError("scan: the function returned neither a state nor a result; return (state, row)")
    if count == 0:
        return init if init is None else like(init, carry), like(ys, [zeros((0, *y.shape), y.dtype) for y in results])
    closed = close([*names, *row_names], [*following, *results])
    after, stacked = closed.results[: len(carry)], closed.results[len(carry) :]
    body = Body(tuple(names), tuple(row_names), closed.names, after, stacked)
    outputs = items(apply(Loop(body, count), *carry, *rows, *closed.shared))
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
        carry, ys = call_body(f, like(init, carry), like(xs, [x[i] for x in rows]), init, carry)
        rows_of_ys.append(nodes_of(ys))
    return like(init, carry), like(ys, [stack(list(parts)) for parts in zip(*rows_of_ys)])


def call_body(
    f: Function, state: Values, row: Values, init: Values, carry: Sequence[Node]
) -> tuple[list[Node], Values]:
    """Call `f`; return the nodes of the next state, and its row. ShapeError if that state has other specs."""
    answer = f(state, row)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise GraphError(f"scan: the function returned {answer!r:.60}; return a pair (next state, row of the result)")
    return next_state("scan", init, answer[0], carry), answer[1]


@public
def fori(
    lower: Any, upper: Any, body: Callable[[Node, Values], Values], state: Values, maximum: int | None = None
) -> Values:
    """Repeat ``state = body(i, state)`` for i from `lower` to ``upper - 1``, and return the last state.

    The body is called once, with Vars for `i` (int64) and the state; its kernels run in native code. In `cgraph.jit`,
    `i` promotes as a Python integer.

    Parameters
        lower, upper: integers, or nodes of one integer
        body: takes i and the state, and returns the next state, of the same structure, shapes and dtypes
        state: the initial state: a node or array, or nested tuples, lists and dicts of them
        maximum: of rounds, where a bound is a node; needed only for gradients (see `while_loop`)
    Raises
        ShapeError: the next state differs from the present one in structure, shape or dtype; a bound has several
            elements
    Example
        >>> n = cg.Var((), "int64")
        >>> factorial = cg.fori(1, n + 1, lambda i, y: y * i, np.int64(1))
        >>> int(cg.compile(factorial, n)(10))
        3628800
    """
    if isinstance(lower, int | np.integer) and isinstance(upper, int | np.integer):
        count = max(int(upper) - int(lower), 0)
        (_, after), _ = scan(
            lambda s, _: ((s[0] + 1, next_values(body, s, state)), None), (np.int64(lower), state), length=count
        )
        return after
    first, end = index_node(lower), index_node(upper)
    _, after = while_loop(
        lambda s: s[0] < end, lambda s: (s[0] + 1, next_values(body, s, state)), (first, state), maximum
    )
    return after


def next_values(body: Callable[[Node, Values], Values], values: tuple[Node, Values], state: Values) -> Values:
    """Return the next state. ShapeError if its structure or specs differ from those of the present one."""
    return like(state, next_state("fori", state, body(*values), nodes_of(values[1])))


def index_node(x: Any) -> Node:
    """Return a bound as an int64 of rank 0. ShapeError or DTypeError if it is not one integer."""
    node = as_node(x)
    if node.dtype.kind not in "iu":
        raise DTypeError(f"fori: the bound {node.name} {node.spec} is not an integer; convert it with astype('int64')")
    if node.size != 1:
        raise ShapeError(f"fori: the bound {node.name} {node.spec} has {node.size} elements; pass one integer")
    return reshape(node, ()).astype("int64")


@public
def cond(p: Any, f: Callable[..., Values], g: Callable[..., Values], *xs: Any) -> Values:
    """Return ``f(*xs)`` if `p` is True, else ``g(*xs)``: one of two results of equal specs.

    Both functions are called once, when the graph is built; a run computes one of them. Nodes that a function creates
    from outside values are computed only with it. The gradient is that of the function that a run computes.

    Parameters
        p: one bool
        f, g: take `xs`, and return a node, or nested tuples, lists and dicts of nodes
        xs: nodes or arrays, or nested tuples, lists and dicts of them
    Raises
        GraphError: the functions return no nodes
        ShapeError: `p` has several elements, or the results differ in structure or specs
    Example
        >>> x = cg.Var((), "float64")
        >>> y = cg.cond(x > 0, cg.log, lambda x: 0 * x, x)
        >>> float(cg.compile(y, x)(1.0))
        0.0
    """
    p, operands = condition_node("cond", p), nodes_of(xs)
    names = [Var(x.shape, x.dtype, f"operand{i}") for i, x in enumerate(operands)]
    since, values = next_serial(), like(xs, names)
    first = f(*values)
    left, right = nodes_of(first), nodes_of(ordered(first, other := g(*values)))
    if [x.spec for x in left] != [x.spec for x in right] or structure(first) != structure(ordered(first, other)):
        one, two = (", ".join(str(x.spec) for x in nodes) or "none" for nodes in (left, right))
        raise ShapeError(f"cond: one function returns {one}, the other {two}; return equal structures and specs")
    if not left:
        raise GraphError("cond: the functions returned no nodes; return the values that depend on the choice")
    closed = close(names, [*left, *right], since)
    shared = (*names, *closed.names)
    bodies = (Body((), (), shared, (), ys) for ys in (closed.results[: len(left)], closed.results[len(left) :]))
    return like(first, items(apply(Conditional(*bodies), p, *operands, *closed.shared)))
