"""If, Loop and Scan: sub-graphs built in place, loops unrolled. Sequences and optionals: values while building."""

from typing import Any

import numpy as np

from cgraph.autodiff import gradient
from cgraph.errors import FormatError, PositionError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, Value, operator
from cgraph.formats.onnx.tensors import dtype_of_number
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const

MOST_TRIPS = 10_000


@operator("If")
def if_(c: Context) -> tuple[Value, ...]:
    """A condition that is open chooses between both branches' results, when they have the same specs."""
    branches = [c.required("else_branch"), c.required("then_branch")]
    if c.known.is_open(c[0]):
        results = [c.build(branch, []) for branch in branches]
        if all(same_spec(a, b) for a, b in zip(*results)):
            return tuple(cg.where(cg.reshape(c[0], ()), then, other) for other, then in zip(*results))
    return tuple(c.build(branches[bool(c.number(0))], []))


def same_spec(x: Value, y: Value) -> bool:
    return isinstance(x, Node) and isinstance(y, Node) and x.spec == y.spec


@operator("Loop")
def loop(c: Context) -> tuple[Value, ...]:
    """Unrolled while the condition holds, which must be known at each turn."""
    body = c.required("body")
    trips, state = c.number(0), list(c.operands[2:])
    going = Const(np.array(True)) if c.value(1) is None else c[1]
    collected: list[list[Node]] = [[] for _ in range(len(body.output) - 1 - len(state))]
    turn = 0
    while (trips is None or turn < trips) and bool(c.known.array(going, "the condition of a loop").reshape(())):
        if turn >= MOST_TRIPS:
            raise FormatError(f"a loop of more than {MOST_TRIPS} turns")
        c.spend(nodes=3)
        found = c.build(body, [Const(np.array(turn, np.int64)), going, *state])
        going, state, turn = found[0], found[1 : 1 + len(state)], turn + 1
        for values, x in zip(collected, found[1 + len(state) :]):
            values.append(x)
    ends = body.output[1 + len(state) :]
    return (*state, *(cg.stack(v, 0) if v else empty(p) for v, p in zip(collected, ends)))


def empty(proto: Any) -> Node:
    """What a loop of no turns collects."""
    kind = proto.type.tensor_type
    return cg.zeros((0, *(d.dim_value for d in kind.shape.dim)), dtype_of_number(kind.elem_type, proto.name))


@operator("Scan")
def scan(c: Context) -> tuple[Node, ...]:
    """Unrolled along the axes that are scanned; opset 8 has a batch axis and lengths."""
    if c.opset < 9:
        return scan_of_batch(c)
    return scanned(c, c.required("body"), c.nodes, c.required("num_scan_inputs"))


def scanned(c: Context, body: Any, operands: list[Node], count: int) -> tuple[Node, ...]:
    """States, then scanned operands; gives the last states, then the collected results."""
    states, rows = operands[: len(operands) - count], operands[len(operands) - count :]
    axes = c.attribute("scan_input_axes", [0] * count)
    backward = c.attribute("scan_input_directions", [0] * count)
    rows = [cg.moveaxis(x, a, 0) for x, a in zip(rows, axes)]
    length = rows[0].shape[0]
    if any(x.shape[0] != length for x in rows) or length > MOST_TRIPS:
        raise FormatError(
            f"scanned operands have lengths {[x.shape[0] for x in rows]}; one up to {MOST_TRIPS} is needed"
        )
    c.spend(nodes=length * (len(rows) + 1))
    results = len(body.output) - len(states)
    collected: list[list[Node]] = [[] for _ in range(results)]
    for t in range(length):
        taken = [x[length - 1 - t if back else t] for x, back in zip(rows, backward)]
        found = c.build(body, [*states, *taken])
        states = found[: len(states)]
        for values, x in zip(collected, found[len(states) :]):
            values.append(x)
    turned = c.attribute("scan_output_directions", [0] * results)
    placed = c.attribute("scan_output_axes", [0] * results)
    joined = [cg.stack(v[::-1] if back else v, a) for v, back, a in zip(collected, turned, placed)]
    return (*states, *joined)


def scan_of_batch(c: Context) -> tuple[Node, ...]:
    """Opset 8: operand 0 is the lengths, absent here; each sample of the batch is scanned by itself."""
    if c.value(0) is not None:
        raise FormatError("lengths of sequences are not supported")
    operands = [c[i] for i in range(1, len(c.operands))]
    c.spend(nodes=operands[0].shape[0] * len(operands))
    found = [
        scanned(c, c.required("body"), [x[i] for x in operands], c.required("num_scan_inputs"))
        for i in range(operands[0].shape[0])
    ]
    return tuple(cg.stack(list(values), 0) for values in zip(*found))


@operator("ai.onnx.preview.training.Gradient")
def gradient_of_value(c: Context) -> tuple[Node, ...]:
    """The gradient of the sum of one value for others, all named."""
    return tuple(gradient(cg.sum(c.named(c.required("y"))), [c.named(name) for name in c.required("xs")]))


# -- sequences and optionals ------------------------------------------------------------------------------------------


def sequence(c: Context, i: int = 0) -> list[Node]:
    """Operand i, a sequence."""
    found = c.value(i)
    if not isinstance(found, list):
        raise FormatError(f"operand {i} is no sequence")
    return found


@operator("SequenceConstruct")
def sequence_construct(c: Context) -> Any:
    return [c.nodes]


@operator("SequenceEmpty")
def sequence_empty(c: Context) -> Any:
    return [[]]


@operator("SequenceAt")
def sequence_at(c: Context) -> Value:
    found = sequence(c)
    return found[place_in(found, c.number(1))]


def place_in(found: list[Node], at: int, more: int = 0) -> int:
    """A position in a sequence, `more` of them behind its end; negative ones count from the end."""
    n = len(found)
    if not -n <= at < n + more:
        raise PositionError(f"position {at} is outside a sequence of {n}")
    return at


@operator("SequenceLength")
def sequence_length(c: Context) -> Node:
    return Const(np.array(len(sequence(c)), np.int64))


@operator("SequenceInsert")
def sequence_insert(c: Context) -> Any:
    found = list(sequence(c))
    found.insert(place_in(found, c.number(2, len(found)), 1), c[1])
    return [found]


@operator("SequenceErase")
def sequence_erase(c: Context) -> Any:
    found = list(sequence(c))
    del found[place_in(found, c.number(1, -1))]
    return [found]


@operator("SplitToSequence")
def split_to_sequence(c: Context) -> Any:
    """Pieces of given lengths, or of one length of which the last may be shorter; one by one by default."""
    x, axis = c[0], c.attribute("axis", 0) % c[0].ndim
    n = x.shape[axis]
    c.spend(nodes=n if c.value(1) is None or c[1].ndim == 0 else c[1].size)
    lengths = c.ints(1, [1] * n)
    if c.value(1) is not None and c[1].ndim == 0:
        lengths = [min(lengths[0], n - i) for i in range(0, n, lengths[0])]
    pieces = cg.split(x, np.cumsum(lengths)[:-1].tolist(), axis)
    dropped = c.value(1) is None and not c.attribute("keepdims", 1)
    return [[cg.squeeze(p, axis) for p in pieces] if dropped else pieces]


@operator("ConcatFromSequence")
def concat_from_sequence(c: Context) -> Node:
    join = cg.stack if c.attribute("new_axis", 0) else cg.concat
    return join(sequence(c), c.required("axis"))


@operator("Optional")
def optional(c: Context) -> Any:
    return [c.value(0)]


@operator("OptionalGetElement")
def optional_get(c: Context) -> Any:
    if c.value(0) is None:
        raise FormatError("the optional is empty")
    return [c.value(0)]


@operator("OptionalHasElement")
def optional_has(c: Context) -> Node:
    return Const(np.array(c.value(0) is not None))
