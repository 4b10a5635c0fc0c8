"""Importers of If and Loop: branches are inlined, iterations unrolled or counted by a run."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cgraph.autodiff import gradient
from cgraph.errors import FormatError, PositionError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, Value, operator
from cgraph.formats.onnx.dynamic.bounds import Length, Size
from cgraph.formats.onnx.dynamic.value import Array, Ragged, with_lengths
from cgraph.formats.onnx.either import Selector, are_alike, build_both, select_array
from cgraph.formats.onnx.operators.counted import MOST_TRIPS, check_end, counted_loop, grown_loop
from cgraph.formats.onnx.tensors import dtype_of_number
from cgraph.formats.unspecified import UnknownError
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const


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


class Turns:
    """A Loop operator between two iterations. Mutable: each iteration changes it.

    Fields
        body: the graph of an iteration
        trips: number of iterations, which a run may decide; None without one
        going: the condition of the next iteration
        state: the values that an iteration passes to the next
        collected: the values of all iterations so far, for each further output of the body
        number: of iterations so far
    """

    def __init__(self, c: Context) -> None:
        self.body = c.required("body")
        self.trips: Length | None = c.length(0) if c.is_open(0, 1) else c.number(0)
        self.going: Node = c.get(1, Const(np.array(True)))  # type: ignore[assignment]
        self.state = list(c.operands[2:])
        self.ends = self.body.output[1 + len(self.state) :]
        self.collected: list[list[Node]] = [[] for _ in self.ends]
        self.number = 0

    @property
    def is_complete(self) -> bool:
        """True after the last iteration, if their number is known."""
        return self.trips is not None and not isinstance(self.trips, Size) and self.number >= self.trips

    def build(self, c: Context) -> tuple[list[Value], list[Value]]:
        """Build an iteration; return its states and its further values."""
        count = Const(np.array(self.number, np.int64))
        self.going, *results = c.build(self.body, [count, self.going, *self.state])
        self.number += 1
        return results[: len(self.state)], results[len(self.state) :]

    def collect(self, values: Sequence[Any]) -> None:
        """Add the further values of an iteration."""
        for before, x in zip(self.collected, values):
            before.append(x)


@operator("Loop")
def loop(c: Context) -> tuple[Value, ...]:
    """Import Loop, unrolled if all its conditions are known now; else see `open_loop`."""
    turns = Turns(c)
    if c.is_open(0, 1):
        return open_loop(c, turns)
    while not turns.is_complete:
        if c.evaluator.missing(turns.going):
            return open_loop(c, turns)
        if not c.evaluator.array(turns.going, "the condition of a loop").reshape(()):
            break
        if turns.number >= MOST_TRIPS:
            raise FormatError(f"a loop of more than {MOST_TRIPS} iterations cannot be unrolled: reduce its trip count")
        c.spend(nodes=3)
        turns.state, values = turns.build(c)
        turns.collect(values)
    if not turns.number:
        return (*turns.state, *nothing_collected(c, turns))
    return (*turns.state, *(stack_values(v, len(v)) for v in turns.collected))


def nothing_collected(c: Context, turns: Turns) -> list[Value]:
    """Return what a loop without iterations collects, of the dtype and shape that the file or an iteration gives."""
    if all(v.type.tensor_type.elem_type for v in turns.ends):
        return [empty(v) for v in turns.ends]
    _, values = Turns(c).build(c)
    return [stack_values([x], 1)[:0] for x in values]  # type: ignore[index]


def open_loop(c: Context, turns: Turns) -> tuple[Value, ...]:
    """Import a loop of as many iterations as a run needs: built once, or else unrolled."""
    c.limits.use_for_rounds(c.written_names[:1])
    most = most_turns(c, turns)
    starts = [Turns(c)] if turns.number <= 1 or most is None else []
    starts += [turns] if turns.number == 1 and not turns.ends else []  # the first round may change shapes of states
    for start in starts:
        counted = counted_loop(c, start, appended_states(start), most)
        if counted is not None:
            return counted
    start, after = Turns(c), states_after_one(c, turns)
    grown = None if after is None else grown_loop(c, start, appended_states(start), after, most)
    if grown is not None:
        return grown
    if most is not None:
        return unrolled_loop(c, turns, most)
    if isinstance(turns.trips, Size):
        c.room(turns.trips, [0])
    raise UnknownError(f"nothing bounds the iterations of a loop to {MOST_TRIPS}", maximum=c.written_names[:1])


def appended_states(turns: Turns) -> list[int]:
    """Return the arrays to which every iteration appends rows and which it reads for nothing else; before the first
    iteration, since the rows are counted from there.
    """
    return [i for i in growing_states(turns.body) if turns.number == 0 and has_rows(turns.state[i])]


def states_after_one(c: Context, turns: Turns) -> Sequence[Value] | None:
    """Return the states after the first iteration; None if it cannot be built."""
    if turns.number == 1:
        return turns.state
    checks = len(c.limits.checks)
    try:
        return Turns(c).build(c)[0]
    except (FormatError, PositionError):
        return None
    finally:
        del c.limits.checks[checks:]


def most_turns(c: Context, turns: Turns) -> int | None:
    """Return the maximum number of iterations; None if nothing bounds it to those that can be unrolled."""
    trips = turns.trips
    bound = np.inf if trips is None else trips.high if isinstance(trips, Size) else trips
    if min(bound, c.maximum) > MOST_TRIPS:
        return None
    return int(c.room(trips, [0]) if isinstance(trips, Size) else max(min(bound, c.maximum), 0))


def unrolled_loop(c: Context, turns: Turns, most: int) -> tuple[Value, ...]:
    """Unroll the maximum number of iterations; after the last active one, nothing changes."""
    state, active = turns.state, cg.reshape(turns.going, ())
    count: Any = Const(np.array(turns.number, np.int64))
    grown = {i: [state[i]] for i in appended_states(turns)}
    for i, (x,) in grown.items():
        state[i] = x[:0]  # type: ignore[index]
    while turns.number < most:
        if isinstance(turns.trips, Size):
            active = cg.logical_and(active, cg.less(turns.number, turns.trips.node))
        c.spend(nodes=6 + 2 * len(state))
        with c.limits.under(active):
            after, values = turns.build(c)
        check_states(after, state)
        for i, rows in grown.items():
            rows.append(after[i])
        pairs = enumerate(zip(after, state))
        state = [old if i in grown else select_array(c.limits, active, new, old) for i, (new, old) in pairs]
        turns.state = state
        turns.collect(values)
        count = count + cg.astype(active, "int64")
        active = cg.logical_and(active, cg.reshape(turns.going, ()))
    check_end(c, turns.trips, active, count, most)
    length = c.limits.length(count)
    for i, rows in grown.items():
        state[i] = join_rows(c, rows, count)
    return (*state, *(stack_values(v, length) if v else empty(p) for v, p in zip(turns.collected, turns.ends)))


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
    return cg.zeros((0, *(max(d.dim_value, 0) for d in kind.shape.dim)), dtype_of_number(kind.elem_type, proto.name))


@operator("ai.onnx.preview.training.Gradient")
def gradient_of_value(c: Context) -> tuple[Node, ...]:
    """Import Gradient: of the sum of one value with respect to others, all by name."""
    return tuple(gradient(cg.sum(c.named(c.required("y"))), [c.named(name) for name in c.required("xs")]))
