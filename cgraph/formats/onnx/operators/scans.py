"""Importer of Scan: unrolled over a fixed length; over a dynamic one a loop of as many rounds, or masked rounds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, Value, operator
from cgraph.formats.onnx.dynamic.bounds import Length, Size
from cgraph.formats.onnx.dynamic.value import Array, counts_of, cut_to_common, lengths_of, node_in, with_lengths
from cgraph.formats.onnx.either import select_array
from cgraph.formats.onnx.operators.control import MOST_TRIPS, check_states, empty, stack_values
from cgraph.formats.onnx.operators.counted import loop_while
from cgraph.formats.unspecified import UnknownError
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const, Var
from cgraph.ops.shape import axis_of
from cgraph.record import Record


class Scanned(Record, eq=False):
    """A Scan node with its operands in order.

    Fields
        body: the graph of a round
        states: the initial states
        rows: the scanned operands, their scanned axis first, of at least `length` rows
        backward: for each of them, whether it is read from the last row on
        turned: for each collected result, whether it is stored from the last row on
        axes: for each collected result, its new axis
        length: the number of rounds
    """

    body: Any
    states: list[Value]
    rows: list[Array]
    backward: Sequence[int]
    turned: Sequence[int]
    axes: Sequence[int]
    length: Length

    @property
    def room(self) -> int:
        """The maximum number of rounds."""
        return min(node_in(x).shape[0] for x in self.rows)

    def place(self, t: Any, is_turned: int) -> Any:
        """Return the row that round `t` reads or stores."""
        return t if not is_turned else end_of(self.length) - 1 - t

    def items(self, t: Any) -> list[Array]:
        """Return the rows that round `t` reads, an int or a node."""
        return [row_of(x, self.place(t, back)) for x, back in zip(self.rows, self.backward)]


def end_of(length: Length) -> Any:
    """Return a length as a number or a node."""
    return length.node if isinstance(length, Size) else length


def row_of(x: Array, place: Any) -> Array:
    """Return one row; its place is an int or a node. A node outside the array gives zeros."""
    node = node_in(x)
    row = cg.reshape(cg.take_rows(node, place, 1), node.shape[1:]) if isinstance(place, Node) else node[place]
    return with_lengths(row, {axis - 1: n for axis, n in counts_of(x).items() if axis})


@operator("Scan")
def scan(c: Context) -> tuple[Array, ...]:
    """Import Scan; opset 8 has a batch axis and lengths."""
    if c.opset < 9:
        return scan_of_batch(c)
    return scan_values(c, [c.array(i) for i in range(len(c.operands))])


def scan_values(c: Context, operands: Sequence[Array]) -> tuple[Array, ...]:
    """Scan states and operands; return the last states, then the collected results."""
    s = scanned(c, operands)
    if not isinstance(s.length, Size):
        return unrolled(c, s)
    counted = counted_rounds(c, s)
    return masked_rounds(c, s) if counted is None else counted


def scanned(c: Context, operands: Sequence[Array]) -> Scanned:
    """Return the node's operands, cut to one length. FormatError if fixed lengths differ, or for too many rounds."""
    body, count = c.required("body"), c.required("num_scan_inputs")
    if not 0 < count <= len(operands):
        raise FormatError(f"num_scan_inputs is {count}, but there are {len(operands)} operands; scan at least one")
    states, rows = list(operands[: len(operands) - count]), operands[len(operands) - count :]
    axes = c.attribute("scan_input_axes", [0] * count)
    rows = [with_axis_moved(x, axis_of(axis, x.ndim), 0) for x, axis in zip(rows, axes)]
    lengths = [lengths_of(x)[0] for x in rows]
    fixed = {n for n in lengths if not isinstance(n, Size)}
    if len(fixed) > 1 or any(n > MOST_TRIPS for n in fixed):
        raise FormatError(f"scanned operands have lengths {lengths}; give one length up to {MOST_TRIPS}")
    nodes, length = cut_to_common(c.limits, [(node_in(x), 0, n) for x, n in zip(rows, lengths)], c.unequal)
    if nodes[0].shape[0] > MOST_TRIPS:
        raise UnknownError(f"nothing bounds the rounds to {MOST_TRIPS}", maximum=c.read[-count:])
    rows = [with_lengths(node, {**counts_of(x), 0: length}) for node, x in zip(nodes, rows)]
    results = len(body.output) - len(states)
    backward = c.attribute("scan_input_directions", [0] * count)
    turned = c.attribute("scan_output_directions", [0] * results)
    return Scanned(body, states, rows, backward, turned, c.attribute("scan_output_axes", [0] * results), length)


def with_axis_moved(x: Array, source: int, destination: int) -> Array:
    """Return a value with one axis at another place."""
    order = [axis for axis in range(x.ndim) if axis != source]
    order.insert(destination, source)
    return with_lengths(cg.transpose(node_in(x), order), {order.index(axis): n for axis, n in counts_of(x).items()})


def unrolled(c: Context, s: Scanned) -> tuple[Array, ...]:
    """Build each round of a fixed number of them."""
    rounds, states = s.room, s.states
    c.spend(nodes=rounds * (len(s.rows) + 1))
    collected: list[list[Value]] = [[] for _ in s.axes]
    for t in range(rounds):
        results = c.build(s.body, [*states, *s.items(t)])
        states = results[: len(states)]
        for values, x in zip(collected, results[len(states) :]):
            values.append(x)
    outputs = []
    for values, back, axis in zip(collected, s.turned, s.axes):
        y = stack_values(values[::-1] if back else values, rounds)
        outputs.append(with_axis_moved(y, 0, axis_of(axis, y.ndim)))
    return (*states, *outputs)


def masked_rounds(c: Context, s: Scanned) -> tuple[Array, ...]:
    """Build the maximum number of rounds; from `length` on, nothing changes."""
    end, states = end_of(s.length), s.states
    collected: list[list[Value]] = [[] for _ in s.axes]
    for t in range(s.room):
        c.spend(nodes=6 + 2 * len(states) + len(s.rows))
        active = cg.less(t, end)
        with c.limits.under(active):
            results = c.build(s.body, [*states, *s.items(Const(np.array(t, np.int64)))])
        check_states(results, states)
        states = [select_array(c.limits, active, new, old) for new, old in zip(results, states)]
        for values, x in zip(collected, results[len(states) :]):
            values.append(x)
    ends = s.body.output[len(states) :]
    outputs = []
    for values, back, axis, proto in zip(collected, s.turned, s.axes, ends):
        y = stack_values(values, s.length) if values else empty(proto)
        if back and values:
            steps = cg.maximum(end - 1 - c.limits.steps(s.room), 0)
            y = with_lengths(cg.take(node_in(y), steps, 0), {0: s.length})
        outputs.append(with_axis_moved(y, 0, axis_of(axis, y.ndim)))
    return (*states, *outputs)


def counted_rounds(c: Context, s: Scanned) -> tuple[Array, ...] | None:
    """Build one round, of a loop that runs as many as the length; None if its body does not allow that.

    It has values of dynamic length, states that change their shape, or conditions to check in each round.
    """
    if not all(isinstance(x, Node) for x in s.states) or any(set(counts_of(x)) - {0} for x in s.rows) or not s.room:
        return None
    n, states = Var((), "int64"), [Var(x.shape, x.dtype) for x in s.states]
    checks = len(c.limits.checks)
    try:
        results = c.build(s.body, [*states, *s.items(n)])
    except FormatError:  # it may need the value of a state, which is known in a written-out round
        results = [None]
    if len(c.limits.checks) > checks or not all(isinstance(x, Node) for x in results):
        del c.limits.checks[checks:]
        return None
    new, rows = results[: len(states)], results[len(states) :]
    if any(x.spec != y.spec for x, y in zip(new, states)):
        return None
    stacked = [Var((s.room, *x.shape), x.dtype) for x in rows]
    after = [cg.set_rows(y, s.place(n, back), cg.expand_dims(x, 0)) for y, x, back in zip(stacked, rows, s.turned)]
    zeros = [cg.broadcast_to(Const(np.zeros((), y.dtype)), y.shape) for y in stacked]
    start = [Const(np.array(0, np.int64)), *s.states, *zeros]
    _, *last = loop_while(cg.less(n, end_of(s.length)), [n, *states, *stacked], [n + 1, *new, *after], start, s.room)
    outputs = [
        with_axis_moved(with_lengths(y, {0: s.length}), 0, axis_of(axis, y.ndim))
        for y, axis in zip(last[len(states) :], s.axes)
    ]
    return (*last[: len(states)], *outputs)


def scan_of_batch(c: Context) -> tuple[Array, ...]:
    """Import Scan of opset 8, whose operand 0 (lengths) must be absent; each sample is scanned by itself."""
    if c.value(0) is not None:
        raise FormatError("lengths of sequences are not supported. Omit operand 0")
    operands = [c[i] for i in range(1, len(c.operands))]
    c.spend(nodes=operands[0].shape[0] * len(operands))
    results = [scan_values(c, [x[i] for x in operands]) for i in range(operands[0].shape[0])]
    return tuple(cg.stack(list(values), 0) for values in zip(*results))
