"""Importers of If and Loop: branches are inlined, iterations unrolled or counted by a run."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cgraph.autodiff import gradient
from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, Value, operator
from cgraph.formats.onnx.dynamic.bounds import Length, Size
from cgraph.formats.onnx.dynamic.value import Array, Ragged, with_lengths
from cgraph.formats.onnx.either import Selector, are_alike, build_both, select_array
from cgraph.formats.onnx.operators.counted import counted_loop
from cgraph.formats.onnx.tensors import dtype_of_number
from cgraph.formats.unspecified import UnknownError
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const

MOST_TRIPS = 10_000


@operator("If")
def if_(c: Context) -> tuple[Value, ...]:
    """Import If; a condition at run time selects between the results of both branches, which may differ."""
    branches = [c.required("else_branch"), c.required("then_branch")]
    low, high = c.limits.bounds(c[0])
    if low.min() == high.max():  # its bounds decide it
        return tuple(c.build(branches[bool(low.min())], []))
    condition = cg.reshape(c[0], ()) if c[0].ndim else c[0]
    if c.evaluator.missing(condition):
        return open_if(c, Selector(condition, c.name or c.written[0], c.read[0]), branches)
    if c.evaluator.is_open(condition):  # given in `constants`: it stays open if shapes do not depend on it
        results = [c.build(branch, []) for branch in branches]
        if all(same_spec(a, b) for a, b in zip(*results)):
            return tuple(select_array(c.limits, condition, then, other) for other, then in zip(*results))
    return tuple(c.build(branches[bool(c.number(0))], []))


def open_if(c: Context, selector: Selector, branches: Sequence[Any]) -> tuple[Value, ...]:
    """Import If with a condition at run time: both branches, or the one that `constants` gives, which a run checks."""
    fixed = c.evaluator.values.get(selector.read)
    if fixed is None:
        return tuple(build_both(c.limits, selector, lambda holds: c.build(branches[holds], []), str))
    holds = bool(np.asarray(fixed).reshape(()))
    text = f"constants gives {holds} for {selector.read!r:.60}, the condition of If {selector.name!r:.60}; it differs"
    c.limits.check(selector.when(holds), text)
    return tuple(c.build(branches[holds], []))


def same_spec(x: Value, y: Value) -> bool:
    return isinstance(x, Node) and isinstance(y, Node) and x.spec == y.spec


@operator("Loop")
def loop(c: Context) -> tuple[Value, ...]:
    """Import Loop, unrolled. A condition at run time needs a maximum number of iterations."""
    body = c.required("body")
    if c.is_open(0, 1):
        return open_loop(c, body, c.length(0), list(c.operands[2:]), [], 0)
    trips, state = c.number(0), list(c.operands[2:])
    going = Const(np.array(True)) if c.value(1) is None else c[1]
    collected: list[list[Node]] = [[] for _ in range(len(body.output) - 1 - len(state))]
    turn = 0
    while trips is None or turn < trips:
        if c.evaluator.missing(going):
            return open_loop(c, body, trips, state, collected, turn, going)
        if not c.evaluator.array(going, "the condition of a loop").reshape(()):
            break
        if turn >= MOST_TRIPS:
            raise FormatError(f"a loop of more than {MOST_TRIPS} iterations cannot be unrolled: reduce its trip count")
        c.spend(nodes=3)
        results = c.build(body, [Const(np.array(turn, np.int64)), going, *state])
        going, state, turn = results[0], results[1 : 1 + len(state)], turn + 1
        for values, x in zip(collected, results[1 + len(state) :]):
            values.append(x)
    ends = body.output[1 + len(state) :]
    return (*state, *(cg.stack(v, 0) if v else empty(p) for v, p in zip(collected, ends)))


def open_loop(
    c: Context,
    body: Any,
    trips: Length | None,
    state: list[Value],
    collected: list[list[Node]],
    turn: int,
    going: Node | None = None,
) -> tuple[Value, ...]:
    """Import a loop of as many iterations as a run needs: built once, or else unrolled."""
    most = c.room(trips, [0]) if trips is not None else c.maximum
    c.limits.used |= set(c.written[:1]) & c.limits.maximum.keys()
    if most > MOST_TRIPS:
        raise UnknownError(f"nothing bounds the iterations of a loop to {MOST_TRIPS}", maximum=c.written[:1])
    if turn == 0:
        growing = [i for i in growing_states(body) if has_rows(state[i])]
        counted = counted_loop(c, body, trips, state, growing, int(most))
        if counted is not None:
            return counted
    return unrolled_loop(c, body, trips, state, collected, turn, going, int(most))


def unrolled_loop(
    c: Context,
    body: Any,
    trips: Length | None,
    state: list[Value],
    collected: list[list[Node]],
    turn: int,
    going: Node | None,
    most: int,
) -> tuple[Value, ...]:
    """Unroll the maximum number of iterations; after the last active one, nothing changes."""
    collected = collected or [[] for _ in range(len(body.output) - 1 - len(state))]
    going = c.get(1, Const(np.array(True))) if going is None else going
    active = cg.reshape(going, ())
    count: Any = Const(np.array(turn, np.int64))
    grown = {i: [state[i]] for i in growing_states(body) if turn == 0 and has_rows(state[i])}
    for i, (x,) in grown.items():
        state[i] = x[:0]  # type: ignore[index]
    for number in range(turn, most):
        if isinstance(trips, Size):
            active = cg.logical_and(active, cg.less(number, trips.node))
        c.spend(nodes=6 + 2 * len(state))
        with c.limits.under(active):
            results = c.build(body, [Const(np.array(number, np.int64)), going, *state])
        check_states(results[1:], state)
        for i, rows in grown.items():
            rows.append(results[1 + i])
        pairs = zip(results[1:], state)
        state = [old if i in grown else select_array(c.limits, active, new, old) for i, (new, old) in enumerate(pairs)]
        for values, x in zip(collected, results[1 + len(state) :]):
            values.append(x)
        count = count + cg.astype(active, "int64")
        going = results[0]
        active = cg.logical_and(active, cg.reshape(going, ()))
    if trips is None:
        c.limits.check(cg.logical_not(active), f"{c.unequal}: the loop has not ended after {most} turns")
    length = c.limits.length(count)
    for i, rows in grown.items():
        state[i] = join_rows(c, rows, count)
    ends = body.output[1 + len(state) :]
    return (*state, *(stack_values(v, length) if v else empty(p) for v, p in zip(collected, ends)))


def check_states(new: Sequence[Value], state: Sequence[Value]) -> None:
    """Raise FormatError if a state is of another kind after an iteration."""
    for i, (x, y) in enumerate(zip(new, state)):
        if not are_alike(x, y):
            raise FormatError(
                f"state {i} of a loop changes its dtype or number of axes, which is not supported. Cast or reshape it"
            )


def growing_states(body: Any) -> list[int]:
    """Return the states to which every iteration appends rows and which it reads for nothing else."""
    names = [v.name for v in body.input[2:]]
    nodes = {name: node for node in body.node for name in node.output}
    reads = Counter(name for node in body.node for name in names_read(node))
    growing = []
    for i, (name, end) in enumerate(zip(names, body.output[1:])):
        node = nodes.get(end.name)
        appends = node is not None and node.op_type == "Concat" and len(node.input) > 1 and node.input[0] == name
        if appends and reads[name] == 1 and reads[end.name] == 0 and all(a.i == 0 for a in node.attribute):  # type: ignore[union-attr]
            growing.append(i)
    return growing


def names_read(node: Any) -> Iterator[str]:
    """Yield the names that a node and the graphs inside it read."""
    yield from node.input
    for graph in (a.g for a in node.attribute if a.HasField("g")):
        yield from (v.name for v in graph.output)
        for inner in graph.node:
            yield from names_read(inner)


def has_rows(x: Value) -> bool:
    """Return True for an array of a fixed number of rows."""
    return isinstance(x, Node) and x.ndim > 0


def join_rows(c: Context, parts: Sequence[Value], count: Node) -> Array:
    """Return an array and the rows that iterations append to it, of which `count` happened; all append equally many.

    Raises
        FormatError: the number of rows differs, or is known only at run time
    """
    first, *rows = parts
    if not all(isinstance(x, Node) and x.shape == rows[0].shape for x in rows):  # type: ignore[union-attr]
        raise FormatError(
            "a loop cannot append rows whose number is known only at run time or differs between iterations. Give "
            "shapes= or constants= that fix it"
        )
    each = rows[0].shape[0] if rows else 0  # type: ignore[union-attr]
    length = c.limits.length(count * each + first.shape[0])  # type: ignore[union-attr]
    return with_lengths(cg.concat(parts, 0), {0: length})


def stack_values(values: Sequence[Value], length: Length) -> Array:
    """Stack values of one shape along a new axis, of which the first `length` count."""
    if any(isinstance(x, Ragged) for x in values):
        raise FormatError(
            "a loop cannot collect values of a length known only at run time. Give shapes= or constants= that fix it"
        )
    return with_lengths(cg.stack(values, 0), {0: length})


def empty(proto: Any) -> Node:
    """Return the collected result of a loop without iterations."""
    kind = proto.type.tensor_type
    return cg.zeros((0, *(d.dim_value for d in kind.shape.dim)), dtype_of_number(kind.elem_type, proto.name))


@operator("ai.onnx.preview.training.Gradient")
def gradient_of_value(c: Context) -> tuple[Node, ...]:
    """Import Gradient: of the sum of one value with respect to others, all by name."""
    return tuple(gradient(cg.sum(c.named(c.required("y"))), [c.named(name) for name in c.required("xs")]))
