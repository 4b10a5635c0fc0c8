"""Importers of recurrent operators. Their states are variable tensors, which persist between runs.

Source: lstm_eval.cc and svdf.cc of tensorflow/lite/kernels.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.fixed import as_bytes, parts_of, scale_factor
from cgraph.formats.tflite.fixed_functions import logistic_table, tanh_table
from cgraph.formats.tflite.operators.conv import bias_of
from cgraph.formats.tflite.operators.pointwise import divide
from cgraph.formats.tflite.value import QuantisedFormat
from cgraph.ir.graph import Node, apply
from cgraph.kernels.conv8.calls import Result
from cgraph.ops.leaf import Const
from cgraph.ops.physical.integer import IntegerMatmul
from cgraph.record import Record

GATES = 4  # in the order input, forget, cell, output
INPUT, FORGET, UPDATE, OUTPUT = range(GATES)
PEEPHOLES = {INPUT: 0, FORGET: 1, OUTPUT: 2}  # the weights of a cell that each gate reads
GATE_BITS = 3  # integer bits of a gate's argument
NODES, RNN_NODES, SVDF_NODES = 500, 100, 60  # of an LSTM or RNN of four steps, which is unrolled, and of SVDF
TANH = 4  # the number of the activation
SMALL = 1e-8  # added to a variance
WORDS = 1 << 15


class LstmOperands(Record):
    """Numbers of the operands of an LSTM: of the first of each kind.

    Fields
        weights, recurrent, biases, norms: four each, one for each gate; those of the input gate may be absent, and all
            norms
        peepholes: three
        projection: its weights, then its bias
        state, cell: what persists between runs
    """

    weights: int = 1
    recurrent: int = 5
    peepholes: int = 9
    biases: int = 12
    projection: int = 16
    norms: int = 20
    state: int = 18
    cell: int = 19


PLAIN = LstmOperands()
NO_NORMS = 1000  # the number of operands that no file has
FORWARD = LstmOperands(norms=NO_NORMS, state=35, cell=36)
BACKWARD = LstmOperands(18, 22, 26, 29, 33, NO_NORMS, 37, 38)
CROSSED = {"BIDIRECTIONAL_SEQUENCE_LSTM": 39, "BIDIRECTIONAL_SEQUENCE_RNN": 9}
"""The first operand of a second input, whose weights follow."""
EXTRA = {"peephole weights": (9, 10, 11), "projections": (16, 17), "layer norms": (20, 21, 22, 23)}


@operator("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", on_bytes=True, on_words=True)
def lstm(c: TfliteContext) -> Node:
    """Import LSTM, one step ``[n, inputs]``, and UNIDIRECTIONAL_SEQUENCE_LSTM, steps ``[n, steps, inputs]``."""
    if c.kind == "LSTM" and c.option("kernel") != 0:
        raise FormatError(f"kernel_type {c.option('kernel')} is not supported. Convert with the full kernel")
    return as_sequence(c, run_lstm(c, PLAIN, steps_of(c)))


@operator("BIDIRECTIONAL_SEQUENCE_LSTM")
def bidirectional_lstm(c: TfliteContext) -> list[Node]:
    """Import BIDIRECTIONAL_SEQUENCE_LSTM: the results of both directions, joined if `merge` says so."""
    steps = steps_of(c)
    return both_directions(c, run_lstm(c, FORWARD, steps), run_lstm(c, BACKWARD, cg.flip(steps, 0)))


@operator("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN")
def rnn(c: TfliteContext) -> Node:
    """Import RNN, one step ``[n, inputs]``, and UNIDIRECTIONAL_SEQUENCE_RNN, steps ``[n, steps, inputs]``."""
    return as_sequence(c, run_rnn(c, 1, steps_of(c)))


@operator("BIDIRECTIONAL_SEQUENCE_RNN")
def bidirectional_rnn(c: TfliteContext) -> list[Node]:
    """Import BIDIRECTIONAL_SEQUENCE_RNN: the results of both directions, joined if `merge` says so."""
    steps = steps_of(c)
    return both_directions(c, run_rnn(c, 1, steps), run_rnn(c, 5, cg.flip(steps, 0)))


def steps_of(c: TfliteContext) -> Node:
    """Return operand 0 as steps ``[steps, n, inputs]``."""
    x, is_sequence = c[0].plain, "SEQUENCE" in c.kind
    if x.ndim != 2 + is_sequence:
        raise FormatError(f"{x.spec} does not have {2 + is_sequence} axes: samples, steps of a sequence, and inputs")
    if not is_sequence:
        return x.reshape((1, *x.shape))
    return x if c.option("time_major") else x.transpose((1, 0, 2))


def as_sequence(c: TfliteContext, rows: Node) -> Node:
    """Return the results of all steps in the file's order of axes."""
    if "SEQUENCE" not in c.kind:
        return rows[0]
    return rows if c.option("time_major") else rows.transpose((1, 0, 2))


def both_directions(c: TfliteContext, forward: Node, backward: Node) -> list[Node]:
    """Return the results of both directions in the file's order; the second one's steps are still reversed."""
    if any(x is not None for x in c.operands[CROSSED[c.kind] :]):
        raise FormatError("a second input is not supported. Join it to the first one")
    rows = [as_sequence(c, x) for x in (forward, cg.flip(backward, 0))]
    return [cg.concat(rows, axis=2)] if c.option("merge") else rows


def run_rnn(c: TfliteContext, first: int, steps: Node) -> Node:
    """Return the results of all steps. Operands from `first` on: weights, those of the state, a bias, the state."""
    c.allowance.spend("an RNN", nodes=RNN_NODES)
    w, u, bias, state = c.filters(first, (1, 0)), c.filters(first + 1, (1, 0)), c[first + 2].plain, c[first + 3]

    def step(h: Node, x: Node) -> tuple[Node, Node]:
        h = c.activated(x + cg.matmul(h, u))
        return h, h

    h, rows = cg.scan(step, state.plain.reshape((steps.shape[1], -1)), cg.matmul(steps, w) + bias)
    c.assign(first + 3, h.reshape(state.shape))
    return rows


def run_lstm(c: TfliteContext, at: LstmOperands, steps: Node) -> Node:
    """Return the results of all steps, and give both states their new values."""
    c.allowance.spend("an LSTM", nodes=NODES)
    state = [c[i].plain.reshape((steps.shape[1], -1)) for i in (at.state, at.cell)]
    (h, cell), rows = lstm_of_bytes(c, steps, state) if c.is_quantised else lstm_of_floats(c, at, steps, state)
    c.assign(at.state, h.reshape(c[at.state].shape))
    c.assign(at.cell, cell.reshape(c[at.cell].shape))
    return rows


def lstm_of_floats(c: TfliteContext, at: LstmOperands, steps: Node, state: Sequence[Node]) -> tuple[list[Node], Node]:
    """Compute with floats. Without an input gate, what is not forgotten is replaced."""
    gates = [i for i in range(GATES) if i != INPUT or c.get(at.weights) is not None]
    matrices = [c[first + i] for first in (at.weights, at.recurrent) for i in gates]
    if any(x.quantised is not None for x in (*matrices, c.get(at.projection)) if x is not None):
        raise FormatError("an LSTM of floats with weights of bytes is not supported. Quantise all of it, or nothing")
    w, u = (cg.concat([c.filters(first + i, (1, 0)) for i in gates], axis=1) for first in (at.weights, at.recurrent))
    biases, has_norms = {i: c[at.biases + i].node for i in gates}, c.get(at.norms + FORGET) is not None
    clip, projection_clip = c.option("clip"), c.option("projection_clip")
    projection = None if c.get(at.projection) is None else c.filters(at.projection, (1, 0))
    offset = c.get(at.projection + 1)

    def gate(i: int, total: Node, cell: Node) -> Node:
        peephole = c.get(at.peepholes + PEEPHOLES[i]) if i in PEEPHOLES else None
        total = total if peephole is None else total + cell * peephole.node
        return cg.layer_norm(total, c[at.norms + i].node, biases[i], SMALL) if has_norms else total

    def result_of(x: Node) -> Node:
        if projection is None:
            return x
        x = cg.matmul(x, projection)
        x = x if offset is None else x + offset.node
        return cg.clip(x, -projection_clip, projection_clip) if projection_clip > 0 else x

    def step(carry: list[Node], x: Node) -> tuple[list[Node], Node]:
        h, cell = carry
        sums = dict(zip(gates, cg.split(x + cg.matmul(h, u), len(gates), -1)))
        forget = cg.sigmoid(gate(FORGET, sums[FORGET], cell))
        enters = cg.sigmoid(gate(INPUT, sums[INPUT], cell)) if INPUT in sums else 1 - forget
        cell = forget * cell + enters * c.activated(gate(UPDATE, sums[UPDATE], cell))
        cell = cg.clip(cell, -clip, clip) if clip > 0 else cell
        h = result_of(cg.sigmoid(gate(OUTPUT, sums[OUTPUT], cell)) * c.activated(cell))
        return [h, cell], h

    inputs = cg.matmul(steps, w)
    return cg.scan(step, list(state), inputs if has_norms else inputs + cg.concat(list(biases.values()), axis=0))


class Gates(Record, eq=False):
    """The sums of all gates of one operand: bytes times weights, scaled to int16.

    Fields
        zero: zero point of the bytes
        weights: int8 ``[inputs, gates * n]``
        bias: int32 ``[gates * n]``
        factor, shift: for each column
    """

    zero: int
    weights: np.ndarray
    bias: np.ndarray
    factor: np.ndarray
    shift: np.ndarray

    def sums(self, x: Node) -> Node:
        """Return int32 ``[n, gates * n]`` of bytes ``[n, inputs]``."""
        scales = np.ones(self.bias.size, "float32")
        constants = (Const(y, copy=False) for y in (self.weights, self.bias, scales))
        total = apply(IntegerMatmul(self.zero, Result("i4")), x, *constants)
        return cg.fixed_product(total, self.factor, self.shift)


def gates_of(c: TfliteContext, form: QuantisedFormat, first: int, count: int, has_bias: bool) -> Gates:
    """Return the gates of one operand, whose format is given. FormatError if the weights are not symmetric int8."""
    values = [c[first + i] for i in range(GATES)]
    arrays = [x.array for x in values if x.array is not None and x.bytes.is_signed and not x.bytes.zeros.any()]
    if len(arrays) < GATES:
        raise FormatError("quantised weights of an LSTM must be constant int8 without zero points")
    c.spend(nbytes=2 * sum(x.nbytes for x in arrays))
    weights = np.ascontiguousarray(np.concatenate(arrays).T)
    if weights.shape[1] != GATES * count:
        raise FormatError(f"weights {list(weights.shape)} do not fit a state of {count}")
    bias = np.zeros(GATES * count, "int32")
    if has_bias:
        bias = np.concatenate([bias_of(c, PLAIN.biases + i, count) for i in range(GATES)])
    scales = [np.float64(x.bytes.scale * form.scale / np.float32(2.0 ** (GATE_BITS - 15))) for x in values]
    return Gates(form.zero, weights, bias, *np.repeat(parts_of(scales), count, axis=1))


def lstm_of_bytes(c: TfliteContext, steps: Node, state: Sequence[Node]) -> tuple[list[Node], Node]:
    """Compute with bytes, gates and cells of int16; both functions are tables."""
    for name, numbers in EXTRA.items():
        if any(c.get(i) is not None for i in numbers):
            raise FormatError(f"{name} of a quantised LSTM are not supported. Use an LSTM of four gates without them")
    if c.get(PLAIN.weights) is None:
        raise FormatError("a quantised LSTM with coupled input and forget gates is not supported. Use four gates")
    form, between, count = c[PLAIN.state].bytes, c[PLAIN.cell].bytes, state[0].shape[1]
    exponent = int(np.round(np.log2(between.scale)))
    if not between.is_wide or between.scale != np.float32(2.0) ** exponent or not -15 <= exponent <= -9:
        raise FormatError("the cell of a quantised LSTM must be int16, and its scale a power of 2 from 2**-15 to 2**-9")
    if not form.equals(c.result) or form.is_wide or c[0].bytes.is_wide or c.option("activation") != TANH:
        raise FormatError(
            "a quantised LSTM must have bytes, results in the format of its state, and the activation tanh"
        )
    x = gates_of(c, c[0].bytes, PLAIN.weights, count, True)
    h = gates_of(c, form, PLAIN.recurrent, count, False)
    clip = int(min(c.option("clip") / between.scale, WORDS - 1))
    inputs = words(x.sums(steps.reshape((-1, steps.shape[2])))).reshape((*steps.shape[:2], GATES * count))
    out = np.float64(np.float32(2.0**-15) / form.scale * np.float32(2.0**-15))

    def step(carry: list[Node], row: Node) -> tuple[list[Node], Node]:
        i, f, g, o = cg.split(words(h.sums(carry[0]) + row), GATES, -1)
        i, f, o = (look_up(logistic_table(GATE_BITS), y) for y in (i, f, o))
        past = divide(f * cg.astype(carry[1], "int32"), 15)
        cell = words(past + divide(i * look_up(tanh_table(GATE_BITS), g), 30 + exponent))
        cell = cg.clip(cell, -clip, clip) if clip > 0 else cell
        after = scale_factor(o * look_up(tanh_table(15 + exponent), cell), out)
        result = as_bytes(after, form)
        return [result, cg.astype(cell, "int16")], result

    return cg.scan(step, list(state), inputs)


def words(x: Node) -> Node:
    """Clip int32 to 16 bits."""
    return cg.clip(x, np.int32(-WORDS), np.int32(WORDS - 1))


def look_up(table: np.ndarray, x: Node) -> Node:
    """Return the entries of a table of int16, as int32."""
    return cg.astype(cg.take(table, x + np.int32(WORDS)), "int32")


@operator("SVDF", on_bytes=True, on_words=True)
def svdf(c: TfliteContext) -> Node:
    """Import SVDF; operands: input ``[n, inputs]``, filters of features and of time, a bias, the state.

    Each filter's result is remembered; the result is a sum of the last ones, weighted by time, and over `rank` filters.
    """
    x, past, rank = c[0].plain, c[4].plain, c.option("rank")
    if c[2].ndim != 2 or rank < 1 or c[2].shape[0] % rank or x.ndim != 2 or past.size != x.shape[0] * prod(c[2].shape):
        raise FormatError(f"filters {list(c[2].shape)} of rank {rank} do not fit {x.spec} and {past.spec}")
    c.allowance.spend("SVDF", nodes=SVDF_NODES)
    older = past.reshape((x.shape[0], *c[2].shape))[:, :, 1:]
    state, total = (svdf_of_bytes if c.is_quantised else svdf_of_floats)(c, x, older)
    c.assign(4, state.reshape(past.shape))
    return total


def svdf_of_floats(c: TfliteContext, x: Node, older: Node) -> tuple[Node, Node]:
    if c[1].quantised is not None or c[2].quantised is not None:
        raise FormatError("SVDF of floats with weights of bytes is not supported. Quantise all of it, or nothing")
    features = cg.matmul(x, c.filters(1, (1, 0)))
    state = cg.concat([older, cg.expand_dims(features, 2)], axis=2)
    total = sum_units(c, cg.sum(state * c[2].node, axis=2))
    return state, c.activated(total if c.get(3) is None else total + c[3].node)


def sum_units(c: TfliteContext, x: Node) -> Node:
    """Add the filters of a unit."""
    rank = c.option("rank")
    return cg.sum(x.reshape((x.shape[0], x.shape[1] // rank, rank)), axis=2)


def svdf_of_bytes(c: TfliteContext, x: Node, older: Node) -> tuple[Node, Node]:
    """Compute with bytes, a state and weights of time of int16, and sums of int32."""
    form, slow = c[4].bytes, c[2].bytes
    words, others = (form, slow), (c[0].bytes, c.result, c[1].bytes)
    if any(not x.is_wide or x.zero for x in words) or any(x.is_wide for x in others) or not c[1].bytes.is_signed:
        raise FormatError(
            "a quantised SVDF must have int8 filters of features, int16 filters of time and an int16 state, without "
            "zero points"
        )
    weights = c.filters(1, (1, 0)).op.array  # type: ignore[attr-defined]
    unused = np.zeros(weights.shape[1], "int32"), np.ones(weights.shape[1], "float32")
    constants = (Const(y, copy=False) for y in (weights, *unused))
    total = apply(IntegerMatmul(c[0].bytes.zero, Result("i4")), x, *constants)
    features = as_bytes(scale_factor(total, np.float64(c[0].bytes.scale * c[1].bytes.scale / form.scale)), form)
    state = cg.concat([older, cg.expand_dims(features, 2)], axis=2)
    products = cg.astype(state, "int32") * cg.astype(c[2].node, "int32")
    units = cg.astype(sum_units(c, cg.sum(products, axis=2)), "int32")
    bias = bias_of(c, 3, units.shape[1])
    scale = np.float64(form.scale * slow.scale / c.result.scale)
    return state, as_bytes(scale_factor(units + bias, scale), c.result)
